// SPDX-License-Identifier: Apache-2.0
//
// What a child prints: the write end is the child's, the read end is ours and does not block.
#pragma once

#include <functional>
#include <string_view>

namespace llmprof {

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

  // Gives away what is there, up to 1 MiB: a program that never pauses is looked at in between.
  // Closes at the end of file. True when there was some.
  bool take(const std::function<void(std::string_view)>& sink);

 private:
  int read_end_ = -1;
  int write_end_ = -1;
};

}  // namespace llmprof
