// SPDX-License-Identifier: Apache-2.0
//
// Times that users of a model wait for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "results/field.h"

namespace gpuwhy {

// Distribution of a latency: which length of the steps it is, or why there is none.
struct Latency {
  std::int64_t n = 0;
  std::optional<double> mean_ns;
  std::optional<double> std_ns;
  std::optional<std::int64_t> p50_ns;
  std::optional<std::int64_t> p99_ns;
  std::string basis;   // e.g. "period on the GPU of decode 2..39, 38 of 40"
  std::string reason;  // why there is none
};

template <typename F>
void describe(const Latency*, F&& f) {
  using T = Latency;
  f("n", &T::n, number("1", "", "baseline marks", "aggregates.n", "how many lengths"));
  f("mean_ns", &T::mean_ns, kInherited);
  f("std_ns", &T::std_ns, kInherited);
  f("p50_ns", &T::p50_ns, kInherited);
  f("p99_ns", &T::p99_ns, kInherited);
  f("basis", &T::basis, maybe("which length of the steps it is"));
  f("reason", &T::reason, maybe("why there are none"));
}

// Time to first token, time per output token, and the rate of decode.
struct Latencies {
  std::string source;  // the pass they are from; empty: no stage was timed
  Latency ttft;
  Latency tpot;
  std::optional<double> decode_tokens_per_s;     // of all sequences and replicas together
  std::optional<std::int64_t> decode_sequences;  // in a step, median
  std::optional<std::int64_t> program_ns = {};   // the program's length without a profiler
};

template <typename F>
void describe(const Latencies*, F&& f) {
  using T = Latencies;
  f("source", &T::source, maybe("the pass that stage times are from"));
  f("ttft", &T::ttft,
    number("ns", "n", "baseline marks kernels copies graphs", "aggregates.ttft",
           "from the start of a prefill mark to its end or that of its GPU work"));
  f("tpot", &T::tpot,
    number("ns", "n", "baseline marks kernels graphs", "aggregates.tpot",
           "the period of consecutive decode steps in the steady window"));
  f("decode_tokens_per_s", &T::decode_tokens_per_s,
    number("1/s", "", "baseline marks kernels graphs", "aggregates.rate",
           "tokens of the steady decode steps over their periods, of all sequences together"));
  f("decode_sequences", &T::decode_sequences,
    number("1", "", "marks", "aggregates.rate", "sequences in a decode step, median"));
  f("program_ns", &T::program_ns,
    number("ns", "", "baseline", "aggregates.program",
           "the program from its start to its end, without a profiler"));
}

}  // namespace gpuwhy
