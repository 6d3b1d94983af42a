// SPDX-License-Identifier: Apache-2.0
//
// Parts of a model, by the order of the kernels in a layer.
//
// Attention divides a layer: products before it make queries, keys and values, the first one after
// it is the output projection, the others are the MLP or the experts. What fits no known count of
// products keeps its family as its name.
#include "analysis/structure/model_parts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

namespace gpuwhy {
namespace {

using Parts = std::vector<std::string>;
using Indexes = std::vector<std::size_t>;

bool contains(std::string_view text, std::string_view word) {
  const auto is_equal = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), is_equal) != text.end();
}

// Names that do not depend on the order.
std::string own_part(const PartKernel& kernel) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kParts = {{
      {"rope", "rope"},
      {"kv_cache", "kv store"},
      {"activation", "activation"},
      {"communication", "comm"},
      {"quantise", "quantise"},
      {"norm", "norm"},
      {"embedding", "gather"},
  }};
  const auto* row =
      std::ranges::find_if(kParts, [&](const auto& one) { return one.first == kernel.family; });
  return std::string(row == kParts.end() ? std::string_view(kernel.family) : row->second);
}

Parts own_parts(const std::vector<PartKernel>& kernels) {
  Parts parts;
  for (const PartKernel& kernel : kernels) {
    parts.push_back(own_part(kernel));
  }
  return parts;
}

Indexes with_role(const std::vector<PartKernel>& kernels, std::size_t begin, std::size_t end,
                  KernelRole role) {
  Indexes indexes;
  for (std::size_t i = begin; i < end; ++i) {
    if (kernels[i].role == role) {
      indexes.push_back(i);
    }
  }
  return indexes;
}

void name(Parts& parts, const Indexes& indexes, const std::vector<std::string_view>& names) {
  for (std::size_t i = 0; i < indexes.size() && i < names.size(); ++i) {
    parts[indexes[i]] = names[i];
  }
}

// Attention of a layer, [begin, end): fused, or a softmax and the two products around it.
std::optional<std::pair<std::size_t, std::size_t>> name_attention(
    const std::vector<PartKernel>& kernels, Parts& parts) {
  const Indexes attention = with_role(kernels, 0, kernels.size(), KernelRole::kAttention);
  if (attention.empty()) {
    return std::nullopt;
  }
  std::size_t begin = attention.front();
  std::size_t end = attention.back() + 1;
  const bool is_fused = kernels[begin].family == "attention";
  if (is_fused) {
    for (std::size_t i = begin; i < end; ++i) {
      if (kernels[i].family == "attention") {
        parts[i] = "attention";
      }
    }
    return std::pair(begin, end);
  }
  const Indexes before = with_role(kernels, 0, begin, KernelRole::kGemm);
  const Indexes after = with_role(kernels, end, kernels.size(), KernelRole::kGemm);
  if (before.empty() || after.empty()) {
    return std::nullopt;
  }
  for (std::size_t i = before.back() + 1; i < after.front(); ++i) {
    if (kernels[i].role != KernelRole::kGemm) {
      parts[i] = "softmax";
    }
  }
  parts[before.back()] = "scores";
  parts[after.front()] = "values";
  return std::pair(before.back(), after.front() + 1);
}

void name_mlp(const std::vector<PartKernel>& kernels, std::size_t begin, Parts& parts) {
  const Indexes gemms = with_role(kernels, begin, kernels.size(), KernelRole::kGemm);
  const bool is_moe = std::any_of(kernels.begin() + static_cast<std::ptrdiff_t>(begin),
                                  kernels.end(), [](const PartKernel& kernel) {
                                    return kernel.family == "moe" || contains(kernel.name, "topk");
                                  });
  if (is_moe) {
    // The product before the choice of experts is the router; those after it are experts. Two of
    // them are those of all experts at once.
    for (std::size_t i = 0; i < gemms.size(); ++i) {
      parts[gemms[i]] = i == 0 ? "router" : "experts";
    }
    for (std::size_t i = gemms.empty() ? begin : gemms.front() + 1; i < kernels.size(); ++i) {
      const std::string_view family = kernels[i].family;
      if (family == "sampling" || family == "sort" || family == "moe") {
        parts[i] = gemms.size() > 1 && i < gemms[1] ? "router" : "experts";
      }
    }
    if (gemms.size() == 3) {
      name(parts, gemms, {"router", "experts gate_up", "experts down"});
    }
    return;
  }
  if (gemms.size() == 2) {
    name(parts, gemms, {"gate_up", "down"});
  } else if (gemms.size() == 3) {
    name(parts, gemms, {"gate", "up", "down"});
  }
}

}  // namespace

std::vector<std::string> parts_of_layer(const std::vector<PartKernel>& kernels) {
  Parts parts = own_parts(kernels);
  const auto attention = name_attention(kernels, parts);
  if (!attention) {
    return parts;
  }
  const Indexes before = with_role(kernels, 0, attention->first, KernelRole::kGemm);
  if (before.size() == 1) {
    name(parts, before, {"qkv"});
  } else if (before.size() == 3) {
    name(parts, before, {"q", "k", "v"});
  }
  const Indexes norms = with_role(kernels, 0, attention->first, KernelRole::kNorm);
  for (const std::size_t i : norms) {
    const bool is_before_products = before.empty() || i < before.front();
    parts[i] = is_before_products ? "input norm" : "qk norm";
  }
  const Indexes after = with_role(kernels, attention->second, kernels.size(), KernelRole::kGemm);
  if (after.empty()) {
    return parts;
  }
  parts[after.front()] = "o";
  for (const std::size_t i : with_role(kernels, after.front(), kernels.size(), KernelRole::kNorm)) {
    parts[i] = after.size() > 1 && i < after[1] ? "post-attention norm" : "norm";
  }
  name_mlp(kernels, after.front() + 1, parts);
  return parts;
}

std::vector<std::string> parts_of_prologue(const std::vector<PartKernel>& kernels) {
  Parts parts = own_parts(kernels);
  const Indexes lookups = with_role(kernels, 0, kernels.size(), KernelRole::kEmbedding);
  if (!lookups.empty()) {
    parts[lookups.back()] = "embedding";
  }
  return parts;
}

std::vector<std::string> parts_of_epilogue(const std::vector<PartKernel>& kernels) {
  Parts parts = own_parts(kernels);
  const Indexes gemms = with_role(kernels, 0, kernels.size(), KernelRole::kGemm);
  const std::size_t head = gemms.empty() ? kernels.size() : gemms.front();
  if (gemms.size() == 1) {
    parts[head] = "lm_head";
  }
  for (std::size_t i = 0; i < head; ++i) {
    if (kernels[i].role == KernelRole::kNorm) {
      parts[i] = "final norm";
    }
  }
  for (std::size_t i = head; i < kernels.size(); ++i) {
    if (kernels[i].role == KernelRole::kSampling) {
      parts[i] = "sampling";
    }
  }
  return parts;
}

}  // namespace gpuwhy
