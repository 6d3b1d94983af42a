// SPDX-License-Identifier: Apache-2.0
//
// The join of requests and steps: clock first, then steps, then parts.
//
// The clock is found in two stages. The pattern of arrivals gives an offset to within a step. With
// it, requests are joined, and the join bounds the offset from both sides: tokens arrive after
// their steps end, requests are sent before their steps begin. Wall clocks that lie within these
// bounds agree and are used as they are; else the middle of the bounds is used, and half their
// distance is its error. Then everything is joined again, and claims must hold for every offset
// within the bounds.
//
// Streams of a closed loop make all steps alike, and offsets that are whole steps apart fit nearly
// as well. Then only a wall clock can tell: that of the server's own machine is believed if
// requests and steps fit it. A clock of another machine may be steps off, so nothing is joined.
#include "analysis/requests/requests.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/list_of.h"
#include "base/median.h"
#include "base/units.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kMostClockErrorNs = 100 * kNsPerMs;  // of wall clocks that are set by NTP
constexpr std::int64_t kLeastSlackNs = 5 * kNsPerMs;
// Of a profiler's UTC stamp against the same machine's wall clock.
constexpr std::int64_t kMostAnchorErrorNs = kNsPerMs;

class Joiner {
 public:
  Joiner(const Requests& requests, const EngineLoop& loop, std::int64_t start_ns)
      : requests_(requests), loop_(loop), start_ns_(start_ns), has_slots_(names_slots()) {}

  // `zero_ns`: the offset that the wall clocks say; nullopt if there is none.
  RequestJoin run(std::optional<std::int64_t> zero_ns, RequestClockCheck& check) const {
    const RoughOffset rough = zero_ns ? rough_offset(requests_, loop_, *zero_ns - kMostClockErrorNs,
                                                     *zero_ns + kMostClockErrorNs)
                                      : rough_anywhere();
    JoinTimes times{rough.offset_ns, slack_ns(), 0, start_ns_};
    // Named slots tell steps apart even where these are alike.
    if (!rough.is_clear && zero_ns && has_slots_) {
      times.offset_ns = *zero_ns;
      times.slack_ns = kMostClockErrorNs;
    }
    const bool is_sure = rough.is_clear || (zero_ns && has_slots_);
    const OffsetBounds found = is_sure ? bounds_at(times) : OffsetBounds();
    const std::optional<OffsetBounds> anchored = anchored_bounds(zero_ns, found);
    if (!is_sure && !anchored) {
      return refuse(
          "several offsets of the clocks fit nearly as well: steps are too alike, or the "
          "requests are not those of this recording",
          check);
    }
    const OffsetBounds& bounds = anchored ? *anchored : found;
    if (!bounds.is_closed()) {
      return refuse("no request fits the steps, so nothing confirms the clock", check);
    }
    if (!bounds.is_consistent()) {
      return refuse(fmt::format("requests contradict the steps by {}: the clocks drift, or the "
                                "requests are not those of this recording",
                                format_duration_ns(bounds.least_ns - bounds.most_ns)),
                    check);
    }
    times.slack_ns = requests_.resolution_ns > 1 ? requests_.resolution_ns : 0;
    settle(zero_ns, bounds, anchored.has_value(), times, check);
    if (!is_sure) {
      check.sentence += "; by the pattern of tokens alone other offsets would fit too";
    }
    RequestJoin join = joined(times);
    join.offset_ns = times.offset_ns;
    return join;
  }

 private:
  bool names_slots() const {
    return loop_.names_slots() &&
           std::ranges::any_of(requests_.slot, [](std::int64_t slot) { return slot != kNoCount; });
  }

  OffsetBounds bounds_at(const JoinTimes& times) const {
    return bounds_of(requests_, loop_, joined(times));
  }

  // Bounds by the wall clock of the server's own machine, if requests and steps fit it nearly as
  // well as the offset that was `found` by their pattern.
  std::optional<OffsetBounds> anchored_bounds(std::optional<std::int64_t> zero_ns,
                                              const OffsetBounds& found) const {
    if (!zero_ns || !requests_.is_on_server_host || has_slots_) {
      return std::nullopt;
    }
    const std::int64_t slack_ns = std::min(this->slack_ns(), kMostAnchorErrorNs);
    const OffsetBounds bounds = bounds_at({*zero_ns, slack_ns, 0, start_ns_});
    const bool fits = bounds.is_closed() && bounds.is_consistent();
    const bool is_other_better = found.is_closed() && found.is_consistent() &&
                                 bounds.num_tokens < found.num_tokens - found.num_tokens / 10;
    return fits && !is_other_better ? std::optional(bounds) : std::nullopt;
  }

  RoughOffset rough_anywhere() const {
    const auto [first, last] =
        std::minmax_element(requests_.sent_ns.begin(), requests_.sent_ns.end());
    return rough_offset(requests_, loop_, loop_.steps.front().begin_ns - *last,
                        loop_.steps.back().end_ns - *first);
  }

  // Half a step, within reason: patterns do not tell more.
  std::int64_t slack_ns() const {
    auto lengths = list_of<std::int64_t>(loop_.steps, &LoopStep::length_ns);
    const std::int64_t step_ns = lower_median(std::move(lengths)).value_or(0);
    return has_slots_ ? std::max(kLeastSlackNs, step_ns / 2) : std::min(kLeastSlackNs, step_ns / 4);
  }

