// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy ncu plan: which kernels of a recording ncu would measure, and with which commands.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/findings/findings.h"
#include "analysis/names/kernel_names.h"
#include "analysis/profile.h"
#include "base/error.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/recording_options.h"
#include "config/compose.h"
#include "ingest/ingest.h"
#include "session/reading/operator_table.h"
#include "session/reading/recording.h"
#include "session/record/ncu_plan_command.h"

namespace gpuwhy {
namespace {

struct PlanCommandOptions {
  bool json = false;
  JsonPages pages;
  std::string recording;
  RecordingOptions reading;  // only the marks: ncu counts launches from the start of the program
  std::string file;
  std::vector<std::string> overrides;
};

// ncu as it is here, or as the oldest that is known where it is not.
NcuTool ncu_for_plan(const System& system, std::vector<std::string>& notes) {
  try {
    return ensure_ncu(system);
  } catch (const Error& error) {
    notes.push_back(fmt::format("{}: commands are for any release", error.message()));
    NcuTool ncu;
    ncu.path = "ncu";
    return ncu;
  }
}

// Why launches may be missing from the recording; empty: none are known to be.
std::string cut_words(const Analysis& analysis) {
  for (const Diagnostic& one : analysis.data_quality) {
    if (one.severity == Severity::kDataLoss) {
      return "the recording is incomplete";
    }
    if (one.kind == "orphan_kernel") {
      return "the recording begins after the program did: it has kernels whose launch is not in it";
    }
  }
  return has_missing_calls(analysis) ? "the recording is a sample" : "";
}

double share_of(std::int64_t part_ns, const NcuPlan& plan) {
  return static_cast<double>(part_ns) /
         static_cast<double>(std::max<std::int64_t>(plan.kernel_ns, 1));
}

ReportTable groups_table(const NcuPlan& plan) {
  ReportTable table;
  table.columns = {
      {"share", "share", CellFormat::kFraction},  {"total", "total_ns", CellFormat::kDuration},
      {"calls", "calls", CellFormat::kCount},     {"median", "median_ns", CellFormat::kDuration},
      {"stage", "stage", CellFormat::kText},      {"part", "parts", CellFormat::kText},
      {"grid/block", "shape", CellFormat::kText}, {"kernel", "kernel_name", CellFormat::kName}};
  std::set<std::string> different;
  for (const PlannedKernel& kernel : plan.kernels) {
    different.insert(kernel.group.kernel_name);
  }
  const std::map<std::string, std::string> short_names = short_names_of(different);
  for (const PlannedKernel& kernel : plan.kernels) {
    const LaunchGroup& group = kernel.group;
    const std::string parts = fmt::format("{}", fmt::join(kernel.parts, ", "));
    ReportRow& row = table.rows.emplace_back();
    for (CellValue value :
         {CellValue(share_of(group.total_ns, plan)), CellValue(group.total_ns),
          CellValue(std::int64_t{group.calls}), CellValue(group.median_ns),
          CellValue(group.stage.text()), parts.empty() ? CellValue() : CellValue(parts),
          CellValue(group.shape.text()), CellValue(short_names.at(group.kernel_name))}) {
      row.cells.push_back({std::move(value), table.columns[row.cells.size()].unit, ""});
    }
  }
  return table;
}

Document plan_document(const NcuPlan& plan) {
  std::int64_t launches = 0;
  for (const PlannedCommand& command : plan.commands) {
    launches += command.expected_launches;
  }
  Section section;
  section.id = "plan";
  section.title = "Launches to profile";
  section.paragraphs.push_back(fmt::format(
      "{} groups of launches stand for {} of GPU time. ncu measures {} launches in {} of the "
      "program: about {:.0f} s, {:.0f} s are allowed.",
      plan.kernels.size(), format_fraction(share_of(plan.covered_ns, plan)), launches,
      plan.commands.size() == 1 ? "one run" : fmt::format("{} runs", plan.commands.size()),
      plan.forecast_s, plan.budget_s));
  section.tables.push_back(groups_table(plan));
  std::map<std::string, std::pair<int, std::int64_t>> reasons;
  for (const ExcludedKernel& excluded : plan.excluded) {
    ++reasons[excluded.reason].first;
    reasons[excluded.reason].second += excluded.group.total_ns;
  }
  for (const auto& [reason, of_reason] : reasons) {
    section.notes.push_back(fmt::format("left out as {}: {} groups, {}", reason, of_reason.first,
                                        format_duration_ns(of_reason.second)));
  }
  return {"", {std::move(section)}};
}

int run_plan(const PlanCommandOptions& options, Context& context) {
  check_pages(options.pages, options.json);
  const RunOptions run_options =
      run_options_of(compose(user_file(options.file), options.overrides));
  std::vector<std::string> notes;
  const NcuTool ncu = ncu_for_plan(context.system, notes);
  RecordingOptions reading = options.reading;
  reading.rules = reading.rules.empty() ? run_options.rules : reading.rules;
  const Profile profile = profile_alone({options.recording}, reading, context.system);
  say_how_read(profile, context.console);
  require_plannable(profile, options.recording);
  const NcuPlan plan = make_plan(run_options, ncu, profile, program_seconds(options.recording));
  const auto commands = plan_commands(plan, run_options, ncu, profile);
  if (const std::string cut = cut_words(profile.analysis); !cut.empty()) {
    notes.push_back(fmt::format(
        "{}: ncu counts launches from the start of the program, so it may measure others "
        "than these; plan from a recording of the whole program",
        cut));
  }
  for (const std::string& note : notes) {
    context.console.err(fmt::format("gpuwhy: {}\n", note));
  }
  if (options.json) {
    context.console.out(paged(plan_json(plan, commands), options.pages));
  } else {
    context.console.out(terminal_text(plan_document(plan), context.console.form()));
    for (const auto& command : commands) {  // to be pasted: never wrapped
      context.console.out("\n" + printable(shell_text(command)) + "\n");
    }
  }
  return kExitOk;
}

}  // namespace

Command ncu_plan_command() {
  auto options = std::make_shared<PlanCommandOptions>();
  Command command =
      command_of("plan", "Choose which kernel launches to profile with ncu", options, run_plan);
  command.options = {
      required({"RECORDING", "", recording_kinds(false) + ", or a bundle", &options->recording}),
      json_option(options->json),
      config_option(options->file),
      override_option(options->overrides),
  };
  add_page_options(command, options->pages);
  add_mark_options(command, options->reading);
  command.examples = "  gpuwhy ncu plan run.sqlite run.top_n_kernels=5\n";
  return command;
}

}  // namespace gpuwhy
