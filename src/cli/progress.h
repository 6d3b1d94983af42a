// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "cli/console.h"
#include "session/run_progress.h"

namespace gpuwhy {

// Progress of a run on standard error. On a terminal one line is redrawn; elsewhere there is one
// line per step and one per minute; or JSON, one line per event; or nothing. The program's own
// output is passed on while it runs for the first time; later passes only log it.
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
  // Passes the program's output on, in whole lines, while it runs for the first time.
  void show_output(const std::string& output);

  Console& console_;
  Mode mode_;
  int num_steps_;
  int step_number_ = 0;
  std::string step_;
  bool has_line_ = false;
  bool was_stopping_ = false;
  bool shows_output_ = true;
  std::string unfinished_;  // the last line of output, without its end
  std::chrono::nanoseconds elapsed_{0};
  std::chrono::nanoseconds last_drawn_{0};
};

}  // namespace gpuwhy
