// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "cli/console.h"
#include "session/progress.h"

namespace llmprof {

// What a person sees while a run goes on, on standard error. On a terminal one line is redrawn;
// elsewhere a line a step and one a minute; or JSON, a line an event; or nothing.
class ConsoleProgress : public Progress {
 public:
  // `mode` is auto, plain, json or none.
  ConsoleProgress(Console& console, const std::string& mode, int num_steps);

  void begin(const std::string& step) override;
  void update(const StepProgress& progress) override;
  void end(const std::string& outcome) override;
  void note(const std::string& sentence) override;

 private:
  enum class Mode { kLine, kPlain, kJson, kSilent };
  void clear_line();

  Console& console_;
  Mode mode_;
  int num_steps_;
  int step_number_ = 0;
  std::string step_;
  bool has_line_ = false;
  bool was_stopping_ = false;
  std::chrono::nanoseconds elapsed_{0};
  std::chrono::nanoseconds last_drawn_{0};
};

}  // namespace llmprof
