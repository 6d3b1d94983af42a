// SPDX-License-Identifier: Apache-2.0
//
// FLOP of PyTorch's fused attention: two products of each query with the keys that it sees.
//
//   forward    2 x batch x heads x queries x keys x (width of keys + width of values)
//   backward   2.5 times that, as FlashAttention counts it: five products for two
//   causal     half of it, with as many keys as queries
//
// What it leaves out: sequences of several lengths in one call, and windows. A causal mask with
// fewer queries than keys is counted only for a single query, which sees them all.
#include "analysis/operators/attention_flops.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gpuwhy {
namespace {

using Sizes = std::vector<std::int64_t>;

// Places of the inputs, from PyTorch's declarations of its operators.
struct AttentionOp {
  std::size_t query;  // keys and values follow
  std::size_t causal;
  std::size_t heads;   // dimension of the heads: 1 or 2; the other one has the positions
  std::size_t window;  // two inputs; 0: it has none
  double products;     // for each of the forward pass
};

// In the order of kAttentionOps.
constexpr AttentionOp kInputs[] = {
    {0, 8, 2, 11, 1}, {1, 11, 2, 0, 2.5}, {0, 9, 2, 0, 1}, {0, 6, 1, 0, 1}};
static_assert(std::size(kInputs) == std::size(kAttentionOps));

// "True", or a kind of causal mask; nullopt where the value was not recorded.
std::optional<bool> truth_of(std::string_view value) {
  if (value == "True" || value == "1" || value == "2") {
    return true;
  }
  return value == "False" || value == "0" ? std::optional(false) : std::nullopt;
}

bool is_without_window(const AttentionOp& op, const std::vector<std::string>& values) {
  if (op.window == 0 || values.size() < op.window + 2) {
    return true;
  }
  const auto window = std::span(values).subspan(op.window, 2);
  return std::ranges::all_of(
      window, [](const std::string& value) { return value.empty() || value == "-1"; });
}

bool are_tensors(std::span<const Sizes> tensors) {
  return std::ranges::all_of(tensors, [](const Sizes& sizes) {
    return sizes.size() == 4 &&
           std::ranges::all_of(sizes, [](std::int64_t size) { return size > 0; });
  });
}

// The share of all pairs of a query and a key that are computed.
std::optional<double> seen_share(bool is_causal, std::int64_t queries, std::int64_t keys) {
  if (!is_causal || queries == 1) {
    return 1;
  }
  return queries == keys ? std::optional(0.5) : std::nullopt;
}

}  // namespace

std::optional<AttentionWork> attention_work(std::string_view op, const ProductInputs& inputs) {
  const auto* const name = std::find(std::begin(kAttentionOps), std::end(kAttentionOps), op);
  if (name == std::end(kAttentionOps)) {
    return std::nullopt;
  }
  const AttentionOp& found = kInputs[name - std::begin(kAttentionOps)];
  if (inputs.sizes.size() < found.query + 3 || inputs.values.size() <= found.causal ||
      !is_without_window(found, inputs.values)) {
    return std::nullopt;
  }
  const auto tensors = std::span(inputs.sizes).subspan(found.query, 3);
  const auto is_causal = truth_of(inputs.values[found.causal]);
  if (!is_causal || !are_tensors(tensors)) {
    return std::nullopt;
  }
  const Sizes& query = tensors[0];
  const Sizes& key = tensors[1];
  const Sizes& value = tensors[2];
  const std::size_t positions = 3 - found.heads;
  const auto share = seen_share(*is_causal, query[positions], key[positions]);
  if (!share || query[0] != key[0] || query[3] != key[3] || key[positions] != value[positions]) {
    return std::nullopt;
  }
  const double pairs = static_cast<double>(query[0]) * static_cast<double>(query[found.heads]) *
                       static_cast<double>(query[positions]) * static_cast<double>(key[positions]);
  const double width = static_cast<double>(key[3]) + static_cast<double>(value[3]);
  return AttentionWork{fmt::format("{} x {}{}", fmt::join(query, "x"), fmt::join(key, "x"),
                                   *is_causal ? ", causal" : ""),
                       found.query < inputs.types.size() ? inputs.types[found.query] : "",
                       2 * pairs * width * *share * found.products};
}

}  // namespace gpuwhy
