// SPDX-License-Identifier: Apache-2.0
//
// The recording of nsys, or those of a server's ranks, each of an nsys of its own, read as one.
//
// A gate is chosen by the marks that the baseline saw. The report is exported, cleaned of secrets,
// profiled, and checked against what the run declares and what the baseline saw.
#include <filesystem>

#include <fmt/format.h>

#include "analysis/profile.h"
#include "base/error.h"
#include "base/text.h"
#include "bundle/layout.h"
#include "capture/nsys_leftovers.h"
#include "ingest/ingest.h"
#include "serve/drive.h"
#include "session/reading/recording.h"
#include "session/reading/unprofiled_trace.h"
#include "session/record/pass_parts.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kReadThreads = 2;
constexpr int kMostRetries = 2;

// In the folder of the pass: the report of a rank, where each has one.
std::string rank_report(const std::string& rank) {
  return fmt::format(layout::kNsysReportOfRank, rank);
}

// An nsys around each rank: it does not follow what a launcher starts.
std::vector<std::string> rank_argv(const CommandInputs& inputs, const NsysTool& nsys,
                                   const NsysSettings& settings,
                                   const std::vector<std::string>& argv) {
  const auto program =
      argv.begin() + static_cast<std::ptrdiff_t>(inputs.setup.server->ranks->program);
  const NsysOutput output = {inputs.session + "-" + kRankPlace,
                             inputs.bundle / "nsys" / rank_report(kRankPlace),
                             inputs.system.temporary_directory()};
  std::vector<std::string> words(argv.begin(), program);
  for (const std::vector<std::string>& more :
       {own_command("rank"),
        {"--"},
        build_nsys_cmd(nsys, settings, inputs.gate, output, {program, argv.end()})}) {
    words.insert(words.end(), more.begin(), more.end());
  }
  return words;
}

std::vector<PassCommand> nsys_commands(const CommandInputs& inputs) {
  if (!inputs.setup.nsys) {
    return {};
  }
  const NsysTool& nsys = *inputs.setup.nsys;
  const NsysSettings& settings = inputs.setup.options.nsys;
  const NsysOutput output = {inputs.session, inputs.bundle / layout::kNsysReport,
                             inputs.system.temporary_directory()};
  PassCommand command = profiled_command(inputs, "nsys");
  command.environment["TMPDIR"] = inputs.scratch.string();
  const std::optional<ServerSetup>& server = inputs.setup.server;
  if (server && server->ranks) {
    command.argv = rank_argv(inputs, nsys, settings, command.argv);
    command.environment.merge(nsys_trigger_environment(inputs.gate));
    const bool has_post = server->window.num_steps || server->is_started_for_nsys;
    return {driven(inputs, "nsys", std::move(command), {{}, {}, has_post, {}, true})};
  }
  if (server && !server->window.num_steps) {
    const NsysPeriod window = build_nsys_period(nsys, settings, output, command.argv);
    command.argv = window.launch;
    return {driven(inputs, "nsys", std::move(command),
                   {window.start, window.stop, server->is_started_for_nsys, {}})};
  }
  command.argv = build_nsys_cmd(nsys, settings, inputs.gate, output, command.argv);
  command.environment.merge(nsys_trigger_environment(inputs.gate));
  // An engine that counts its steps opens and closes the recording by cudaProfilerStart and Stop.
  return {server ? driven(inputs, "nsys", std::move(command), {{}, {}, true, {}}) : command};
}

// By what nsys printed alone. What drives a server then says that it died, and names a rank that
// was not started, as other ranks print too.
bool agent_has_failed(const StepResult& step) {
  const std::string death = fmt::format("gpuwhy: {}:", code_of(Reason::kServerDied));
  const std::size_t driver = step.last_lines.rfind(death);
  const bool is_driven = driver != std::string::npos;
  const int code = is_driven ? info_of(Reason::kServerDied).exit_code : 1;
  return step.end == StepEnd::kItself && step.exit_code == code &&
         (is_agent_failure(std::string_view(step.last_lines).substr(0, driver)) ||
          (is_driven && step.last_lines.find(kRankNotStarted, driver) != std::string::npos));
}

bool has_ranks(const PassRunner& runner) {
  return runner.setup().server && runner.setup().server->ranks;
}

// Until reports and exports are searched.
void hold_back_recordings(PassRunner& runner) {
  constexpr std::int64_t kMostRanks = 256;  // of one machine, where the launcher decides
  runner.hold_back(runner.artifacts().path(layout::kNsysSqlite));
  if (runner.setup().options.keeps_report) {
    return;
  }
  runner.hold_back(runner.artifacts().path(layout::kNsysReport));
  const std::int64_t num_ranks =
      has_ranks(runner) ? runner.setup().server->ranks->num_ranks.value_or(kMostRanks) : 0;
  for (std::int64_t rank = 0; rank < num_ranks; ++rank) {
    runner.hold_back(runner.folder() / rank_report(fmt::format("{}", rank)));
  }
}

