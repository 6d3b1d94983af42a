// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy analyze: what a recording shows, or the recordings of one job together.
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/profile.h"
#include "analysis/rank_rows.h"
#include "analysis/ranks/rank_names.h"
#include "analysis/structure/collectives.h"
#include "base/error.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "base/units.h"
#include "bundle/layout.h"
#include "capture/workload.h"
#include "cli/commands/memory_need.h"
#include "cli/json_output.h"
#include "cli/recording_options.h"
#include "export/event_walk.h"
#include "fleet/merge/job_report.h"
#include "ingest/ingest.h"
#include "report/fleet/fleet.h"
#include "report/sections/sections.h"
#include "results/json.h"
#include "results/results.h"
#include "session/reading/named_model.h"
#include "session/reading/recording.h"
#include "session/record/rank_run.h"
#include "session/version.h"
#include "session/writing/report_folder.h"

namespace gpuwhy {
namespace {

struct AnalyzeOptions {
  std::vector<std::string> files;
  std::string out;
  std::string with;
  std::uint64_t trace_budget_bytes = kTraceBudgetBytes;
  RowLimit top{10};
  std::string stage;
  bool json = false;
  JsonPages pages;
  bool has_only_need = false;
  bool verbose = false;
  bool quiet = false;
  bool self_profile = false;
  RecordingOptions recording;
  std::string run_id;
  std::optional<std::uint32_t> rank;
  std::optional<std::int64_t> num_ranks;
  std::vector<std::string> labels;
  std::string gpu_hour_price;
  ModelChoice model;

