// SPDX-License-Identifier: Apache-2.0
//
// Times to first token, broken down by the steps that served the request.
//
//   sent      received    first own step           last own step     arrival
//   |--network--|--queue----|##own##|--others--|--|####own####|--delivery--|
//
// Every boundary is cut to [sent, arrival], so parts are never negative and sum to the whole.
#include "analysis/requests/request_join.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace gpuwhy {

RequestJoin::RequestJoin(const Requests& requests)
    : told(requests.size(), RequestTold::kNot),
      reason(requests.size(), nullptr),
      prefill_begin(requests.size()),
      prefill_count(requests.size()),
      token_step(requests.token_ns.size(), kNone),
      parts(requests.size()),
      has_network(requests.size()) {}

void RequestJoin::claim(std::size_t row, RequestTold how, std::span<const std::uint32_t> steps) {
  told[row] = how;
  reason[row] = nullptr;
  prefill_begin[row] = prefill.size();
  prefill_count[row] = static_cast<std::uint32_t>(steps.size());
  prefill.insert(prefill.end(), steps.begin(), steps.end());
}

void RequestJoin::refuse(std::size_t row, const char* why) {
  told[row] = RequestTold::kNot;
  reason[row] = why;
}

namespace {

// Time from `sent_ns` up to where the parts so far reach.
class PartSums {
 public:
  PartSums(std::int64_t from_ns, std::int64_t to_ns) : at_ns_(from_ns), to_ns_(to_ns) {}

  // The time up to `until_ns` is of `part`. Returns how long that is.
  std::int64_t put(TtftPart part, std::int64_t until_ns) {
    const std::int64_t length_ns = std::clamp(until_ns, at_ns_, to_ns_) - at_ns_;
    (*this)[part] += length_ns;
    at_ns_ += length_ns;
    return length_ns;
  }
  // The same, of which `inner_ns` at most belong to another part.
  void put(TtftPart part, std::int64_t until_ns, TtftPart inner, std::int64_t inner_ns) {
    const std::int64_t moved_ns = std::min(put(part, until_ns), inner_ns);
    (*this)[part] -= moved_ns;
    (*this)[inner] += moved_ns;
  }
  std::int64_t& operator[](TtftPart part) { return parts[static_cast<std::size_t>(part)]; }
  std::int64_t at_ns() const { return at_ns_; }
  // Where `until_ns` is cut to.
  std::int64_t cut(std::int64_t until_ns) const { return std::clamp(until_ns, at_ns_, to_ns_); }

  TtftParts parts{};

 private:
  std::int64_t at_ns_;
  std::int64_t to_ns_;
};

}  // namespace

void take_apart(const Requests& requests, const EngineLoop& loop, RequestJoin& join) {
  for (std::size_t row = 0; row < requests.size(); ++row) {
    if (!join.is_apart(row)) {
      continue;
    }
    const std::int64_t sent_ns = requests.sent_ns[row] + join.offset_ns;
    const std::int64_t arrival_ns = requests.first_token_ns[row] + join.offset_ns;
    const auto own = join.prefill_of(row);
    PartSums sums(sent_ns, arrival_ns);
    // The server's own clock is the recording's, where it is the wall clock.
    const std::int64_t received_ns = requests.received_ns[row];
    if (requests.clock == RequestClock::kEpoch && received_ns != kNoTime &&
        received_ns >= sent_ns && received_ns <= loop.steps[own.front()].begin_ns) {
      sums.put(TtftPart::kNetwork, received_ns);
      join.has_network[row] = 1;
    }
    const auto wait = [&](TtftPart idle, TtftPart busy, std::int64_t until_ns) {
      sums.put(idle, until_ns, busy, loop.time_in_steps(sums.at_ns(), sums.cut(until_ns)));
    };
    TtftPart idle = TtftPart::kQueueIdle;
    TtftPart busy = TtftPart::kQueueBusy;
    for (const std::uint32_t number : own) {
      const LoopStep& step = loop.steps[number];
      wait(idle, busy, step.begin_ns);
      sums.put(TtftPart::kPrefillHost, step.end_ns, TtftPart::kPrefillGpu, step.busy_ns);
      idle = TtftPart::kBetween;
      busy = TtftPart::kOtherSteps;
    }
    sums.put(TtftPart::kDelivery, arrival_ns);
    assert(std::accumulate(sums.parts.begin(), sums.parts.end(), std::int64_t{0}) ==
           arrival_ns - sent_ns);
    join.parts[row] = sums.parts;
  }
}

OffsetBounds bounds_of(const Requests& requests, const EngineLoop& loop, const RequestJoin& join) {
  OffsetBounds bounds;
  for (std::size_t row = 0; row < requests.size(); ++row) {
    if (!join.is_apart(row)) {
      continue;
    }
    const auto own = join.prefill_of(row);
    bounds.least_ns =
        std::max(bounds.least_ns, loop.steps[own.back()].end_ns - requests.first_token_ns[row]);
    bounds.most_ns =
        std::min(bounds.most_ns, loop.steps[own.front()].begin_ns - requests.sent_ns[row]);
    ++bounds.num_tokens;
    for (std::uint64_t i = requests.token_begin[row]; i < requests.token_begin[row + 1]; ++i) {
      if (join.token_step[i] != kNone) {
        bounds.least_ns =
            std::max(bounds.least_ns, loop.steps[join.token_step[i]].end_ns - requests.token_ns[i]);
        ++bounds.num_tokens;
      }
    }
  }
  return bounds;
}

}  // namespace gpuwhy
