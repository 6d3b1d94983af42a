// SPDX-License-Identifier: Apache-2.0
//
// From a path to a profile: the way every command and the library read a recording.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/stages/window_options.h"
#include "base/json_fwd.h"
#include "base/pass_timer.h"
#include "capture/system.h"
#include "model/efficiency_setup.h"
#include "results/rank_group.h"
#include "results/results.h"
#include "session/reading/graph_name_files.h"
#include "trace/counters.h"
#include "trace/filter.h"
#include "trace/trace_outline.h"

namespace gpuwhy {

struct Analysis;
struct Profile;
struct Rules;
struct Trace;

// How a recording is read.
struct RecordingOptions {
  TraceFilter filter;
  WindowOptions window;
  std::vector<std::string> marks;       // STAGE=NAME, for ranges that are stages
  std::vector<std::string> step_names;  // of ranges that are steps
  std::string gpu_name;          // of GPUs that a recording does not name; others keep theirs
  std::string rules;             // a file of rules; empty: the one in the user's home, if any
  std::vector<std::string> ncu;  // counters to join; empty: those of the bundle
  GraphNameFiles graph_names;
  std::int64_t num_threads = 2;
  std::optional<std::uint64_t> memory_limit_bytes;
  Parallelism parallelism;     // how ranks share the model, where the user says so
  std::string requests;        // a file of what clients measured; empty: none
  std::string service_limits;  // of --slo, as "ttft=500ms,itl=50ms"
};

// Reads the limits of --slo. Throws kUsage.
ServiceLimits service_limits_of(const std::string& text);

// What is wanted of a profile besides its numbers.
struct ProfileWants {
  bool has_timeline = false;
  bool has_export = false;               // a trace is written from it: counts for the memory limit
  std::optional<EfficiencySetup> model;  // with a GPU, or without one for the recorded GPU
  std::string gpu_name;                  // of GPUs that the recording does not name
  bool may_name_gpus = false;            // a recording that names them all is accepted
  std::optional<std::int64_t> batch;     // sequences of a decode step
  PassTimer* timer = nullptr;
};

// The rules that name stages and families: those of `file`, or of ~/.config/gpuwhy/rules.yaml if
// that is there and no file is given, before those of conf/. Throws kUsage.
Rules recording_rules(const std::string& file, const System& system);
// The rows of secrets in the same file count from now on. Throws kUsage.
void use_secret_rules(const std::string& file, const System& system);

// Loads a recording, or those of one job, each with some of its ranks, as one: through nsys if it
// is a report, out of its bundle if it is one. Profiles it, and completes the profile with the
// counters and the table of operators that are given or are in the bundle. Throws kEnvironment
// where that needs more than the limit on memory; a limit that is met by a coarser timeline is a
// diagnostic.
Profile profile_recordings(const std::vector<std::string>& paths, const RecordingOptions& options,
                           const System& system, const ProfileWants& wants = {});

// What the recordings alone show: no counters, no findings. For plans, and for `explain`, which
// needs the rows.
Profile profile_alone(const std::vector<std::string>& paths, const RecordingOptions& options,
                      const System& system, const ProfileWants& wants = {});

// The options --mark and --step whose ranges are not in the recording.
std::set<std::string> unused_marks(const Rules& rules, const Trace& trace);

// What the recordings of one job hold together, as far as that is known without reading them: not
// of a report.
TraceOutline outline_recordings(const std::vector<std::string>& paths);

// metrics.json, with a timeline where one was asked for and the recording is there.
struct LoadedMetrics {
  SharedJson json;  // as it is in the file: for those who name numbers by their paths
  Results metrics;
  std::shared_ptr<const Profile> profile;  // null: the metrics were read, not made
};

// Whether a file is a JSON document of gpuwhy whose schema begins like this, as its first bytes
// say, whatever it is called.
bool is_own_document(const std::filesystem::path& file, std::string_view schema);

// metrics.json of a bundle or file, or made of a recording, or of those of one job. `has_timeline`
// also profiles the recording of a bundle, where it holds one.
LoadedMetrics load_metrics(const std::vector<std::string>& paths, const RecordingOptions& options,
                           const System& system, bool has_timeline = false);

// The counters in the files, merged; absent without files.
std::optional<Counters> counters_of(const std::vector<std::string>& files,
                                    PassTimer* timer = nullptr);

// The ncu reports of a bundle, sorted; none where it is not a bundle.
std::vector<std::string> counters_in(const std::filesystem::path& bundle);

// What the client of a server measured; empty where that is not in the bundle.
std::string requests_in(const std::filesystem::path& bundle);

// The time of the start-up, the steady phase or the ending, over all GPUs; nullopt: the recording
// has no such part.
std::optional<WindowOptions> window_of_phase(const RowName& phase, const Analysis& analysis);

// Leaves only one stage's rows in what is shown. Throws kUsage when there is no such stage.
void keep_stage(const RowName& stage, Analysis& analysis);

}  // namespace gpuwhy
