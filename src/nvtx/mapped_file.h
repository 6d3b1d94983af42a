// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "nvtx/range_file.h"

namespace llmprof {

std::int64_t monotonic_ns();

// Makes this process's range file in the directory that LLMPROF_NVTX_DIR named when the library was
// loaded, if there is none yet. False when it cannot be made, now and ever after in this process.
bool open_range_file();

// A forked child has the parent's file mapped and must not write there: it gets one of its own with
// its next open_range_file().
void forget_range_file();

// 1, and one more after each forget_range_file(): what belongs to another number is of another
// file.
std::uint32_t range_file_number();

// kRangeChunkBytes of zeros that really are on the disk, for the calling thread alone; nullptr when
// the disk or a limit has no more.
char* claim_range_chunk();

// Where a record stands in the file, and back: nullptr for what can be no record.
std::uint64_t range_record_offset(const RangeRecord* record);
RangeRecord* range_record_at(std::uint64_t offset);

void count_lost_range();
void count_unmatched_pop();

}  // namespace llmprof
