// SPDX-License-Identifier: Apache-2.0
//
// Requests of clients, and the steps of an engine that served them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/field.h"

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
inline constexpr std::array kTtftPartNames = {"network",     "queue_busy",   "queue_idle",
                                              "prefill_gpu", "prefill_host", "other_steps",
                                              "between",     "delivery"};
inline constexpr std::size_t kNumTtftParts = kTtftPartNames.size();
using TtftParts = std::array<std::int64_t, kNumTtftParts>;

// What is known of the steps of a request, most first.
enum class RequestTold : std::uint8_t { kNamed, kInferred, kLastStep, kNot };
inline constexpr std::array kToldNames = {"named", "inferred", "last_step", "not"};

// Why a token came late.
enum class StutterCause : std::uint8_t {
  kMixedStep,  // its step also read a prompt
  kLongStep,   // its step took longer than usual, without a prompt
  kGap,        // the GPU waited before or in its step
  kMissing,    // steps ran without it: preempted or not scheduled
  kDelivery,   // it was made in time and arrived late
  kNotTold,
};
inline constexpr std::array kStutterCauseNames = {"mixed_step", "long_step", "gap",
                                                  "missing",    "delivery",  "not_told"};
inline constexpr std::size_t kNumStutterCauses = kStutterCauseNames.size();

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

template <typename F>
void describe(const RequestTimes*, F&& f) {
  using T = RequestTimes;
  f("n", &T::n, number("1", "", "requests", "requests.times", "how many"));
  f("mean_ns", &T::mean_ns, kInherited);
  f("p50_ns", &T::p50_ns, kInherited);
  f("p90_ns", &T::p90_ns, kInherited);
  f("p95_ns", &T::p95_ns, kInherited);
  f("p99_ns", &T::p99_ns, kInherited);
  f("max_ns", &T::max_ns, kInherited);
}

inline constexpr std::array kClockStates = {"agrees", "corrected", "aligned", "unchecked",
                                            "refused"};

// How the client's clock was joined to the recording's.
struct RequestClockCheck {
  std::string state;                      // of kClockStates
  std::optional<std::int64_t> offset_ns;  // added to the client's times
  std::optional<std::int64_t> error_ns;   // the offset is right to this, either way
  std::string sentence;
};

template <typename F>
void describe(const RequestClockCheck*, F&& f) {
  using T = RequestClockCheck;
  f("state", &T::state,
    one_of(plain("whether the client's clock agrees with the recording's"), kClockStates));
  f("offset_ns", &T::offset_ns,
    is_signed(number("ns", "", "requests marks kernels graphs", "requests.clock",
                     "added to the client's times; null if they are not joined")));
  f("error_ns", &T::error_ns,
    number("ns", "", "requests marks kernels graphs", "requests.clock",
           "the offset is right to this, either way"));
  f("sentence", &T::sentence, maybe("the same in words"));
}

// One part of TTFT over all requests that are broken down.
struct TtftPartTotal {
  std::string part;
  std::int64_t total_ns = 0;
  double share_fraction = 0;
  RequestTimes times;
  std::int64_t num_largest = 0;  // requests of which it is the largest part
};

template <typename F>
void describe(const TtftPartTotal*, F&& f) {
  using T = TtftPartTotal;
  const auto joined = [](std::string_view unit, std::string_view text) {
    return number(unit, "", "requests marks kernels graphs", "requests.ttft_parts", text);
  };
  f("part", &T::part, one_of(names_row("a part of the time to first token"), kTtftPartNames));
  f("total_ns", &T::total_ns, joined("ns", "sum over the requests that are broken down"));
  f("share_fraction", &T::share_fraction,
    is_part(joined("fraction", "of the sum of their times to first token")));
  f("times", &T::times,
    number("ns", "n", "requests marks kernels graphs", "requests.ttft_parts",
           "distribution over these requests"));
  f("largest", &T::num_largest, joined("1", "requests of which it is the largest part"));
}

// Late tokens of one cause.
struct StutterTotal {
  std::string cause;
  std::int64_t count = 0;
  std::int64_t total_ns = 0;  // of the gaps between tokens
  RequestTimes times;
};

