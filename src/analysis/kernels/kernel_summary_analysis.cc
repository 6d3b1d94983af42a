// SPDX-License-Identifier: Apache-2.0
//
// Analysis of a kernel summary, which has no timestamps: kernels and their cost.
//
// Stages, ledger and devices are absent, not zero. Launch groups are as fine as the rows of the
// summary, which may combine all grids of a kernel.
#include <map>

#include "analysis/analysis.h"
#include "analysis/kernels/kernels.h"
#include "analysis/stages/capture_summary.h"

namespace gpuwhy {
namespace {

LaunchGroup group_of(const KernelSummaryRow& row, std::string family) {
  LaunchGroup group;
  group.kernel_name = row.name;
  group.family = std::move(family);
  group.stage = {RowKind::kUnmarked};
  group.gpu = "unknown GPU";
  group.has_shape = row.shape.has_value();
  group.shape = row.shape.value_or(LaunchShape{});
  group.calls = row.instances;
  group.total_ns = row.total_ns;
  const std::int64_t mean_ns = row.total_ns / std::max<std::int64_t>(row.instances, 1);
  group.min_ns = row.min_ns.value_or(mean_ns);
  group.median_ns = row.median_ns.value_or(mean_ns);
  group.max_ns = row.max_ns.value_or(mean_ns);
  return group;
}

}  // namespace

Analysis analyze_summary(const KernelSummary& summary, const Rules& rules) {
  Analysis analysis;
  analysis.capture = capture_row(summary.capture);
  analysis.tool_messages = std::move(analysis.capture.messages);
  analysis.capture.recorded = recorded_at(analysis.capture);
  analysis.capture.has_cuda = !summary.rows.empty();
  analysis.data_quality = summary.diagnostics;
  analysis.data_quality.insert(analysis.data_quality.end(), rules.notes.begin(), rules.notes.end());
  analysis.is_summary = true;
  // One row per kernel: rows split by shape are combined again.
  std::map<std::string, std::size_t> known;
  for (const KernelSummaryRow& row : summary.rows) {
    const LaunchGroup group = group_of(row, std::string(family_of(rules, row.name)));
    const auto [at, is_new] = known.try_emplace(row.name, analysis.kernels.size());
    if (is_new) {
      KernelRow& record = analysis.kernels.emplace_back();
      record.kernel_name = row.name;
      record.device = group.gpu;
      record.stage = group.stage;
      record.family = group.family;
    }
    KernelRow& record = analysis.kernels[at->second];
    // Two medians cannot be combined: that of the larger part represents both.
    record.median_ns = group.total_ns > record.total_ns ? group.median_ns : record.median_ns;
    record.add(group);
    if (row.shape && ++record.num_shapes <= static_cast<std::int64_t>(kMostShapes)) {
      record.shapes.push_back(row.shape->text());
    }
    analysis.capture.kernel_ns += group.total_ns;
    analysis.launch_groups.push_back(group);
  }
  std::stable_sort(
      analysis.launch_groups.begin(), analysis.launch_groups.end(),
      [](const LaunchGroup& a, const LaunchGroup& b) { return a.total_ns > b.total_ns; });
  finish_kernel_table(analysis);
  return analysis;
}

}  // namespace gpuwhy
