// SPDX-License-Identifier: Apache-2.0
//
// Symbols for kernel names, so that the order of kernels shows what repeats.
#include "analysis/names/kernel_symbols.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "analysis/names/kernel_names.h"

namespace gpuwhy {
namespace {

std::string lower_without_digits(std::string_view name) {
  std::string text;
  text.reserve(name.size());
  for (const char c : name) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) {
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return text;
}

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

KernelRole kernel_role_of(std::string_view family, std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, KernelRole>, 11> kRoles = {{
      {"gemm", KernelRole::kGemm},
      {"gemv", KernelRole::kGemm},
      {"attention", KernelRole::kAttention},
      {"softmax", KernelRole::kAttention},
      {"norm", KernelRole::kNorm},
      {"rope", KernelRole::kRope},
      {"activation", KernelRole::kActivation},
      {"embedding", KernelRole::kEmbedding},
      {"sampling", KernelRole::kSampling},
      {"sort", KernelRole::kSampling},  // where it ends a pass
      {kCommunication, KernelRole::kComm},
  }};
  const auto* row =
      std::ranges::find_if(kRoles, [&](const auto& one) { return one.first == family; });
  if (row == kRoles.end()) {
    if (family == "moe" && has_any(name, {"gemm", "matmul", "bmm_"}) &&
        !has_any(name, {"finalize", "scatter"})) {
      return KernelRole::kGemm;  // of the routed experts
    }
    // A softmax of separate kernels has one that takes the exponential.
    return has_any(name, {"exp_kernel"}) ? KernelRole::kAttention : KernelRole::kPlain;
  }
  // Second kernels of a product: present or not as the shape demands.
  const bool is_rest = row->second == KernelRole::kGemm && has_any(name, {"splitkreduce"});
  return is_rest ? KernelRole::kPlain : row->second;
}

}  // namespace

std::uint32_t KernelSymbols::add(KernelRole role, bool is_of_backward) {
  const auto symbol = static_cast<std::uint32_t>(roles.size());
  roles.push_back(role);
  is_backward.push_back(is_of_backward);
  std::uint64_t hash = (std::uint64_t{symbol} + 1) * 0x9E3779B97F4A7C15;  // as splitmix64 mixes
  hash = (hash ^ (hash >> 30U)) * 0xBF58476D1CE4E5B9;
  hashes.push_back(hash ^ (hash >> 27U));
  return symbol;
}

KernelSymbols find_symbols(const Trace& trace, const KernelFamilies& families) {
  KernelSymbols symbols;
  symbols.of_name.assign(trace.strings.size(), kNone);
  symbols.add(KernelRole::kGemm, false);
  std::unordered_map<std::string, std::uint32_t> known;
  for (const StringId name : families.names()) {
    std::uint32_t& symbol = symbols.of_name[static_cast<std::size_t>(name)];
    const std::string text = lower_without_digits(trace.strings[name]);
    const KernelRole role = kernel_role_of(families[name], text);
    if (role == KernelRole::kGemm) {
      symbol = KernelSymbols::kGemm;
      continue;
    }
    const auto [at, is_new] = known.try_emplace(text, 0);
    if (is_new) {
      at->second = symbols.add(role, has_any(text, {"backward", "bwd", "_grad"}));
    }
    symbol = at->second;
  }
  return symbols;
}

}  // namespace gpuwhy
