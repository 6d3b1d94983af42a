// SPDX-License-Identifier: Apache-2.0
//
// Attribution of the difference between two runs to the parts of the model.
//
// Kernels of two versions often have different names, and then a table of kernels only says that
// some are gone and others new. Their parts are the same: a row is a part of a pass (qkv in all
// layers together), in the time of one pass, one run per side. Time in no part is a row, so the
// rows sum to the kernel time of a pass.
//
// What this gets wrong: passes of one run that differ much, a prefill and decodes of one CUDA graph
// each for example, are one mean.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "compare/breakdown.h"

namespace gpuwhy {
namespace {

using PartKey = std::pair<std::string, std::string>;  // place and part

struct PartSum {
  std::int64_t total_ns = 0;
  std::map<std::string, std::int64_t> kernels_ns;
  std::size_t order = 0;

  std::string kernel() const {
    const auto most =
        std::max_element(kernels_ns.begin(), kernels_ns.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == kernels_ns.end() ? "" : most->first;
  }
};

// Kinds of layers are one: the other side may tell others apart.
std::string place_of(const LayerPartRow& row) {
  return row.block().starts_with("layer") ? "layer" : std::string(row.block());
}

std::map<PartKey, PartSum> parts_of_pass(const RunSummary& run, const PassRow& pass) {
  std::map<PartKey, PartSum> sums;
  std::int64_t rest_ns = pass.kernel_ns;
  for (const LayerPartRow& row : run.parts) {
    if (row.pass != pass.pass) {
      continue;
    }
    PartSum& sum =
        sums.try_emplace({place_of(row), row.part}, PartSum{0, {}, sums.size()}).first->second;
    sum.total_ns += row.total_ns;
    sum.kernels_ns[row.short_name] += row.total_ns;
    rest_ns -= row.total_ns;
  }
  if (rest_ns > 0) {
    sums[{"", ""}] = {rest_ns, {}, sums.size()};
  }
  return sums;
}

std::int64_t of_one_pass(std::int64_t total_ns, const PassRow& pass) {
  const std::int64_t passes = std::max<std::int64_t>(1, pass.num_passes);
  return total_ns / passes + (total_ns % passes * 2 >= passes ? 1 : 0);
}

ModelPassChange change_of_pass(const RunSummary& base, const PassRow& before,
                               const RunSummary& candidate, const PassRow& after) {
  ModelPassChange change;
  change.pass = before.pass;
  change.num_layers = before.num_layers;
  change.base_passes = before.num_passes;
  change.candidate_passes = after.num_passes;
  std::vector<std::pair<std::size_t, ModelPartChange>> rows;  // by their order in a pass
  for_each_pair(parts_of_pass(base, before), parts_of_pass(candidate, after),
                [&](const PartKey& key, const PartSum* of_base, const PartSum* of_candidate) {
                  const auto time_of = [](const PartSum* sum, const PassRow& pass) {
                    return sum == nullptr ? 0 : of_one_pass(sum->total_ns, pass);
                  };
                  const auto kernel_of = [](const PartSum* sum) {
                    return sum == nullptr ? "" : sum->kernel();
                  };
                  const TimeChange sides{time_of(of_base, before), time_of(of_candidate, after)};
                  change.base_ns += sides.base_ns;
                  change.candidate_ns += sides.candidate_ns;
                  rows.push_back({(of_base == nullptr ? of_candidate : of_base)->order,
                                  {sides, key.first, key.second, kernel_of(of_base),
                                   kernel_of(of_candidate)}});
                });
  std::ranges::stable_sort(rows, {}, &std::pair<std::size_t, ModelPartChange>::first);
  for (auto& [order, part] : rows) {
    change.parts.push_back(std::move(part));
  }
  sort_by_difference(change.parts);
  return change;
}

std::string why_no_model(const RunSummary& base, const RunSummary& candidate) {
  if (base.passes.empty() && candidate.passes.empty()) {
    return "no layers were recovered in either run";
  }
  if (base.passes.empty() || candidate.passes.empty()) {
    return fmt::format("no layers were recovered in the {}",
                       base.passes.empty() ? "base" : "candidate");
  }
  return fmt::format("the base has {} layers, the candidate {}", base.passes.front().num_layers,
                     candidate.passes.front().num_layers);
}

}  // namespace

ModelComparison model_changes(const RunSummary& base, const RunSummary& candidate) {
  ModelComparison comparison;
  // Passes with as many layers in the same direction, in their order.
  std::vector<const PassRow*> left;
  left.reserve(candidate.passes.size());
  for (const PassRow& pass : candidate.passes) {
    left.push_back(&pass);
  }
  for (const PassRow& before : base.passes) {
    const auto after = std::find_if(left.begin(), left.end(), [&](const PassRow* other) {
      return other->num_layers == before.num_layers && other->is_backward == before.is_backward;
    });
    if (after != left.end()) {
      comparison.passes.push_back(change_of_pass(base, before, candidate, **after));
      left.erase(after);
    }
  }
  if (comparison.passes.empty()) {
    comparison.missing = why_no_model(base, candidate);
  }
  return comparison;
}

}  // namespace gpuwhy
