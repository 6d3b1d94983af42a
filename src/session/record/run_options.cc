// SPDX-License-Identifier: Apache-2.0
//
// Translation of configuration keys to the structs of capture/. No other file knows both.
#include "session/record/run_options.h"

#include <algorithm>

#include "base/json.h"
#include "config/compose.h"
#include "config/presets.h"
#include "config/reader.h"
#include "session/record/rank_run.h"

namespace gpuwhy {
namespace {

// nsys is still writing its report when it is stopped; ncu writes continuously.
constexpr std::chrono::seconds kPatienceOfNcu{60};

Contract contract_of(const SettingsReader& reader) {
  Contract contract;
  const std::string gpu = reader.choice("contract.gpu", {"auto", "required", "none"});
  contract.gpu = gpu == "required" ? Contract::Gpu::kRequired
                 : gpu == "none"   ? Contract::Gpu::kUnwanted
                                   : Contract::Gpu::kAuto;
  contract.stages = reader.texts("contract.stages");
  contract.min_instances = reader.whole_from("contract.min_instances", 1);
  contract.workload_may_fail = reader.flag("contract.workload_may_fail");
  return contract;
}

NsysSettings nsys_of(const SettingsReader& reader) {
  NsysSettings nsys;
  nsys.trace = reader.texts("pipeline.nsys.trace");
  nsys.cuda_graph_trace = reader.text("pipeline.nsys.cuda_graph_trace");
  nsys.sample = reader.text("pipeline.nsys.sample");
  nsys.cpuctxsw = reader.text("pipeline.nsys.cpuctxsw");
  nsys.trace_fork_before_exec =
      reader.flag("pipeline.nsys.trace_fork_before_exec") || reader.flag("workload.forks");
  nsys.remove_leftovers = reader.flag("pipeline.nsys.remove_leftovers");
  nsys.duration_s = reader.whole_from("pipeline.nsys.duration_s", 0);
  nsys.extra_options = reader.texts("pipeline.nsys.extra_options");
  return nsys;
}

NcuSettings ncu_of(const SettingsReader& reader) {
  NcuSettings ncu;
  ncu.set = reader.optional_text("pipeline.ncu.set").value_or("");
  ncu.sections = reader.texts("pipeline.ncu.sections");
  ncu.metrics = reader.texts("pipeline.ncu.metrics");
  ncu.target_processes = reader.text("pipeline.ncu.target_processes");
  ncu.replay_mode = reader.text("pipeline.ncu.replay_mode");
  ncu.cache_control = reader.text("pipeline.ncu.cache_control");
  ncu.clock_control = reader.text("pipeline.ncu.clock_control");
  ncu.extra_options = reader.texts("pipeline.ncu.extra_options");
  return ncu;
}

// run.gate or, if it is auto, the default of the workload kind.
TriggerWish gate_of(const SettingsReader& reader) {
  if (!reader.flag("pipeline.nsys.gating_nvtx")) {
    return {TriggerWish::Kind::kEverything, {}};
  }
  const TriggerWish wish = parse_trigger(reader.text("run.gate"));
  const auto of_workload = reader.optional_text("workload.gate");
  return wish.kind == TriggerWish::Kind::kAuto && of_workload ? parse_trigger(*of_workload) : wish;
}

// A text, a number or a list of these; null means all.
std::vector<std::string> ranks_of(const Config& config) {
  const Json* value = find_value(*config.tree, "ranks.capture");
  const SettingsReader reader(config);
  std::vector<std::string> ranks;
  const auto add = [&](const Json& one) {
    if (!one.is_string() && !one.is_number_integer()) {
      reader.fail("ranks.capture", "all, or ranks as 0,7,every:64");
    }
    ranks.push_back(one.is_string() ? one.get<std::string>() : to_json_line(one));
  };
  if (value != nullptr && value->is_array()) {
    for (const Json& one : *value) {
      add(one);
    }
  } else {
    add(value == nullptr || value->is_null() ? Json("all") : *value);
  }
  return ranks;
}

void read_passes(const SettingsReader& reader, RunOptions& options) {
  for (const std::string& pass : reader.texts("run.passes")) {
    const std::pair<const char*, bool*> known[] = {{"baseline", &options.has_baseline},
                                                   {"operators", &options.has_operators},
                                                   {"nsys", &options.has_nsys},
                                                   {"torch", &options.has_torch},
                                                   {"ncu", &options.has_ncu}};
    const auto* const wanted = std::find_if(std::begin(known), std::end(known),
                                            [&](const auto& entry) { return pass == entry.first; });
    if (wanted == std::end(known)) {
      reader.fail("run.passes", "a list of baseline, operators, nsys, torch and ncu");
    }
    *wanted->second = true;
  }
  // Only a program written for it can report its operators.
  options.has_operators =
      options.has_operators && !reader.texts("model.workload.operators").empty();
  options.has_nsys = options.has_nsys && reader.flag("pipeline.nsys.enable");
  options.has_ncu = options.has_ncu && reader.flag("pipeline.ncu.enable");
  if (!options.has_baseline && !options.has_operators && !options.has_nsys && !options.has_torch &&
      !options.has_ncu) {
    reader.fail("run.passes",
                "at least one pass that can run (operators: where "
                "model.workload.operators says how to ask for them)");
  }
}

}  // namespace

RunOptions common_options_of(const Config& config) {
  const SettingsReader reader(config);
  RunOptions options;
  // It chose presets when the configuration was composed.
  if (const std::string mode = reader.text("run.mode"); mode != "deep" && mode != "light") {
    reader.fail("run.mode", "deep or light");
  }
  options.top_n_kernels = reader.whole_from("run.top_n_kernels", 1);
  options.artifacts_dir = reader.text("artifacts.dir");
  return options;
}

RunOptions run_options_of(const Config& config) {
  const SettingsReader reader(config);
  RunOptions options = common_options_of(config);
  read_passes(reader, options);
  options.captured_ranks = ranks_of(config);
  is_captured(options.captured_ranks, 0);  // a typing error must fail on every rank
  options.gate = gate_of(reader);
  options.limits.timeout = std::chrono::seconds(reader.whole_from("run.timeout_s", 1));
  options.limits.most_bytes =
      static_cast<std::uint64_t>(reader.whole_from("run.max_report_bytes", 1));
  options.limits.least_free_bytes =
      static_cast<std::uint64_t>(reader.whole_from("run.min_free_bytes", 0));
  // ncu replays kernels for minutes without output: it gets a limit on silence and more patience.
  options.ncu_limits = options.limits;
  options.ncu_limits.most_silence =
      std::chrono::seconds(reader.whole_from("run.ncu_no_progress_s", 1));
  options.ncu_limits.patience = kPatienceOfNcu;
  options.ncu_budget_s = static_cast<double>(reader.whole_from("run.ncu_budget_s", 1));
  options.ncu_passes = static_cast<int>(reader.whole_from("pipeline.ncu.passes", 1));
  options.is_ncu_gated = reader.flag("pipeline.ncu.gating_nvtx");
  options.keeps_report = reader.flag("artifacts.keep_report");
  options.rules = reader.optional_text("rules").value_or("");
  options.mark_modules = reader.texts("workload.mark");
  options.contract = contract_of(reader);
  options.workload = {reader.texts("workload.arguments"), reader.text_map("workload.environment"),
                      reader.texts("workload.strip_environment")};
  options.nsys = nsys_of(reader);
  options.ncu = ncu_of(reader);
  return options;
}

std::optional<std::string> recognised_workload(const std::vector<std::string>& command) {
  std::optional<std::string> best;
  std::optional<std::size_t> best_position;
  for (const std::string& name : preset_names("workload")) {
    const Json preset = embedded_yaml("workload/" + name + ".yaml");
    const auto position = position_of(command, preset.at("match").get<std::vector<std::string>>());
    if (position && (!best_position || *position > *best_position)) {
      best = name;
      best_position = position;
    }
  }
  return best;
}

}  // namespace gpuwhy