// They would let this capture fail. They are of other sessions, so only if asked for; and only what
// is provably nobody's goes.
void remove_leftovers(PassRunner& runner) {
  if (!runner.setup().options.nsys.remove_leftovers) {
    return;
  }
  const NsysLeftovers gone = remove_nsys_leftovers(runner.system());
  for (const fs::path& path : gone.files) {
    runner.note(fmt::format("removed {}, which a killed nsys had left", printable(path.string())));
  }
  for (const RunningProcess& agent : gone.hung_agents) {
    runner.note(fmt::format("ended {}, an agent that waited for what a killed nsys had begun",
                            printable(agent.text())));
  }
}

// The program under nsys, once more where nsys could not start it.
struct NsysRun {
  StepResult step;
  fs::file_time_type start;
};
NsysRun record(PassRunner& runner, const PassCommand& command) {
  for (int retry = 0;; ++retry) {
    remove_leftovers(runner);
    const auto start = fs::file_time_type::clock::now();
    StepResult step = runner.run_step(command, runner.setup().options.limits);
    if (retry == kMostRetries || runner.is_interrupted() || !agent_has_failed(step)) {
      return {std::move(step), start};
    }
    runner.note("nsys failed to start its agent before it started the program; trying again");
  }
}

std::vector<Breach> check_report(PassRunner& runner, const fs::path& report, const NsysRun& run) {
  const CaptureTrigger& gate = runner.inputs().gate;
  const bool is_by_program = gate.kind == TriggerWish::Kind::kCudaProfilerApi;
  return check_nsys_report(
      {report, runner.inputs().scratch, run.start,
       is_by_program || gate.kind == TriggerWish::Kind::kMark,
       is_by_program ? "cudaProfilerStart" : gate.mark.text(), gate.num_entries},
      run.step);
}

// True when the report is where it was asked for, if need be made by the importer.
bool keep_report(PassRunner& runner, const fs::path& report, const NsysRun& run) {
  std::error_code failure;
  const NsysTool& nsys = *runner.setup().nsys;
  const fs::path raw = find_with_suffix(runner.inputs().scratch, ".qdstrm");
  if (!fs::exists(report, failure) && !raw.empty() && !nsys.importer.empty() &&
      run.step.end != StepEnd::kAborted) {
    runner.note("nsys left its raw stream; the importer makes the report of it");
    import_raw(runner.system(), nsys, raw, report);
  }
  const std::vector<Breach> found = check_report(runner, report, run);
  if (!found.empty() && !raw.empty()) {
    fs::copy_file(raw, runner.folder() / raw.filename(), failure);
  }
  runner.add(found);
  return found.empty();
}

// The export of the only report; none where there is no report, or none that is clean.
std::vector<std::string> only_export(PassRunner& runner, const NsysRun& run) {
  const fs::path report = runner.inputs().bundle / layout::kNsysReport;
  const fs::path sqlite = runner.artifacts().path(layout::kNsysSqlite);
  const bool has_report = keep_report(runner, report, run);
  // Where there is no report the reason is there, not in the exit code.
  if (has_report || run.step.end != StepEnd::kItself) {
    const bool is_ended = runner.setup().options.nsys.duration_s > 0;  // --duration: by SIGTERM
    runner.add(check_program(runner, run.step, is_ended ? std::vector{143} : std::vector<int>{}));
  }
  return has_report && export_without_secrets(runner, report, sqlite) ? std::vector{sqlite.string()}
                                                                      : std::vector<std::string>{};
}

std::vector<std::string> exports_of_ranks(PassRunner& runner, const NsysRun& run) {
  std::vector<std::string> paths;
  std::vector<Breach> absent;
  // Where the launcher decides how many there are, they end with the first that left nothing.
  const std::optional<std::int64_t> num_ranks = runner.setup().server->ranks->num_ranks;
  for (std::int64_t rank = 0; !num_ranks || rank < *num_ranks; ++rank) {
    const fs::path report = runner.inputs().bundle / "nsys" / rank_report(fmt::format("{}", rank));
    const std::vector<Breach> found = check_report(runner, report, run);
    if (!found.empty()) {
      absent.insert(absent.end(), found.begin(), found.end());
      absent.back().sentence = fmt::format("rank {}: {}", rank, absent.back().sentence);
      if (!num_ranks) {
        break;
      }
      continue;
    }
    const fs::path sqlite = fs::path(report).replace_extension(".sqlite");
    if (export_without_secrets(runner, report, sqlite)) {
      paths.push_back(sqlite.string());
    }
  }
  if (num_ranks || paths.empty()) {
    runner.add(absent);
  }
  if (!paths.empty() || run.step.end != StepEnd::kItself) {
    runner.add(check_program(runner, run.step, {}));
  }
  return paths;
}

