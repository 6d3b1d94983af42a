// SPDX-License-Identifier: Apache-2.0
//
// What the library throws, and nothing else: why a file could not be read or a question not be
// answered.
//
// Threads: any number of them may call the library's functions at once, on the same file too; it
// has no state that calls share. Results are plain values: what holds for a std::string holds for
// them. read_recording() starts a thread of its own, which has ended when it returns or throws.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#define LLMPROF_API __attribute__((visibility("default")))

namespace llmprof::api {

class LLMPROF_API Error : public std::runtime_error {
 public:
  Error(const std::string& what, std::string hint)
      : std::runtime_error(what), hint_(std::move(hint)) {}
  ~Error() override;

  // What to do about it, in words; may be empty.
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

}  // namespace llmprof::api
