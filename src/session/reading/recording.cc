// SPDX-License-Identifier: Apache-2.0
//
// Loading of a recording and the files next to it in a bundle, and its analysis.
#include "session/reading/recording.h"

#include <algorithm>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/idle/busy_row.h"
#include "analysis/names/rules_json.h"
#include "analysis/profile.h"
#include "analysis/stages/window.h"
#include "analysis/timeline/timeline.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "bundle/layout.h"
#include "bundle/secret_shapes.h"
#include "capture/nsys.h"
#include "capture/stale_runs.h"
#include "config/presets.h"
#include "ingest/ingest.h"
#include "ingest/requests/request_files.h"
#include "results/json.h"
#include "results/results.h"
#include "session/reading/job_files.h"
#include "session/reading/memory_fit.h"
#include "session/reading/named_model.h"
#include "session/reading/operator_table.h"
#include "session/record/server_setup.h"

namespace gpuwhy {
namespace {

// The recording in a bundle; empty if it holds none.
std::filesystem::path recording_of_bundle(const std::filesystem::path& bundle) {
  for (const char* name : {layout::kNsysSqlite, layout::kNsysReport}) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(bundle / name, ignored)) {
      return bundle / name;
    }
  }
  // Of a server with several ranks, each has a file, and they are given by name.
  const std::vector<std::filesystem::path> traces = recordings_below(bundle / layout::kTraces);
  return traces.size() == 1 ? traces.front() : std::filesystem::path();
}

// A bundle stands for the recording inside it; one whose run was cut off does not.
std::filesystem::path recording_in(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path / layout::kRunning, ignored)) {
    throw Error(ErrorKind::kContract,
                fmt::format("{} is unfinished: its run goes on or was cut off", path.string()),
                fmt::format("what it recorded may be read alone: {}",
                            (path / layout::kNsysSqlite).string()));
  }
  if (std::filesystem::path file = recording_of_bundle(path); !file.empty()) {
    return file;
  }
  if (std::filesystem::is_regular_file(path / layout::kManifest, ignored)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the bundle {} holds no recording of nsys", path.string()),
                "its manifest.json says why; gpuwhy run --passes nsys makes one");
  }
  return path;
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

// The file to read, made by nsys if need be.
InputFile readable_recording(const std::string& path, const System& system, PassTimer* timer) {
  InputFile file(recording_in(path));
  if (is_nsys_report(file)) {
    const PassTimer::Scope pass(timer, "export");
    return exported_sqlite(system, file.path(), report_writer_version(file.head()));
  }
  return file;
}

// ~/.config/gpuwhy/rules.yaml; empty if there is none.
std::string rules_at_home(const System& system) {
  std::filesystem::path folder;
  if (const auto config = system.variable("XDG_CONFIG_HOME")) {
    folder = *config;
  } else if (const auto home = system.variable("HOME")) {
    folder = std::filesystem::path(*home) / ".config";
  }
  const std::filesystem::path file = folder / "gpuwhy" / "rules.yaml";
  std::error_code ignored;
  const bool is_there = folder.is_absolute() && std::filesystem::is_regular_file(file, ignored);
  return is_there ? file.string() : "";
}

Rules marked_rules(const RecordingOptions& options, const System& system) {
  Rules rules = recording_rules(options.rules, system);
  add_marks(options.marks, options.step_names, rules);
  return rules;
}

}  // namespace

std::set<std::string> unused_marks(const Rules& rules, const Trace& trace) {
  std::set<std::string> unused;
  for (const StageRule& rule : rules.stages) {
    if (!rule.option.empty()) {
      unused.insert(rule.option);
    }
  }
  for (std::size_t row = 0; row < trace.ranges.size() && !unused.empty(); ++row) {
    for (const StageRule& rule : rules.stages) {
      if (trace.ranges.kind[row] != RangeKind::kMark && unused.contains(rule.option) &&
          fits(rule, trace.strings[trace.ranges.domain[row]],
               trace.strings[trace.ranges.text[row]])) {
        unused.erase(rule.option);
      }
    }
  }
  return unused;
}

namespace {

// A mark of the command line that fits nothing is a typing error. Throws kUsage.
void check_marks(const Rules& rules, const std::string& path, const Trace& trace) {
  if (const std::set<std::string> unused = unused_marks(rules, trace); !unused.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: no range of {} has this name", *unused.begin(), path),
                fmt::format("gpuwhy table ranges {} lists the names", path));
  }
}

// Leaves the part of the recording that was asked for. Throws kUsage where it is not there.
void select_part(const RecordingOptions& options, const Rules& rules, const std::string& path,
                 Recording& recording) {
  Trace* trace = std::get_if<Trace>(&recording);
  if (trace == nullptr) {
    if (!options.window.is_empty() || !options.marks.empty() || !options.step_names.empty()) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} is a kernel summary: it has neither times nor ranges", path),
                  "use the recording it was made from");
    }
    return;
  }
  check_marks(rules, path, *trace);
  if (!options.filter.is_empty()) {
    check_filter(options.filter, *trace);
    apply_filter(options.filter, *trace);
  }
  if (!options.window.is_empty()) {
    apply_window(options.window, rules, *trace);
  }
}

