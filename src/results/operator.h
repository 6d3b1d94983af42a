// SPDX-License-Identifier: Apache-2.0
//
// Operators of a framework or of the program itself, and the rates of those whose inputs are known.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "results/field.h"
#include "results/row.h"

namespace gpuwhy {

// One operator of a framework in one stage.
struct OperatorRow {
  std::string name;              // normalised: without ids, sequence numbers and shapes
  RowName stage;                 // without a name if the source does not say
  std::int64_t total_ns = 0;     // its own, operators inside it left out: rows do not overlap
  std::int64_t calls = 0;        // that launched kernels themselves
  std::int64_t num_kernels = 0;  // it launched itself
  std::optional<std::int64_t> flops;
  std::optional<std::int64_t> bytes;
  double share_fraction = 0;  // of Operators::whole_ns

  double mean_ns() const { return fraction_of(total_ns, std::max<std::int64_t>(calls, 1)); }
};

template <typename F>
void describe(const OperatorRow*, F&& f) {
  using T = OperatorRow;
  const auto in_rows = [](std::string_view unit, std::string_view text) {
    return number(unit, "calls", "marks kernels", "operators", text);
  };
  f("name", &T::name, names_row("without ids, sequence numbers and shapes"));
  f("stage", &T::stage, names_row("the stage it launched in", 2));
  f("total_ns", &T::total_ns, in_rows("ns", "its own time, operators inside it left out"));
  f("calls", &T::calls, number("1", "", "marks", "operators", "calls of that operator"));
  f("mean_ns", &T::mean_ns, in_rows("ns", "total_ns / calls"));
  f("share_fraction", &T::share_fraction, in_rows("fraction", "total_ns / operators.whole_ns"));
  f("kernels", &T::num_kernels, in_rows("1", "kernels it launched itself"));
  f("flops", &T::flops, number("FLOP", "calls", "marks", "operators", "from the shapes"));
  f("bytes", &T::bytes, number("bytes", "calls", "marks", "operators", "from the shapes"));
}

// Time of one layer of the model.
struct LayerTotal {
  std::string layer;  // "3", or a module's path
  std::int64_t total_ns = 0;
  std::int64_t calls = 0;
};

template <typename F>
void describe(const LayerTotal*, F&& f) {
  using T = LayerTotal;
  f("layer", &T::layer, names_row("the layer"));
  f("total_ns", &T::total_ns,
    number("ns", "calls", "marks kernels", "operators", "sum over that layer"));
  f("calls", &T::calls,
    number("1", "", "marks kernels", "operators", "calls of operators of that layer"));
}

// All calls of one matrix product or attention with the same sizes and type.
struct GemmRate {
  std::string op;          // "aten::mm"
  std::string dims;        // "15360x4096 x 4096x24576"
  std::string dtype;       // "bf16"; the recording's own word where it has no short name
  std::int64_t calls = 0;  // that launched kernels
  std::int64_t total_ns = 0;
  double flops = 0;  // of all calls: 2 x multiply-adds
  std::optional<double> flops_per_s;
  std::optional<double> peak_fraction;
  std::string reason;  // why there is none
};

template <typename F>
void describe(const GemmRate*, F&& f) {
  using T = GemmRate;
  const auto of_calls = [](std::string_view unit, std::string_view sources, std::string_view text) {
    return number(unit, "calls", sources, "gemm_rates", text);
  };
  f("operator", &T::op, names_row("the operator"));
  f("dims", &T::dims, names_row("sizes of what is multiplied, or of query and keys", 2));
  f("dtype", &T::dtype, names_row("type of the first factor, or of the query", 3));
  f("calls", &T::calls,
    number("1", "", "marks kernels", "gemm_rates", "calls that launched kernels"));
  f("total_ns", &T::total_ns, of_calls("ns", "marks kernels", "kernels that it launched itself"));
  f("flops", &T::flops,
    of_calls("FLOP", "marks",
             "2 x m x n x k x batch, of all calls; attention: of the pairs it computes"));
  f("flops_per_s", &T::flops_per_s, of_calls("FLOP/s", "marks kernels", "flops / total_ns"));
  f("peak_fraction", &T::peak_fraction,
    is_part(of_calls("fraction", "marks kernels gpus",
                     "flops_per_s of the GPU's dense peak for that type")));
  f("reason", &T::reason, maybe("why there is no fraction"));
}

// All calls of one collective in one group of processes with the same type.
struct CollectiveRate {
  std::string collective;
  std::string group;
  std::string dtype;
  std::int64_t group_size = 0;
  std::int64_t calls = 0;  // that launched kernels
  std::optional<double> size_bytes;
  std::int64_t total_ns = 0;
  std::optional<double> bytes_per_s;      // algorithm bandwidth
  std::optional<double> bus_bytes_per_s;  // bus bandwidth, of all and of single calls
  std::optional<double> bus_min_bytes_per_s;
  std::optional<double> bus_median_bytes_per_s;
  std::optional<double> bus_max_bytes_per_s;
  std::string reason;  // why rates are missing
};

template <typename F>
void describe(const CollectiveRate*, F&& f) {
  using T = CollectiveRate;
  const auto of_calls = [](std::string_view unit, std::string_view sources, std::string_view text) {
    return number(unit, "calls", sources, "collective_rates", text);
  };
  const auto rate = [&](std::string_view text) {
    return of_calls("bytes/s", "marks kernels", text);
  };
  f("collective", &T::collective, names_row("as the recording names it"));
  f("group", &T::group, names_row("the group of processes", 2));
  f("dtype", &T::dtype, names_row("the type of its elements", 3));
  f("group_size", &T::group_size,
    is_signed(of_calls("1", "marks", "ranks of the group; 0 where not recorded")));
  f("calls", &T::calls,
    number("1", "", "marks kernels", "collective_rates", "calls that launched kernels"));
  f("size_bytes", &T::size_bytes, of_calls("bytes", "marks", "whole messages, of all calls"));
  f("total_ns", &T::total_ns, of_calls("ns", "marks kernels", "kernels that they launched"));
  f("bytes_per_s", &T::bytes_per_s, rate("algorithm bandwidth: size_bytes / total_ns"));
  f("bus_bytes_per_s", &T::bus_bytes_per_s,
    rate("bus bandwidth: bytes_per_s x the share of a message that a link carries"));
  f("bus_min_bytes_per_s", &T::bus_min_bytes_per_s, rate("bus bandwidth of the slowest call"));
  f("bus_median_bytes_per_s", &T::bus_median_bytes_per_s, rate("of the median call"));
  f("bus_max_bytes_per_s", &T::bus_max_bytes_per_s, rate("of the fastest call"));
  f("reason", &T::reason, maybe("why rates are missing"));
}

// Rows that passed through weights of one size in one stage: m of m x k times k x n, of all calls.
struct ProductRows {
  RowName stage;
  std::int64_t num_inputs = 0;   // k
  std::int64_t num_outputs = 0;  // n
  std::int64_t calls = 0;
  std::int64_t rows = 0;
};

// Rates of a recording, each by total time, the first kMostRates.
struct OperatorRates {
  std::vector<GemmRate> products;
  std::vector<CollectiveRate> collectives;
  std::vector<ProductRows> rows;  // of all products of two matrices
};

inline constexpr std::size_t kMostRates = 100;

// What the times of operators are.
enum class OperatorTime : std::uint8_t { kHost, kKernels };
inline constexpr const char* kOperatorTimes[] = {
    "the time is the host's",
    "total is self GPU time: of the kernels that an operator launched itself"};
constexpr std::span<const char* const> words_of(OperatorTime /*type*/) {
  return kOperatorTimes;
}

// Operators behind the kernels, or behind a program's own timing.
struct Operators {
  std::string source;  // where the names come from, in words
  OperatorTime time_of = OperatorTime::kHost;
  std::int64_t covered_ns = 0;     // the sum of the rows
  std::int64_t whole_ns = 0;       // what they are a part of: kernel time, or time of the steps
  std::vector<OperatorRow> rows;   // by total time, then by name and stage
  std::vector<LayerTotal> layers;  // in the order of the model; empty if none are known
  OperatorRates rates;             // of those whose inputs were recorded
};

template <typename F>
void describe(const Operators*, F&& f) {
  using T = Operators;
  f("source", &T::source, plain("what names the operators"));
  f("time_of", &T::time_of, plain("whether it is time of kernels or of the host"));
  f("covered_ns", &T::covered_ns,
    number("ns", "", "marks kernels", "operators", "sum of the rows"));
  f("whole_ns", &T::whole_ns,
    number("ns", "", "marks kernels", "operators", "what the rows are a part of"));
  f("rows", &T::rows, plain("operators by stage"));
  f("layers", &T::layers, plain("layers in the order of the model"));
}

}  // namespace gpuwhy
