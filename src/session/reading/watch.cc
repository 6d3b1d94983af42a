// SPDX-License-Identifier: Apache-2.0
//
// Summaries of dropped recordings, with everything that is known kept on disk.
//
// A recording is known by the hash of its path, size and time of change, so one that is replaced
// is a new one. summaries/KEY/ has its summaries and, written last, the file `source`; without it
// the recording is analyzed again. failed/KEY says why a recording could not be read.
//
// Files of one job lie in one folder, whose path is the run id. A recording that lies in the
// watched folder itself is a run of its own.
//
// What it gets wrong: a profiler that pauses for longer than the settling time looks as if it were
// done. Its file changes later, and is then summarised again.
#include "session/reading/watch.h"

#include <algorithm>
#include <chrono>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "analysis/ranks/rank_names.h"
#include "base/error.h"
#include "base/file.h"
#include "base/parse_number.h"
#include "base/saturated_sum.h"
#include "base/sha256.h"
#include "base/text.h"
#include "fleet/history/summary_folder.h"
#include "fleet/merge/job_report.h"
#include "session/record/rank_run.h"
#include "session/version.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSourceFile = "source";
constexpr std::size_t kMostShownRuns = 20;  // in the file for scrapers

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool is_recording(const fs::path& path) {
  const std::string name = path.filename().string();
  constexpr std::string_view kEndings[] = {".sqlite", ".nsys-rep", ".json", ".json.gz"};
  return !name.starts_with('.') &&
         std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

// Text for a label of OpenMetrics.
std::string exposed_label(const std::string& text) {
  std::string escaped;
  for (const char c : printable(text)) {
    if (c == '\\' || c == '"') {
      escaped += '\\';
    }
    escaped += c;
  }
  return escaped;
}

}  // namespace

Sweeper::Sweeper(WatchOptions options, const System& system)
    : options_(std::move(options)), system_(system) {
  for (const char* name : {"summaries", "failed"}) {
    std::error_code failure;
    fs::create_directories(options_.out / name, failure);
    if (failure) {
      throw Error(
          ErrorKind::kFailure,
          fmt::format("cannot create {}: {}", (options_.out / name).string(), failure.message()));
    }
  }
  lock_ = ::open((options_.out / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0 || ::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    if (lock_ >= 0) {
      ::close(lock_);
    }
    throw Error(ErrorKind::kUsage,
                fmt::format("another gpuwhy watches with {}", options_.out.string()),
                "give each its own --out DIR");
  }
  read_state();
}

Sweeper::~Sweeper() {
  ::close(lock_);  // the lock goes with it, also when the process is killed
}

void Sweeper::read_state() {
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(summaries(), failure)) {
    const std::string key = entry.path().filename().string();
    try {
      const std::string text = read_file(entry.path() / kSourceFile, 64 * kKiB);
      const std::vector<std::string_view> lines = split(text, '\n');
      if (lines.size() < 4) {
        continue;
      }
      const auto bytes = parse_whole(lines[1]);
      const auto modified_ns = parse_whole(lines[2]);
      if (bytes && modified_ns) {
        remember(key, {{fs::path(lines[0]), static_cast<std::uint64_t>(*bytes), *modified_ns},
                       std::string(lines[3])});
      }
    } catch (const Error&) {
      continue;  // it was cut short, and is made again
    }
  }
  for (const fs::directory_entry& entry :
       fs::directory_iterator(options_.out / "failed", failure)) {
    failed_.insert(entry.path().filename().string());
  }
  // The last runs alone: reading all summaries of a long history would take minutes.
  std::map<std::string, std::int64_t> changed;
  for (const auto& [key, done] : done_) {
    std::int64_t& last_ns = changed[done.run_id];
    last_ns = std::max(last_ns, done.recording.modified_ns);
  }
  std::vector<std::pair<std::int64_t, std::string>> last;
  last.reserve(changed.size());
  for (const auto& [run_id, modified_ns] : changed) {
    last.emplace_back(modified_ns, run_id);
  }
  std::sort(last.rbegin(), last.rend());
  last.resize(std::min(last.size(), kMostShownRuns));
  for (const auto& [modified_ns, run_id] : last) {
    look_at_run(run_id);
  }
}

