// SPDX-License-Identifier: Apache-2.0
//
// FLOP/s of matrix products and attention, and bandwidths of collectives.
//
// PyTorch's profiler writes the sizes of an operator's inputs (record_shapes), and what a
// collective sends. The time is that of the kernels that the operator itself launched: all of them,
// also those that sum the parts of a split product.
//
//   FLOP of a product     2 x m x n x k x batch; attention: attention_flops.cc
//   algorithm bandwidth   bytes of the whole message / time
//   bus bandwidth         the same x 2 (n-1)/n for all-reduce, x (n-1)/n for all-gather,
//                         reduce-scatter and all-to-all, x 1 for others; n is the group size
//
// What it gets wrong: a kernel of a collective also waits for other ranks, so its bandwidth is a
// lower limit. Collectives that are launched together have one kernel: it counts for one of them.
// Operators of CUDA graphs have no inputs in the recording and do not count.
#include "analysis/operators/operator_rates.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/operators/attention_flops.h"
#include "trace/op_inputs.h"

namespace gpuwhy {
namespace {

using Sizes = std::vector<std::int64_t>;

// One call of an operator with inputs.
struct OpCall {
  std::uint32_t op = 0;
  std::int64_t total_ns = 0;  // of its kernels
  std::uint32_t stage = kNone;
};

struct Product {
  std::string dims;
  std::string dtype;
  double flops = 0;
  std::int64_t rows = 0;  // m, k and n of a product of two matrices; 0: it is another one
  std::int64_t num_inputs = 0;
  std::int64_t num_outputs = 0;
};

struct ShortName {
  std::string_view recorded;
  std::string_view name;
};

// Types as PyTorch writes them, and as the table of GPUs names them.
constexpr ShortName kTypes[] = {
    {"c10::BFloat16", "bf16"},   {"c10::Half", "fp16"},           {"float", "fp32"},
    {"double", "fp64"},          {"c10::Float8_e4m3fn", "fp8"},   {"c10::Float8_e4m3fnuz", "fp8"},
    {"c10::Float8_e5m2", "fp8"}, {"c10::Float8_e5m2fnuz", "fp8"}, {"signed char", "int8"},
};

struct TypeWidth {
  std::string_view recorded;
  double bytes;
};

constexpr TypeWidth kWidths[] = {
    {"Float", 4},
    {"BFloat16", 2},
    {"Half", 2},
    {"Double", 8},
    {"Long", 8},
    {"Int", 4},
    {"Short", 2},
    {"Char", 1},
    {"Byte", 1},
    {"Bool", 1},
    {"Float8_e4m3fn", 1},
    {"Float8_e5m2", 1},
    {"Float8_e4m3fnuz", 1},
    {"Float8_e5m2fnuz", 1},
    {"ComplexFloat", 8},
};

std::string short_type(const std::string& recorded) {
  for (const ShortName& type : kTypes) {
    if (type.recorded == recorded) {
      return std::string(type.name);
    }
  }
  return recorded;
}

std::string sizes_text(const Sizes& sizes) {
  return fmt::format("{}", fmt::join(sizes, "x"));
}

bool are_sizes(const Sizes& sizes, std::size_t count) {
  return sizes.size() == count &&
         std::ranges::all_of(sizes, [](std::int64_t size) { return size > 0; });
}

double product_of(const Sizes& sizes) {
  double product = 1;
  for (const std::int64_t size : sizes) {
    product *= static_cast<double>(size);
  }
  return product;
}

// 2 x m x n x k x batch; nullopt if the sizes are not those of a product.
std::optional<double> product_flops(std::string_view op, const Sizes& left, const Sizes& right) {
  if (op == "aten::linear") {  // any number of rows, and weights of n x k
    const bool fits = are_sizes(left, left.size()) && !left.empty() && are_sizes(right, 2) &&
                      left.back() == right[1];
    return fits ? std::optional(2 * product_of(left) * static_cast<double>(right[0]))
                : std::nullopt;
  }
  const std::size_t rank = op == "aten::bmm" || op == "aten::baddbmm" ? 3 : 2;
  const bool fits = are_sizes(left, rank) && are_sizes(right, rank) &&
                    left[rank - 1] == right[rank - 2] && (rank == 2 || left[0] == right[0]);
  return fits ? std::optional(2 * product_of(left) * static_cast<double>(right[rank - 1]))
              : std::nullopt;
}

std::optional<Product> product_in(std::string_view op, std::string_view text) {
  const auto inputs = product_of_inputs(text);
  // What is added comes first.
  const std::size_t first = op == "aten::addmm" || op == "aten::baddbmm" ? 1 : 0;
  if (!inputs || inputs->sizes.size() < first + 2) {
    return std::nullopt;
  }
  if (const auto attention = attention_work(op, *inputs)) {
    return Product{attention->dims, short_type(attention->type), attention->flops};
  }
  const Sizes& left = inputs->sizes[first];
  const Sizes& right = inputs->sizes[first + 1];
  const auto flops = product_flops(op, left, right);
  if (!flops) {
    return std::nullopt;
  }
  Product product{fmt::format("{} x {}", sizes_text(left), sizes_text(right)),
                  first < inputs->types.size() ? short_type(inputs->types[first]) : "", *flops};
  if (right.size() == 2) {
    product.num_inputs = left.back();
    product.num_outputs = op == "aten::linear" ? right[0] : right[1];
    product.rows =
        static_cast<std::int64_t>(product_of(left) / static_cast<double>(product.num_inputs));
  }
  return product;
}

// Kernel time by call of the operators that have inputs, in order of thread and time.
std::vector<OpCall> calls_with_inputs(const Trace& trace, std::vector<OpKernel> launched) {
  const Ops& ops = trace.ops;
  std::ranges::sort(launched, {}, [&](const OpKernel& one) {
    return std::tuple(ops.thread[one.op], ops.start_ns[one.op], -ops.end_ns[one.op], one.op);
  });
  std::vector<OpCall> calls;
  calls.reserve(launched.size());
  for (const OpKernel& launch : launched) {
    if (calls.empty() || calls.back().op != launch.op) {
      calls.push_back({launch.op, 0, launch.stage});
    }
    calls.back().total_ns +=
        trace.kernels.end_ns[launch.kernel] - trace.kernels.start_ns[launch.kernel];
  }
  return calls;
}

// Whether another call with inputs is inside this one: then that one is the product.
bool has_inner_call(const Ops& ops, const std::vector<OpCall>& calls, std::size_t place) {
  const std::uint32_t op = calls[place].op;
  const std::size_t next = place + 1;
  return next < calls.size() && ops.thread[calls[next].op] == ops.thread[op] &&
         ops.start_ns[calls[next].op] < ops.end_ns[op];
}

std::optional<double> rate_of(double amount, std::int64_t total_ns) {
  return total_ns > 0 ? std::optional(amount / (static_cast<double>(total_ns) / 1e9))
                      : std::nullopt;
}

template <typename Rate, typename Name>
void keep_largest(std::vector<Rate>& rates, Name name) {
  std::ranges::sort(rates, {},
                    [&](const Rate& one) { return std::tuple(-one.total_ns, name(one)); });
  if (rates.size() > kMostRates) {
    rates.resize(kMostRates);
  }
}

// Sums of calls that multiply the same sizes.
class ProductSums {
 public:
  explicit ProductSums(const Trace& trace) : trace_(trace) {}

