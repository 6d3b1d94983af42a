// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "capture/gate.h"
#include "capture/supervise.h"

namespace llmprof {

// A stable word for what went wrong, for scripts and for docs/capture-contract.md.
struct ReasonMeaning {
  const char* code;
  int exit_code;  // 5 for a tool, permission or driver, 4 for the capture; where it is fatal
  const char* meaning;
};
std::span<const ReasonMeaning> all_reasons();

// One way in which a pass is not what was asked for.
struct Breach {
  std::string reason;  // of all_reasons()
  std::string pass;    // baseline, nsys, ncu
  std::string sentence;
  std::string next;           // what to do or type; may be empty
  std::string next_override;  // where `llmprof run` with this override is what to type
  bool is_fatal = true;       // false: the bundle holds what was asked for, but look twice
};

// What a run must contain, as declared.
struct Contract {
  enum class Gpu { kAuto, kRequired, kUnwanted };
  Gpu gpu = Gpu::kAuto;
  std::vector<std::string> stages;  // that must be there, each at least min_instances times
  std::int64_t min_instances = 1;
  bool workload_may_fail = false;  // any exit code of the program will do
};

// What a recording holds, told by whoever read it.
struct RecordingFacts {
  std::map<std::string, std::int64_t> stage_instances;
  std::int64_t num_kernels = 0;
  bool has_cuda = false;
  double opaque_graph_fraction = 0;  // of GPU time, in CUDA graphs recorded as a whole
  std::size_t num_processes_with_ranges = 0;
  std::vector<std::string> tool_messages;  // warnings and errors of nsys
};

// Exit status of any pass and who ended it. `expected_codes` besides 0, as 143 where the tool ends
// the program.
std::vector<Breach> check_step(const std::string& pass, const Contract& contract,
                               const StepResult& step, const std::vector<int>& expected_codes);

// The report: at this very path, not older than the pass, not empty; and what became of it when it
// is not there. `scratch` is the folder nsys had as TMPDIR.
struct ReportFacts {
  std::filesystem::path expected;
  std::filesystem::path scratch;
  std::filesystem::file_time_type pass_start;
  bool is_gated = false;
  std::string gate_text;  // "LLM:request"
};
std::vector<Breach> check_nsys_report(const ReportFacts& report, const StepResult& step);

// What the recording holds against what was declared and what the baseline pass saw.
struct Expectations {
  bool is_gpu_expected = false;
  bool follows_forks = false;  // nsys was told to follow children that do not exec
  // Of the baseline pass; 0 and empty: not known.
  std::size_t num_processes_with_ranges = 0;
  std::map<std::string, std::int64_t> stage_instances;
};
std::vector<Breach> check_recording(const Contract& contract, const Expectations& expected,
                                    const RecordingFacts& facts);

// Stages that were declared and are not there, of any pass.
std::vector<Breach> check_stages(const std::string& pass, const Contract& contract,
                                 const std::map<std::string, std::int64_t>& instances);

// ncu: what it printed and whether its report is there.
std::vector<Breach> check_ncu_report(const std::filesystem::path& report, const StepResult& step);

// A file of a folder whose name ends so; empty where there is none.
std::filesystem::path find_with_suffix(const std::filesystem::path& folder,
                                       std::string_view suffix);

}  // namespace llmprof