// The first option that changes how a recording is read; empty: none is given.
std::string reading_options(const RecordingOptions& options) {
  const std::pair<const char*, bool> given[] = {
      {"--gpu-name", !options.gpu_name.empty()},
      {"--rules", !options.rules.empty()},
      {"--mark", !options.marks.empty()},
      {"--step", !options.step_names.empty()},
      {"--from", options.window.from.has_value()},
      {"--to", options.window.to.has_value()},
      {"--steps", options.window.steps.has_value()},
      {"--trim", options.window.is_trimmed},
      {"--gpu", options.filter.device.has_value()},
      {"--pid", options.filter.pid.has_value()},
      {"--requests", !options.requests.empty()},
      {"--slo", !options.service_limits.empty()},
      {"--annotations", !options.graph_names.annotations.empty()},
      {"--capture-trace", !options.graph_names.capture_traces.empty()}};
  for (const auto& [option, is_given] : given) {
    if (is_given) {
      return option;
    }
  }
  return "";
}

// Names the GPUs of a recording that does not: traces of some PyTorch versions, and filtered
// exports. Rates and findings then have peaks to compare with. Throws kUsage if it names them all.
void name_gpus(const ProfileWants& wants, Trace& trace) {
  if (wants.gpu_name.empty()) {
    return;
  }
  const std::string name = chosen_gpu(wants.gpu_name).gpu->name;
  // Beside other recordings the same GPU needs one name.
  const auto is_same = [&](const DeviceInfo& device) {
    const GpuMatch match = find_gpu(known_gpus(), device.name);
    return wants.may_name_gpus && match.gpu && match.gpu->name == name;
  };
  bool is_used = trace.devices.empty() || wants.model || wants.may_name_gpus;
  for (DeviceInfo& device : trace.devices) {
    if (device.name.empty() || is_same(device)) {
      device.name = name;
      is_used = true;
    }
  }
  if (!is_used) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--gpu-name: the recording names its GPU: {}",
                            printable(trace.devices.front().name)),
                "leave --gpu-name out; with --model it compares with the peaks of another GPU");
  }
}

// The same for counters whose file does not name the GPU, so that they have roofs.
void name_gpus(const ProfileWants& wants, Counters& counters) {
  if (wants.gpu_name.empty()) {
    return;
  }
  const StringId name = counters.strings.intern(chosen_gpu(wants.gpu_name).gpu->name);
  for (CounterResult& result : counters.results) {
    if (counters.strings[result.device_name].empty()) {
      result.device_name = name;
    }
  }
}

// The table of GPUs, with that of the user's file in front.
std::vector<GpuSpec> gpus_with(const std::string& gpu_name) {
  std::vector<GpuSpec> gpus = known_gpus();
  if (gpu_name.ends_with(".yaml")) {
    if (const GpuMatch match = named_gpu(gpu_name); match.gpu) {
      gpus.insert(gpus.begin(), *match.gpu);
    }
  }
  return gpus;
}

}  // namespace

Profile profile_alone(const std::vector<std::string>& paths, const RecordingOptions& options,
                      const System& system, const ProfileWants& wants) {
  check_window(options.window);
  check_job_files(paths);
  Rules rules = marked_rules(options, system);  // a mistake in a file of rules shows at once
  std::vector<InputFile> files;
  files.reserve(paths.size());
  for (const std::string& path : paths) {
    files.push_back(readable_recording(path, system, wants.timer));
  }
  const auto num_threads = static_cast<unsigned>(options.num_threads);
  MemoryFit fit{std::nullopt, num_threads};
  if (options.memory_limit_bytes) {
    fit = fit_into_memory(files, *options.memory_limit_bytes,
                          {wants.has_timeline, wants.has_export, 0}, num_threads);
  }
  Recording recording = [&]() -> Recording {
    const PassTimer::Scope pass(wants.timer, "load");
    return files.size() == 1
               ? load_input(files.front(), num_threads)
               : load_job({paths, files, rules, options.parallelism, options.graph_names,
                           options.memory_limit_bytes, num_threads, fit.files_at_once});
  }();
  Trace* trace = std::get_if<Trace>(&recording);
  if (trace != nullptr) {
    name_gpus(wants, *trace);
  }
  if (trace != nullptr && paths.size() == 1) {
    const PassTimer::Scope pass(wants.timer, "graph names");
    name_graph_kernels(recording_in(paths.front()), options.graph_names, options.memory_limit_bytes,
                       *trace);
  }
  const std::string path = job_name(paths);
  select_part(options, rules, path, recording);
  std::visit([&](auto& held) { held.capture.path = path; }, recording);
  Profile made =
      profile(std::move(recording), std::move(rules),
              {wants.has_timeline, fit.shortage ? coarse_picture() : TimelineOptions{}, wants.timer,
               options.parallelism, !options.requests.empty(), num_threads});
  if (fit.shortage) {
    made.analysis.data_quality.push_back(*fit.shortage);
  }
  return made;
}