  std::uint64_t trace_bytes() const { return with == "trace" ? trace_budget_bytes : 0; }
};

// What the summary says about its rank: as told, or else by the name of the file or its folder.
RankIdentity identity_of(const AnalyzeOptions& options, const System& system) {
  RankIdentity identity;
  identity.run_id = options.run_id;
  identity.gpuwhy_version = program_version();
  identity.num_ranks = options.num_ranks.value_or(0);
  if (options.files.size() == 1) {
    const std::filesystem::path path = options.files[0];
    std::optional<std::int64_t> rank = rank_in_name(path.filename().string()).rank;
    if (!rank) {
      rank = rank_in_name(path.parent_path().filename().string()).rank;
    }
    if (options.rank) {
      rank = *options.rank;
    }
    identity.rank = rank.value_or(0);
    identity.is_rank_told = rank.has_value();
  }
  Labels labels = environment_labels(system);
  for (const std::string& label : options.labels) {
    add_labels(label, labels);
  }
  put_labels(std::move(labels), identity);
  return identity;
}

std::vector<std::string> write_results(Profile& profile, PassTimer& timer,
                                       const AnalyzeOptions& options, const System& system) {
  const PassTimer::Scope pass(&timer, "write");
  ReportFolder folder;
  folder.directory = options.out;
  folder.is_of_user = true;
  std::error_code failure;
  std::filesystem::create_directories(folder.directory, failure);
  if (failure) {
    throw Error(ErrorKind::kFailure,
                fmt::format("cannot create {}: {}", options.out, failure.message()));
  }
  folder.trace_budget_bytes = options.trace_bytes();
  folder.num_threads = static_cast<unsigned>(options.recording.num_threads);
  folder.identity = identity_of(options, system);
  folder.gpu_hour_price = gpu_price_of(options.gpu_hour_price);
  folder.kernel_rows = options.top.is_given ? options.top.rows : folder.kernel_rows;
  return write_report_folder(profile, folder, &timer);
}

// The ranks of several files, in the words of gpuwhy merge.
std::string job_text(const Profile& profile, const RankIdentity& identity,
                     const TerminalForm& form) {
  if (!profile.trace) {
    return "";
  }
  Document document = fleet_document(
      report_job(summarise_ranks(profile.analysis, rank_details(profile), identity)), 1);
  document.title.clear();
  document.sections.resize(1);
  document.sections[0].id = "ranks";  // a section among others, with its heading
  return terminal_text(document, form);
}

std::string timer_text(const PassTimer& timer) {
  std::string text = "\nTime gpuwhy took\n";
  for (const PassTimer::Pass& pass : timer.passes()) {
    text += fmt::format("  {:<{}}{:<{}} {:>9}\n", "", 2 * pass.depth, pass.name,
                        20 - 2 * pass.depth, format_duration_ns(pass.duration_ns));
  }
  return text;
}

// What the recording does not say of the model is given by options.
std::optional<EfficiencySetup> setup_of(const AnalyzeOptions& options) {
  if (options.model.model.empty()) {
    return std::nullopt;
  }
  ModelChoice choice = options.model;
  choice.setup.num_gpus = options.recording.parallelism.ranks_per_model();
  return model_setup(choice);
}

void check_options(const AnalyzeOptions& options) {
  if (!options.with.empty() && options.out.empty()) {
    throw Error(ErrorKind::kUsage, fmt::format("--with {} requires --out", options.with),
                "add --out DIR; gpuwhy export writes a trace alone");
  }
  check_model_options(options.model);
}

void check_rank_options(const AnalyzeOptions& options) {
  const bool is_of_summary = options.rank || options.num_ranks || !options.labels.empty();
  if (is_of_summary && options.out.empty()) {
    throw Error(ErrorKind::kUsage, "--rank, --ranks and --label are for summary.gpuwhy",
                "add --out DIR");
  }
  if (options.rank && options.files.size() > 1) {
    throw Error(ErrorKind::kUsage, "--rank is for one file",
                "name the files by their ranks, as rank-3.sqlite, or analyze each on its own");
  }
  if (options.rank && options.num_ranks && *options.rank >= *options.num_ranks) {
    throw Error(ErrorKind::kUsage,
                fmt::format("rank {} is not one of {} ranks", *options.rank, *options.num_ranks),
                "ranks count from 0");
  }
}

// Names the page first: it is what most people open.
void say_what_was_written(const AnalyzeOptions& options, std::vector<std::string> files,
                          bool is_recording, Console& console) {
  std::erase(files, layout::kPage);
  const std::filesystem::path page = std::filesystem::path(options.out) / layout::kPage;
  const std::string others = fmt::format("  also there: {}", fmt::join(files, ", "));
  console.err(fmt::format("\nReport: {}\n{}\n", printable(page.string()),
                          wrapped(others, console.error_width(), 4)));
  if (is_recording && options.trace_bytes() == 0) {
    std::vector<std::string> command = {"gpuwhy", "export"};
    command.insert(command.end(), options.files.begin(), options.files.end());
    console.err(fmt::format("  trace for ui.perfetto.dev: {}\n", printable(shell_text(command))));
  }
}

// A verdict on a damaged recording must not look like one on a whole one.
void warn_of_damage(const Results& metrics, Console& console) {
  for (const Diagnostic& row : metrics.data_quality) {
    if (row.severity != Severity::kInfo) {
      console.err(fmt::format("warning: {}\n", printable(row.sentence)));
    }
  }
}

int run_analyze(const AnalyzeOptions& options, Context& context) {
  check_options(options);
  check_rank_options(options);
  check_pages(options.pages, options.json && !options.has_only_need);
  if (options.has_only_need) {
    return print_memory_need(
        {options.files, options.out, options.trace_bytes(), options.recording.memory_limit_bytes,
         static_cast<unsigned>(options.recording.num_threads), options.json},
        context);
  }
  SectionOptions shown;
  shown.set_top(options.top.rows);
  shown.is_terminal = true;
  shown.is_verbose = options.verbose;
  shown.gpu_hour_price = gpu_price_of(options.gpu_hour_price);
  PassTimer timer;
  ProfileWants wants;
  wants.has_timeline = !options.out.empty();
  wants.has_export = options.trace_bytes() > 0;
  wants.model = setup_of(options);
  wants.gpu_name = options.model.gpu_name;
  wants.batch = options.model.setup.batch;
  wants.timer = &timer;
  Profile profile = profile_recordings(options.files, options.recording, context.system, wants);
  std::vector<std::string> files;
  if (!options.out.empty()) {
    files = write_results(profile, timer, options, context.system);
  }
  if (!options.stage.empty()) {
    keep_stage(row_name(options.stage), profile.analysis);
  }
  const Results& metrics = profile.analysis;
  if (options.json) {
    context.console.out(paged(metrics_json_text(metrics), options.pages));
  } else {
    const Document document = options.quiet ? section_document(metrics, {"summary"}, shown)
                                            : terminal_document(metrics, shown);
    context.console.out(terminal_text(document, context.console.form()));
    if (options.files.size() > 1 && options.stage.empty()) {
      context.console.out(
          job_text(profile, identity_of(options, context.system), context.console.form()));
    }
  }
  if (options.quiet && !options.json) {
    warn_of_damage(metrics, context.console);
  }
  if (!options.out.empty() && !options.quiet) {
    say_what_was_written(options, files, profile.trace.has_value(), context.console);
  }
  if (options.self_profile) {
    context.console.err(timer_text(timer));
  }
  return kExitOk;
}

}  // namespace

Command analyze_command() {
  auto options = std::make_shared<AnalyzeOptions>();
  Command command =
      command_of("analyze", "Analyze a recording: findings, stages, where time went, kernels",
                 options, run_analyze);
  command.options = {
      required({"FILE", "", recording_kinds(true) + ", or a bundle; several: ranks of one job",
                &options->files}),
      ncu_option(options->recording.ncu),
      {"-o,--out", "DIR",
       "Write report.html, metrics.json, summary.gpuwhy and the other files of a report there",
       &options->out},
      one_of({"trace"},
             {"--with", "WHAT", "Also write there: trace (trace.pftrace, for ui.perfetto.dev)",
              &options->with}),
      {"--trace-budget", "BYTES", "Maximum size of trace.pftrace", &options->trace_budget_bytes},
      {"--label", "KEY=VALUE", "Label in summary.gpuwhy, as cluster=a; may be repeated",
       &options->labels},
      {"--memory-need", "", "Only estimate memory, time and disk; exit 5 if it does not fit",
       &options->has_only_need},
      {"--stage", "NAME", "Print only this stage", &options->stage},
      {"--top", "N", "Kernels to print, or all; of --out too, where it is 20 if not given",
       &options->top},
      {"-v,--verbose", "", "Also say which rules could not be checked, and why", &options->verbose},
      quiet_option(options->quiet),
      {"--self-profile", "", "Print how long gpuwhy's own passes took", &options->self_profile},
      {"--gpu-hour-price", "PRICE",
       "What one GPU costs per hour, as 2.50 or '2.50 EUR': the reports say what a saving is worth",
       &options->gpu_hour_price},
      json_option(options->json),
  };
  command.add(OptionGroup::kHidden,
              {{"--run-id", "ID", "Run ID in summary.gpuwhy", &options->run_id},
               {"--rank", "N", "Rank of the file in its job, from 0", &options->rank},
               {"--ranks", "N", "Number of ranks of the job", &options->num_ranks}});
  add_page_options(command, options->pages);
  add_model_options(command, options->model, options->recording);
  add_request_options(command, options->recording);
  add_recording_options(command, options->recording);
  command.examples =
      "  gpuwhy analyze run.sqlite --out report\n"
      "  gpuwhy analyze run.sqlite --ncu counters.ncu-rep\n"
      "  gpuwhy analyze run.sqlite --model llama_3_1_8b\n"
      "  gpuwhy analyze rank0.sqlite rank1.sqlite --model llama_3_1_8b\n"
      "  gpuwhy analyze run.sqlite --requests requests.jsonl --slo ttft=500ms,itl=50ms\n"
      "  gpuwhy analyze huge.sqlite --memory-need\n";
  return command;
}

}  // namespace gpuwhy
