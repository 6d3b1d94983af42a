// SPDX-License-Identifier: Apache-2.0
//
// From a file to its analysis: what analyze and kernels share.
#include "cli/recording.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "capture/leftovers.h"
#include "capture/nsys.h"
#include "cli/named_model.h"
#include "cli/operator_table.h"
#include "cli/planned_analysis.h"
#include "config/presets.h"
#include "ingest/ingest.h"
#include "report/report.h"
#include "trace/filter.h"

namespace llmprof {

namespace {

// A number of the machine's, which may be 0.
std::optional<std::uint32_t> number_of(const std::string& option, const std::string& text) {
  if (text.empty()) {
    return std::nullopt;
  }
  std::uint32_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} takes a number, not '{}'", option, printable(text)));
  }
  return value;
}

// A bundle stands for the recording inside it; one whose run was cut off does not.
std::filesystem::path recording_in(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path / kRunningFile, ignored)) {
    throw Error(ErrorKind::kContract,
                fmt::format("{} is unfinished: its run goes on or was cut off", path.string()),
                fmt::format("what it recorded may be read alone: {}",
                            (path / "nsys" / "run.sqlite").string()));
  }
  for (const char* name : {"nsys/run.sqlite", "nsys/run.nsys-rep"}) {
    if (std::filesystem::is_regular_file(path / name, ignored)) {
      return path / name;
    }
  }
  if (std::filesystem::is_regular_file(path / "manifest.json", ignored)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the bundle {} holds no recording of nsys", path.string()),
                "its manifest.json says why; llmprof run --passes nsys makes one");
  }
  return path;
}

bool has_recording(const std::filesystem::path& bundle) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(bundle / "nsys" / "run.sqlite", ignored) ||
         std::filesystem::is_regular_file(bundle / "nsys" / "run.nsys-rep", ignored);
}

void check_filter(const TraceFilter& filter, const Trace& trace) {
  std::vector<std::uint32_t> pids;
  for (const ProcessInfo& process : trace.processes) {
    pids.push_back(process.pid);
  }
  std::vector<std::uint32_t> gpus;
  for (const DeviceInfo& device : trace.devices) {
    gpus.push_back(device.ordinal);
  }
  const auto check = [](const char* option, const auto& wanted, const auto& known) {
    if (wanted && std::find(known.begin(), known.end(), *wanted) == known.end()) {
      throw Error(ErrorKind::kUsage, fmt::format("{} {} is not in the recording", option, *wanted),
                  known.empty() ? "" : fmt::format("it has: {}", fmt::join(known, ", ")));
    }
  };
  check("--gpu", filter.device, gpus);
  check("--pid", filter.pid, pids);
}

}  // namespace

void add_recording_options(Command& command, RecordingOptions& target) {
  command.options.insert(
      command.options.end(),
      {{"--gpu", "N", "Only this GPU, as CUDA numbers it", &target.gpu},
       {"--pid", "N", "Only this process", &target.pid},
       {"--threads", "N", "Threads that read the file (2)", &target.threads},
       {"--memory-limit", "BYTES",
        "Memory it may take, as 4GiB: else a coarser picture, or nothing", &target.memory_limit}});
}

Rules recording_rules() {
  return rules_from(embedded_yaml("rules/kernels.yaml"), embedded_yaml("rules/stages.yaml"));
}

namespace {

// The file to read, made by nsys if need be.
InputFile readable_recording(const std::string& path, const System& system, PassTimer* timer) {
  InputFile file(recording_in(path));
  if (is_nsys_report(file)) {
    const PassTimer::Scope pass(timer, "export");
    return exported_sqlite(system, file.path(), report_writer_version(file.head()));
  }
  return file;
}

}  // namespace

Trace load_recording(const std::string& path, const System& system, unsigned num_threads,
                     PassTimer* timer) {
  const InputFile file = readable_recording(path, system, timer);
  const PassTimer::Scope pass(timer, "load");
  Trace trace = load_trace(file, num_threads);
  trace.capture.path = path;
  return trace;
}

TraceOutline outline_recording(const std::string& path) {
  return outline_trace(recording_in(path));
}

