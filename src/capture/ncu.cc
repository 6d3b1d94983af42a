// SPDX-License-Identifier: Apache-2.0
//
// Command lines for ncu, as a pure function of settings, plan and version.
//
// For an unknown set or metric, ncu prints a warning, measures nothing and exits with 0, after the
// model was loaded. So names are first checked against its own lists. Defaults that changed between
// releases (which processes, which clocks) are always passed explicitly.
//
// Kernel names are passed as one anchored regular expression over mangled names if the recording
// has them: demangled names differ between the two tools (casts, namespaces), mangled ones do not.
//
// Not known without a GPU: whether ncu counts launches to skip among all that match the name, or
// only those inside the NVTX ranges. The plan assumes the latter, and the measured launches are
// compared with the plan afterwards.
#include "capture/ncu.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/list_of.h"
#include "base/text.h"
#include "capture/reason.h"
#include "capture/subprocess.h"

namespace gpuwhy {
namespace {

// Metrics that --query-metrics does not list: of the launch, of the device, of sampling.
constexpr std::string_view kUnlistedMetrics[] = {"launch__",   "device__", "profiler__",
                                                 "sampling__", "nvlink__", "numa__"};

std::string ask_ncu(const System& system, const NcuTool& ncu, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), ncu.path.string());
  Process question{std::move(arguments), system.environment};
  question.timeout = std::chrono::seconds(60);
  const ProcessResult result = run_process(question);
  return result.succeeded() ? result.out : "";
}

std::string escaped_for_regex(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (std::string_view(R"(\^$.|?*+()[]{})").find(c) != std::string_view::npos) {
      text += '\\';
    }
    text += c;
  }
  return text;
}

// One expression that matches any of the names as a whole.
std::string name_expression(const std::vector<std::string>& names) {
  const auto escaped = list_of<std::string>(names, escaped_for_regex);
  return fmt::format("regex:^({})$", fmt::join(escaped, "|"));
}

std::vector<std::string> filter_options(const NcuTool& ncu, const NcuFilter& filter) {
  std::vector<std::string> options = {"--kernel-name-base",
                                      filter.is_mangled ? "mangled" : "demangled", "--kernel-name",
                                      name_expression(filter.names)};
  if (filter.is_per_launch_config) {
    if (!ncu.has_per_launch_config) {
      throw Error(ErrorKind::kEnvironment,
                  fmt::format("{}: ncu {} has no --filter-mode per-launch-config",
                              code_of(Reason::kToolTooOld), ncu.version.text()));
    }
    options.insert(options.end(), {"--filter-mode", "per-launch-config"});
  }
  options.insert(options.end(), {"--launch-skip", std::to_string(filter.launch_skip),
                                 "--launch-count", std::to_string(filter.launch_count)});
  const std::vector<std::string> gate = ncu_gate_options(filter.marks, ncu);
  options.insert(options.end(), gate.begin(), gate.end());
  return options;
}

std::vector<std::string> content_options(const NcuSettings& settings) {
  std::vector<std::string> options;
  if (!settings.set.empty()) {
    options.insert(options.end(), {"--set", settings.set});
  }
  for (const std::string& section : settings.sections) {
    options.insert(options.end(), {"--section", section});
  }
  if (!settings.metrics.empty()) {
    options.insert(options.end(),
                   {"--metrics", fmt::format("{}", fmt::join(settings.metrics, ","))});
  }
  return options;
}

// The first words of the rows between the rules of a table.
std::set<std::string> first_words(std::string_view table) {
  std::set<std::string> words;
  for (const std::string_view line : split(table, '\n')) {
    const std::string_view word = line.substr(0, line.find(' '));
    if (!word.empty() && word[0] != '-' && word[0] != '=') {
      words.emplace(word);
    }
  }
  return words;
}

Error unknown_name(Reason reason, const char* kind, const std::string& name,
                   const std::set<std::string>& known, const std::string& list_command) {
  const std::vector<std::string> names(known.begin(), known.end());
  const auto guess = nearest(name, names);
  return {ErrorKind::kUsage,
          fmt::format("{0}: this ncu has no {1} '{2}': it would measure nothing and exit 0",
                      code_of(reason), kind, printable(name)),
          guess ? fmt::format("did you mean '{}'? {} lists them", *guess, list_command)
                : list_command + " lists them"};
}

void check_metrics(const System& system, const NcuTool& ncu,
                   const std::vector<std::string>& metrics) {
  if (metrics.empty()) {
    return;
  }
  const std::string chips = ask_ncu(system, ncu, {"--list-chips"});
  std::string chip_list(trim(chips));
  std::erase(chip_list, ' ');
  const std::set<std::string> known =
      first_words(ask_ncu(system, ncu, {"--query-metrics", "--chips", chip_list}));
  if (known.size() < 100) {
    return;  // ncu did not list its names, so they cannot be checked
  }
  for (const std::string& metric : metrics) {
    const bool is_listed_kind = metric.find(':') == std::string::npos &&
                                std::ranges::none_of(kUnlistedMetrics, [&](std::string_view start) {
                                  return metric.starts_with(start);
                                });
    if (is_listed_kind && !known.contains(metric.substr(0, metric.find('.')))) {
      throw unknown_name(Reason::kUnknownMetric, "metric", metric.substr(0, metric.find('.')),
                         known, "ncu --query-metrics --chips CHIP");
    }
  }
}

}  // namespace

std::vector<std::string> build_ncu_cmd(const NcuTool& ncu, const NcuSettings& settings,
                                       const NcuFilter& filter, const std::filesystem::path& report,
                                       const std::vector<std::string>& work_argv) {
  std::vector<std::string> argv = {
      ncu.path.string(),      "--target-processes", settings.target_processes,
      "--replay-mode",        settings.replay_mode, "--cache-control",
      settings.cache_control, "--clock-control",    settings.clock_control};
  for (const auto& part : {content_options(settings), filter_options(ncu, filter)}) {
    argv.insert(argv.end(), part.begin(), part.end());
  }
  if (ncu.has_option("--graph-profiling")) {
    argv.insert(argv.end(), {"--graph-profiling", "node"});
  }
  argv.insert(argv.end(), settings.extra_options.begin(), settings.extra_options.end());
  argv.insert(argv.end(), {"--force-overwrite", "--export", report.string()});
  argv.insert(argv.end(), work_argv.begin(), work_argv.end());
  return argv;
}

void check_ncu_names(const System& system, const NcuTool& ncu, const NcuSettings& settings) {
  const std::set<std::string> sets(ncu.sets.begin(), ncu.sets.end());
  if (!settings.set.empty() && !sets.empty() && !sets.contains(settings.set)) {
    throw unknown_name(Reason::kUnknownSet, "set", settings.set, sets, "ncu --list-sets");
  }
  const std::set<std::string> sections = first_words(list_ncu_sections(system, ncu));
  for (const std::string& section : settings.sections) {
    if (!section.starts_with("regex:") && !sections.empty() && !sections.contains(section)) {
      throw unknown_name(Reason::kUnknownSection, "section", section, sections,
                         "ncu --list-sections");
    }
  }
  check_metrics(system, ncu, settings.metrics);
}

std::string list_ncu_sections(const System& system, const NcuTool& ncu) {
  return ask_ncu(system, ncu, {"--list-sections"});
}

}  // namespace gpuwhy