void Sweeper::remember(const std::string& key, const Done& done) {
  const auto [known, is_new] = key_of_path_.try_emplace(done.recording.path, key);
  if (!is_new && known->second != key) {
    const bool is_later =
        done_.at(known->second).recording.modified_ns <= done.recording.modified_ns;
    const std::string old = is_later ? known->second : key;
    std::error_code ignored;
    fs::remove_all(summaries() / old, ignored);
    if (!is_later) {
      return;
    }
    keys_of_run_[done_.at(old).run_id].erase(old);
    done_.erase(old);
    known->second = key;
  }
  done_[key] = done;
  keys_of_run_[done.run_id].insert(key);
}

// Oldest first. Links are not followed: a recording outside of the folder is not ours to remove.
std::vector<Sweeper::Recording> Sweeper::recordings() const {
  std::vector<Recording> found;
  std::error_code failure;
  const fs::path own = fs::weakly_canonical(options_.out, failure);
  fs::recursive_directory_iterator entry(options_.folder,
                                         fs::directory_options::skip_permission_denied, failure);
  if (failure) {
    throw Error(ErrorKind::kInput,
                fmt::format("cannot list {}: {}", options_.folder.string(), failure.message()));
  }
  for (; !failure && entry != fs::end(entry); entry.increment(failure)) {
    std::error_code ignored;
    if (entry->is_directory(ignored) && fs::weakly_canonical(entry->path(), ignored) == own) {
      entry.disable_recursion_pending();
      continue;
    }
    if (!fs::is_regular_file(entry->symlink_status(ignored)) || !is_recording(entry->path())) {
      continue;
    }
    const auto modified = fs::last_write_time(entry->path(), ignored);
    const auto since = std::chrono::file_clock::to_sys(modified).time_since_epoch();
    const std::uint64_t bytes = entry->file_size(ignored);
    if (!ignored) {
      found.push_back({entry->path(), bytes,
                       std::chrono::duration_cast<std::chrono::nanoseconds>(since).count()});
    }
  }
  std::sort(found.begin(), found.end(), [](const Recording& a, const Recording& b) {
    return std::tie(a.modified_ns, a.path) < std::tie(b.modified_ns, b.path);
  });
  return found;
}

// The folder of a recording, relative to the watched one; its own name if it lies there directly.
std::string Sweeper::run_of(const fs::path& path) const {
  const fs::path inside = path.lexically_relative(options_.folder);
  const std::string folder = inside.parent_path().generic_string();
  return printable(folder.empty() ? inside.filename().string() : folder);
}

// Summaries are written before the file that says they are complete. A recording that changed while
// it was read is left for the next sweep.
bool Sweeper::summarise(const Recording& recording, const std::string& key) {
  RankIdentity identity;
  identity.run_id = run_of(recording.path);
  identity.gpuwhy_version = program_version();
  std::optional<std::int64_t> rank = rank_in_name(recording.path.filename().string()).rank;
  if (!rank) {
    rank = rank_in_name(recording.path.parent_path().filename().string()).rank;
  }
  identity.rank = rank.value_or(0);
  identity.is_rank_told = rank.has_value();
  put_labels(options_.labels, identity);
  Profile profile = profile_recordings({recording.path.string()}, options_.recording, system_, {});
  // Without a clock in the recording, the time of the file is the best that is known.
  if (!profile.analysis.capture.utc_ns) {
    identity.started_unix_s = recording.modified_ns / 1'000'000'000;
  }
  const auto files = summary_files(profile, identity);
  std::error_code failure;
  const auto modified = fs::last_write_time(recording.path, failure);
  const auto since = std::chrono::file_clock::to_sys(modified).time_since_epoch();
  if (failure || fs::file_size(recording.path, failure) != recording.bytes ||
      std::chrono::duration_cast<std::chrono::nanoseconds>(since).count() !=
          recording.modified_ns) {
    return false;
  }
  const fs::path folder = summaries() / key;
  fs::remove_all(folder, failure);
  fs::create_directories(folder, failure);
  for (const auto& [name, contents] : files) {
    write_file(folder / name, contents);
  }
  write_file(folder / kSourceFile,
             fmt::format("{}\n{}\n{}\n{}\n", recording.path.string(), recording.bytes,
                         recording.modified_ns, identity.run_id));
  remember(key, {recording, identity.run_id});
  return true;
}

