// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "nvtx/range_file.h"

namespace gpuwhy {

// Reads the first bytes of a file; how many, or -1.
long read_start(const char* path, void* to, std::size_t bytes);

// CLOCK_MONOTONIC, as the profiler's own clocks are aligned to it.
std::int64_t monotonic_ns();

// Creates this process's range file, if there is none yet, in the directory that GPUWHY_NVTX_DIR
// named when the library was loaded. False if it cannot be created, from then on in this process.
bool open_range_file();

// For a forked child, which has the parent's file mapped and must not write to it. The next
// open_range_file() creates a new one.
void forget_range_file();

// 1, plus one for each forget_range_file(). Records with another number belong to another file.
std::uint32_t range_file_number();

// kRangeChunkBytes of zeros in the file, and where they are in it.
struct RangeChunk {
  char* start = nullptr;
  std::uint64_t offset = 0;
};

// A chunk backed by disk space, for the calling thread only; without a start if the disk is full or
// a limit is reached.
RangeChunk claim_range_chunk();

// The record at a position in the file; nullptr for an impossible one.
RangeRecord* range_record_at(std::uint64_t offset);

// Address space that the recorder is about to map. False, and nothing is counted, if with it the
// recorder would take more than a sixteenth of the program's limit (RLIMIT_AS).
bool take_address_space(std::size_t bytes);
void give_address_space(std::size_t bytes);

// Counters in the file's header, for the reader's diagnostics.
void count_lost_range();
void count_unmatched_pop();

}  // namespace gpuwhy
