// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "fleet/history/history_rows.h"

namespace gpuwhy {

// One insert: rows of one table and one month.
struct SpooledSection {
  std::string table;
  std::string columns;  // of its rows, in order
  std::uint64_t rows = 0;
  std::string sha256;
  std::string bytes;
};

// A batch as loaded from disk.
struct SpooledBatch {
  std::filesystem::path path;
  std::uint64_t num_ranks = 0;
  std::int64_t first_day = 0;  // of its rows; 0: unknown
  std::vector<std::uint64_t> run_keys;
  std::vector<std::string> summaries;  // summary_id() of each; empty in batches of older programs
  std::vector<SpooledSection> sections;
};

// The server that a spool's batches are for.
struct SpoolTarget {
  std::string database;
  std::vector<std::string> urls;  // equivalent nodes
};

// A folder of batches that may not be stored on the server yet. Its contents survive a crash of the
// program and of the machine. Several processes may share a folder: a batch sent by two of them is
// stored once. One thread may add batches while another sends them.
class Spool {
 public:
  // Creates the folder, readable only by its user. Throws kFailure.
  explicit Spool(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }

  // Remembers in the folder which server its batches are for, and takes over the batches of folders
  // beside it that are for the same one: same database, and an address in common. So batches are
  // not forgotten when a node is added to the list of addresses. Returns a sentence for each other
  // folder that has batches waiting. `looks_around`: the folders beside it are spools too.
  std::vector<std::string> set_target(const SpoolTarget& target, bool looks_around);

  // Whether the target has acknowledged this summary (summary_id()). Needs set_target().
  bool was_sent(const std::string& summary) const {
    const std::lock_guard lock(sent_mutex_);
    return sent_.contains(summary);
  }

  // Remembers that it did. The list is bounded; a summary that fell out of it is sent again, which
  // changes nothing.
  void remember_sent(const std::vector<std::string>& summaries);

  // When it returns, the batch is on disk. The same rows twice are one file.
  void add(const RowBatch& batch);

  // Oldest first.
  std::vector<std::filesystem::path> waiting() const;

  // Throws kInput for a damaged file.
  SpooledBatch load(const std::filesystem::path& path) const;

  void remove(const std::filesystem::path& path);

  // Moves a batch that will never be accepted out of the way and returns its new path.
  std::filesystem::path set_aside(const std::filesystem::path& path);

  // Puts the batches that were moved out of the way back among those that wait. Returns how many.
  std::size_t retry_failed();

 private:
  void load_sent();

  std::filesystem::path folder_;
  std::filesystem::path sent_file_;  // empty: no target is known
  mutable std::mutex sent_mutex_;
  std::unordered_set<std::string> sent_;
};

}  // namespace gpuwhy
