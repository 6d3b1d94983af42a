// SPDX-License-Identifier: Apache-2.0
//
// Names of the files of a bundle and of a report's folder. Nothing else in src/ spells them, but
// for sentences; tests/check_layers.py checks it, and lets every layer include this header.
#pragma once

#include <array>

namespace gpuwhy::layout {

// Of a run.
inline constexpr const char* kManifest = "manifest.json";  // lists all others, and is written last
inline constexpr const char* kEnv = "env.json";
inline constexpr const char* kConfig = "config.yaml";
inline constexpr const char* kInputs = "inputs.yaml";
inline constexpr const char* kRunning = "running.json";  // names the process while it runs

// In the folder of each pass; the last three of a server.
inline constexpr const char* kCommands = "cmd.txt";
inline constexpr const char* kLog = "log.txt";
inline constexpr const char* kRequests = "requests.jsonl";
inline constexpr const char* kDrive = "drive.json";
inline constexpr const char* kClientLog = "client.txt";

// Of one pass.
inline constexpr const char* kUnprofiled = "baseline/metrics.json";
inline constexpr const char* kRanges = "baseline/ranges.csv";
inline constexpr const char* kOperatorTable = "baseline/operators.csv";
inline constexpr const char* kNsysReport = "nsys/run.nsys-rep";
inline constexpr const char* kNsysSqlite = "nsys/run.sqlite";
inline constexpr const char* kNsysReportOfRank = "rank-{}.nsys-rep";  // in nsys/
inline constexpr const char* kTraces = "torch/traces";  // a folder: the engine's own profiler's
inline constexpr const char* kNcuPlan = "ncu/plan.json";
inline constexpr const char* kNcuSections = "ncu/sections.txt";

// Of a report: `run` and `analyze --out` write these. Who makes which: report/sections/files.cc.
inline constexpr const char* kMetrics = "metrics.json";
inline constexpr const char* kPage = "report.html";
inline constexpr const char* kReport = "report.md";
inline constexpr const char* kStakeholders = "stakeholder_summary.md";
inline constexpr const char* kKernels = "kernels.md";
inline constexpr const char* kOperators = "operators.md";
// Beside a report, where there is what they hold.
inline constexpr const char* kTrace = "trace.pftrace";
inline constexpr const char* kKernelProfile = "kernels.pb.gz";
inline constexpr const char* kRequestTable = "requests.csv";
inline constexpr const char* kLateTokens = "late_tokens.csv";
inline constexpr const char* kSummary = "summary.gpuwhy";              // of a rank
inline constexpr const char* kSummaryOfRank = "summary-{:06}.gpuwhy";  // of one of several ranks
inline constexpr const char* kOwnFiles = ".gpuwhy.files";  // the files that gpuwhy wrote there

// Of the folder of runs that were repeated.
inline constexpr const char* kComparison = "compare.json";
inline constexpr const char* kComparisonText = "compare.md";
inline constexpr const char* kComparisonPage = "compare.html";

// What the report of a run links to, where it is there.
inline constexpr std::array kOfRun = {kManifest,   kEnv,         kConfig,         kInputs,
                                      kUnprofiled, kRanges,      "nsys/cmd.txt",  "nsys/log.txt",
                                      kNsysReport, kNsysSqlite,  "torch/cmd.txt", "torch/log.txt",
                                      kNcuPlan,    "ncu/log.txt"};

}  // namespace gpuwhy::layout
