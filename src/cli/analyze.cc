// SPDX-License-Identifier: Apache-2.0
//
// llmprof analyze: what a recording shows.
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/recording.h"
#include "report/report.h"

namespace llmprof {
namespace {

struct AnalyzeOptions {
  std::vector<std::string> files;
  std::string out;
  std::string top = "10";
  std::string stage;
  bool json = false;
  bool self_profile = false;
  RecordingOptions recording;
};

constexpr std::size_t kMarkdownRows = 50;

void write_results(const Analysis& analysis, const std::string& metrics,
                   const std::filesystem::path& out) {
  std::error_code failure;
  std::filesystem::create_directories(out, failure);
  if (failure) {
    throw Error(ErrorKind::kFailure,
                fmt::format("cannot create {}: {}", out.string(), failure.message()));
  }
  write_file(out / "metrics.json", metrics);
  write_kernel_markdown(analysis, out / "kernels.md", kMarkdownRows);
}

std::string timer_text(const PassTimer& timer) {
  std::string text = "\nTime llmprof took\n";
  for (const PassTimer::Pass& pass : timer.passes()) {
    text += fmt::format("  {:<{}}{:<{}} {:>9}\n", "", 2 * pass.depth, pass.name,
                        20 - 2 * pass.depth, format_duration_ns(pass.duration_ns));
  }
  return text;
}

// Results of several files go into a folder each, named like the file.
std::filesystem::path out_of(const AnalyzeOptions& asked, const std::string& file) {
  const std::filesystem::path out = asked.out;
  return asked.files.size() == 1 ? out : out / std::filesystem::path(file).stem();
}

int run_analyze(const AnalyzeOptions& asked, Context& context) {
  const std::size_t top = positive_number("--top", asked.top);
  if (asked.files.empty()) {
    throw Error(ErrorKind::kUsage, "analyze: needs FILE", "usage: llmprof analyze --help");
  }
  for (const std::string& file : asked.files) {
    PassTimer timer;
    Analysis analysis = analyze_recording(file, asked.recording, context.system, &timer);
    const std::string metrics = to_json_text(metrics_json(analysis));
    if (!asked.out.empty()) {
      const PassTimer::Scope pass(&timer, "write");
      write_results(analysis, metrics, out_of(asked, file));
    }
    if (!asked.stage.empty()) {
      keep_stage(asked.stage, analysis);
    }
    if (asked.files.size() > 1 && !asked.json) {
      context.console.out(fmt::format("== {}\n", printable(file)));
    }
    context.console.out(asked.json ? metrics : terminal_summary(analysis, top));
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
      {"FILE",
       "",
       "SQLite export, report or kernel summary (CSV) of Nsight Systems, or a bundle",
       &asked->files,
       {},
       nullptr,
       true},
      {"--ncu", "FILE", "Counters to join, one or more files: .ncu-rep, or what ncu --csv printed",
       &asked->recording.ncu},
      {"--out", "DIR", "Write metrics.json and kernels.md there", &asked->out},
      {"--stage", "NAME", "Print only this stage", &asked->stage},
      {"--top", "N", "Kernels to print (10)", &asked->top},
      {"--self-profile", "", "Say how long llmprof's own passes took", &asked->self_profile},
      json_option(asked->json),
  };
  add_recording_options(command, asked->recording);
  command.examples =
      "  llmprof analyze run.sqlite --out report\n"
      "  llmprof analyze run.sqlite --ncu counters.ncu-rep\n";
  command.run = [asked](Context& context) { return run_analyze(*asked, context); };
  return command;
}

}  // namespace llmprof
