// SPDX-License-Identifier: Apache-2.0
//
// Pipe for a child's output: the child has the write end, we have the non-blocking read end.
#pragma once

#include <functional>
#include <string_view>

namespace gpuwhy {

// A pipe from a child process: the read end does not block, the write end goes to the child.
class Pipe {
 public:
  Pipe();  // throws kFailure
  ~Pipe();
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int read_end() const { return read_end_; }
  int write_end() const { return write_end_; }
  bool is_open() const { return read_end_ >= 0; }
  void close_write();

  // Passes on what is available, up to 1 MiB, so that a program that never pauses can still be
  // supervised. Closes at end of file. Returns whether there was anything.
  bool take(const std::function<void(std::string_view)>& sink);

 private:
  int read_end_ = -1;
  int write_end_ = -1;
};

}  // namespace gpuwhy