Profile profile_of_export(PassRunner& runner, const std::string& sqlite) {
  ProfileOptions options;
  options.has_timeline = true;
  options.has_requests = runner.results().requests.has_value();
  Trace trace = load_trace(InputFile(sqlite), kReadThreads);
  name_graph_kernels(sqlite, {}, std::nullopt, trace);
  for (const std::string& mark : unused_marks(runner.setup().rules, trace)) {
    runner.fail(Reason::kMarksIncomplete, mark + ": no range of the recording has this name",
                fmt::format("gpuwhy table ranges {} lists the names", sqlite));
  }
  return profile(std::move(trace), runner.setup().rules, options);
}

RecordingFacts facts_of(const Profile& profile) {
  const Analysis& analysis = profile.analysis;
  RecordingFacts facts;
  facts.stage_instances = instances_of(analysis.stage_times);
  facts.has_kernels = analysis.capture.has_kernel_table;
  facts.has_cuda = analysis.capture.has_cuda;
  facts.opaque_graph_fraction = analysis.capture.kernel_ns == 0
                                    ? 0
                                    : static_cast<double>(analysis.capture.opaque_graph_ns) /
                                          static_cast<double>(analysis.capture.kernel_ns);
  if (has_marks(analysis.stage_times)) {
    facts.num_processes_with_ranges = count_processes(*profile.trace, profile.stages);
  }
  facts.tool_messages = analysis.tool_messages;
  return facts;
}

// What the recording must have: declared stages, the baseline's, kernels, and a server's window.
void check_recorded(PassRunner& runner, bool was_cut) {
  const RunSetup& setup = runner.setup();
  const CaptureTrigger& gate = runner.inputs().gate;
  const RunResults::Baseline& baseline = runner.results().baseline;
  const bool is_gpu_expected =
      setup.options.contract.gpu == Contract::Gpu::kRequired ||
      (setup.options.contract.gpu == Contract::Gpu::kAuto && !setup.machine.gpus.empty());
  Expectations expected{is_gpu_expected, setup.options.nsys.trace_fork_before_exec, 0, {}};
  // A window of its own holds fewer stages than the whole run, and a server batches as it likes.
  if (!baseline.times.empty() && !setup.server &&
      gate.kind != TriggerWish::Kind::kCudaProfilerApi && setup.options.nsys.duration_s == 0 &&
      !was_cut) {
    const ExpectedStages stages = expected_stages(baseline.trace, baseline.stages, gate);
    expected.num_processes_with_ranges = stages.num_processes;
    expected.stage_instances = stages.instances;
  }
  const Profile& profile = *runner.results().profile;
  runner.add(check_recording(setup.options.contract, expected, facts_of(profile)));
  check_served_window(runner, profile.analysis);
}

std::optional<Reason> nsys_obstacle(PassRunner& runner) {
  if (!runner.setup().nsys) {
    return Reason::kToolMissing;
  }
  const std::optional<std::vector<SeenMark>>& marks = runner.results().baseline.marks;
  try {
    runner.inputs().gate = choose_trigger(runner.setup().options.gate, marks ? &*marks : nullptr);
  } catch (const Error& error) {
    runner.fail(Reason::kGateNotFired, error.message(), error.hint());
    return Reason::kGateNotFired;
  }
  return std::nullopt;
}

void run_nsys(PassRunner& runner) {
  hold_back_recordings(runner);
  const CaptureTrigger& gate = runner.inputs().gate;
  if (gate.kind == TriggerWish::Kind::kMark) {
    runner.note(
        fmt::format("recording from the first {} ({})", printable(gate.mark.text()), gate.reason));
  }
  const PassCommand command = nsys_commands(runner.inputs()).at(0);
  for (const std::string& note : command.notes) {
    runner.note(note);
  }
  const NsysRun run = record(runner, command);
  const std::vector<std::string> files =
      has_ranks(runner) ? exports_of_ranks(runner, run) : only_export(runner, run);
  if (files.empty()) {
    return;
  }
  read_requests(runner);
  try {
    runner.results().profile = has_ranks(runner) ? profile_of_files(runner, files)
                                                 : profile_of_export(runner, files.front());
  } catch (const Error& error) {
    return runner.fail(Reason::kReportUnreadable, error);
  }
  check_recorded(runner, run.step.end != StepEnd::kItself);
}

}  // namespace

Pass nsys_pass() {
  return {"nsys", "nsys", nsys_commands, run_nsys, nsys_obstacle};
}

}  // namespace gpuwhy
