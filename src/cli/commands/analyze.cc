// SPDX-License-Identifier: Apache-2.0
//
// llmprof analyze: what a recording shows, or the recordings of one job together.
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/analyze_plan.h"
#include "cli/json_output.h"
#include "cli/recording_options.h"
#include "ingest/ingest.h"
#include "report/metrics.h"
#include "report/sections.h"
#include "session/named_model.h"
#include "session/recording.h"
#include "session/report_folder.h"
#include "session/version.h"

namespace llmprof {
namespace {

struct AnalyzeOptions {
  std::vector<std::string> files;
  std::string out;
  std::uint64_t trace_budget_bytes = kTraceBudgetBytes;
  RowLimit top{10};
  std::string stage;
  bool json = false;
  JsonPages pages;
  bool plan = false;
  bool verbose = false;
  bool quiet = false;
  bool self_profile = false;
  RecordingOptions recording;
  std::string run_id;
  std::string model;
  std::string gpu_name;
  std::string image;
  EfficiencySetup setup;  // what the command line says of it; setup_of() adds the rest
};

WrittenReport write_results(Profile& profile, PassTimer& timer, const AnalyzeOptions& options) {
  const PassTimer::Scope pass(&timer, "write");
  ReportFolder folder;
  folder.directory = options.out;
  std::error_code failure;
  std::filesystem::create_directories(folder.directory, failure);
  if (failure) {
    throw Error(ErrorKind::kFailure,
                fmt::format("cannot create {}: {}", options.out, failure.message()));
  }
  folder.trace_budget_bytes = options.trace_budget_bytes;
  folder.identity.run_id = options.run_id;
  folder.identity.llmprof_version = program_version();
  return write_report_folder(profile, folder, &timer);
}

std::string timer_text(const PassTimer& timer) {
  std::string text = "\nTime llmprof took\n";
  for (const PassTimer::Pass& pass : timer.passes()) {
    text += fmt::format("  {:<{}}{:<{}} {:>9}\n", "", 2 * pass.depth, pass.name,
                        20 - 2 * pass.depth, format_duration_ns(pass.duration_ns));
  }
  return text;
}

// What the recording does not say of the model is given by options.
std::optional<EfficiencySetup> setup_of(const AnalyzeOptions& options) {
  if (options.model.empty()) {
    return std::nullopt;
  }
  ModelChoice choice{options.model, options.gpu_name, options.image, options.setup};
  choice.setup.num_gpus = options.recording.parallelism.ranks_per_model();
  return model_setup(choice);
}

void check_model_options(const AnalyzeOptions& options) {
  const EfficiencySetup& setup = options.setup;
  const std::pair<const char*, bool> given[] = {
      {"--prompt-tokens", setup.prompt_tokens.has_value()},
      {"--new-tokens", setup.new_tokens.has_value()},
      {"--context", setup.context.has_value()},
      {"--image", !options.image.empty()}};
  for (const auto& [option, is_given] : given) {
    if (is_given && options.model.empty()) {
      throw Error(ErrorKind::kUsage, fmt::format("{} requires --model", option),
                  "add --model NAME (llmprof list models) or --model PATH");
    }
  }
}

// Names the page first: it is what most people open.
void say_what_was_written(const std::string& folder, std::vector<std::string> files,
                          Console& console) {
  std::erase(files, "report.html");
  const std::filesystem::path page = std::filesystem::path(folder) / "report.html";
  const std::string others = fmt::format("  also there: {}", fmt::join(files, ", "));
  console.err(fmt::format("\nReport: {}\n{}\n", printable(page.string()),
                          wrapped(others, console.error_width(), 4)));
}

int run_analyze(const AnalyzeOptions& options, Context& context) {
  check_model_options(options);
  check_pages(options.pages, options.json && !options.plan);
  if (options.plan) {
    return print_plan({options.files, options.out, options.trace_budget_bytes,
                       options.recording.memory_limit_bytes, options.json},
                      context);
  }
  SectionOptions shown;
  shown.set_top(options.top.rows);
  shown.is_terminal = true;
  shown.is_verbose = options.verbose;
  PassTimer timer;
  ProfileWants wants;
  wants.has_timeline = wants.has_export = !options.out.empty();
  wants.model = setup_of(options);
  wants.gpu_name = options.gpu_name;
  wants.batch = options.setup.batch;
  wants.timer = &timer;
  Profile profile = profile_recordings(options.files, options.recording, context.system, wants);
  Metrics metrics;
  std::vector<std::string> files;
  if (!options.out.empty()) {
    WrittenReport written = write_results(profile, timer, options);
    metrics = std::move(written.metrics);
    files = std::move(written.files);
  }
  if (!options.stage.empty()) {
    keep_stage(options.stage, profile.analysis);
  }
  if (options.out.empty() || !options.stage.empty()) {
    metrics = metrics_of(profile.analysis);
  }
  if (options.json) {
    context.console.out(paged(metrics_json_text(metrics), options.pages));
  } else {
    const Document document = options.quiet ? section_document(metrics, {"summary"}, shown)
                                            : terminal_document(metrics, shown);
    context.console.out(terminal_text(document, context.console.form()));
  }
  if (!options.out.empty() && !options.quiet) {
    say_what_was_written(options.out, files, context.console);
  }
  if (options.self_profile) {
    context.console.err(timer_text(timer));
  }
  return kExitOk;
}

}  // namespace

Command analyze_command() {
  auto options = std::make_shared<AnalyzeOptions>();
  Command command;
  command.name = "analyze";
  command.summary = "Analyze a recording: stages, where the time went, kernels, findings";
  command.options = {
      required({"FILE", "", recording_kinds(true) + ", or a bundle; several: ranks of one job",
                &options->files}),
      ncu_option(options->recording.ncu),
      {"-o,--out", "DIR",
       "Write report.html, metrics.json, summary.llmprof and the other files of a report there",
       &options->out},
      {"--trace-budget", "BYTES", "Maximum size of trace.pftrace; 0: do not write it",
       &options->trace_budget_bytes},
      {"--run-id", "ID", "Run ID in summary.llmprof; llmprof merge groups ranks by it",
       &options->run_id},
      {"--plan", "", "Only estimate memory, time and disk; exit 5 if it does not fit",
       &options->plan},
      {"--stage", "NAME", "Print only this stage", &options->stage},
      {"--top", "N", "Kernels to print, or all", &options->top},
      {"-v,--verbose", "", "Also say which rules could not be checked, and why", &options->verbose},
      {"-q,--quiet", "", "Print only the verdict", &options->quiet},
      {"--self-profile", "", "Print how long llmprof's own passes took", &options->self_profile},
      {"--model",
       "MODEL",
       "Compute MFU and MBU for this model: a name of llmprof list models, or a path",
       &options->model,
       {},
       model_names},
      {"--gpu-name", "NAME",
       "The GPU if the recording does not name it; with --model, also another one to compare with",
       &options->gpu_name},
      {"--prompt-tokens", "N", "Prompt length in tokens, if no mark says",
       &options->setup.prompt_tokens},
      {"--new-tokens", "N", "Tokens generated in a decode loop, if no mark says",
       &options->setup.new_tokens},
      {"--batch", "B", "Batch size, if no mark says", &options->setup.batch},
      {"--context", "C", "Mean context length of a decode step in tokens, if no mark says",
       &options->setup.context},
      {"--tp", "N",
       "Tensor-parallel ranks that share one copy of the model, if the recordings do not show it",
       &options->recording.parallelism.tensor},
      {"--pp", "N", "Pipeline stages that share it", &options->recording.parallelism.pipeline},
      {"--dp", "N", "Replicas of the model in the recordings",
       &options->recording.parallelism.data},
      {"--image", "WxH", "Size of the image in the prompt, in pixels", &options->image},
      json_option(options->json),
  };
  add_page_options(command, options->pages);
  add_request_options(command, options->recording);
  add_recording_options(command, options->recording);
  command.examples =
      "  llmprof analyze run.sqlite --out report\n"
      "  llmprof analyze run.sqlite --ncu counters.ncu-rep\n"
      "  llmprof analyze run.sqlite --model llama_3_1_8b\n"
      "  llmprof analyze rank0.sqlite rank1.sqlite --model llama_3_1_8b\n"
      "  llmprof analyze run.sqlite --requests requests.jsonl --slo ttft=500ms,itl=50ms\n"
      "  llmprof analyze huge.sqlite --plan\n";
  command.run = [options](Context& context) { return run_analyze(*options, context); };
  return command;
}

}  // namespace llmprof
