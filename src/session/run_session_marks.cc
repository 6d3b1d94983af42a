// SPDX-License-Identifier: Apache-2.0
//
// Modules of --mark in a run: their files before the first pass, their notes after each.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "capture/mark_module.h"
#include "session/pass_runner.h"

namespace gpuwhy {
namespace {

Breach unmarked(const std::string& pass, const std::string& sentence, const std::string& next) {
  return {Reason::kMarksIncomplete, pass, sentence, next, "", false};
}

}  // namespace

// The run goes on without them if they cannot be written.
void PassRunner::write_marks() {
  if (setup_.options.mark_modules.empty()) {
    return;
  }
  try {
    write_mark_modules(scratch_ / kMarksFolder);
  } catch (const Error& error) {
    add({unmarked("run", error.message(), error.hint())});
  }
}

// Says what was not marked, once for all passes. That nothing was, only of the first: the others
// start the same program.
void PassRunner::read_mark_notes(const Pass& pass) {
  const std::vector<std::string>& modules = setup_.options.mark_modules;
  if (modules.empty() || pass.is_preparation) {
    return;
  }
  const MarkNotes notes = take_mark_notes(scratch_ / kMarksFolder);
  const auto is_told = [&](const std::string& sentence) {
    return std::any_of(breaches_.begin(), breaches_.end(),
                       [&](const Breach& breach) { return breach.sentence == sentence; });
  };
  for (const std::string& line : notes.not_done) {
    const std::string sentence = printable(line);
    if (!is_told(sentence)) {
      add({unmarked(pass.name, sentence, "docs/marking.md says what is marked")});
    }
  }
  const std::string nothing =
      fmt::format("no process of the program used {}", fmt::join(modules, " or "));
  if (!notes.is_marked && notes.not_done.empty() && !is_told(nothing)) {
    add({unmarked(pass.name, nothing,
                  "start Python without -I and -E, which ignore PYTHONPATH; llama.cpp must be a "
                  "shared library; other programs need marks of their own: docs/marking.md")});
  }
}

}  // namespace gpuwhy
