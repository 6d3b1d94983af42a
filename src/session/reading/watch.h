// SPDX-License-Identifier: Apache-2.0
//
// Sweeper over a folder into which profilers drop recordings: each becomes a summary.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "capture/system.h"
#include "fleet/summary/labels.h"
#include "session/reading/recording.h"

namespace gpuwhy {

struct WatchOptions {
  std::filesystem::path folder;
  std::filesystem::path out;   // summaries/, failed/, lock
  std::int64_t settle_s = 10;  // a recording that has not changed for so long is complete
  bool keeps_outliers_only = false;
  std::optional<std::uint64_t> disk_budget_bytes;  // of recordings that have been summarised
  Labels labels;
  RecordingOptions recording;
};

// What is known about a run whose recordings were dropped.
struct WatchedRun {
  std::string run_id;
  std::int64_t num_ranks = 0;
  std::int64_t num_late = 0;
  std::int64_t kernel_ns = 0;   // compute kernels, or stages on the CPU, over all ranks
  std::int64_t waiting_ns = 0;  // in collectives
  std::int64_t lost_ns = 0;     // by the job to its worst rank
  std::int64_t changed_unix_s = 0;
};

// Counts of one sweep.
struct SweepCounts {
  std::size_t num_new = 0;        // recordings that became summaries
  std::size_t num_failed = 0;     // that could not be read; not tried again until they change
  std::size_t num_unsettled = 0;  // still being written
  std::size_t num_removed = 0;    // recordings that were not worth their space
  std::uint64_t removed_bytes = 0;
};

// All state is on disk: a recording is done when its summaries and then the file that says so are
// there, each written under another name and renamed. A sweep that was killed is repeated.
class Sweeper {
 public:
  // Reads what earlier sweeps left. Throws kUsage if another process sweeps into the same folder.
  Sweeper(WatchOptions options, const System& system);
  ~Sweeper();
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

  // One look at the folder. Returns early if `is_stopped`. `say` gets a line for each recording.
  SweepCounts sweep(const std::function<bool()>& is_stopped,
                    const std::function<void(const std::string&)>& say);

  std::filesystem::path summaries() const { return options_.out / "summaries"; }

  // The last runs, oldest first, and totals, for scrapers: the text format of OpenMetrics.
  std::string metrics_text() const;

 private:
  struct Recording {
    std::filesystem::path path;
    std::uint64_t bytes = 0;
    std::int64_t modified_ns = 0;
  };
  struct Done {
    Recording recording;
    std::string run_id;
  };

  std::vector<Recording> recordings() const;
  std::string run_of(const std::filesystem::path& path) const;
  void read_state();
  // Takes a recording as done. An earlier state of the same file is forgotten, with its summaries.
  void remember(const std::string& key, const Done& done);
  // True if the recording became a summary, false if it changed meanwhile. Throws Error.
  bool summarise(const Recording& recording, const std::string& key);
  void look_at_run(const std::string& run_id);
  void remove_recordings(const std::set<std::string>& open_runs, SweepCounts& counts);
  bool remove(const std::string& key, SweepCounts& counts);

  WatchOptions options_;
  const System& system_;
  int lock_ = -1;
  std::map<std::string, Done> done_;                          // by key
  std::map<std::filesystem::path, std::string> key_of_path_;  // of the recording
  std::map<std::string, std::set<std::string>> keys_of_run_;
  std::set<std::string> failed_;                        // keys
  std::map<std::string, WatchedRun> runs_;              // by run id
  std::map<std::string, std::set<std::int64_t>> kept_;  // ranks whose recordings stay, by run id
  SweepCounts total_;
};

}  // namespace gpuwhy
