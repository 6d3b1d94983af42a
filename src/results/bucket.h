// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gpuwhy {

// How a nanosecond of a window on one GPU was spent: the first that applies.
enum class Bucket : std::uint8_t {
  kCompute,       // a compute kernel of the window's own work runs
  kComm,          // only its communication kernels run
  kCopy,          // only its copies or memsets run
  kOtherStage,    // only work of other stages runs
  kUnattributed,  // only work runs whose launch lies in no stage or was not recorded
  kGraph,         // idle inside a graph launch
  kSync,          // idle: the host still waited in a call for earlier work
  kLaunchLate,    // idle: the host had not launched yet
  kStartedLate,   // idle: the launch had returned, but the work started late
  kQueued,        // idle: launched, but waiting for something on the GPU
  kUnknownIdle,   // idle: the launch of what follows was not recorded
  kUnrecorded,    // idle as far as recorded: before the first work, or while the host waited for it
  kTail,          // idle: nothing follows in this window
};
inline constexpr std::size_t kNumBuckets = 13;
extern const std::array<const char*, kNumBuckets> kBucketNames;
inline std::span<const char* const> words_of(Bucket /*type*/) {
  return kBucketNames;
}

}  // namespace gpuwhy
