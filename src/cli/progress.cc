// SPDX-License-Identifier: Apache-2.0
//
// Progress of a run on standard error: step, elapsed time, bytes written, last line printed.
#include "cli/progress.h"

#include <utility>

#include <fmt/format.h>

#include "base/json_fwd.h"
#include "base/text.h"
#include "base/units.h"

namespace gpuwhy {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::chrono::milliseconds kBetweenLines{250};
constexpr seconds kBetweenPlain{60};
constexpr seconds kBetweenJson{5};
constexpr std::size_t kShownLine = 200;

std::string elapsed_text(nanoseconds elapsed) {
  const auto whole = std::chrono::duration_cast<seconds>(elapsed).count();
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

ConsoleProgress::ConsoleProgress(Console& console, const std::string& mode, int num_steps)
    : console_(console), num_steps_(num_steps) {
  mode_ = mode == "none"                  ? Mode::kSilent
          : mode == "json"                ? Mode::kJson
          : mode == "plain"               ? Mode::kPlain
          : Console::has_error_terminal() ? Mode::kLine
                                          : Mode::kPlain;
}

void ConsoleProgress::begin(const std::string& step) {
  step_ = step;
  ++step_number_;
  elapsed_ = last_drawn_ = nanoseconds{0};
  was_stopping_ = false;
  if (mode_ == Mode::kPlain) {
    console_.err(fmt::format("[{}/{}] {}\n", step_number_, num_steps_, step));
  } else if (mode_ == Mode::kJson) {
    console_.err(
        json_object_line(
            {{"event", "begin"}, {"step", step}, {"number", step_number_}, {"of", num_steps_}}) +
        "\n");
  }
}

void ConsoleProgress::update(const StepProgress& progress) {
  elapsed_ = progress.elapsed;
  show_output(progress.output);
  const nanoseconds since = progress.elapsed - last_drawn_;
  if (progress.is_stopping && !was_stopping_) {
    was_stopping_ = true;
    note(fmt::format("stopping {}; what was captured is kept (Ctrl-C aborts)", step_));
  }
  const std::string last_line = printable(progress.last_line.substr(0, kShownLine));
  if (mode_ == Mode::kLine && since >= kBetweenLines) {
    last_drawn_ = progress.elapsed;
    std::string line = fmt::format("[{}/{}] {}  {}  {}", step_number_, num_steps_, step_,
                                   elapsed_text(progress.elapsed), format_bytes(progress.bytes));
    line += last_line.empty() || shows_output_ ? "" : "  " + last_line;
    console_.err("\r\x1b[K" + shortened(line, console_.error_width() - 1));
    has_line_ = true;
  } else if (mode_ == Mode::kPlain && since >= kBetweenPlain) {
    last_drawn_ = progress.elapsed;
    console_.err(fmt::format("[{}/{}] {}  {}  {}{}\n", step_number_, num_steps_, step_,
                             elapsed_text(progress.elapsed), format_bytes(progress.bytes),
                             shows_output_ || last_line.empty() ? "" : "  " + last_line));
  } else if (mode_ == Mode::kJson && since >= kBetweenJson) {
    last_drawn_ = progress.elapsed;
    console_.err(json_object_line({{"event", "progress"},
                                   {"step", step_},
                                   {"elapsed_ns", progress.elapsed.count()},
                                   {"bytes", static_cast<std::int64_t>(progress.bytes)},
                                   {"last_line", last_line}}) +
                 "\n");
  }
}

void ConsoleProgress::show_output(const std::string& output) {
  if (!shows_output_ || output.empty() || (mode_ != Mode::kLine && mode_ != Mode::kPlain)) {
    return;
  }
  // Whole lines, but a very long one in pieces: what is kept must not grow with it, or every piece
  // would cost as much as all before, and the program would wait for us.
  constexpr std::size_t kLongestKept = 65'536;
  const std::size_t before = unfinished_.size();
  unfinished_ += output;
  std::size_t end = output.find_last_of("\r\n");
  if (end == std::string::npos && unfinished_.size() > kLongestKept) {
    end = output.size() - 1;
  }
  if (end != std::string::npos) {
    clear_line();
    console_.err(std::string_view(unfinished_).substr(0, before + end + 1));
    unfinished_.erase(0, before + end + 1);
  }
}

void ConsoleProgress::end(const std::string& outcome) {
  clear_line();
  if (!unfinished_.empty()) {
    console_.err(std::exchange(unfinished_, {}) + "\n");
  }
  shows_output_ = shows_output_ && elapsed_.count() == 0;
  if (mode_ == Mode::kJson) {
    console_.err(json_object_line({{"event", "end"},
                                   {"step", step_},
                                   {"elapsed_ns", elapsed_.count()},
                                   {"outcome", outcome}}) +
                 "\n");
  } else if (mode_ != Mode::kSilent) {
    console_.err(fmt::format("[{}/{}] {}: {}{}\n", step_number_, num_steps_, step_, outcome,
                             elapsed_.count() > 0 ? " after " + elapsed_text(elapsed_) : ""));
  }
}

void ConsoleProgress::note(const std::string& sentence) {
  clear_line();
  if (mode_ == Mode::kJson) {
    console_.err(json_object_line({{"event", "note"}, {"text", sentence}}) + "\n");
  } else if (mode_ != Mode::kSilent) {
    console_.err(fmt::format("      {}\n", sentence));
  }
}

void ConsoleProgress::clear_line() {
  if (has_line_) {
    console_.err("\r\x1b[K");
    has_line_ = false;
  }
}

}  // namespace gpuwhy
