// SPDX-License-Identifier: Apache-2.0
//
// Exports as data: a format is a row with its name, the name of its file and the function that
// writes it.
#include "cli/trace_files.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/planned_analysis.h"
#include "export/chrome.h"
#include "export/perfetto.h"
#include "export/pprof.h"

namespace llmprof {
namespace {

constexpr const char* kPftraceFile = "trace.pftrace";
constexpr const char* kPprofFile = "kernels.pb.gz";

struct ExportFormat {
  const char* name;
  const char* file;
  // Of the whole recording; null: of the kernel table alone.
  ExportedTrace (*write)(const ExportSource&, const std::filesystem::path&, std::uint64_t);
};

constexpr ExportFormat kFormats[] = {
    {"pftrace", kPftraceFile, write_pftrace},
    {"pprof", kPprofFile, nullptr},
    {"chrome", "trace.json", write_chrome_trace},
};

}  // namespace

std::uint64_t trace_budget_of(const std::string& text) {
  return text.empty() ? kTraceBudgetBytes : size_option("--trace-budget", text);
}

const std::vector<std::string>& export_formats() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> all;
    for (const ExportFormat& format : kFormats) {
      all.emplace_back(format.name);
    }
    return all;
  }();
  return kNames;
}

int run_export(const ExportRequest& asked, Context& context) {
  const auto* format =
      std::find_if(std::begin(kFormats), std::end(kFormats),
                   [&](const ExportFormat& row) { return asked.format == row.name; });
  const std::filesystem::path out = asked.out.empty() ? format->file : asked.out;
  const std::uint64_t budget_bytes = trace_budget_of(asked.budget);
  std::optional<Trace> trace;
  const Analysis analysis =
      analyze_recording(asked.file, asked.recording, context.system, nullptr, nullptr, &trace);
  if (format->write == nullptr) {
    write_file(out, pprof_profile(analysis));
    context.console.out(out.string() + "\n");
    return kExitOk;
  }
  const Rules rules = recording_rules();
  if (!trace) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} is a summary of kernels: it has no times of day to draw",
                            printable(asked.file)),
                "its kernel table is what llmprof export --format pprof writes");
  }
  const ExportedTrace written = format->write({*trace, analysis, rules}, out, budget_bytes);
  for (const Diagnostic& diagnostic : written.left_out) {
    context.console.err(fmt::format("llmprof: {}\n", diagnostic.sentence));
  }
  context.console.err(fmt::format(
      "{} slices, {}, {:.1f} bytes a slice\n", written.num_slices, format_bytes(written.size_bytes),
      fraction_of(static_cast<std::int64_t>(written.size_bytes), written.num_slices)));
  context.console.out(out.string() + "\n");
  return kExitOk;
}

std::vector<std::string> write_trace_files(const std::optional<Trace>& trace, Analysis& analysis,
                                           const std::filesystem::path& directory,
                                           const std::string& budget) {
  std::vector<std::string> names;
  if (trace && budget != "0") {
    names.emplace_back(kPftraceFile);
    const Rules rules = recording_rules();
    const ExportedTrace written =
        write_pftrace({*trace, analysis, rules}, directory / kPftraceFile, trace_budget_of(budget));
    analysis.diagnostics.insert(analysis.diagnostics.end(), written.left_out.begin(),
                                written.left_out.end());
  }
  names.emplace_back(kPprofFile);
  write_file(directory / kPprofFile, pprof_profile(analysis));
  return names;
}

}  // namespace llmprof