  void add(const OpCall& call) {
    const StringId name = trace_.ops.name[call.op];
    const StringId inputs = trace_.ops.inputs[call.op];
    const std::pair key(name, inputs);
    const auto [entry, is_new] = products_.try_emplace(key);
    if (is_new) {
      entry->second = product_in(trace_.strings[name], trace_.strings[inputs]);
    }
    if (!entry->second) {
      return;
    }
    const Product& product = *entry->second;
    GemmRate& rate = rates_[{std::string(trace_.strings[name]), product.dims, product.dtype}];
    ++rate.calls;
    rate.total_ns += call.total_ns;
    rate.flops = product.flops * static_cast<double>(rate.calls);
    if (product.rows > 0 && call.stage != kNone) {
      auto& [num_calls, rows] = rows_[{call.stage, product.num_inputs, product.num_outputs}];
      ++num_calls;
      rows += product.rows;
    }
  }

  std::vector<ProductRows> rows(const std::vector<RowName>& stages) const {
    std::vector<ProductRows> all;
    all.reserve(rows_.size());
    for (const auto& [key, sum] : rows_) {
      const auto& [stage, num_inputs, num_outputs] = key;
      all.push_back({stages[stage], num_inputs, num_outputs, sum.first, sum.second});
    }
    return all;
  }

  std::vector<GemmRate> rates() const {
    std::vector<GemmRate> rates;
    rates.reserve(rates_.size());
    for (const auto& [key, sum] : rates_) {
      GemmRate& rate = rates.emplace_back(sum);
      std::tie(rate.op, rate.dims, rate.dtype) = key;
      rate.flops_per_s = rate_of(rate.flops, rate.total_ns);
    }
    keep_largest(rates,
                 [](const GemmRate& rate) { return std::tie(rate.op, rate.dims, rate.dtype); });
    return rates;
  }

