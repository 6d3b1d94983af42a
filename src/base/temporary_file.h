// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

namespace gpuwhy {

struct DoomedName;

// A file that must not outlive this object: unlinked by the destructor, and by
// remove_doomed_files(). It need not exist yet.
class DoomedFile {
 public:
  explicit DoomedFile(std::filesystem::path path);
  ~DoomedFile();
  DoomedFile(const DoomedFile&) = delete;
  DoomedFile& operator=(const DoomedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void spare();  // keep the file after all

 private:
  std::filesystem::path path_;
  DoomedName* row_ = nullptr;  // for signal handlers
};

// Unlinks the files of all live DoomedFiles, and lets no thread create a TemporaryFile any more.
// Async-signal-safe, for handlers of signals that end the program.
void remove_doomed_files() noexcept;

// A new file beside `path` that replaces it when complete. Existing files in the folder are never
// opened, followed or removed. Every function may throw kFailure.
class TemporaryFile {
 public:
  // `mode` as for open(); the user's umask applies.
  explicit TemporaryFile(const std::filesystem::path& path, unsigned mode = 0666);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::filesystem::path& name() const { return temporary_->path(); }
  int descriptor() const { return descriptor_; }

  // Waits until the disk has what was written.
  void sync();

  // Syncs and renames. A link under the final name is replaced, not followed.
  void put_in_place();

  // Throws kFailure with the reason from errno.
  [[noreturn]] void fail(const char* step) const;

 private:
  std::filesystem::path path_;
  std::optional<DoomedFile> temporary_;
  int descriptor_ = -1;
  bool is_synced_ = false;
};

// Creates a folder inside an output folder. A link in its place is refused, because files would be
// written outside. Throws kFailure.
void make_inner_folder(const std::filesystem::path& folder, unsigned mode = 0777);

}  // namespace gpuwhy
