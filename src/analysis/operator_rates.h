// SPDX-License-Identifier: Apache-2.0
//
// Rates of matrix products, of attention and of collectives, from the inputs of operators.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/gpu.h"
#include "results/row.h"
#include "trace/trace.h"

namespace gpuwhy {

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

// A kernel and the operator with inputs that launched it: the innermost one.
struct OpKernel {
  std::uint32_t op = 0;  // row of Trace::ops
  std::uint32_t kernel = 0;
  std::uint32_t stage = kNone;  // into Stages::names
};

// Rates of the operators whose inputs were recorded. Without shares of a peak.
OperatorRates operator_rates(const Trace& trace, const std::vector<RowName>& stages,
                             std::vector<OpKernel> launched);

// Adds the share of the GPU's peak, or the reason why there is none.
void add_peak_fractions(const GpuMatch& match, std::vector<GemmRate>& products);

}  // namespace gpuwhy
