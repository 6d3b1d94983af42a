// SPDX-License-Identifier: Apache-2.0
//
// Files, read whole and written whole.
//
// write_file() opens its temporary with O_EXCL and mode 0666, so that the user's umask decides who
// may read it, and syncs before renaming: without that, a crash soon after may leave the new name
// with no bytes under it.
#include "base/file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"

namespace llmprof {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int close() { return fd_ < 0 ? 0 : ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

// Appends up to `limit_bytes` + 1 bytes; the one more tells the caller that there was more. False
// on a read error.
bool read_all(int fd, std::uint64_t limit_bytes, std::string& contents) {
  std::array<char, 64 * kKiB> block{};
  while (contents.size() <= limit_bytes) {
    const std::size_t wanted =
        std::min<std::uint64_t>(block.size(), limit_bytes + 1 - contents.size());
    const ssize_t got = ::read(fd, block.data(), wanted);
    if (got == 0) {
      return true;
    }
    if (got < 0 && errno != EINTR) {
      return false;
    }
    contents.append(block.data(), got < 0 ? 0 : static_cast<std::size_t>(got));
  }
  return true;
}

bool write_all(int fd, std::string_view contents) {
  while (!contents.empty()) {
    const ssize_t put = ::write(fd, contents.data(), contents.size());
    if (put < 0 && errno != EINTR) {
      return false;
    }
    contents.remove_prefix(put < 0 ? 0 : static_cast<std::size_t>(put));
  }
  return true;
}

std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  static std::atomic<unsigned> counter{0};
  const std::string name =
      fmt::format(".{}.{}-{}.tmp", path.filename().string(), ::getpid(), counter++);
  return path.parent_path() / name;
}

}  // namespace

std::string read_file(const std::filesystem::path& path, std::uint64_t limit_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (!file.is_open() || ::fstat(file.get(), &facts) != 0) {
    throw Error(ErrorKind::kInput,
                fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
  }
  if (!S_ISREG(facts.st_mode)) {
    throw Error(ErrorKind::kInput, fmt::format("{} is not a regular file", path.string()));
  }
  std::string contents;
  contents.reserve(std::min<std::uint64_t>(static_cast<std::uint64_t>(facts.st_size), limit_bytes));
  if (!read_all(file.get(), limit_bytes, contents)) {
    throw Error(ErrorKind::kInput,
                fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
  }
  if (contents.size() > limit_bytes) {
    throw Error(ErrorKind::kInput, fmt::format("{} is larger than the {} such a file may have",
                                               path.string(), format_bytes(limit_bytes)));
  }
  return contents;
}

std::string read_pseudo_file(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string contents;
  if (!file.is_open() || !read_all(file.get(), kMiB, contents)) {
    return {};
  }
  return contents;
}

std::optional<std::uint64_t> free_bytes(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::path existing =
      std::filesystem::exists(path, ignored) ? path : path.parent_path();
  struct statvfs facts {};
  if (::statvfs(existing.c_str(), &facts) != 0) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(facts.f_bavail) * facts.f_frsize;
}

void write_file(const std::filesystem::path& path, std::string_view contents) {
  const std::filesystem::path temporary = temporary_beside(path);
  const auto fail = [&](const char* step) {
    const int reason = errno;
    ::unlink(temporary.c_str());
    throw Error(ErrorKind::kFailure,
                fmt::format("cannot {} {}: {}", step, path.string(), std::strerror(reason)));
  };
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.is_open()) {
    fail("create");
  }
  if (!write_all(file.get(), contents) || ::fsync(file.get()) != 0 || file.close() != 0) {
    fail("write");
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    fail("put in place");
  }
}

FileWriter::FileWriter(std::filesystem::path path)
    : path_(std::move(path)), temporary_(temporary_beside(path_)) {
  file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0) {
    fail("create");
  }
}

FileWriter::~FileWriter() {
  if (file_ >= 0) {
    ::close(file_);
    ::unlink(temporary_.c_str());
  }
}

void FileWriter::write(std::string_view bytes) {
  constexpr std::size_t kBufferBytes = kMiB;
  size_bytes_ += bytes.size();
  if (size_bytes_ > limit_bytes_) {
    return;
  }
  buffer_ += bytes;
  if (buffer_.size() >= kBufferBytes) {
    flush();
  }
}

void FileWriter::flush() {
  if (!write_all(file_, buffer_)) {
    fail("write");
  }
  buffer_.clear();
}

void FileWriter::cut_back(std::uint64_t size_bytes) {
  flush();
  if (::ftruncate(file_, static_cast<off_t>(size_bytes)) != 0 || ::lseek(file_, 0, SEEK_END) < 0) {
    fail("write");
  }
  size_bytes_ = size_bytes;
}

void FileWriter::commit() {
  flush();
  if (::fsync(file_) != 0 || ::close(std::exchange(file_, -1)) != 0) {
    fail("write");
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail("put in place");
  }
}

void FileWriter::fail(const char* step) const {
  const int reason = errno;
  ::unlink(temporary_.c_str());
  throw Error(ErrorKind::kFailure,
              fmt::format("cannot {} {}: {}", step, path_.string(), std::strerror(reason)));
}

}  // namespace llmprof