template <typename F>
void describe(const StutterTotal*, F&& f) {
  using T = StutterTotal;
  const auto late = [](std::string_view unit, std::string_view text) {
    return number(unit, "", "requests marks kernels graphs", "requests.late_tokens", text);
  };
  f("cause", &T::cause, one_of(names_row("why tokens came late"), kStutterCauseNames));
  f("count", &T::count, late("1", "late tokens of this cause"));
  f("total_ns", &T::total_ns, late("ns", "sum of their times since the token before"));
  f("times", &T::times,
    number("ns", "n", "requests marks kernels graphs", "requests.late_tokens",
           "distribution of these times"));
}

// Why requests are not broken down.
struct RequestsNotTold {
  std::string reason;
  std::int64_t count = 0;
};

template <typename F>
void describe(const RequestsNotTold*, F&& f) {
  f("reason", &RequestsNotTold::reason, plain("why requests are not broken down"));
  f("count", &RequestsNotTold::count,
    number("1", "", "requests", "requests.told", "how many requests"));
}

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

template <typename F>
void describe(const Stutter*, F&& f) {
  using T = Stutter;
  const auto late = [](std::string_view unit, std::string_view text) {
    return number(unit, "", "requests marks kernels graphs", "requests.late_tokens", text);
  };
  f("request", &T::request, plain("the id of the request"));
  f("token", &T::token, late("1", "number of the token in its request, from 0"));
  f("gap_ns", &T::gap_ns, late("ns", "time since the token before"));
  f("cause", &T::cause, one_of(plain("why it came late"), kStutterCauseNames));
  f("step", &T::step, late("1", "number of the step that made it, from 0"));
  f("step_ns", &T::step_ns, late("ns", "length of that step"));
  f("prefill_tokens", &T::prefill_tokens, late("1", "prompt tokens that the step read"));
  f("detail", &T::detail, maybe("more on the cause; of a gap, the bucket of the ledger"));
}

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

template <typename F>
void describe(const RequestOutline*, F&& f) {
  using T = RequestOutline;
  const auto seen = [](std::string_view unit, std::string_view text) {
    return number(unit, "", "requests", "requests.times", text);
  };
  const auto part = [](std::string_view text) {
    return number("ns", "", "requests marks kernels graphs", "requests.ttft_parts", text);
  };
  const auto step = [](std::string_view text) {
    return number("1", "", "requests marks kernels graphs", "requests.told", text);
  };
  f("id", &T::id, plain("the id of the request"));
  f("is_sample", &T::is_sample, plain("false: one of the slowest; true: one of a sample of all"));
  f("sent_ns", &T::sent_ns, is_signed(seen("ns", "when it was sent, after the recording's start")));
  f("ttft_ns", &T::ttft_ns, seen("ns", "time to first token"));
  f("total_ns", &T::total_ns, seen("ns", "from sent to done"));
  f("itl_mean_ns", &T::itl_mean_ns, seen("ns", "mean time per token after the first"));
  f("itl_max_ns", &T::itl_max_ns, seen("ns", "longest time between two tokens"));
  f("prompt_tokens", &T::prompt_tokens, seen("1", "length of its prompt"));
  f("output_tokens", &T::output_tokens, seen("1", "tokens of its answer"));
  f("told", &T::told, one_of(plain("how its steps are known"), kToldNames));
  f("reason", &T::reason, maybe("why they are not all known"));
  f("first_step", &T::first_step, step("number of its first prefill step, from 0"));
  f("last_step", &T::last_step, step("number of the step that made its first token"));
  f("network_ns", &T::network_ns, part("until the server had it, where the server says so"));
  f("queue_busy_ns", &T::queue_busy_ns, part("waited while steps of others ran"));
  f("queue_idle_ns", &T::queue_idle_ns, part("waited while no step ran"));
  f("prefill_gpu_ns", &T::prefill_gpu_ns, part("own prefill steps, the GPU works"));
  f("prefill_host_ns", &T::prefill_host_ns, part("own prefill steps, the GPU does not work"));
  f("other_steps_ns", &T::other_steps_ns, part("steps of others between own prefill steps"));
  f("between_ns", &T::between_ns, part("no step runs between own prefill steps"));
  f("delivery_ns", &T::delivery_ns, part("from the end of the last one to the client"));
}

// Requests and sequences in a stretch of the recording.
struct LoadBin {
  std::int64_t start_ns = 0;  // after the start of the recording
  std::int64_t duration_ns = 0;
  double in_flight = 0;             // requests sent and not done, mean
  std::optional<double> sequences;  // in a step, mean over the time of steps
  std::int64_t num_steps = 0;       // that begin in it
};

