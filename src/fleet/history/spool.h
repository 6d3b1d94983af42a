// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/history/history_rows.h"

namespace llmprof {

// One insert: rows of one table and one month.
struct SpooledSection {
  std::string table;
  std::uint64_t rows = 0;
  std::string sha256;
  std::string bytes;
};

// A batch as loaded from disk.
struct SpooledBatch {
  std::filesystem::path path;
  std::uint64_t num_ranks = 0;
  std::vector<std::uint64_t> run_keys;
  std::vector<SpooledSection> sections;
};

// A folder of batches that may not be stored on the server yet. Its contents survive a crash of the
// program and of the machine. Several processes may share a folder: a batch sent by two of them is
// stored once.
class Spool {
 public:
  // Creates the folder, readable only by its user. Throws kFailure.
  explicit Spool(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }

  // When it returns, the batch is on disk. The same rows twice are one file.
  void add(const RowBatch& batch);

  // Oldest first.
  std::vector<std::filesystem::path> waiting() const;

  // Throws kInput for a damaged file.
  SpooledBatch load(const std::filesystem::path& path) const;

  void remove(const std::filesystem::path& path);

  // Moves a batch that will never be accepted out of the way and returns its new path.
  std::filesystem::path set_aside(const std::filesystem::path& path);

 private:
  std::filesystem::path folder_;
};

}  // namespace llmprof
