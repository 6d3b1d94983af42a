// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <queue>
#include <string>
#include <vector>

#include "export/event_sink.h"
#include "export/lanes.h"

namespace gpuwhy {

// Bytes written, by the start time of the slices they describe.
struct SizeHistory {
  static constexpr std::size_t kNumBins = 4096;

  std::int64_t start_ns = 0;
  std::int64_t bin_ns = 1;
  std::array<std::uint64_t, kNumBins> bytes{};

  void add(std::int64_t time_ns, std::uint64_t size_bytes);
  // The time up to which slices take at most `budget_bytes`.
  std::int64_t end_for(std::uint64_t budget_bytes) const;
};

// Passes rows of slices to a sink: in lanes where they overlap, with begins and ends in order of
// time.
class Picture {
 public:
  // Tracks are numbered from `first_track`. `zero_ns` is shown as 0.
  Picture(EventSink& sink, std::uint32_t first_track, std::int64_t zero_ns)
      : sink_(sink), next_track_(first_track), zero_ns_(zero_ns) {}

  // Ends all rows. Later events are independent of earlier ones.
  void begin_sequence();

  // Adds a track for children or a counter, and returns its number. The number in `track` is
  // ignored.
  std::uint32_t add_track(ExportTrack track);

  // `may_nest`: slices may lie inside others. Tracks are declared when first used.
  std::uint32_t add_row(bool may_nest, std::uint32_t parent, std::uint32_t rank, std::string name);

  // In order of start. Sets track and times of `slice`.
  void add(std::uint32_t row, ExportSlice& slice, std::int64_t start_ns, std::int64_t end_ns);
  void end_all() { end_until(INT64_MAX); }

  // A time of the recording as the viewer shows it: relative to `zero_ns`.
  std::uint64_t shown(std::int64_t time_ns) const {
    return static_cast<std::uint64_t>(time_ns) - static_cast<std::uint64_t>(zero_ns_);
  }

  std::int64_t num_slices = 0;  // since last set to 0
  SizeHistory sizes;

 private:
  struct Row {
    Lanes lanes;
    std::uint32_t parent;
    std::uint32_t rank;
    std::string name;
    std::vector<std::uint32_t> tracks;  // by lane
  };
  struct OpenSlice {
    std::int64_t end_ns;
    std::int64_t start_ns;
    std::uint64_t order;  // of its beginning
    std::uint32_t row;
    std::uint32_t lane;

    // Of slices that end together, the last one begun ends first.
    bool operator>(const OpenSlice& other) const {
      return std::pair(end_ns, ~order) > std::pair(other.end_ns, ~other.order);
    }
  };

  void end_until(std::int64_t time_ns);
  std::uint32_t track_of(Row& row, std::uint32_t lane);

  EventSink& sink_;
  std::uint32_t next_track_;
  std::int64_t zero_ns_;
  std::uint64_t num_begun_ = 0;
  std::vector<Row> rows_;
  std::priority_queue<OpenSlice, std::vector<OpenSlice>, std::greater<>> open_;
};

}  // namespace gpuwhy