 private:
  const Trace& trace_;
  std::map<std::pair<StringId, StringId>, std::optional<Product>> products_;
  std::map<std::tuple<std::string, std::string, std::string>, GemmRate> rates_;
  // (stage, k, n) -> calls and rows
  std::map<std::tuple<std::uint32_t, std::int64_t, std::int64_t>,
           std::pair<std::int64_t, std::int64_t>>
      rows_;
};

std::optional<double> width_of(std::string_view dtype) {
  for (const TypeWidth& type : kWidths) {
    if (type.recorded == dtype) {
      return type.bytes;
    }
  }
  return std::nullopt;
}

// "_allgather_base" and "all_gather_into_tensor" are both "allgather...".
double bus_factor(const std::string& collective, std::int64_t group_size) {
  std::string name;
  for (const char c : collective) {
    if (c != '_') {
      name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  const auto ranks = static_cast<double>(group_size);
  const double others = (ranks - 1) / ranks;
  if (name.starts_with("allreduce")) {
    return 2 * others;
  }
  const bool is_split = name.starts_with("allgather") || name.starts_with("reducescatter") ||
                        name.starts_with("alltoall");
  return is_split ? others : 1;
}

// Sums of calls of the same collective.
class MessageSums {
 public:
  explicit MessageSums(const Trace& trace) : trace_(trace) {}

  void add(const OpCall& call) {
    const StringId inputs = trace_.ops.inputs[call.op];
    const auto [entry, is_new] = messages_.try_emplace(inputs);
    if (is_new) {
      entry->second = message_of_inputs(trace_.strings[inputs]);
    }
    if (!entry->second) {
      return;
    }
    const CollectiveMessage& message = *entry->second;
    Sum& sum = sums_[{message.collective, message.group, message.dtype, message.group_size}];
    ++sum.calls;
    sum.total_ns += call.total_ns;
    // The whole message: what all-gather makes, what reduce-scatter takes.
    const auto elements =
        static_cast<double>(std::max({message.in_elements, message.out_elements, std::int64_t{0}}));
    sum.elements += elements;
    if (call.total_ns > 0 && elements > 0) {
      sum.elements_per_s.push_back(elements / (static_cast<double>(call.total_ns) / 1e9));
    }
  }

  std::vector<CollectiveRate> rates() {
    std::vector<CollectiveRate> rates;
    rates.reserve(sums_.size());
    for (auto& [key, sum] : sums_) {
      CollectiveRate& rate = rates.emplace_back();
      std::tie(rate.collective, rate.group, rate.dtype, rate.group_size) = key;
      rate.calls = sum.calls;
      rate.total_ns = sum.total_ns;
      add_bandwidths(sum, rate);
    }
    keep_largest(rates, [](const CollectiveRate& rate) {
      return std::tie(rate.collective, rate.group, rate.dtype, rate.group_size);
    });
    return rates;
  }

 private:
  struct Sum {
    std::int64_t calls = 0;
    std::int64_t total_ns = 0;
    double elements = 0;
    std::vector<double> elements_per_s;  // by call
  };

  static void add_bandwidths(Sum& sum, CollectiveRate& rate) {
    const auto width = width_of(rate.dtype);
    if (!width || sum.elements_per_s.empty()) {
      rate.reason = width ? "the recording does not say how much was sent"
                          : "the size of this data type is not known";
      return;
    }
    rate.size_bytes = sum.elements * *width;
    rate.bytes_per_s = rate_of(*rate.size_bytes, rate.total_ns);
    if (rate.group_size < 2) {
      rate.reason = "the group has one rank, or its size is not recorded";
      return;
    }
    const double factor = bus_factor(rate.collective, rate.group_size);
    rate.bus_bytes_per_s = *rate.bytes_per_s * factor;
    std::ranges::sort(sum.elements_per_s);
    const auto bus = [&](double elements_per_s) { return elements_per_s * *width * factor; };
    rate.bus_min_bytes_per_s = bus(sum.elements_per_s.front());
    rate.bus_median_bytes_per_s = bus(sum.elements_per_s[(sum.elements_per_s.size() - 1) / 2]);
    rate.bus_max_bytes_per_s = bus(sum.elements_per_s.back());
  }

  const Trace& trace_;
  std::unordered_map<StringId, std::optional<CollectiveMessage>> messages_;
  std::map<std::tuple<std::string, std::string, std::string, std::int64_t>, Sum> sums_;
};

}  // namespace

OperatorRates operator_rates(const Trace& trace, const std::vector<RowName>& stages,
                             std::vector<OpKernel> launched) {
  const std::vector<OpCall> calls = calls_with_inputs(trace, std::move(launched));
  ProductSums products(trace);
  MessageSums messages(trace);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!has_inner_call(trace.ops, calls, i)) {
      products.add(calls[i]);
    }
    messages.add(calls[i]);
  }
  return {products.rates(), messages.rates(), products.rows(stages)};
}

void add_peak_fractions(const GpuMatch& match, std::vector<GemmRate>& products) {
  for (GemmRate& rate : products) {
    if (!rate.flops_per_s) {
      rate.reason = "its kernels took no time";
      continue;
    }
    if (!match.gpu) {
      rate.reason = match.reason;
      continue;
    }
    const auto peak = match.gpu->flops_per_s(rate.dtype);
    if (!peak) {
      rate.reason = rate.dtype.empty() ? "the recording does not name the data type"
                                       : fmt::format("the table of GPUs has no peak of {} for {}",
                                                     rate.dtype, match.gpu->name);
    } else if (*rate.flops_per_s > *peak) {
      rate.reason = rate.dtype == "fp32" ? "above the peak of fp32: probably computed in tf32"
                                         : "above the peak: sizes or times can not be right";
    } else {
      rate.peak_fraction = *rate.flops_per_s / *peak;
    }
  }
}

}  // namespace gpuwhy
