// SPDX-License-Identifier: Apache-2.0
//
// What compare, gate and baseline share: options, output, and what a verdict exits with.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "compare/compare.h"
#include "session/reading/compared_runs.h"
#include "session/reading/recording.h"

namespace gpuwhy {

// Options that compare and gate share.
struct JudgeOptions {
  double smallest_effect = CompareOptions().smallest_effect;
  std::string allow;
  RowLimit top{10};
  bool has_all_metrics = false;
  std::string gpu_hour_price;
  RecordingOptions recording;  // how runs that are recordings are read
};
void add_judge_options(Command& command, JudgeOptions& target);
// Throws kUsage for a fact that is not known.
CompareOptions compare_options_of(const JudgeOptions& options);

// Where a comparison goes, and as what.
struct ComparisonOutput {
  std::string format = "terminal";  // html, md, json
  bool json = false;                // the same as format json
  std::string page;                 // a file to write it to, in the form of its name; empty: none
  std::string junit;                // a file for a test report; empty: none
  std::string ci;                   // a form for a pipeline, on standard output; empty: none
  JsonPages pages = {};
  bool is_quiet = false;  // of the terminal's form, the verdict alone
};
void add_output_options(Command& command, ComparisonOutput& target);
// Writes the page that is asked for, if one is.
void write_page(const Comparison& comparison, const JudgeOptions& options,
                const ComparisonOutput& output);
// Prints the comparison; with a page in a file and no other format, its verdict alone.
void print_comparison(const Comparison& comparison, const JudgeOptions& options,
                      const ComparisonOutput& output, Context& context);

// Prints the comparison by `print`, then writes the files: a folder that is full or missing must
// not hide the verdict. Returns `code`, or 1 if that is 0 and a file could not be written.
int finish_comparison(const Comparison& comparison, const JudgeOptions& options,
                      const ComparisonOutput& output, int code, Context& context,
                      const std::function<void()>& print);

// Runs `work`. An Error also goes to the files that were asked for, and as JSON to standard output
// if that was: a pipeline that reads them must not find those of another run.
int with_failure_files(const ComparisonOutput& output, Context& context,
                       const std::function<int()>& work);
// What that does with an Error.
void write_failure(const ComparisonOutput& output, const Error& error, Context& context);
// Throws kUsage where one file is asked for twice.
void check_output(const ComparisonOutput& output);

// A note on runs that were given twice; nothing if none was.
void say_repeated(const std::vector<RepeatedRun>& repeated, Console& console);

// Plain files: <directory>/<name>.json.
inline constexpr const char* kBaselineDirectory = ".gpuwhy/baselines";
std::filesystem::path baseline_file(const std::string& directory, const std::string& name);

}  // namespace gpuwhy