Analysis analyze_recording(const std::string& path, const RecordingOptions& options,
                           const System& system, PassTimer* timer, Timeline* timeline,
                           std::optional<Trace>* kept) {
  const TraceFilter filter{number_of("--gpu", options.gpu), number_of("--pid", options.pid)};
  const auto num_threads = static_cast<unsigned>(positive_number("--threads", options.threads));
  const Rules rules = recording_rules();
  const std::vector<std::string> files = options.ncu.empty() ? counters_in(path) : options.ncu;
  const InputFile file = readable_recording(path, system, timer);
  std::optional<Diagnostic> shortage;
  if (!options.memory_limit.empty()) {
    shortage = fit_into_memory(file, size_option("--memory-limit", options.memory_limit),
                               {timeline != nullptr, kept != nullptr, 0});
  }
  Recording recording = [&] {
    const PassTimer::Scope pass(timer, "load");
    return load_input(file, num_threads);
  }();
  if (const KernelSummary* summary = std::get_if<KernelSummary>(&recording)) {
    Analysis analysis = analyze(*summary, rules);
    analysis.capture.path = path;
    add_counters(files, analysis, timer);
    return analysis;
  }
  Trace& trace = std::get<Trace>(recording);
  trace.capture.path = path;
  if (!filter.is_empty()) {
    check_filter(filter, trace);
    apply_filter(filter, trace);
  }
  const TimelineOptions picture = shortage ? coarse_picture() : TimelineOptions{};
  Analysis analysis = analyze(trace, rules, timer, timeline, &picture);
  if (shortage) {
    analysis.diagnostics.push_back(*shortage);
  }
  add_counters(files, analysis, timer);
  add_operators(path, analysis);
  if (kept != nullptr) {
    *kept = std::move(trace);
  }
  return analysis;
}

Json load_metrics(const std::string& path, const RecordingOptions& options, const System& system,
                  Timeline* timeline) {
  constexpr std::uint64_t kMostBytes = 512 * kMiB;
  constexpr int kVersion = 1;
  std::error_code ignored;
  const std::filesystem::path inside = std::filesystem::path(path) / "metrics.json";
  const bool is_bundle = std::filesystem::is_regular_file(inside, ignored);
  if (!is_bundle && std::filesystem::path(path).extension() != ".json") {
    Analysis analysis = analyze_recording(path, options, system, nullptr, timeline);
    add_findings(analysis);
    return metrics_json(analysis);
  }
  const std::filesystem::path file = is_bundle ? inside : std::filesystem::path(path);
  Json metrics = parse_json(read_file(file, kMostBytes), file.string());
  if (!metrics.is_object() || metrics.value("schema", Json()) != Json("llmprof.metrics")) {
    throw Error(ErrorKind::kInput, fmt::format("{} is no metrics.json of llmprof", file.string()));
  }
  const Json version = metrics.value("schema_version", Json());
  if (!version.is_number_integer() || version.get<int>() > kVersion) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} was written by a newer llmprof (schema_version {})", file.string(),
                            to_json_line(version)),
                "analyze the bundle again with this one: llmprof analyze BUNDLE --out DIR");
  }
  if (timeline != nullptr && is_bundle && has_recording(path)) {
    analyze_recording(path, options, system, nullptr, timeline);
  }
  return metrics;
}

void add_findings(Analysis& analysis, FindingFacts facts) {
  facts.tensor_cores = [](const std::string& device) -> std::optional<TensorCores> {
    const GpuMatch match = find_gpu(known_gpus(), device);
    if (!match.gpu) {
      return std::nullopt;
    }
    const double fp32 = match.gpu->flops_per_s("fp32").value_or(0);
    const bool has_bf16 = match.gpu->dense_tflops.contains("bf16");
    const double tensor = match.gpu->flops_per_s(has_bf16 ? "bf16" : "fp16").value_or(0);
    return fp32 > 0 ? std::optional(TensorCores{tensor / fp32, has_bf16}) : std::nullopt;
  };
  analysis.findings = find_findings(analysis, facts);
}

std::vector<std::string> counters_in(const std::filesystem::path& bundle) {
  std::vector<std::string> files;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(bundle / "ncu", failure)) {
    if (entry.path().extension() == ".ncu-rep") {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

void add_counters(const std::vector<std::string>& files, Analysis& analysis, PassTimer* timer) {
  if (files.empty()) {
    return;
  }
  const PassTimer::Scope pass(timer, "counters");
  std::vector<Counters> counters;
  counters.reserve(files.size());
  for (const std::string& file : files) {
    counters.push_back(load_counters(InputFile(file)));
  }
  join_counters(merge_counters(std::move(counters)), known_gpus(), analysis);
}

void keep_stage(const std::string& stage, Analysis& analysis) {
  std::vector<std::string> known;
  for (const StageSummary& summary : analysis.stages) {
    known.push_back(summary.stage);
  }
  if (std::find(known.begin(), known.end(), stage) == known.end()) {
    throw Error(ErrorKind::kUsage, fmt::format("the recording has no stage '{}'", printable(stage)),
                fmt::format("it has: {}", fmt::join(known, ", ")));
  }
  std::erase_if(analysis.stages, [&](const StageSummary& row) { return row.stage != stage; });
  std::erase_if(analysis.ledgers, [&](const StageLedger& row) { return row.stage != stage; });
  std::erase_if(analysis.kernels, [&](const KernelRecord& row) { return row.stage != stage; });
}

std::size_t positive_number(const std::string& option, const std::string& text) {
  std::size_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value == 0) {
    throw Error(ErrorKind::kUsage, fmt::format("{} takes a whole number of at least 1, not '{}'",
                                               option, printable(text)));
  }
  return value;
}

}  // namespace llmprof
