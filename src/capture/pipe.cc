// SPDX-License-Identifier: Apache-2.0
//
// Non-blocking pipe for the output of a child process.
#include "capture/pipe.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"

namespace gpuwhy {
namespace {

constexpr int kBlocksAtOnce = 64;

void close_end(int& end) {
  if (end >= 0) {
    ::close(std::exchange(end, -1));
  }
}

}  // namespace

Pipe::Pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(ErrorKind::kFailure, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  read_end_ = ends[0];
  write_end_ = ends[1];
  ::fcntl(read_end_, F_SETFL, O_NONBLOCK);
}

Pipe::~Pipe() {
  close_end(read_end_);
  close_end(write_end_);
}

void Pipe::close_write() {
  close_end(write_end_);
}

bool Pipe::take(const std::function<void(std::string_view)>& sink) {
  std::array<char, 16 * kKiB> block{};
  bool any = false;
  for (int i = 0; i < kBlocksAtOnce && is_open(); ++i) {
    const ssize_t got = ::read(read_end_, block.data(), block.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      break;  // EAGAIN: nothing more for now
    }
    if (got == 0) {
      close_end(read_end_);
      break;
    }
    any = true;
    sink({block.data(), static_cast<std::size_t>(got)});
  }
  return any;
}

}  // namespace gpuwhy