namespace {

// The file of --requests, read before the recording: a mistake in it shows at once.
std::optional<RequestEvidence> requests_of(const RecordingOptions& options, PassTimer* timer) {
  const ServiceLimits limits = service_limits_of(options.service_limits);
  if (options.requests.empty()) {
    if (!options.service_limits.empty()) {
      throw Error(ErrorKind::kUsage, "--slo requires --requests",
                  "add --requests FILE: what clients measured (docs/requests.md)");
    }
    return std::nullopt;
  }
  const PassTimer::Scope pass(timer, "read requests");
  return RequestEvidence{load_requests(options.requests), limits};
}

}  // namespace

ServiceLimits service_limits_of(const std::string& text) {
  ServiceLimits limits;
  if (text.empty()) {
    return limits;
  }
  for (const std::string_view pair : split(text, ',')) {
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view name = trim(pair.substr(0, equals));
    const auto time = parse_duration_ns(trim(pair.substr(std::min(equals + 1, pair.size()))));
    if ((name != "ttft" && name != "itl") || !time) {
      throw Error(ErrorKind::kUsage, fmt::format("--slo: '{}' is not a limit", printable(pair)),
                  "--slo ttft=500ms,itl=50ms");
    }
    (name == "ttft" ? limits.ttft_ns : limits.itl_ns) = *time;
  }
  return limits;
}

Rules recording_rules(const std::string& file, const System& system) {
  Rules rules = rules_from(embedded_yaml("rules/kernels.yaml"), embedded_yaml("rules/stages.yaml"));
  if (const std::string used = file.empty() ? rules_at_home(system) : file; !used.empty()) {
    add_user_rules(used, read_file(used), rules);
  }
  return rules;
}

void use_secret_rules(const std::string& file, const System& system) {
  if (const std::string used = file.empty() ? rules_at_home(system) : file; !used.empty()) {
    add_secret_shapes(used, read_file(used));
  }
}

Profile profile_recordings(const std::vector<std::string>& paths, const RecordingOptions& given,
                           const System& system, const ProfileWants& wants) {
  RecordingOptions options = given;
  const bool is_of_bundle = options.requests.empty() && paths.size() == 1;
  if (is_of_bundle) {
    options.requests = requests_in(paths.front());
  }
  Besides evidence;
  evidence.requests = requests_of(options, wants.timer);
  if (evidence.requests && is_of_bundle) {
    evidence.requests->requests.is_on_server_host = true;  // `run` started both
  }
  Profile made = profile_alone(paths, options, system, wants);
  std::vector<std::string> counters = options.ncu;
  for (std::size_t i = 0; options.ncu.empty() && i < paths.size(); ++i) {
    const std::vector<std::string> found = counters_in(paths[i]);
    counters.insert(counters.end(), found.begin(), found.end());
  }
  evidence.counters = counters_of(counters, wants.timer);
  if (evidence.counters) {
    name_gpus(wants, *evidence.counters);
  }
  if (paths.size() == 1) {
    read_operators(paths.front(), evidence);  // a table is of one process
  }
  evidence.model = wants.model;
  evidence.batch = wants.batch;
  evidence.gpus = [name = wants.gpu_name] { return gpus_with(name); };
  complete(made, std::move(evidence), wants.timer);
  return made;
}

TraceOutline outline_recordings(const std::vector<std::string>& paths) {
  check_job_files(paths);
  TraceOutline outline = outline_trace(recording_in(paths.front()));
  for (std::size_t i = 1; i < paths.size(); ++i) {
    outline.add(outline_trace(recording_in(paths[i])));
  }
  return outline;
}

bool is_own_document(const std::filesystem::path& file, std::string_view schema) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) {
    return false;
  }
  constexpr std::size_t kHead = 200;  // the schema is the first member
  std::string head(kHead, '\0');
  std::ifstream(file, std::ios::binary).read(head.data(), kHead);
  return head.find(fmt::format("\"{}", schema)) != std::string::npos;
}

