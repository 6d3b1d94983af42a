// SPDX-License-Identifier: Apache-2.0
//
// Random slices through lanes and a heap, against what a viewer demands: times in order, ends that
// match the last begin of their track, and each slice as long as it was.
#include "export/picture.h"

#include <map>
#include <random>

#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

struct Seen {
  std::uint64_t start_ns;
  std::uint64_t end_ns;
};

// Plays the viewer.
class StrictSink : public EventSink {
 public:
  using EventSink::EventSink;

  void begin_sequence() override { time_ns_ = 0; }
  void track(const ExportTrack& track) override { tracks_[track.id] = track.parent; }
  void begin(const ExportSlice& slice) override {
    advance(slice.start_ns);
    ASSERT_TRUE(tracks_.contains(slice.track));
    if (slice.is_mark) {
      return;
    }
    if (!may_nest) {
      EXPECT_TRUE(open_[slice.track].empty()) << "a slice inside another";
    }
    open_[slice.track].push_back({slice.start_ns, slice.end_ns});
  }
  void end(std::uint32_t track, std::uint64_t time_ns) override {
    advance(time_ns);
    ASSERT_FALSE(open_[track].empty());
    EXPECT_EQ(open_[track].back().end_ns, time_ns);
    total_ns += time_ns - open_[track].back().start_ns;
    open_[track].pop_back();
    ++num_ended;
  }
  void counter(std::uint32_t, std::uint64_t, double) override {}

  std::size_t num_tracks() const { return tracks_.size(); }
  bool may_nest = true;
  std::uint64_t total_ns = 0;
  int num_ended = 0;

 private:
  void advance(std::uint64_t time_ns) {
    EXPECT_GE(time_ns, time_ns_);
    time_ns_ = time_ns;
  }

  std::uint64_t time_ns_ = 0;
  std::map<std::uint32_t, std::uint32_t> tracks_;
  std::map<std::uint32_t, std::vector<Seen>> open_;
};

class PictureTest : public testing::TestWithParam<bool> {
 protected:
  TemporaryDirectory directory_;
  StringPool strings_;
  ExportTexts texts_{strings_};
  FileWriter file_{directory_.path() / "out"};
  StrictSink sink_{texts_, file_};
};

TEST_P(PictureTest, WhatOverlapsIsToldInOrderAndWhole) {
  std::mt19937 random(7);
  sink_.may_nest = GetParam();
  for (int round = 0; round < 300; ++round) {
    std::vector<Seen> slices;
    std::uint64_t total_ns = 0;
    for (int i = 0; i < 30; ++i) {
      const std::uint64_t start_ns = random() % 40;
      slices.push_back({start_ns, start_ns + random() % 12});
      total_ns += slices.back().end_ns - slices.back().start_ns;
    }
    std::sort(slices.begin(), slices.end(), [&](const Seen& a, const Seen& b) {
      return GetParam() ? std::pair(a.start_ns, b.end_ns) < std::pair(b.start_ns, a.end_ns)
                        : std::pair(a.start_ns, a.end_ns) < std::pair(b.start_ns, b.end_ns);
    });
    sink_.total_ns = 0;
    sink_.num_ended = 0;
    Picture picture(sink_, 1, 0);
    picture.begin_sequence();
    const std::uint32_t row = picture.add_row(GetParam(), 0, 0, "row");
    for (const Seen& seen : slices) {
      ExportSlice slice;
      slice.is_mark = seen.start_ns == seen.end_ns && random() % 2 == 0;
      sink_.num_ended += slice.is_mark ? 1 : 0;
      picture.add(row, slice, static_cast<std::int64_t>(seen.start_ns),
                  static_cast<std::int64_t>(seen.end_ns));
    }
    picture.end_all();
    EXPECT_EQ(sink_.num_ended, 30);
    EXPECT_EQ(sink_.total_ns, total_ns);
    EXPECT_EQ(picture.num_slices, 30);
  }
}

TEST_P(PictureTest, LanesAreAsManyAsOverlap) {
  sink_.may_nest = GetParam();
  Picture picture(sink_, 1, -5);
  picture.begin_sequence();
  const std::uint32_t row = picture.add_row(GetParam(), 0, 0, "row");
  // Three at once that cross; later ones find the first lane again.
  for (const auto& [start_ns, end_ns] : {std::pair{-5, 10}, {0, 12}, {2, 14}, {20, 30}, {30, 40}}) {
    ExportSlice slice;
    picture.add(row, slice, start_ns, end_ns);
    EXPECT_EQ(slice.start_ns, static_cast<std::uint64_t>(start_ns + 5));
    EXPECT_EQ(slice.track, start_ns == 0 ? 2U : start_ns == 2 ? 3U : 1U);
  }
  picture.end_all();
  EXPECT_EQ(sink_.num_tracks(), 3U);
}

INSTANTIATE_TEST_SUITE_P(Nesting, PictureTest, testing::Bool());

TEST(SizeHistory, CutsWhereTheBudgetEnds) {
  SizeHistory sizes;
  sizes.start_ns = 100;
  sizes.bin_ns = 10;
  sizes.add(100, 5);
  sizes.add(119, 7);
  sizes.add(95, 1);  // before the start: counts with it
  EXPECT_EQ(sizes.end_for(5), 100);
  EXPECT_EQ(sizes.end_for(6), 110);
  EXPECT_EQ(sizes.end_for(12), 110);
  EXPECT_EQ(sizes.end_for(13), 100 + 10 * std::int64_t{SizeHistory::kNumBins});
}

}  // namespace
}  // namespace gpuwhy
