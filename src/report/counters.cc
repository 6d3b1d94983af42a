// SPDX-License-Identifier: Apache-2.0
//
// Counters beside the recording. A class is never shown without the launches it was measured on:
// coverage comes first, and what could not be joined or was withheld is listed with its reason.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "report/report.h"

namespace llmprof {
namespace {

Json roofline_json(const KernelCounters& kernel) {
  const RooflineInput& input = kernel.input;
  const Roofline& roof = kernel.roofline;
  return {{"dtype", text_or_null(input.dtype)},
          {"flops", number_or_null(input.flops)},
          {"flops_reason", text_or_null(input.flops_reason)},
          {"dram_bytes", number_or_null(input.dram_bytes)},
          {"intensity_flops_per_byte", number_or_null(roof.intensity_flops_per_byte)},
          {"flops_per_s", number_or_null(roof.flops_per_s)},
          {"dram_bytes_per_s", number_or_null(roof.dram_bytes_per_s)},
          {"l2_bytes_per_s", number_or_null(roof.l2_bytes_per_s)},
          {"l1_bytes_per_s", number_or_null(roof.l1_bytes_per_s)},
          {"roof_flops_per_s", number_or_null(roof.roof_flops_per_s)},
          {"roof_bytes_per_s", number_or_null(roof.roof_bytes_per_s)},
          {"roof_source", text_or_null(kernel.roofs.source)},
          {"compute_fraction", number_or_null(roof.compute_fraction)},
          {"memory_fraction", number_or_null(roof.memory_fraction)},
          {"memory_level", text_or_null(roof.memory_level)},
          {"no_eligible_fraction", number_or_null(input.no_eligible_fraction)},
          {"theoretical_occupancy_fraction", number_or_null(input.theoretical_occupancy_fraction)},
          {"achieved_occupancy_fraction", number_or_null(input.achieved_occupancy_fraction)},
          {"waves", number_or_null(input.waves)}};
}

Json kernel_json(const Analysis& analysis, const KernelCounters& kernel) {
  Json row = {
      {"kernel_name", kernel.kernel_name},
      {"short_name", kernel.short_name},
      {"device_name", text_or_null(kernel.device_name)},
      {"stage", text_or_null(kernel.stage)},
      {"grid", kernel.shape ? Json(kernel.shape->grid) : Json(nullptr)},
      {"block", kernel.shape ? Json(kernel.shape->block) : Json(nullptr)},
      {"match", match_name(kernel.match)},
      {"match_reason", text_or_null(kernel.match_reason)},
      {"matched_kernel", nullptr},
      {"covered_ns", kernel.covered_ns},
      {"covered_fraction", fraction_of(kernel.covered_ns, analysis.kernel_ns)},
      {"confidence", kernel.groups.empty()
                         ? Json(nullptr)
                         : Json(confidence_name(kernel.representativeness.confidence))},
      {"confidence_reason", text_or_null(kernel.representativeness.reason)},
      {"slowdown_under_ncu", number_or_null(kernel.representativeness.slowdown)},
      {"ncu_duration_ns", number_or_null(kernel.input.duration_ns)},
      {"ncu_sm_clock_hz", number_or_null(kernel.representativeness.ncu_clock_hz)},
      {"ncu_clock_fraction", number_or_null(kernel.representativeness.clock_fraction)},
      {"bound", kernel.roofline.bound == Bound::kUnknown ? Json(nullptr)
                                                         : Json(bound_name(kernel.roofline.bound))},
      {"bound_reason", text_or_null(kernel.roofline.reason)},
      {"winnable_ns", number_or_null(kernel.winnable_ns)},
      {"roofline", roofline_json(kernel)}};
  if (!kernel.groups.empty()) {
    row["matched_kernel"] = analysis.launch_groups[kernel.groups.front()].kernel_name;
  }
  return row;
}

}  // namespace

Json counters_json(const Analysis& analysis) {
  if (!analysis.counters) {
    return {{"kernels", nullptr}, {"reason", "needs an ncu capture"}};
  }
  const JoinedCounters& joined = *analysis.counters;
  Json document = {{"tool_version", text_or_null(joined.tool_version)},
                   {"clock_control", text_or_null(joined.clock_control)}};
  document["coverage"] = Json::array();
  for (const StageCoverage& row : joined.coverage) {
    document["coverage"].push_back({{"stage", row.stage},
                                    {"covered_ns", row.covered_ns},
                                    {"kernel_ns", row.kernel_ns},
                                    {"fraction", fraction_of(row.covered_ns, row.kernel_ns)}});
  }
  document["kernels"] = Json::array();
  for (const KernelCounters& kernel : joined.kernels) {
    document["kernels"].push_back(kernel_json(analysis, kernel));
  }
  return document;
}

std::string bound_text(const Analysis& analysis, const KernelRecord& record) {
  if (!analysis.counters || !record.counters) {
    return "n/a";
  }
  return bound_name(analysis.counters->kernels[*record.counters].roofline.bound);
}

}  // namespace llmprof
