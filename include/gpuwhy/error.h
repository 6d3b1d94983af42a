// SPDX-License-Identifier: Apache-2.0
//
// The only exception type of the library: why a file could not be read or a question not answered.
//
// Threads: any number of threads may call the library at once, also on the same file; calls share
// no state. Results are plain values, as thread-safe as a std::string. read_recording() starts a
// thread, which has ended when it returns or throws.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#define GPUWHY_API __attribute__((visibility("default")))

namespace gpuwhy::api {

class GPUWHY_API Error : public std::runtime_error {
 public:
  Error(const std::string& what, std::string hint)
      : std::runtime_error(what), hint_(std::move(hint)) {}
  ~Error() override;

  // What to do about it, in words; may be empty.
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

}  // namespace gpuwhy::api
