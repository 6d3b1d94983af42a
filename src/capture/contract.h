// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "capture/reason.h"
#include "capture/supervise.h"
#include "capture/trigger.h"

namespace gpuwhy {

// One way in which a pass differs from what was asked for.
struct Breach {
  Reason reason;
  std::string pass;  // baseline, nsys, ncu
  std::string sentence;
  std::string next;           // what to do or type; may be empty
  std::string next_override;  // the override to add to `gpuwhy run`, if that helps
  bool is_fatal = true;       // false: a warning, the capture is usable
};

// The declared requirements of a run.
struct Contract {
  enum class Gpu { kAuto, kRequired, kUnwanted };
  Gpu gpu = Gpu::kAuto;
  std::vector<std::string> stages;  // required, each at least min_instances times
  std::int64_t min_instances = 1;
  bool workload_may_fail = false;  // accept any exit code of the program
};

// Contents of a recording, filled in by the caller that read it.
struct RecordingFacts {
  std::map<std::string, std::int64_t> stage_instances;
  bool has_kernels = false;
  bool has_cuda = false;
  double opaque_graph_fraction = 0;  // of GPU time, in CUDA graphs recorded as a whole
  std::size_t num_processes_with_ranges = 0;
  std::vector<std::string> tool_messages;  // warnings and errors of nsys
};

// Checks the exit status of any pass and what ended it. `expected_codes` are accepted besides 0,
// e.g. 143 if the tool ends the program.
std::vector<Breach> check_step(const std::string& pass, const Contract& contract,
                               const StepResult& step, const std::vector<int>& expected_codes);

// The expected report: it must exist at this path, be newer than the pass and not empty. `scratch`
// is the TMPDIR of nsys, where the raw stream remains if the import fails.
struct ReportFacts {
  std::filesystem::path expected;
  std::filesystem::path scratch;
  std::filesystem::file_time_type pass_start;
  bool is_gated = false;
  std::string gate_text;              // "LLM:request"
  std::int64_t num_gate_entries = 0;  // in the baseline pass; 0 if no such pass looked
};
std::vector<Breach> check_nsys_report(const ReportFacts& report, const StepResult& step);

// Expectations from the declaration and the baseline pass.
struct Expectations {
  bool is_gpu_expected = false;
  bool follows_forks = false;  // nsys follows children that do not exec
  // From the baseline pass; 0 and empty if unknown.
  std::size_t num_processes_with_ranges = 0;
  std::map<std::string, std::int64_t> stage_instances;
};
std::vector<Breach> check_recording(const Contract& contract, const Expectations& expected,
                                    const RecordingFacts& facts);

// Declared stages that are missing in a pass.
std::vector<Breach> check_stages(const std::string& pass, const Contract& contract,
                                 const std::map<std::string, std::int64_t>& instances);

// Checks the output of ncu and whether its report exists.
std::vector<Breach> check_ncu_report(const std::filesystem::path& report, const StepResult& step);

// A file in a folder whose name ends with `suffix`; empty if there is none.
std::filesystem::path find_with_suffix(const std::filesystem::path& folder,
                                       std::string_view suffix);

}  // namespace gpuwhy
