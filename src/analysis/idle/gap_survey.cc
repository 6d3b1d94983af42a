// SPDX-License-Identifier: Apache-2.0
//
// Walk over all gaps of a GPU, and a second one over the few in which nine tenths of the late
// launches are reached: the total is known only at the end.
#include "analysis/idle/gap_survey.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace gpuwhy {
namespace {

constexpr std::size_t kGapsOfBlock = 1024;

// A walk before a block of gaps, and how late launches were before it.
struct Block {
  GapWalk walk;
  std::int64_t late_ns = 0;
};

std::int64_t late_ns_of(const Gap& gap) {
  return gap.cause == Bucket::kLaunchLate ? gap.end_ns - gap.start_ns : 0;
}

// The end of the gap with which late launches reach `most_ns`.
std::int64_t when_late_for(std::int64_t most_ns, const std::vector<Block>& blocks,
                           const SweptWork& work, GapJudge judge) {
  const auto after =
      std::partition_point(std::next(blocks.begin()), blocks.end(),
                           [&](const Block& block) { return block.late_ns < most_ns; });
  GapWalk walk = std::prev(after)->walk;
  std::int64_t late_ns = std::prev(after)->late_ns;
  std::int64_t until_ns = INT64_MIN;
  each_gap(work, judge, walk, [&](std::span<Gap> parts) {
    for (const Gap& gap : parts) {
      late_ns += late_ns_of(gap);
      if (late_ns >= most_ns) {
        until_ns = gap.end_ns;
        return false;
      }
    }
    return true;
  });
  return until_ns;
}

}  // namespace

GapSurvey survey_gaps(const SweptWork& work, const GapJudge& judge, const WaitCalls& waits,
                      std::uint32_t launcher, IdleCauses& causes) {
  GapSurvey survey;
  std::vector<Block> blocks;
  std::int64_t waited_ns = 0;
  std::int64_t late_ns = 0;
  GapJudge first = judge;
  GapWalk walk{0, kNone, work.start_ns};
  for (bool has_more = true; has_more;) {
    blocks.push_back({walk, late_ns});
    std::size_t num_gaps = 0;
    each_gap(work, first, walk, [&](std::span<Gap> parts) {
      for (const Gap& gap : parts) {
        causes.ask(gap);
        late_ns += late_ns_of(gap);
        if (gap.cause == Bucket::kUnrecorded && launcher != kNone) {
          survey.unrecorded.push_back({gap.start_ns, gap.end_ns, waited_ns});
          waited_ns += waits.waited_ns(launcher, gap.start_ns, gap.end_ns);
        }
      }
      return ++num_gaps < kGapsOfBlock;
    });
    has_more = num_gaps == kGapsOfBlock;
  }
  survey.late_until_ns = when_late_for(late_ns - late_ns / 10, blocks, work, judge);
  return survey;
}

}  // namespace gpuwhy