template <typename F>
void describe(const LoadBin*, F&& f) {
  using T = LoadBin;
  const auto load = [](std::string_view unit, std::string_view text) {
    return number(unit, "", "requests marks kernels graphs", "requests.load", text);
  };
  f("start_ns", &T::start_ns,
    is_signed(load("ns", "start of the stretch, after the recording's start")));
  f("duration_ns", &T::duration_ns, load("ns", "its length"));
  f("in_flight", &T::in_flight, load("1", "requests sent and not done, mean"));
  f("sequences", &T::sequences, load("1", "sequences in a step, mean over the time of steps"));
  f("steps", &T::num_steps, load("1", "steps that begin in it"));
}

// Requests within limits that a service promises.
struct Goodput {
  std::optional<std::int64_t> ttft_limit_ns;
  std::optional<std::int64_t> itl_limit_ns;
  std::int64_t num_good = 0;
  double good_fraction = 0;
  double good_per_s = 0;
};

template <typename F>
void describe(const Goodput*, F&& f) {
  using T = Goodput;
  const auto good = [](std::string_view unit, std::string_view text) {
    return number(unit, "", "requests", "requests.goodput", text);
  };
  f("ttft_limit_ns", &T::ttft_limit_ns, good("ns", "limit on the time to first token"));
  f("itl_limit_ns", &T::itl_limit_ns, good("ns", "limit on a request's mean time per token"));
  f("good", &T::num_good, good("1", "requests within both"));
  f("good_fraction", &T::good_fraction,
    is_part(good("fraction", "of all requests, failed ones too")));
  f("good_per_s", &T::good_per_s, good("1/s", "of them per second"));
}

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

template <typename F>
void describe(const RequestsSummary*, F&& f) {
  using T = RequestsSummary;
  const auto told = [](std::string_view unit, std::string_view text) {
    return number(unit, "", "requests marks kernels graphs", "requests.told", text);
  };
  const auto times = [](std::string_view text) {
    return number("ns", "n", "requests", "requests.times", text);
  };
  const auto rate = [](std::string_view text) {
    return number("1/s", "", "requests", "requests.rate", text);
  };
  f("file", &T::file, plain("the file's name, without its folders"));
  f("format", &T::format, plain("who wrote it"));
  f("requests", &T::num_requests, told("1", "requests of the file"));
  f("failed", &T::num_failed, told("1", "of these, failed"));
  f("skipped", &T::num_skipped, told("1", "records of the file that could not be used"));
  f("named", &T::num_named, told("1", "requests whose steps the markers name"));
  f("inferred", &T::num_inferred, told("1", "requests whose steps follow from prompt tokens"));
  f("last_step", &T::num_last_step,
    told("1", "requests of which only the last prefill step is known"));
  f("told_fraction", &T::told_fraction,
    is_part(told("fraction", "requests that are broken down, of all")));
  f("reason", &T::reason, maybe("why none is"));
  f("clock", &T::clock, plain("how the client's clock was joined to the recording's"));
  f("ttft", &T::ttft, times("from sent to the arrival of the first token"));
  f("itl", &T::itl, times("between the arrivals of two tokens of a request"));
  f("total", &T::total, times("from sent to done"));
  f("output_tokens_per_s", &T::output_tokens_per_s,
    rate("output tokens from the first request sent to the last one done"));
  f("output_tokens_per_s_per_gpu", &T::output_tokens_per_s_per_gpu,
    rate("the same, over the GPUs of the recording"));
  f("output_tokens_per_s_per_user", &T::output_tokens_per_s_per_user,
    rate("of one request after its first token, median"));
  f("goodput", &T::goodput, plain("requests within limits; null without --slo"));
  f("ttft_parts", &T::ttft_parts, plain("the parts of TTFT, in time order"));
  f("late_causes", &T::stutters, plain("late tokens by cause"));
  f("late_rule", &T::stutter_rule, plain("which tokens are late"));
  f("not_told", &T::not_told, plain("why requests are not broken down, most first"));
  f("rows", &T::rows, items(plain("the slowest requests, then a sample of all"), 0, 301));
  f("late_tokens", &T::late_tokens, items(plain("the longest of the late tokens"), 0, 100));
  f("load", &T::load, items(plain("requests and sequences over time"), 0, 101));
}

// Limits of --slo.
struct ServiceLimits {
  std::optional<std::int64_t> ttft_ns;
  std::optional<std::int64_t> itl_ns;
};

}  // namespace gpuwhy
