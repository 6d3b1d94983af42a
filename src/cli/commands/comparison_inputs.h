// SPDX-License-Identifier: Apache-2.0
//
// What compare, gate and baseline share: options, output, and what a verdict exits with.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/json_output.h"
#include "compare/compare.h"
#include "session/compared_runs.h"
#include "session/recording.h"

namespace llmprof {

// Options that compare and gate share.
struct JudgeOptions {
  double smallest_effect = CompareOptions().smallest_effect;
  std::string allow;
  RowLimit top{10};
  bool has_all_metrics = false;
  RecordingOptions recording;  // how runs that are recordings are read
};
void add_judge_options(Command& command, JudgeOptions& target);
// Throws kUsage for a fact that is not known.
CompareOptions compare_options_of(const JudgeOptions& options);

// Where a comparison goes, and as what.
struct ComparisonOutput {
  std::string format = "terminal";  // html, md, json
  bool json = false;                // the same as format json
  std::string page;                 // a file to write the page to; empty: none
  JsonPages pages = {};
};
void add_output_options(Command& command, ComparisonOutput& target);
// Writes the page if it is asked for.
void write_page(const Comparison& comparison, const JudgeOptions& options,
                const ComparisonOutput& output);
// Prints the comparison; with a page in a file and no other format, its verdict alone.
void print_comparison(const Comparison& comparison, const JudgeOptions& options,
                      const ComparisonOutput& output, Context& context);

int exit_code_of(const Comparison& comparison);

// Plain files: <directory>/<name>.json.
inline constexpr const char* kBaselineDirectory = ".llmprof/baselines";
std::filesystem::path baseline_file(const std::string& directory, const std::string& name);

}  // namespace llmprof
