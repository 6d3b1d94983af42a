// SPDX-License-Identifier: Apache-2.0
//
// Conversion of overlapping slices to begin and end events that nest.
//
// The ends of open slices wait in a heap until a later event begins. A slice that would cross
// another one in its row goes to the next lane. Memory is proportional to the number of open
// slices, not of all slices.
#include "export/picture.h"

#include <algorithm>

namespace gpuwhy {

void SizeHistory::add(std::int64_t time_ns, std::uint64_t size_bytes) {
  const std::uint64_t since_ns = time_ns < start_ns ? 0
                                                    : static_cast<std::uint64_t>(time_ns) -
                                                          static_cast<std::uint64_t>(start_ns);
  const std::uint64_t bin = since_ns / static_cast<std::uint64_t>(bin_ns);
  bytes[std::min<std::uint64_t>(bin, kNumBins - 1)] += size_bytes;
}

std::int64_t SizeHistory::end_for(std::uint64_t budget_bytes) const {
  std::uint64_t sum = 0;
  std::size_t bin = 0;
  while (bin < kNumBins && sum + bytes[bin] <= budget_bytes) {
    sum += bytes[bin++];
  }
  return start_ns + static_cast<std::int64_t>(bin) * bin_ns;
}

void Picture::begin_sequence() {
  rows_.clear();
  sink_.begin_sequence();
}

std::uint32_t Picture::add_track(ExportTrack track) {
  track.id = next_track_++;
  sink_.track(track);
  return track.id;
}

std::uint32_t Picture::add_row(bool may_nest, std::uint32_t parent, std::uint32_t rank,
                               std::string name) {
  rows_.push_back({Lanes(may_nest), parent, rank, std::move(name), {}});
  return static_cast<std::uint32_t>(rows_.size() - 1);
}

std::uint32_t Picture::track_of(Row& row, std::uint32_t lane) {
  if (row.tracks.size() <= lane) {
    ExportTrack track;
    track.parent = row.parent;
    track.rank = row.rank;
    track.name = row.name;
    row.tracks.push_back(add_track(std::move(track)));
  }
  return row.tracks[lane];
}

void Picture::add(std::uint32_t row, ExportSlice& slice, std::int64_t start_ns,
                  std::int64_t end_ns) {
  end_until(start_ns);
  const std::uint64_t before = sink_.file().size_bytes();
  const std::uint32_t lane = rows_[row].lanes.open(end_ns);
  slice.track = track_of(rows_[row], lane);
  slice.start_ns = shown(start_ns);
  slice.end_ns = shown(end_ns);
  sink_.begin(slice);
  ++num_slices;
  sizes.add(start_ns, sink_.file().size_bytes() - before);
  if (slice.is_mark) {
    rows_[row].lanes.close(lane);
  } else {
    open_.push({end_ns, start_ns, num_begun_++, row, lane});
  }
}

void Picture::end_until(std::int64_t time_ns) {
  while (!open_.empty() && open_.top().end_ns <= time_ns) {
    const OpenSlice slice = open_.top();
    open_.pop();
    Row& row = rows_[slice.row];
    row.lanes.close(slice.lane);
    const std::uint64_t before = sink_.file().size_bytes();
    sink_.end(row.tracks[slice.lane], shown(slice.end_ns));
    sizes.add(slice.start_ns, sink_.file().size_bytes() - before);
  }
}

}  // namespace gpuwhy
