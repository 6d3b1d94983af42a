// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing of whole files. base/temporary_file.cc explains how readers never see a
// partial file.
#include "base/file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/task_graph.h"

namespace gpuwhy {
namespace {

// Closes its file descriptor at the end of the scope.
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

// Appends up to `limit_bytes` + 1 bytes; the extra one tells the caller that there was more. False
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

}  // namespace

std::string read_file(const std::filesystem::path& path, std::uint64_t limit_bytes) {
  // O_NONBLOCK: opening a named pipe must not wait for its writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (!file.is_open() || ::fstat(file.get(), &facts) != 0) {
    throw Error(ErrorKind::kInput,
                fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
  }
  if (!S_ISREG(facts.st_mode)) {
    throw Error(ErrorKind::kInput, fmt::format("{} is not a regular file", path.string()));
  }
  // st_size is only a hint: a file of /proc says 0, and a log may still grow.
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

std::filesystem::path nearest_existing(std::filesystem::path path) {
  std::error_code ignored;
  path = std::filesystem::absolute(path, ignored);
  while (!std::filesystem::exists(path, ignored) && path.has_parent_path() &&
         path != path.parent_path()) {
    path = path.parent_path();
  }
  return path;
}

std::optional<std::uint64_t> free_bytes(const std::filesystem::path& path) {
  struct statvfs facts {};
  if (::statvfs(nearest_existing(path).c_str(), &facts) != 0) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(facts.f_bavail) * facts.f_frsize;
}

unsigned mode_of(const std::filesystem::path& path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) {
    throw Error(ErrorKind::kInput,
                fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
  }
  return facts.st_mode & 0777U;
}

void write_file(const std::filesystem::path& path, std::string_view contents, unsigned mode) {
  TemporaryFile file(path, mode);
  if (!write_all(file.descriptor(), contents)) {
    file.fail("write");
  }
  file.put_in_place();
}

void write_files(const std::filesystem::path& folder,
                 const std::vector<std::pair<std::string, std::string>>& files) {
  constexpr unsigned kMostThreads = 8;
  std::vector<std::unique_ptr<TemporaryFile>> written;
  std::vector<std::function<void()>> syncs;
  for (const auto& [name, contents] : files) {
    TemporaryFile& file = *written.emplace_back(std::make_unique<TemporaryFile>(folder / name));
    if (!write_all(file.descriptor(), contents)) {
      file.fail("write");
    }
    syncs.emplace_back([&file] { file.sync(); });
  }
  run_tasks(syncs, kMostThreads);
  for (const std::unique_ptr<TemporaryFile>& file : written) {
    file->put_in_place();
  }
}

FileWriter::FileWriter(const std::filesystem::path& path, unsigned mode) : file_(path, mode) {}

void FileWriter::write(std::string_view bytes) {
  constexpr std::size_t kBufferBytes = kMiB;
  size_bytes_ += bytes.size();
  // Beyond the limit bytes are only counted, so that the caller learns the size it would need.
  if (size_bytes_ > limit_bytes_) {
    return;
  }
  buffer_ += bytes;
  if (buffer_.size() >= kBufferBytes) {
    flush();
  }
}

void FileWriter::flush() {
  if (!write_all(file_.descriptor(), buffer_)) {
    file_.fail("write");
  }
  buffer_.clear();
}

void FileWriter::cut_back(std::uint64_t size_bytes) {
  flush();
  const int descriptor = file_.descriptor();
  if (::ftruncate(descriptor, static_cast<off_t>(size_bytes)) != 0 ||
      ::lseek(descriptor, 0, SEEK_END) < 0) {
    file_.fail("write");
  }
  size_bytes_ = size_bytes;
}

void FileWriter::commit() {
  flush();
  file_.put_in_place();
}

}  // namespace gpuwhy
