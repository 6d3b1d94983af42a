// SPDX-License-Identifier: Apache-2.0
//
// Temporary files that become visible only when complete, and are removed on failure or signal.
//
// A temporary is created under its own name with O_EXCL, which never opens an existing file or
// link. If the name is taken (by a process with our pid that died, or one on another machine), the
// next name is tried. Mode 0666 lets the user's umask decide who may read it. The file is synced
// before it is renamed: otherwise a crash soon after may leave the new name without contents.
//
// A signal that ends the program runs no destructors. So the names to unlink are kept in a table of
// plain bytes that a signal handler may read: rows are added and used again, never freed. A name is
// entered before its file is created, so there is no moment in which the file could be forgotten.
// Other threads go on while the handler runs: it waits for those that are creating a file, and no
// further one is created.
//
// What this gets wrong: SIGKILL leaves the temporary behind. If a parent folder is replaced by a
// link while we write, the link is followed.
#include "base/temporary_file.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace gpuwhy {

namespace fs = std::filesystem;

// One row of the table for the signal handler, which may come at any instant: a row is linked once
// and for all, and its name counts while `is_set`.
struct DoomedName {
  std::atomic<bool> is_taken{true};
  std::atomic<bool> is_set{false};
  std::array<char, PATH_MAX> path{};
  DoomedName* next = nullptr;
};

namespace {

static_assert(std::atomic<DoomedName*>::is_always_lock_free);

std::atomic<DoomedName*> first_doomed{nullptr};
std::atomic<bool> is_ending{false};
std::atomic<int> num_creating{0};

// open() for a new file, which does not return once the program ends.
int create_file(const char* path, unsigned mode) {
  ++num_creating;
  if (is_ending) {
    --num_creating;
    while (true) {
      ::pause();
    }
  }
  const int descriptor = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  const int reason = errno;
  --num_creating;
  errno = reason;
  return descriptor;
}

DoomedName* free_row() {
  for (DoomedName* row = first_doomed; row != nullptr; row = row->next) {
    if (!row->is_taken.exchange(true)) {
      return row;
    }
  }
  auto* row = new DoomedName;
  row->next = first_doomed;
  while (!first_doomed.compare_exchange_weak(row->next, row)) {
  }
  return row;
}

// Enters a path into the table; null if it is too long to be one.
DoomedName* doom(const fs::path& path) {
  const std::string& text = path.native();
  if (text.size() >= PATH_MAX) {
    return nullptr;
  }
  DoomedName* row = free_row();
  std::memcpy(row->path.data(), text.c_str(), text.size() + 1);
  row->is_set = true;
  return row;
}

// A name in the same folder, so that rename() stays within one file system.
fs::path name_beside(const fs::path& path) {
  static std::atomic<unsigned> counter{0};
  return path.parent_path() /
         fmt::format(".{}.{}-{}.tmp", path.filename().string(), ::getpid(), counter++);
}

}  // namespace

DoomedFile::DoomedFile(fs::path path) : path_(std::move(path)), row_(doom(path_)) {}

DoomedFile::~DoomedFile() {
  if (!path_.empty()) {
    ::unlink(path_.c_str());
  }
  spare();
}

void DoomedFile::spare() {
  path_.clear();
  if (DoomedName* row = std::exchange(row_, nullptr)) {
    row->is_set = false;
    row->is_taken = false;
  }
}

void remove_doomed_files() noexcept {
  is_ending = true;
  // Not for ever: the handler may have interrupted the very thread that creates a file.
  constexpr timespec kPause = {0, 1'000'000};
  for (int i = 0; i < 50 && num_creating > 0; ++i) {
    ::nanosleep(&kPause, nullptr);
  }
  for (const DoomedName* row = first_doomed; row != nullptr; row = row->next) {
    if (row->is_set) {
      ::unlink(row->path.data());
    }
  }
}

TemporaryFile::TemporaryFile(const fs::path& path, unsigned mode) : path_(path) {
  constexpr int kMostAttempts = 100;
  // Root could replace /dev/full, or a link to a terminal.
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode)) {
    throw Error(ErrorKind::kFailure,
                fmt::format("cannot write {}: it is a device or a pipe, and would be replaced by a "
                            "file",
                            path_.string()),
                "give the name of a file");
  }
  for (int attempt = 0; attempt < kMostAttempts && descriptor_ < 0; ++attempt) {
    temporary_.emplace(name_beside(path));
    descriptor_ = create_file(name().c_str(), mode);
    if (descriptor_ < 0) {
      const int reason = errno;
      temporary_->spare();
      errno = reason;
      if (reason != EEXIST && reason != EINTR) {
        break;
      }
    }
  }
  if (descriptor_ < 0) {
    fail("create");
  }
}

TemporaryFile::~TemporaryFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

void TemporaryFile::sync() {
  if (!is_synced_ && ::fsync(descriptor_) != 0) {
    fail("write");
  }
  is_synced_ = true;
}

void TemporaryFile::put_in_place() {
  sync();
  if (::close(std::exchange(descriptor_, -1)) != 0) {
    fail("write");
  }
  if (::rename(name().c_str(), path_.c_str()) != 0) {
    fail("put in place");
  }
  temporary_->spare();
}

void TemporaryFile::fail(const char* step) const {
  throw Error(ErrorKind::kFailure,
              fmt::format("cannot {} {}: {}", step, path_.string(), std::strerror(errno)));
}

void make_inner_folder(const fs::path& folder, unsigned mode) {
  struct stat facts {};
  if (::mkdir(folder.c_str(), mode) == 0 ||
      (errno == EEXIST && ::lstat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode))) {
    return;
  }
  const bool is_link = S_ISLNK(facts.st_mode);
  throw Error(ErrorKind::kFailure,
              is_link
                  ? fmt::format("{} is a link, and nothing is written through it", folder.string())
                  : fmt::format("cannot create {}: {}", folder.string(), std::strerror(errno)));
}

}  // namespace gpuwhy
