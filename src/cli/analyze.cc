// SPDX-License-Identifier: Apache-2.0
//
// llmprof analyze: what a recording shows.
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/recording.h"
#include "report/report.h"

namespace llmprof {
namespace {

struct AnalyzeOptions {
  std::string file;
  std::string out;
  std::string top = "10";
  std::string threads = "2";
  bool json = false;
};

constexpr std::size_t kMarkdownRows = 50;

int run_analyze(const AnalyzeOptions& asked, Context& context) {
  const std::size_t top = positive_number("--top", asked.top);
  const Analysis analysis = analyze_recording(
      asked.file, static_cast<unsigned>(positive_number("--threads", asked.threads)));
  const std::string metrics = to_json_text(metrics_json(analysis));
  if (!asked.out.empty()) {
    const std::filesystem::path out = asked.out;
    std::error_code failure;
    std::filesystem::create_directories(out, failure);
    if (failure) {
      throw Error(ErrorKind::kFailure,
                  fmt::format("cannot create {}: {}", out.string(), failure.message()));
    }
    write_file(out / "metrics.json", metrics);
    write_kernel_markdown(analysis, out / "kernels.md", kMarkdownRows);
  }
  context.console.out(asked.json ? metrics : terminal_summary(analysis, top));
  return kExitOk;
}

}  // namespace

Command analyze_command() {
  auto asked = std::make_shared<AnalyzeOptions>();
  Command command;
  command.name = "analyze";
  command.summary = "Say what a recording shows: stages, where the time went, kernels";
  command.options = {
      {"FILE", "", "SQLite export of Nsight Systems", &asked->file, {}, nullptr, true},
      {"--out", "DIR", "Write metrics.json and kernels.md there", &asked->out},
      {"--top", "N", "Kernels to print (10)", &asked->top},
      {"--threads", "N", "Threads that read the file (2)", &asked->threads},
      json_option(asked->json),
  };
  command.examples = "  llmprof analyze run.sqlite --out report\n";
  command.run = [asked](Context& context) { return run_analyze(*asked, context); };
  return command;
}

}  // namespace llmprof
