// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuwhy {

// Format of the file in which libgpuwhy_nvtx.so leaves the NVTX ranges of one process. It is the
// only thing that the library and its reader share. Byte order and layout are the machine's.
//
//   header, kRangeFileHeaderBytes
//   chunks of kRangeChunkBytes, each filled by one thread at a time; one that is all zero is unused
//
// A chunk is a sequence of records, each a multiple of kRangeRecordBytes, and ends at the first one
// of type kNothing. A record is valid once its head is set: the head is stored last and atomically,
// so a process may die at any instruction. Texts may be defined in any chunk, even after their use,
// and more than once.
inline constexpr char kRangeFileMagic[8] = {'g', 'p', 'u', 'n', 'v', 't', 'x', '1'};
inline constexpr std::uint32_t kRangeFileVersion = 1;
inline constexpr char kRangeFileSuffix[] = ".nvtx";

inline constexpr std::size_t kRangeFileHeaderBytes = 4096;
inline constexpr std::size_t kRangeChunkBytes = 131072;
inline constexpr std::size_t kRangeRecordBytes = 32;
inline constexpr std::size_t kMaxRangeTextBytes = 4000;  // longer names are cut
inline constexpr std::size_t kMaxRangeChunks = 131072;   // 16 GiB

// The first kRangeFileHeaderBytes of the file.
struct RangeFileHeader {
  char magic[8];  // stored last: marks a valid file
  std::uint32_t version;
  std::uint32_t chunk_bytes;
  std::int32_t pid;
  std::int32_t parent_pid;
  std::int64_t start_monotonic_ns;  // when the file was made, by CLOCK_MONOTONIC, and
  std::int64_t start_realtime_ns;   // the same moment by CLOCK_REALTIME
  std::uint64_t end_bytes;          // the file was this long, at least: shorter, it was cut
  std::uint64_t lost_ranges;        // no space, or a limit was met
  std::uint64_t unmatched_pops;     // a pop without a push, as after a fork
  char command[16];                 // as /proc/PID/comm: not zero-terminated if full
};

// Kinds of records. Values are part of the format and never change.
enum class RangeRecordType : std::uint8_t {
  kNothing = 0,
  kThread = 1,  // what follows in this chunk is of thread `id`
  kDomain = 2,  // text of domain number `domain`
  kName = 3,    // text of name number `id`
  kRange = 4,
};

// Flags of a kRange record.
inline constexpr std::uint8_t kRangeIsStartEnd = 1;    // else push/pop
inline constexpr std::uint8_t kRangeIsRegistered = 2;  // its name is a registered string
inline constexpr std::uint8_t kRangeHasInteger = 4;    // payload is an int64
inline constexpr std::uint8_t kRangeHasDouble = 8;     // payload is a double

// Eight bytes, so that one atomic store makes a record valid.
struct RangeRecordHead {
  RangeRecordType type;
  std::uint8_t flags;
  std::uint16_t domain;  // 0: the default domain, whose text is empty
  std::uint32_t id;      // kRange: the number of its name; 0: it has none
};

// One range. Times are CLOCK_MONOTONIC.
struct RangeRecord {
  RangeRecordHead head;
  std::int64_t start_ns;
  std::int64_t end_ns;  // 0 while it is open
  std::uint64_t payload;
};

// A text definition; the text follows directly, in the program's encoding.
struct RangeTextRecord {
  RangeRecordHead head;
  std::uint32_t num_bytes;
  std::uint32_t reserved;
};

// The size of a text record with its text, rounded up to whole records.
constexpr std::size_t range_text_record_bytes(std::size_t num_bytes) {
  const std::size_t bytes = sizeof(RangeTextRecord) + num_bytes;
  return (bytes + kRangeRecordBytes - 1) / kRangeRecordBytes * kRangeRecordBytes;
}

static_assert(sizeof(RangeFileHeader) <= kRangeFileHeaderBytes);
static_assert(sizeof(RangeRecordHead) == 8 && sizeof(RangeRecord) == kRangeRecordBytes);
static_assert(range_text_record_bytes(kMaxRangeTextBytes) + kRangeRecordBytes <= kRangeChunkBytes);

}  // namespace gpuwhy
