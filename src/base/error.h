// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace gpuwhy {

// The reason why a command cannot continue. Each kind has one exit code, assigned in cli/main.cc.
enum class ErrorKind {
  kFailure,      // ours, or the machine's: a disk is full, a write failed
  kUsage,        // the command line or a configuration file is wrong
  kInput,        // a file is unreadable or not what it claims to be
  kContract,     // a capture is not what was asked for
  kEnvironment,  // a tool, a permission, a driver or memory is missing
};

// The only exception type of this program. Thrown where a command cannot continue; caught in
// cli/main.cc, at thread boundaries, and where a caller can do without the result. Imperfect data
// is a diagnostic, never an Error.
//
// `message` says what happened, `hint` what to type next (may be empty). Callers add context,
// innermost first: "line 3, column 7", then "while reading conf.yaml".
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message, std::string hint = {})
      : kind_(kind), message_(std::move(message)), hint_(std::move(hint)) {
    compose();
  }

  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }
  const std::vector<std::string>& context() const { return context_; }
  const char* what() const noexcept override { return text_.c_str(); }

  void add_context(std::string where) {
    context_.push_back(std::move(where));
    compose();
  }

 private:
  void compose() {
    text_ = message_;
    for (const std::string& where : context_) {
      text_ += ", " + where;
    }
  }

  ErrorKind kind_;
  std::string message_;
  std::string hint_;
  std::vector<std::string> context_;
  std::string text_;  // message and context as one line, kept so that what() cannot fail
};

// Runs `body` and adds `where` to the context of any Error it throws.
template <typename Body>
auto with_context(const std::string& where, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (Error& error) {
    error.add_context(where);
    throw;
  }
}

}  // namespace gpuwhy
