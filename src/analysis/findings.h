// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace llmprof {

struct Analysis;

// Something worth fixing, with what fixing it saves at most.
struct Finding {
  std::string id;      // stable: scripts rely on it
  std::string stage;   // "capture" where the recording marks no stage
  std::string device;  // "cuda:0"; empty where no GPU is meant
  // True: the recording itself must be mended before other figures mean much. These come first.
  bool is_blocker = false;
  std::int64_t saving_ns = 0;  // of window_ns, at most
  std::int64_t window_ns = 0;  // of the stage on that device
  std::string confidence;      // high, medium or low
  std::string sentence;
  std::string next;                   // what to do
  std::vector<std::string> evidence;  // keys of metrics.json
};

// A rule that could not speak, and why.
struct SilentRule {
  std::string id;
  std::string reason;
};

struct Findings {
  std::vector<Finding> found;  // blockers, then by saving, then by id, stage, device
  std::vector<SilentRule> silent;
};

// What the rules know besides the analysis.
struct FindingFacts {
  // By name of a GPU: its rate in fp32 on CUDA cores by its best on tensor cores, as 19.5 / 312.
  std::map<std::string, double> fp32_by_tensor;
};

// Holds every rule against an analysis. Savings of findings that rest on the ledger do not overlap:
// for one stage and device they sum to its window at most.
Findings find_findings(const Analysis& analysis, const FindingFacts& facts);

}  // namespace llmprof