LoadedMetrics load_metrics(const std::vector<std::string>& paths, const RecordingOptions& options,
                           const System& system, bool has_timeline) {
  constexpr std::uint64_t kMostBytes = 512 * kMiB;
  std::error_code ignored;
  const std::string& path = paths.front();
  const std::filesystem::path inside = std::filesystem::path(path) / layout::kMetrics;
  const bool is_bundle = std::filesystem::is_regular_file(inside, ignored);
  if (paths.size() > 1 || (!is_bundle && !is_own_document(path, "gpuwhy."))) {
    ProfileWants wants;
    wants.has_timeline = has_timeline;
    wants.gpu_name = options.gpu_name;
    wants.may_name_gpus = true;
    Profile made = profile_recordings(paths, options, system, wants);
    auto json = std::make_shared<Json>(metrics_json(made.analysis));
    Results metrics = made.analysis;
    return {std::move(json), std::move(metrics), std::make_shared<const Profile>(std::move(made))};
  }
  if (const std::string given = reading_options(options); !given.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: the metrics in {} are made already", given, path),
                fmt::format("make them again: gpuwhy analyze RECORDING {} ... --out DIR", given));
  }
  const std::filesystem::path file = is_bundle ? inside : std::filesystem::path(path);
  Json json = parse_json(read_file(file, kMostBytes), file.string());
  if (!json.is_object() || json.value("schema", Json()) != Json("gpuwhy.metrics")) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} is not a metrics.json of gpuwhy", file.string()));
  }
  const Json version = json.value("schema_version", Json());
  if (json_integer(version).value_or(INT64_MAX) > kMetricsVersion) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} was written by a newer gpuwhy (schema_version {})", file.string(),
                            to_json_line(version)),
                "analyze the bundle again with this one: gpuwhy analyze BUNDLE --out DIR");
  }
  make_current(json);
  Results metrics = with_context("in " + file.string(), [&] { return metrics_from_json(json); });
  LoadedMetrics loaded{std::make_shared<Json>(std::move(json)), std::move(metrics), nullptr};
  if (has_timeline && is_bundle && !recording_of_bundle(path).empty()) {
    ProfileWants wants;
    wants.has_timeline = true;
    loaded.profile = std::make_shared<const Profile>(profile_alone({path}, options, system, wants));
  }
  return loaded;
}

std::optional<Counters> counters_of(const std::vector<std::string>& files, PassTimer* timer) {
  if (files.empty()) {
    return std::nullopt;
  }
  const PassTimer::Scope pass(timer, "read counters");
  std::vector<Counters> counters;
  for (const std::string& file : files) {
    std::ranges::move(load_counter_files(file), std::back_inserter(counters));
  }
  return merge_counters(std::move(counters));
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

std::string requests_in(const std::filesystem::path& bundle) {
  for (const char* pass : {"nsys", "torch"}) {
    std::error_code ignored;
    const std::filesystem::path file = bundle / pass / layout::kRequests;
    if (std::filesystem::is_regular_file(file, ignored)) {
      return file.string();
    }
  }
  return "";
}

std::optional<WindowOptions> window_of_phase(const RowName& phase, const Analysis& analysis) {
  std::optional<WindowOptions> window;
  for (const LedgerRow& row : analysis.ledgers) {
    if (row.stage == phase && (phase.kind == RowKind::kStartup || phase.kind == RowKind::kSteady ||
                               phase.kind == RowKind::kEnding)) {
      const std::chrono::nanoseconds from(row.start_ns - analysis.capture.start_ns);
      const std::chrono::nanoseconds to(row.end_ns - analysis.capture.start_ns);
      window = window.value_or(WindowOptions{from, to, {}, false});
      window->from = std::min(*window->from, from);
      window->to = std::max(*window->to, to);
    }
  }
  return window;
}

void keep_stage(const RowName& stage, Analysis& analysis) {
  std::vector<std::string> known;
  for (const StageRow& summary : analysis.stages) {
    known.push_back(summary.stage.text());
  }
  if (std::ranges::find(analysis.stages, stage, &StageRow::stage) == analysis.stages.end()) {
    const auto window = window_of_phase(stage, analysis);
    throw Error(ErrorKind::kUsage,
                fmt::format("the recording has no stage '{}'", printable(stage.text())),
                window ? fmt::format("{} is a part of the recording: --from {}ns --to {}ns",
                                     stage.text(), window->from->count(), window->to->count())
                       : fmt::format("it has: {}", fmt::join(known, ", ")));
  }
  std::erase_if(analysis.stages, [&](const StageRow& row) { return row.stage != stage; });
  std::erase_if(analysis.ledgers, [&](const LedgerRow& row) { return row.stage != stage; });
  std::erase_if(analysis.kernels, [&](const KernelRow& row) { return row.stage != stage; });
  std::erase_if(analysis.steps, [&](const StepRow& row) { return row.stage != stage; });
  std::erase_if(analysis.findings, [&](const Finding& row) {
    return row.stage != stage && row.stage.kind != RowKind::kRecording && !row.is_blocker;
  });
  set_busy_stages(analysis);
  analysis.verdict = verdict_of(analysis);
}

}  // namespace gpuwhy
