// SPDX-License-Identifier: Apache-2.0
//
// llmprof analyze: what a recording shows.
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/analyze_plan.h"
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
  std::string trace_budget;
  std::string top = "10";
  std::string stage;
  bool json = false;
  bool plan = false;
  bool verbose = false;
  bool self_profile = false;
  RecordingOptions recording;
  std::string run_id;
  std::string model;
  std::string gpu_name;
  std::string prompt_tokens;
  std::string new_tokens;
  std::string batch;
  std::string context;
  std::string image;
  std::string num_gpus;
};

// Where the results of a file go. Results of several files get a folder each, named like the file.
std::filesystem::path result_folder(const AnalyzeOptions& asked, const std::string& file) {
  std::filesystem::path out = asked.out;
  std::error_code failure;
  std::filesystem::create_directories(out, failure);
  if (failure) {
    throw Error(ErrorKind::kFailure,
                fmt::format("cannot create {}: {}", out.string(), failure.message()));
  }
  if (asked.files.size() > 1) {
    out /= std::filesystem::path(file).stem();
    make_inner_folder(out);
  }
  return out;
}

Metrics write_results(Profile& profile, PassTimer& timer, const AnalyzeOptions& asked,
                      const std::string& file) {
  const PassTimer::Scope pass(&timer, "write");
  ReportFolder folder;
  folder.directory = result_folder(asked, file);
  folder.trace_budget = asked.trace_budget;
  folder.identity.run_id = asked.run_id;
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

std::optional<std::int64_t> optional_count(const char* option, const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(count_of(option, text));
}

// What the recording does not say of the model is given by options.
std::optional<EfficiencySetup> model_setup(const AnalyzeOptions& asked) {
  if (asked.model.empty()) {
    return std::nullopt;
  }
  EfficiencySetup setup;
  NamedModel named = named_model(asked.model);
  setup.model_name = named.name;
  setup.llm = std::move(named.llm);
  if (!asked.gpu_name.empty()) {
    setup.gpu = named_gpu(asked.gpu_name);
  }
  setup.prompt_tokens = optional_count("--prompt-tokens", asked.prompt_tokens);
  setup.new_tokens = optional_count("--new-tokens", asked.new_tokens);
  setup.batch = optional_count("--batch", asked.batch);
  setup.context = optional_count("--context", asked.context);
  setup.num_gpus = optional_count("--tp", asked.num_gpus);
  if (!asked.image.empty()) {
    if (!setup.llm.vision) {
      throw Error(ErrorKind::kUsage, fmt::format("{} takes no images", printable(named.name)));
    }
    setup.image = image_cost(*setup.llm.vision, image_of(asked.image));
  }
  return setup;
}

void check_model_options(const AnalyzeOptions& asked) {
  const std::pair<const char*, const std::string&> given[] = {
      {"--gpu-name", asked.gpu_name},
      {"--prompt-tokens", asked.prompt_tokens},
      {"--new-tokens", asked.new_tokens},
      {"--batch", asked.batch},
      {"--context", asked.context},
      {"--image", asked.image},
      {"--tp", asked.num_gpus}};
  for (const auto& [option, value] : given) {
    if (!value.empty() && asked.model.empty()) {
      throw Error(ErrorKind::kUsage, fmt::format("{} says something of a model: which?", option),
                  "add --model NAME (llmprof list models) or --model PATH");
    }
  }
}

int run_analyze(const AnalyzeOptions& asked, Context& context) {
  const std::size_t top = positive_number("--top", asked.top);
  if (asked.files.empty()) {
    throw Error(ErrorKind::kUsage, "analyze: needs FILE", "usage: llmprof analyze --help");
  }
  check_model_options(asked);
  if (asked.plan) {
    return print_plans(
        {asked.files, asked.out, asked.trace_budget, asked.recording.memory_limit, asked.json},
        context);
  }
  SectionOptions shown;
  shown.top = top;
  shown.is_terminal = true;
  shown.is_verbose = asked.verbose;
  const std::optional<EfficiencySetup> model = model_setup(asked);
  for (const std::string& file : asked.files) {
    PassTimer timer;
    ProfileWants wants;
    wants.has_timeline = wants.has_export = !asked.out.empty();
    wants.model = model;
    wants.timer = &timer;
    Profile profile = profile_recording(file, asked.recording, context.system, wants);
    Metrics metrics;
    if (!asked.out.empty()) {
      metrics = write_results(profile, timer, asked, file);
    }
    if (!asked.stage.empty()) {
      keep_stage(asked.stage, profile.analysis);
    }
    if (asked.out.empty() || !asked.stage.empty()) {
      metrics = metrics_of(profile.analysis);
    }
    if (asked.files.size() > 1 && !asked.json) {
      context.console.out(fmt::format("== {}\n", printable(file)));
    }
    context.console.out(
        asked.json ? to_json_text(metrics_json(metrics))
                   : terminal_text(terminal_document(metrics, shown), context.console.width()));
    if (asked.self_profile) {
      context.console.err(timer_text(timer));
    }
  }
  return kExitOk;
}

}  // namespace

