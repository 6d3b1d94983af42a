// SPDX-License-Identifier: Apache-2.0
//
// Requests with the steps that served them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/requests/engine_loop.h"
#include "results/requests.h"
#include "trace/requests.h"

namespace gpuwhy {

// Idle time of a GPU with its cause, at least kLeastGapNs long.
struct LongGap {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  Bucket cause = Bucket::kUnknownIdle;
};
inline constexpr std::int64_t kLeastGapNs = 50'000;

// The steps of each request. Rows are those of Requests.
struct RequestJoin {
  explicit RequestJoin(const Requests& requests);

  // Prefill steps of a row, in time order; the last one made its first token.
  std::span<const std::uint32_t> prefill_of(std::size_t row) const {
    return {prefill.data() + prefill_begin[row], prefill_count[row]};
  }
  bool is_apart(std::size_t row) const {
    return told[row] == RequestTold::kNamed || told[row] == RequestTold::kInferred;
  }
  void claim(std::size_t row, RequestTold how, std::span<const std::uint32_t> steps);
  void refuse(std::size_t row, const char* why);

  std::vector<RequestTold> told;
  std::vector<const char*> reason;  // why a row is not told; null: it is
  std::vector<std::uint64_t> prefill_begin;
  std::vector<std::uint32_t> prefill_count;
  std::vector<std::uint32_t> prefill;     // numbers of steps
  std::vector<std::uint32_t> token_step;  // by Requests::token_ns; kNone: not told
  std::vector<TtftParts> parts;           // of the rows that are broken down
  std::vector<std::uint8_t> has_network;  // whether the server says when it had the request
  std::int64_t offset_ns = 0;             // from the client's clock to the recording's
};

// Offsets that what is known allows: no token arrives before its step ends, and no request is sent
// after its first step begins.
struct OffsetBounds {
  std::int64_t least_ns = INT64_MIN;
  std::int64_t most_ns = INT64_MAX;
  std::int64_t num_tokens = 0;

  bool is_closed() const { return num_tokens > 0 && most_ns != INT64_MAX; }
  bool is_consistent() const { return least_ns <= most_ns; }
};
OffsetBounds bounds_of(const Requests& requests, const EngineLoop& loop, const RequestJoin& join);

// A first estimate of the offset, from the pattern of arrivals and of the ends of steps.
struct RoughOffset {
  std::int64_t offset_ns = 0;  // that brings early arrivals to the ends of steps
  bool is_clear = false;       // no other offset fits nearly as well
  double ratio = 0;            // of the second best fit to the best
};
RoughOffset rough_offset(const Requests& requests, const EngineLoop& loop, std::int64_t least_ns,
                         std::int64_t most_ns);

// Joins requests and steps after their clocks, or refuses with the reason in `check`. `zero_ns` is
// the offset that the wall clocks say, nullopt if there is none; the recording begins at
// `start_ns`.
RequestJoin join_on_clock(const Requests& requests, const EngineLoop& loop, std::int64_t start_ns,
                          std::optional<std::int64_t> zero_ns, RequestClockCheck& check);

// How the times of requests are read.
struct JoinTimes {
  std::int64_t offset_ns = 0;
  std::int64_t slack_ns = 0;          // events may be out of order by so much
  std::int64_t margin_ns = 0;         // the offset may be wrong by so much: claims must hold anyway
  std::int64_t start_ns = INT64_MIN;  // of the recording
};

// Claims requests whose slots the steps name.
void join_by_slots(const Requests& requests, const EngineLoop& loop, const JoinTimes& times,
                   RequestJoin& join);

// Claims requests by the prompt tokens of steps, first come, first served.
void join_by_order(const Requests& requests, const EngineLoop& loop, const JoinTimes& times,
                   RequestJoin& join);

// Takes the times to first token of all claimed requests apart. Parts sum to them exactly.
void take_apart(const Requests& requests, const EngineLoop& loop, RequestJoin& join);

// A late token with its cause.
struct LateToken {
  std::uint32_t row = 0;
  std::uint32_t token = 0;
  std::int64_t gap_ns = 0;
  StutterCause cause = StutterCause::kNotTold;
  std::uint32_t step = kNone;
  std::string detail;
};
// All late tokens, the longest first.
struct LateTokens {
  std::vector<LateToken> tokens;
  std::string rule;
  std::vector<std::int64_t> gaps_ns;  // of all tokens but the first of each request
};
// `gaps` are by device, then time.
LateTokens find_late_tokens(const Requests& requests, const EngineLoop& loop,
                            const RequestJoin& join, const std::vector<std::vector<LongGap>>& gaps);

}  // namespace gpuwhy