  RequestJoin joined(const JoinTimes& times) const {
    RequestJoin join(requests_);
    (has_slots_ ? join_by_slots : join_by_order)(requests_, loop_, times, join);
    return join;
  }

  void settle(std::optional<std::int64_t> zero_ns, const OffsetBounds& bounds, bool is_anchored,
              JoinTimes& times, RequestClockCheck& check) const {
    const bool agrees = zero_ns && bounds.least_ns <= *zero_ns && *zero_ns <= bounds.most_ns;
    if (agrees || is_anchored) {
      times.offset_ns = std::clamp(*zero_ns, bounds.least_ns, bounds.most_ns);
      times.margin_ns =
          std::max(bounds.most_ns - times.offset_ns, times.offset_ns - bounds.least_ns);
      // Tokens that arrive late tell little of a clock that is known anyway.
      times.margin_ns =
          is_anchored ? std::min(times.margin_ns, kMostAnchorErrorNs) : times.margin_ns;
      check.state = agrees ? "agrees" : "corrected";
    } else {
      times.margin_ns = (bounds.most_ns - bounds.least_ns + 1) / 2;
      times.offset_ns = bounds.least_ns + (bounds.most_ns - bounds.least_ns) / 2;
      check.state = zero_ns ? "corrected" : "aligned";
    }
    check.offset_ns = times.offset_ns - zero_ns.value_or(0);
    check.error_ns = times.margin_ns;
    const std::string error = format_duration_ns(times.margin_ns);
    if (check.state == "agrees") {
      check.sentence = fmt::format(
          "the client's clock agrees with the recording's{}: to {}",
          is_anchored ? ", and is the same machine's" : ", as far as tokens tell", error);
    } else if (zero_ns) {
      check.sentence =
          fmt::format("the client's clock is {} {} the recording's, to {}, and was corrected",
                      format_duration_ns(std::abs(*check.offset_ns)),
                      *check.offset_ns < 0 ? "ahead of" : "behind", error);
    } else {
      check.sentence =
          fmt::format("no common clock; the pattern of tokens and steps aligns them, to {}", error);
    }
  }

  RequestJoin refuse(const std::string& why, RequestClockCheck& check) const {
    check.state = "refused";
    check.sentence = why;
    RequestJoin join(requests_);
    for (std::size_t row = 0; row < requests_.size(); ++row) {
      join.refuse(row, "the clocks could not be joined");
    }
    return join;
  }

  const Requests& requests_;
  const EngineLoop& loop_;
  std::int64_t start_ns_;
  bool has_slots_;
};

// Times of the server on the recording's clock; those of another clock are dropped.
void convert_server_times(std::optional<std::int64_t> utc_ns, Requests& requests) {
  const bool is_wall = requests.clock == RequestClock::kEpoch && utc_ns.has_value();
  for (std::vector<std::int64_t>* column : {&requests.received_ns, &requests.scheduled_ns}) {
    for (std::int64_t& time : *column) {
      time = is_wall && time != kNoTime ? time - *utc_ns : kNoTime;
    }
  }
}

}  // namespace

RequestJoin join_on_clock(const Requests& requests, const EngineLoop& loop, std::int64_t start_ns,
                          std::optional<std::int64_t> zero_ns, RequestClockCheck& check) {
  return Joiner(requests, loop, start_ns).run(zero_ns, check);
}

JoinedRequests join_requests(const Trace& trace, const Stages& stages, const Analysis& analysis,
                             const std::vector<std::vector<LongGap>>& gaps, Requests requests) {
  JoinedRequests joined{std::move(requests), {}, RequestJoin(Requests()), {}, {}, ""};
  Requests& rows = joined.requests;
  constexpr std::int64_t kMostUtcNs = INT64_MAX / 4;
  std::optional<std::int64_t> utc_ns = trace.capture.utc_ns;
  if (utc_ns && (*utc_ns < 0 || *utc_ns > kMostUtcNs)) {
    utc_ns.reset();
  }
  convert_server_times(utc_ns, rows);
  joined.join = RequestJoin(rows);
  joined.loop = find_engine_loop(trace, stages, analysis);
  joined.reason = joined.loop.reason;
  joined.clock.state = "unchecked";
  if (joined.reason.empty() && rows.clock == RequestClock::kUntimed) {
    joined.reason = "the file does not say when requests were sent";
  }
  if (joined.reason.empty()) {
    const bool is_wall = rows.clock == RequestClock::kEpoch && utc_ns;
    // An idle server has no event before its first request.
    const std::int64_t start_ns =
        std::min(analysis.capture.start_ns,
                 trace.capture.session_start_ns.value_or(analysis.capture.start_ns));
    joined.join = join_on_clock(rows, joined.loop, start_ns,
                                is_wall ? std::optional(-*utc_ns) : std::nullopt, joined.clock);
    if (joined.clock.state == "refused") {
      joined.reason = joined.clock.sentence;
    }
    take_apart(rows, joined.loop, joined.join);
  }
  joined.late = find_late_tokens(rows, joined.loop, joined.join, gaps);
  return joined;
}

}  // namespace gpuwhy
