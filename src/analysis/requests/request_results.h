// SPDX-License-Identifier: Apache-2.0
//
// Results of the join of requests and engine steps, as metrics.json shows them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpuwhy {

// Parts of the time to first token, in time order. They sum to it.
enum class TtftPart : std::uint8_t {
  kNetwork,      // from the client to the server, where the server says when it had the request
  kQueueBusy,    // waiting while steps of others ran
  kQueueIdle,    // waiting while no step ran
  kPrefillGpu,   // own prefill steps: the GPU works
  kPrefillHost,  // own prefill steps: the GPU does not
  kOtherSteps,   // steps of others between own prefill steps
  kBetween,      // no step between own prefill steps
  kDelivery,     // from the end of the step that made the token to its arrival
};
inline constexpr std::size_t kNumTtftParts = 8;
extern const std::array<const char*, kNumTtftParts> kTtftPartNames;
using TtftParts = std::array<std::int64_t, kNumTtftParts>;

// What is known of the steps of a request, most first.
enum class RequestTold : std::uint8_t { kNamed, kInferred, kLastStep, kNot };

// Why a token came late.
enum class StutterCause : std::uint8_t {
  kMixedStep,  // its step also read a prompt
  kLongStep,   // its step took longer than usual, without a prompt
  kGap,        // the GPU waited before or in its step
  kMissing,    // steps ran without it: preempted or not scheduled
  kDelivery,   // it was made in time and arrived late
  kNotTold,
};
inline constexpr std::size_t kNumStutterCauses = 6;
extern const std::array<const char*, kNumStutterCauses> kStutterCauseNames;

// Distribution of a time over requests or tokens.
struct RequestTimes {
  std::int64_t n = 0;
  std::optional<double> mean_ns;
  std::optional<std::int64_t> p50_ns;
  std::optional<std::int64_t> p90_ns;
  std::optional<std::int64_t> p95_ns;
  std::optional<std::int64_t> p99_ns;
  std::optional<std::int64_t> max_ns;
};

// How the client's clock was joined to the recording's.
struct RequestClockCheck {
  std::string state;                      // agrees, corrected, aligned, unchecked or refused
  std::optional<std::int64_t> offset_ns;  // added to the client's times
  std::optional<std::int64_t> error_ns;   // the offset is right to this, either way
  std::string sentence;
};

// One part of TTFT over all requests that are broken down.
struct TtftPartTotal {
  std::string part;
  std::int64_t total_ns = 0;
  double share_fraction = 0;
  RequestTimes times;
  std::int64_t num_largest = 0;  // requests of which it is the largest part
};

// Late tokens of one cause.
struct StutterTotal {
  std::string cause;
  std::int64_t count = 0;
  std::int64_t total_ns = 0;  // of the gaps between tokens
  RequestTimes times;
};

// Why requests are not broken down.
struct RequestsNotTold {
  std::string reason;
  std::int64_t count = 0;
};

// One late token.
struct Stutter {
  std::string request;
  std::int64_t token = 0;   // number in its request, from 0
  std::int64_t gap_ns = 0;  // since the token before
  std::string cause;
  std::optional<std::int64_t> step;  // number of the step that made it
  std::optional<std::int64_t> step_ns;
  std::optional<std::int64_t> prefill_tokens;  // of that step
  std::string detail;
};

// One request.
struct RequestOutline {
  std::string id;
  bool is_sample = false;    // shown as one of all, not as one of the slowest
  std::int64_t sent_ns = 0;  // after the start of the recording
  std::optional<std::int64_t> ttft_ns;
  std::optional<std::int64_t> total_ns;
  std::optional<std::int64_t> itl_mean_ns;
  std::optional<std::int64_t> itl_max_ns;
  std::optional<std::int64_t> prompt_tokens;
  std::optional<std::int64_t> output_tokens;
  std::string told;  // named, inferred, last_step or not
  std::string reason;
  std::optional<std::int64_t> first_step;  // its first prefill step
  std::optional<std::int64_t> last_step;   // the step that made its first token
  std::optional<std::int64_t> network_ns;
  std::optional<std::int64_t> queue_busy_ns;
  std::optional<std::int64_t> queue_idle_ns;
  std::optional<std::int64_t> prefill_gpu_ns;
  std::optional<std::int64_t> prefill_host_ns;
  std::optional<std::int64_t> other_steps_ns;
  std::optional<std::int64_t> between_ns;
  std::optional<std::int64_t> delivery_ns;
};

// Requests and sequences in a stretch of the recording.
struct LoadBin {
  std::int64_t start_ns = 0;  // after the start of the recording
  std::int64_t duration_ns = 0;
  double in_flight = 0;             // requests sent and not done, mean
  std::optional<double> sequences;  // in a step, mean over the time of steps
  std::int64_t num_steps = 0;       // that begin in it
};

// Requests within limits that a service promises.
struct Goodput {
  std::optional<std::int64_t> ttft_limit_ns;
  std::optional<std::int64_t> itl_limit_ns;
  std::int64_t num_good = 0;
  double good_fraction = 0;
  double good_per_s = 0;
};

// All of it.
struct RequestsSummary {
  std::string file;
  std::string format;
  std::int64_t num_requests = 0;
  std::int64_t num_failed = 0;
  std::int64_t num_skipped = 0;
  std::int64_t num_named = 0;
  std::int64_t num_inferred = 0;
  std::int64_t num_last_step = 0;
  double told_fraction = 0;
  std::string reason;  // why none is joined; empty: some are
  RequestClockCheck clock;
  RequestTimes ttft;
  RequestTimes itl;
  RequestTimes total;
  std::optional<double> output_tokens_per_s;
  std::optional<double> output_tokens_per_s_per_gpu;
  std::optional<double> output_tokens_per_s_per_user;
  std::optional<Goodput> goodput;
  std::vector<TtftPartTotal> ttft_parts;
  std::vector<StutterTotal> stutters;
  std::string stutter_rule;
  std::vector<RequestsNotTold> not_told;
  std::vector<RequestOutline> rows;  // the slowest, then a sample of all
  std::vector<Stutter> late_tokens;  // the longest
  std::vector<LoadBin> load;
};

// Limits of --slo.
struct ServiceLimits {
  std::optional<std::int64_t> ttft_ns;
  std::optional<std::int64_t> itl_ns;
};

}  // namespace gpuwhy
