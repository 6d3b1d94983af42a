// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <queue>
#include <string>
#include <vector>

#include "export/event_sink.h"
#include "export/lanes.h"

namespace llmprof {

// How many bytes of a file tell of slices that begin at a time.
struct SizeHistory {
  static constexpr std::size_t kNumBins = 4096;

  std::int64_t start_ns = 0;
  std::int64_t bin_ns = 1;
  std::array<std::uint64_t, kNumBins> bytes{};

  void add(std::int64_t time_ns, std::uint64_t size_bytes);
  // The time before which slices take not more than `budget_bytes`.
  std::int64_t end_for(std::uint64_t budget_bytes) const;
};

// Rows of slices on their way into a sink: laid into lanes where they overlap, begun and ended in
// the order of time.
class Picture {
 public:
  // Tracks are numbered from `first_track` on. `zero_ns` is shown as 0.
  Picture(EventSink& sink, std::uint32_t first_track, std::int64_t zero_ns)
      : sink_(sink), next_track_(first_track), zero_ns_(zero_ns) {}

  // Rows end with the sequence: what follows is told from its start again.
  void begin_sequence();

  // A track with nothing but its children, or a counter. Its number; that of `track` is not looked
  // at.
  std::uint32_t add_track(ExportTrack track);

  // `may_nest`: slices may lie inside others. Its tracks are told when they are needed.
  std::uint32_t add_row(bool may_nest, std::uint32_t parent, std::uint32_t rank, std::string name);

  // In the order of start. Track and times of `slice` are filled in here.
  void add(std::uint32_t row, ExportSlice& slice, std::int64_t start_ns, std::int64_t end_ns);
  void end_all() { end_until(INT64_MAX); }

  std::uint64_t shown(std::int64_t time_ns) const {
    return static_cast<std::uint64_t>(time_ns) - static_cast<std::uint64_t>(zero_ns_);
  }

  std::int64_t num_slices = 0;  // since somebody set it to 0
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

    // Of those that end together, what began last ends first.
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

}  // namespace llmprof
