// SPDX-License-Identifier: Apache-2.0
//
// Reader of the range files that libgpuwhy_nvtx.so leaves behind.
//
// Nothing in them is trusted: a process may have died between any two stores, the disk may have
// been full, and anyone may have placed a file there. So every record is checked against its chunk,
// a chunk is abandoned at the first invalid record, and the rest of the file still counts.
//
// Texts may be defined after their use, so ranges keep the numbers of their texts until all chunks
// are read. The file is read, not mapped: a file truncated meanwhile must not cause SIGBUS.
#include "capture/nvtx_timer.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/text.h"
#include "nvtx/range_file.h"

namespace gpuwhy {
namespace {

// Forty bytes each; the recorder's default limit is half of this.
constexpr std::size_t kMaxRanges = std::size_t{1} << 26;
constexpr std::size_t kCsvPieceBytes = 1 << 16;

// A regular file, read by position. Non-blocking, so that a planted pipe cannot hang the reader.
class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& path)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status = {};
    if (fd_ < 0 || ::fstat(fd_, &status) != 0) {
      fail(std::strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
      fail("it is not a regular file");
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
  }
  ~OpenFile() { close(); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  std::uint64_t size() const { return size_; }

  // Reads up to `bytes` and returns how many there are.
  std::size_t read_at(std::uint64_t offset, char* to, std::size_t bytes) {
    std::size_t done = 0;
    while (done < bytes) {
      const ssize_t got = ::pread(fd_, to + done, bytes - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got < 0) {
        fail(std::strerror(errno));
      }
      if (got == 0) {
        break;
      }
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  [[noreturn]] void fail(const std::string& reason) {
    close();
    throw Error(ErrorKind::kInput, fmt::format("cannot read the range file {}: {}",
                                               printable(path_.string()), reason));
  }

 private:
  void close() {
    if (fd_ >= 0) {
      ::close(std::exchange(fd_, -1));
    }
  }

  std::filesystem::path path_;
  int fd_;
  std::uint64_t size_ = 0;
};

template <typename Record>
Record record_at(const char* bytes) {
  Record record;
  std::memcpy(&record, bytes, sizeof(record));
  return record;
}

// Reads one file into a TimedProcess.
class RangeFileReader {
 public:
  explicit RangeFileReader(const std::filesystem::path& path) : file_(path) {
    process_.file = path;
  }

  TimedProcess read() {
    read_header();
    std::vector<char> chunk(kRangeChunkBytes);
    const std::uint64_t end =
        std::min(file_.size(), kRangeFileHeaderBytes + kMaxRangeChunks * kRangeChunkBytes);
    for (std::uint64_t offset = kRangeFileHeaderBytes; offset < end; offset += chunk.size()) {
      // The first record tells whether the chunk is used: a file may have huge holes.
      if (file_.read_at(offset, chunk.data(), kRangeRecordBytes) < kRangeRecordBytes ||
          record_at<RangeRecordHead>(chunk.data()).type == RangeRecordType::kNothing) {
        continue;
      }
      const std::size_t got = file_.read_at(offset, chunk.data(), chunk.size());
      read_chunk({chunk.data(), got});
    }
    process_.is_truncated = process_.is_truncated || file_.size() < end_bytes_;
    resolve_texts();
    sort_ranges();
    return std::move(process_);
  }

 private:
  void read_header() {
    char bytes[sizeof(RangeFileHeader)] = {};
    const std::size_t got = file_.read_at(0, bytes, sizeof(bytes));
    // The file may have been cut off or overwritten by a dying process: nothing in it is trusted
    // before the magic and the version agree.
    const auto header = record_at<RangeFileHeader>(bytes);
    if (got < sizeof(bytes) ||
        std::memcmp(header.magic, kRangeFileMagic, sizeof(kRangeFileMagic)) != 0) {
      file_.fail("it does not begin as one");
    }
    if (header.version != kRangeFileVersion || header.chunk_bytes != kRangeChunkBytes) {
      file_.fail(fmt::format("it is of version {}, and only {} is known", header.version,
                             kRangeFileVersion));
    }
    process_.pid = header.pid;
    process_.parent_pid = header.parent_pid;
    process_.command.assign(header.command, strnlen(header.command, sizeof(header.command)));
    process_.start_monotonic_ns = header.start_monotonic_ns;
    process_.start_realtime_ns = header.start_realtime_ns;
    process_.num_lost = header.lost_ranges;
    process_.num_unmatched_pops = header.unmatched_pops;
    end_bytes_ = header.end_bytes;
  }

  // A chunk belongs to one thread and begins with its id. The first damaged record ends it: record
  // lengths are needed to find the next one.
  void read_chunk(std::string_view chunk) {
    thread_id_ = 0;
    while (chunk.size() >= kRangeRecordBytes) {
      const auto head = record_at<RangeRecordHead>(chunk.data());
      std::size_t used = kRangeRecordBytes;
      switch (head.type) {
        case RangeRecordType::kNothing:
          return;
        case RangeRecordType::kThread:
          thread_id_ = static_cast<std::int32_t>(head.id);
          break;
        case RangeRecordType::kDomain:
        case RangeRecordType::kName:
          used = read_text(head, chunk);
          break;
        case RangeRecordType::kRange:
          add_range(record_at<RangeRecord>(chunk.data()));
          break;
        default:
          used = 0;
      }
      if (used == 0) {
        ++process_.num_damaged;
        return;
      }
      chunk.remove_prefix(used);
    }
  }

  // The size of the record; 0 if it is invalid.
  std::size_t read_text(RangeRecordHead head, std::string_view chunk) {
    const std::size_t num_bytes = record_at<RangeTextRecord>(chunk.data()).num_bytes;
    const std::size_t used = range_text_record_bytes(num_bytes);
    if (num_bytes > kMaxRangeTextBytes || used > chunk.size()) {
      return 0;
    }
    const std::string_view text = chunk.substr(sizeof(RangeTextRecord), num_bytes);
    if (head.type == RangeRecordType::kDomain) {
      domains_[head.domain] = number_of(text);
    } else {
      names_[head.id] = number_of(text);
    }
    return used;
  }

  std::uint32_t number_of(std::string_view text) {
    const auto [found, is_new] =
        numbers_.try_emplace(std::string(text), static_cast<std::uint32_t>(numbers_.size()));
    if (is_new) {
      process_.texts.push_back(found->first);
    }
    return found->second;
  }

  // Ranges with impossible times are counted as damage, not repaired.
  void add_range(const RangeRecord& record) {
    if (record.start_ns <= 0 || (record.end_ns != 0 && record.end_ns < record.start_ns)) {
      ++process_.num_damaged;
      return;
    }
    if (process_.ranges.size() >= kMaxRanges) {
      process_.is_truncated = true;
      return;
    }
    TimedRange range;
    range.domain = record.head.domain;
    range.name = record.head.id;
    range.thread_id = thread_id_;
    range.kind = (record.head.flags & kRangeIsStartEnd) != 0 ? TimedRangeKind::kStartEnd
                                                             : TimedRangeKind::kPushPop;
    range.is_registered = (record.head.flags & kRangeIsRegistered) != 0;
    range.is_open = record.end_ns == 0;
    range.start_ns = record.start_ns;
    range.end_ns = record.end_ns;
    range.payload_bits = static_cast<std::int64_t>(record.payload);
    if ((record.head.flags & kRangeHasInteger) != 0) {
      range.payload_kind = PayloadKind::kInteger;
    } else if ((record.head.flags & kRangeHasDouble) != 0) {
      range.payload_kind = PayloadKind::kDouble;
    }
    process_.ranges.push_back(range);
  }

  void resolve_texts() {
    const std::uint32_t empty = number_of("");
    domains_[0] = names_[0] = empty;
    const auto resolve = [&](const auto& numbers, std::uint32_t number) {
      const auto found = numbers.find(number);
      process_.num_damaged += found == numbers.end() ? 1 : 0;
      return found == numbers.end() ? empty : found->second;
    };
    for (TimedRange& range : process_.ranges) {
      range.domain = resolve(domains_, range.domain);
      range.name = resolve(names_, range.name);
    }
  }

  // The longest of those that start together first, so that parents precede children.
  void sort_ranges() {
    const auto key = [](const TimedRange& range) {
      return std::tuple(range.start_ns, !range.is_open, -range.end_ns, range.thread_id);
    };
    std::ranges::sort(process_.ranges, {}, [&](const TimedRange& one) { return key(one); });
  }

  OpenFile file_;
  TimedProcess process_;
  std::uint64_t end_bytes_ = 0;
  std::int32_t thread_id_ = 0;
  std::unordered_map<std::string, std::uint32_t> numbers_;    // text -> into texts
  std::unordered_map<std::uint32_t, std::uint32_t> domains_;  // the file's -> into texts
  std::unordered_map<std::uint32_t, std::uint32_t> names_;
};

void append_row(std::string& text, const TimedProcess& process, const TimedRange& range) {
  fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},", process.pid, range.thread_id,
                 csv_cell(process.domain_of(range)), csv_cell(process.name_of(range)),
                 range.kind == TimedRangeKind::kPushPop ? "push_pop" : "start_end", range.start_ns);
  if (!range.is_open) {
    fmt::format_to(std::back_inserter(text), "{},{}", range.end_ns, range.end_ns - range.start_ns);
  } else {
    text += ',';
  }
  text += ',';
  if (const auto integer = range.integer_payload()) {
    text += fmt::format("{}", *integer);
  } else if (const auto real = range.double_payload()) {
    text += fmt::format("{}", *real);
  }
  text += '\n';
}

}  // namespace

std::optional<std::int64_t> TimedRange::duration_ns() const {
  return is_open ? std::nullopt : std::optional(end_ns - start_ns);
}

std::optional<std::int64_t> TimedRange::integer_payload() const {
  return payload_kind == PayloadKind::kInteger ? std::optional(payload_bits) : std::nullopt;
}

std::optional<double> TimedRange::double_payload() const {
  return payload_kind == PayloadKind::kDouble ? std::optional(std::bit_cast<double>(payload_bits))
                                              : std::nullopt;
}

TimedProcess read_range_file(const std::filesystem::path& file) {
  return RangeFileReader(file).read();
}

TimedRun read_range_directory(const std::filesystem::path& directory) {
  std::error_code failure;
  std::filesystem::directory_iterator entries(directory, failure);
  TimedRun run;
  for (; !failure && entries != std::filesystem::directory_iterator(); entries.increment(failure)) {
    const std::filesystem::path& file = entries->path();
    if (file.extension() != kRangeFileSuffix) {
      continue;
    }
    // One unreadable file must not cost the others.
    try {
      run.processes.push_back(read_range_file(file));
    } catch (const Error& error) {
      run.unreadable.push_back({file, error.message()});
    }
  }
  if (failure) {
    throw Error(ErrorKind::kInput, fmt::format("cannot read the directory {}: {}",
                                               printable(directory.string()), failure.message()));
  }
  // Directory order is arbitrary; results must not be.
  std::ranges::sort(run.processes, {}, [](const TimedProcess& one) {
    return std::tie(one.start_monotonic_ns, one.file);
  });
  std::ranges::sort(run.unreadable, {}, &UnreadableRangeFile::file);
  return run;
}

void write_timed_ranges_csv(const TimedRun& run,
                            const std::function<void(std::string_view)>& sink) {
  std::string piece = "pid,tid,domain,name,kind,start_ns,end_ns,duration_ns,payload\n";
  for (const TimedProcess& process : run.processes) {
    for (const TimedRange& range : process.ranges) {
      append_row(piece, process, range);
      if (piece.size() >= kCsvPieceBytes) {
        sink(piece);
        piece.clear();
      }
    }
  }
  sink(piece);
}

std::string timed_ranges_csv(const TimedRun& run) {
  std::string text;
  write_timed_ranges_csv(run, [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace gpuwhy