// The report of a run's summaries: who is late, and whose recordings are worth keeping.
void Sweeper::look_at_run(const std::string& run_id) {
  std::map<std::int64_t, RankSummary> ranks;
  WatchedRun run;
  run.run_id = run_id;
  for (const std::string& key : keys_of_run_[run_id]) {
    const std::int64_t modified_ns = done_.at(key).recording.modified_ns;
    run.changed_unix_s = std::max(run.changed_unix_s, modified_ns / 1'000'000'000);
    try {
      for (const fs::path& file : summaries_in(summaries() / key)) {
        RankSummary summary = load_summary(file).summary;
        const std::int64_t rank = summary.identity.rank;
        ranks.insert_or_assign(rank, std::move(summary));
      }
    } catch (const Error&) {
      continue;  // a summary that was removed by hand
    }
  }
  std::vector<RankSummary> all;
  all.reserve(ranks.size());
  for (auto& [rank, summary] : ranks) {
    all.push_back(std::move(summary));
  }
  if (all.empty()) {
    return;
  }
  const FleetReport report = report_job(all);
  run.num_ranks = static_cast<std::int64_t>(report.ranks.size());
  run.waiting_ns = report.collectives.waiting_ns;
  for (const RankVerdict& verdict : report.ranks) {
    run.num_late += verdict.is_straggler ? 1 : 0;
    run.kernel_ns = saturated_sum(run.kernel_ns, verdict.own_ns.value_or(0));
    run.lost_ns = std::max(run.lost_ns, verdict.lost_ns);
  }
  kept_[run_id] = ranks_to_keep(report);
  runs_[run_id] = run;
}

bool Sweeper::remove(const std::string& key, SweepCounts& counts) {
  const Recording& recording = done_.at(key).recording;
  std::error_code failure;
  if (!fs::remove(recording.path, failure)) {
    return false;
  }
  ++counts.num_removed;
  counts.removed_bytes += recording.bytes;
  return true;
}

// Only recordings that have become summaries are removed, and only if they are as they were then.
void Sweeper::remove_recordings(const std::set<std::string>& open_runs, SweepCounts& counts) {
  if (!options_.keeps_outliers_only && !options_.disk_budget_bytes) {
    return;
  }
  std::uint64_t left_bytes = 0;
  std::vector<std::string> left;  // oldest first
  for (const Recording& recording : recordings()) {
    const auto found = key_of_path_.find(recording.path);
    if (found == key_of_path_.end() ||
        done_.at(found->second).recording.modified_ns != recording.modified_ns ||
        done_.at(found->second).recording.bytes != recording.bytes) {
      continue;
    }
    const std::string& key = found->second;
    const std::string& run_id = done_.at(key).run_id;
    if (options_.keeps_outliers_only && !kept_.contains(run_id)) {
      look_at_run(run_id);
    }
    bool is_kept =
        !options_.keeps_outliers_only || open_runs.contains(run_id) || kept_[run_id].empty();
    if (!is_kept) {
      try {
        for (const fs::path& file : summaries_in(summaries() / key)) {
          is_kept = is_kept || kept_[run_id].contains(load_summary(file).summary.identity.rank);
        }
      } catch (const Error&) {
        is_kept = true;  // its summary is gone, so it is all that is left
      }
    }
    if (is_kept || !remove(key, counts)) {
      left.push_back(key);
      left_bytes += recording.bytes;
    }
  }
  for (const std::string& key : left) {
    if (!options_.disk_budget_bytes || left_bytes <= *options_.disk_budget_bytes) {
      break;
    }
    const std::uint64_t bytes = done_.at(key).recording.bytes;
    left_bytes -= remove(key, counts) ? bytes : 0;
  }
}

SweepCounts Sweeper::sweep(const std::function<bool()>& is_stopped,
                           const std::function<void(const std::string&)>& say) {
  SweepCounts counts;
  std::set<std::string> open_runs;  // with recordings that are still to come
  std::set<std::string> changed;
  for (const Recording& recording : recordings()) {
    if (is_stopped()) {
      return counts;
    }
    const std::string key = sha256_hex(fmt::format("{}\n{}\n{}", recording.path.string(),
                                                   recording.bytes, recording.modified_ns))
                                .substr(0, 32);
    if (done_.contains(key) || failed_.contains(key)) {
      continue;
    }
    if (now_ns() - recording.modified_ns < options_.settle_s * 1'000'000'000) {
      ++counts.num_unsettled;
      open_runs.insert(run_of(recording.path));
      continue;
    }
    try {
      if (summarise(recording, key)) {
        ++counts.num_new;
        changed.insert(done_.at(key).run_id);
        say(fmt::format("summarised {}", recording.path.string()));
      } else {
        ++counts.num_unsettled;
        open_runs.insert(run_of(recording.path));
      }
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kFailure) {
        throw;  // a full disk is not the recording's fault
      }
      write_file(options_.out / "failed" / key,
                 fmt::format("{}\n{}\n", recording.path.string(), error.what()));
      failed_.insert(key);
      ++counts.num_failed;
      say(fmt::format("cannot read {}: {}", recording.path.string(), error.what()));
    }
  }
  for (const std::string& run_id : changed) {
    look_at_run(run_id);
  }
  remove_recordings(open_runs, counts);
  total_.num_new += counts.num_new;
  total_.num_failed += counts.num_failed;
  total_.num_unsettled = counts.num_unsettled;
  total_.num_removed += counts.num_removed;
  total_.removed_bytes += counts.removed_bytes;
  return counts;
}

