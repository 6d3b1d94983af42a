// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/history_rows.h"

namespace llmprof {

// One insert: rows of one table, of one month.
struct SpooledSection {
  std::string table;
  std::uint64_t rows = 0;
  std::string sha256;
  std::string bytes;
};

struct SpooledBatch {
  std::filesystem::path path;
  std::uint64_t num_ranks = 0;
  std::vector<std::uint64_t> run_keys;
  std::vector<SpooledSection> sections;
};

// A folder of batches that are not known to be stored yet. What is in it survives a crash of the
// program and of the machine. Several processes may use one folder: a batch that two of them send
// is stored once.
class Spool {
 public:
  // Makes the folder, readable by its user alone. Throws kFailure.
  explicit Spool(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }

  // After it returns, the batch is on the disk. The same rows twice are one file.
  void add(const RowBatch& batch);

  // Oldest first.
  std::vector<std::filesystem::path> waiting() const;

  // Throws kInput for a file that is damaged.
  SpooledBatch load(const std::filesystem::path& path) const;

  void remove(const std::filesystem::path& path);

  // Puts a batch aside that will never be taken, and says where it is.
  std::filesystem::path set_aside(const std::filesystem::path& path);

 private:
  std::filesystem::path folder_;
};

}  // namespace llmprof
