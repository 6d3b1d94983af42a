// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwhy {

// What a program under libgpuwhy_nvtx.so left behind: the NVTX ranges of each process, timed by
// CLOCK_MONOTONIC, without a profiler.

enum class TimedRangeKind : std::uint8_t { kPushPop, kStartEnd };
enum class PayloadKind : std::uint8_t { kAbsent, kInteger, kDouble };

// One range. Texts are kept once per process.
struct TimedRange {
  std::uint32_t domain = 0;  // into TimedProcess::texts; the text of the default domain is empty
  std::uint32_t name = 0;    // the same
  std::int32_t thread_id = 0;
  TimedRangeKind kind = TimedRangeKind::kPushPop;
  bool is_registered = false;  // its name was a registered string, which nsys' gate requires
  bool is_open = false;        // the process or the recording ended before it did
  PayloadKind payload_kind = PayloadKind::kAbsent;
  std::int64_t start_ns = 0;      // above 0
  std::int64_t end_ns = 0;        // 0 when open
  std::int64_t payload_bits = 0;  // see integer_payload() and double_payload()

  std::optional<std::int64_t> duration_ns() const;
  std::optional<std::int64_t> integer_payload() const;
  std::optional<double> double_payload() const;
};

// The ranges of one process, and what is known to be missing.
struct TimedProcess {
  std::filesystem::path file;
  std::int32_t pid = 0;
  std::int32_t parent_pid = 0;
  std::string command;                  // as /proc/PID/comm when it began: 15 bytes at most
  std::int64_t start_monotonic_ns = 0;  // when its file was made: at its first NVTX call
  std::int64_t start_realtime_ns = 0;   // the same moment in time of day
  std::uint64_t num_lost = 0;           // ranges that were not recorded: no space, or a limit
  std::uint64_t num_unmatched_pops = 0;
  std::uint64_t num_damaged = 0;  // invalid places; the rest of their chunk was not read
  bool is_truncated = false;      // the file was cut, or has more than is read
  std::vector<std::string> texts;
  std::vector<TimedRange> ranges;  // by start, the longest first

  const std::string& domain_of(const TimedRange& range) const { return texts[range.domain]; }
  const std::string& name_of(const TimedRange& range) const { return texts[range.name]; }
};

// A file that is left out of the run, and why.
struct UnreadableRangeFile {
  std::filesystem::path file;
  std::string reason;
};

// What all processes of a run marked.
struct TimedRun {
  std::vector<TimedProcess> processes;          // by start; one without ranges still used NVTX
  std::vector<UnreadableRangeFile> unreadable;  // e.g. of a process killed while creating it
};

// Reads one file, whose process may still be running. Throws kInput if it cannot be read or is not
// a range file. Damage and truncation are reported in the fields.
TimedProcess read_range_file(const std::filesystem::path& file);

// Reads every range file of a directory and ignores other files. Throws kInput if it is not a
// directory.
TimedRun read_range_directory(const std::filesystem::path& directory);

// CSV with the header pid,tid,domain,name,kind,start_ns,end_ns,duration_ns,payload; unknown values
// are empty. Delivered in pieces, because there may be millions of rows.
void write_timed_ranges_csv(const TimedRun& run, const std::function<void(std::string_view)>& sink);
std::string timed_ranges_csv(const TimedRun& run);

}  // namespace gpuwhy