std::string Sweeper::metrics_text() const {
  std::string text;
  const auto family = [&](const char* name, const char* type, const char* help) {
    text += fmt::format("# TYPE {0} {1}\n# HELP {0} {2}\n", name, type, help);
  };
  const auto one = [&](const char* name, const char* type, const char* help, auto value) {
    family(name, type, help);
    text +=
        fmt::format("{}{} {}\n", name, std::string_view(type) == "counter" ? "_total" : "", value);
  };
  // Counters end in _total and start at 0 with the process, as scrapers expect.
  one("gpuwhy_recordings", "counter", "Recordings summarised since the start.", total_.num_new);
  one("gpuwhy_failed_recordings", "counter", "Recordings that could not be read.",
      total_.num_failed);
  one("gpuwhy_unsettled_recordings", "gauge", "Recordings that are still being written.",
      total_.num_unsettled);
  one("gpuwhy_removed_bytes", "counter", "Bytes of recordings removed since the start.",
      total_.removed_bytes);
  one("gpuwhy_last_sweep_timestamp_seconds", "gauge", "When the last sweep ended.",
      now_ns() / 1'000'000'000);
  // A scraper keeps a series for each run it has ever seen, so only the last ones are told.
  std::vector<const WatchedRun*> last;
  last.reserve(runs_.size());
  for (const auto& [run_id, run] : runs_) {
    last.push_back(&run);
  }
  std::sort(last.begin(), last.end(), [](const WatchedRun* a, const WatchedRun* b) {
    return std::tie(a->changed_unix_s, a->run_id) < std::tie(b->changed_unix_s, b->run_id);
  });
  if (last.size() > kMostShownRuns) {
    last.erase(last.begin(), last.end() - kMostShownRuns);
  }
  const auto by_run = [&](const char* name, const char* help, const auto& value) {
    family(name, "gauge", help);
    for (const WatchedRun* run : last) {
      text += fmt::format("{}{{run=\"{}\"}} {}\n", name, exposed_label(run->run_id), value(*run));
    }
  };
  const auto seconds = [](std::int64_t time_ns) {
    return fmt::format("{}.{:09}", time_ns / 1'000'000'000, time_ns % 1'000'000'000);
  };
  by_run("gpuwhy_run_ranks", "Ranks with a summary.",
         [](const WatchedRun& run) { return run.num_ranks; });
  by_run("gpuwhy_run_late_ranks", "Ranks that others wait for, or that are slow.",
         [](const WatchedRun& run) { return run.num_late; });
  by_run("gpuwhy_run_work_seconds", "Compute kernels, or stages on the CPU, over all ranks.",
         [&](const WatchedRun& run) { return seconds(run.kernel_ns); });
  by_run("gpuwhy_run_waiting_seconds", "Waiting in collectives over all ranks.",
         [&](const WatchedRun& run) { return seconds(run.waiting_ns); });
  by_run("gpuwhy_run_lost_seconds", "Time that the job lost to its worst rank.",
         [&](const WatchedRun& run) { return seconds(run.lost_ns); });
  return text + "# EOF\n";
}

}  // namespace gpuwhy