Command analyze_command() {
  auto asked = std::make_shared<AnalyzeOptions>();
  Command command;
  command.name = "analyze";
  command.summary = "Say what a recording shows: stages, where the time went, kernels";
  command.options = {
      {"FILE", "", recording_kinds(true) + ", or a bundle", &asked->files, {}, nullptr, true},
      {"--ncu", "FILE...",
       "Counters to join, one or more files: .ncu-rep, or what ncu --csv printed",
       &asked->recording.ncu},
      {"--out", "DIR",
       "Write report.html, metrics.json, summary.llmprof and the other files of a report there",
       &asked->out},
      {"--trace-budget", "BYTES", "The most that trace.pftrace there may take (200000000); 0: none",
       &asked->trace_budget},
      {"--run-id", "ID", "The run that its summary there is a rank of: llmprof merge",
       &asked->run_id},
      {"--plan", "", "Only say what it will take: memory, time, disk; exit 5 if it does not fit",
       &asked->plan},
      {"--stage", "NAME", "Print only this stage", &asked->stage},
      {"--top", "N", "Kernels to print (10)", &asked->top},
      {"--verbose", "", "Also say which rules could not be checked, and why", &asked->verbose},
      {"--self-profile", "", "Say how long llmprof's own passes took", &asked->self_profile},
      {"--model",
       "MODEL",
       "Hold the stages against what this model must cost: a name of llmprof list models, or a "
       "path",
       &asked->model,
       {},
       model_names},
      {"--gpu-name", "NAME", "Hold it against this GPU, in place of the recorded one",
       &asked->gpu_name},
      {"--prompt-tokens", "N", "Tokens of a prompt, where no mark says", &asked->prompt_tokens},
      {"--new-tokens", "N", "Tokens made in a decode loop, where no mark says", &asked->new_tokens},
      {"--batch", "B", "Sequences at once, where no mark says", &asked->batch},
      {"--context", "C", "Mean tokens a decode step attends to, where no mark says",
       &asked->context},
      {"--tp", "N", "GPUs that share one copy of the model, where the recording holds some of them",
       &asked->num_gpus},
      {"--image", "WxH", "The image that prefill looks at, in pixels", &asked->image},
      json_option(asked->json),
  };
  add_recording_options(command, asked->recording);
  command.examples =
      "  llmprof analyze run.sqlite --out report\n"
      "  llmprof analyze run.sqlite --ncu counters.ncu-rep\n"
      "  llmprof analyze run.sqlite --model llama_3_1_8b\n"
      "  llmprof analyze huge.sqlite --plan\n";
  command.run = [asked](Context& context) { return run_analyze(*asked, context); };
  return command;
}

}  // namespace llmprof
