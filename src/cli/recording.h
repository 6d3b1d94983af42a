// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/timeline.h"
#include "base/json.h"
#include "cli/command.h"
#include "trace/trace_outline.h"

namespace llmprof {

// How a recording is read; the options that analyze and kernels share.
struct RecordingOptions {
  std::string gpu;
  std::string pid;
  std::string threads = "2";
  std::string memory_limit;      // empty: none
  std::vector<std::string> ncu;  // counters to join: analyze only; without, those of the bundle
};
void add_recording_options(Command& command, RecordingOptions& target);

// The rules of conf/ that tell stages and families.
Rules recording_rules();

// A recording, through nsys if it is a report, out of its bundle if it is one.
Trace load_recording(const std::string& path, const System& system, unsigned num_threads = 2,
                     PassTimer* timer = nullptr);

// What a recording holds, as far as that can be told without reading it: not of a report.
TraceOutline outline_recording(const std::string& path);

// Loads a recording, through nsys if it is a report, and analyses it with the rules of conf/; a
// kernel summary as far as that goes. Counters are joined where they are given or stand in the
// bundle. `timeline`, if given, is made too, as far as the recording has times of day; `kept` gets
// the trace itself, where there is one. Throws kEnvironment where that needs more than the limit on
// memory; a limit that is met by a coarser timeline is told by a diagnostic.
Analysis analyze_recording(const std::string& path, const RecordingOptions& options,
                           const System& system, PassTimer* timer = nullptr,
                           Timeline* timeline = nullptr, std::optional<Trace>* kept = nullptr);

// metrics.json of a bundle or file, or made of a recording. A timeline needs the recording: of a
// bundle that holds none it stays empty.
Json load_metrics(const std::string& path, const RecordingOptions& options, const System& system,
                  Timeline* timeline = nullptr);

// What to fix first, from all that is known by now: the last step before an analysis is shown. A
// run adds facts of its machine.
void add_findings(Analysis& analysis, FindingFacts facts = {});

// The counters of a bundle, sorted; none where it is no bundle.
std::vector<std::string> counters_in(const std::filesystem::path& bundle);

// Joins counters of files to an analysis; nothing happens without files.
void add_counters(const std::vector<std::string>& files, Analysis& analysis,
                  PassTimer* timer = nullptr);

// Leaves only one stage's rows in what is shown. Throws kUsage when there is no such stage.
void keep_stage(const std::string& stage, Analysis& analysis);

// A whole number of at least 1 given as an option. Throws kUsage.
std::size_t positive_number(const std::string& option, const std::string& text);

}  // namespace llmprof
