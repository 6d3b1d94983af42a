// SPDX-License-Identifier: Apache-2.0
//
// The ncu plan under a run's options: launches to measure, and the filters that select them.
#include "session/record/ncu_plan_command.h"

#include <filesystem>

#include <fmt/format.h>

#include "analysis/findings/workload.h"
#include "analysis/profile.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/units.h"
#include "bundle/layout.h"
#include "capture/reason.h"
#include "session/reading/nvtx_marks.h"
#include "session/reading/operator_table.h"

namespace gpuwhy {
namespace {

Json group_json(const LaunchGroup& group) {
  return {{"kernel_name", group.kernel_name}, {"mangled_name", text_or_null(group.mangled_name)},
          {"stage", group.stage.text()},      {"family", group.family},
          {"shape", group.shape.text()},      {"calls", group.calls},
          {"total_ns", group.total_ns},       {"median_ns", group.median_ns}};
}

// The other ones are many and small.
constexpr std::size_t kMostExcluded = 200;

}  // namespace

void require_plannable(const Profile& profile, const std::string& recording) {
  const Analysis& analysis = profile.analysis;
  if (!profile.trace || profile.trace->kernels.size() == 0) {
    throw Error(
        ErrorKind::kContract,
        fmt::format("{}: {} holds no kernel to plan for", code_of(Reason::kNoKernels), recording),
        "gpuwhy analyze says what it holds");
  }
  if (workload_of(analysis).is_amd) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} is of an AMD GPU: ncu measures NVIDIA's", recording),
                "measure its kernels with rocprof-compute");
  }
  if (2 * analysis.capture.opaque_graph_ns > analysis.capture.kernel_ns) {
    throw Error(ErrorKind::kContract,
                fmt::format("graph_opaque: {} of GPU time lies in CUDA graphs recorded as a whole",
                            format_fraction(static_cast<double>(analysis.capture.opaque_graph_ns) /
                                            static_cast<double>(analysis.capture.kernel_ns))),
                "record their nodes: nsys profile --cuda-graph-trace=node, as gpuwhy run does");
  }
}

NcuPlan make_plan(const RunOptions& options, const NcuTool& ncu, const Profile& profile,
                  double program_s) {
  PlanOptions wanted;
  wanted.top_n = static_cast<std::size_t>(options.top_n_kernels);
  wanted.budget_s = options.ncu_budget_s;
  wanted.passes = options.ncu_passes;
  wanted.program_s = program_s;
  wanted.has_per_launch_config = ncu.has_per_launch_config;
  std::vector<std::string> stages;
  for (const StageRow& stage : profile.analysis.stages) {
    if (!stage.is_nested && stage.num_kernels > 0) {
      stages.push_back(stage.stage.text());
    }
  }
  wanted.is_gated =
      options.is_ncu_gated && marks_of_stages(stages, seen_marks(*profile.trace)).has_value();
  return plan_ncu(*profile.trace, profile.stages, profile.attribution, profile.kernel_parts,
                  profile.analysis, wanted);
}

NcuFilter filter_of(const PlannedCommand& command, const std::vector<SeenMark>& seen) {
  NcuFilter filter;
  filter.is_mangled = command.is_mangled;
  filter.names = command.names;
  filter.launch_skip = command.launch_skip;
  filter.launch_count = command.launch_count;
  filter.is_per_launch_config = command.is_per_launch_config;
  if (!command.stages.empty()) {
    filter.marks = marks_of_stages(command.stages, seen).value_or(std::vector<SeenMark>{});
  }
  return filter;
}

std::vector<std::vector<std::string>> plan_commands(const NcuPlan& plan, const RunOptions& options,
                                                    const NcuTool& ncu, const Profile& profile) {
  std::vector<std::vector<std::string>> commands;
  const std::vector<SeenMark> seen = seen_marks(*profile.trace);
  for (const PlannedCommand& command : plan.commands) {
    commands.push_back(build_ncu_cmd(ncu, options.ncu, filter_of(command, seen),
                                     fmt::format("run{}.ncu-rep", commands.size()), {"PROGRAM"}));
  }
  return commands;
}

double program_seconds(const std::string& recording) {
  const std::filesystem::path metrics = baseline_file(recording, layout::kUnprofiled);
  std::error_code ignored;
  if (!std::filesystem::exists(metrics, ignored)) {
    return 0;
  }
  const Json document = parse_json(read_file(metrics), metrics.string());
  const auto wall = document.find("wall_ns");
  return wall != document.end() && wall->is_number() ? wall->get<double>() / 1e9 : 0;
}

std::string plan_json(const NcuPlan& plan, const std::vector<std::vector<std::string>>& argv) {
  Json document = json_document("ncu_plan", 1);
  document["budget_s"] = plan.budget_s;
  document["forecast_s"] = plan.forecast_s;
  document["covered_ns"] = plan.covered_ns;
  document["kernel_ns"] = plan.kernel_ns;
  document["kernels"] = Json::array();
  for (const PlannedKernel& kernel : plan.kernels) {
    Json row = group_json(kernel.group);
    row["command"] = kernel.command;
    row["parts"] = kernel.parts;
    document["kernels"].push_back(row);
  }
  document["commands"] = Json::array();
  for (const PlannedCommand& command : plan.commands) {
    document["commands"].push_back({{"stages", command.stages},
                                    {"names", command.names},
                                    {"mangled", command.is_mangled},
                                    {"launch_skip", command.launch_skip},
                                    {"launch_count", command.launch_count},
                                    {"per_launch_config", command.is_per_launch_config},
                                    {"expected_launches", command.expected_launches},
                                    {"forecast_s", command.forecast_s}});
  }
  for (std::size_t i = 0; i < argv.size(); ++i) {
    document["commands"][i]["argv"] = argv[i];
  }
  document["num_excluded"] = plan.excluded.size();
  document["excluded"] = Json::array();
  for (const ExcludedKernel& excluded : plan.excluded) {
    if (document["excluded"].size() < kMostExcluded) {
      Json row = group_json(excluded.group);
      row["reason"] = excluded.reason;
      document["excluded"].push_back(row);
    }
  }
  return to_json_text(document);
}

}  // namespace gpuwhy
