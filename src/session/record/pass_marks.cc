// SPDX-License-Identifier: Apache-2.0
//
// Marks in a run. Modules of --mark: their files before the first pass, their notes after each.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "capture/mark_module.h"
#include "session/record/pass_parts.h"

namespace gpuwhy {

// The run goes on without them if they cannot be written.
void write_marks(PassRunner& runner) {
  if (runner.setup().options.mark_modules.empty()) {
    return;
  }
  try {
    write_mark_modules(runner.inputs().scratch / kMarksFolder);
  } catch (const Error& error) {
    runner.add({{Reason::kMarksIncomplete, "run", error.message(), error.hint(), "", false}});
  }
}

// Says what was not marked, once for all passes. That nothing was, only of the first: the others
// start the same program.
void read_mark_notes(PassRunner& runner) {
  const std::vector<std::string>& modules = runner.setup().options.mark_modules;
  if (modules.empty() || runner.pass().is_preparation) {
    return;
  }
  const MarkNotes notes = take_mark_notes(runner.inputs().scratch / kMarksFolder);
  const auto is_told = [&](const std::string& sentence) {
    return std::any_of(runner.breaches().begin(), runner.breaches().end(),
                       [&](const Breach& breach) { return breach.sentence == sentence; });
  };
  for (const std::string& line : notes.not_done) {
    const std::string sentence = printable(line);
    if (!is_told(sentence)) {
      runner.warn(Reason::kMarksIncomplete, sentence, "docs/marking.md says what is marked");
    }
  }
  const std::string nothing =
      fmt::format("no process of the program used {}", fmt::join(modules, " or "));
  if (!notes.is_marked && notes.not_done.empty() && !is_told(nothing)) {
    runner.warn(Reason::kMarksIncomplete, nothing,
                "start Python without -I and -E, which ignore PYTHONPATH; llama.cpp must be a "
                "shared library; other programs need marks of their own: docs/marking.md");
  }
}

bool has_marks(const std::vector<StageTimes>& times) {
  return std::any_of(times.begin(), times.end(), [](const StageTimes& stage) {
    return stage.stage.kind != RowKind::kUnmarked;
  });
}

std::map<std::string, std::int64_t> instances_of(const std::vector<StageTimes>& times) {
  std::map<std::string, std::int64_t> instances;
  for (const StageTimes& stage : times) {
    instances[stage.stage.text()] = stage.n;
  }
  return instances;
}

}  // namespace gpuwhy
