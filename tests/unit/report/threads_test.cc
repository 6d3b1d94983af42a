// SPDX-License-Identifier: Apache-2.0
//
// Metrics of generated recordings, the same with any number of threads.
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "analysis/engine_trace.h"
#include "analysis/model_trace.h"
#include "analysis/names/rules_json.h"
#include "analysis/profile.h"
#include "base/json.h"
#include "config/presets.h"
#include "results/json.h"
#include "results/results.h"
#include "sanitizers.h"
#include "testing.h"

namespace gpuwhy {
namespace {

// Layered models, serving engines, and engines whose recording has flaws.
Trace made_trace(std::uint32_t seed) {
  std::mt19937 random(seed);
  if (seed % 3 == 0) {
    ModelTraceOptions model = random_model(random);
    model.num_layers = 4 + model.num_layers % 5;
    model.has_shuffled_rows = seed % 2 == 0;
    return make_model_trace(model, random).trace;
  }
  const EngineShape engine = random_engine(random);
  return make_engine_trace(engine, seed % 3 == 1 ? nullptr : &random).trace;
}

constexpr std::uint32_t kRecordings =
    num_random_inputs(250);  // of each of four tests, which run side by side

class Threads : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Threads, AnyNumberGivesTheSameMetrics) {
  const Rules rules =
      rules_from(embedded_yaml("rules/kernels.yaml"), embedded_yaml("rules/stages.yaml"));
  const auto metrics_with = [&](unsigned num_threads, Trace& trace) {
    ProfileOptions options;
    options.num_threads = num_threads;
    Profile made = profile(std::move(trace), rules, options);
    complete(made, {});
    trace = std::move(*made.trace);
    return metrics_json(made.analysis);
  };
  std::set<std::string> distinct;
  const std::uint32_t first = GetParam() * kRecordings;
  for (std::uint32_t seed = first; seed < first + kRecordings; ++seed) {
    Trace trace = made_trace(seed);
    const Json alone = metrics_with(1, trace);
    for (const unsigned num_threads : {2U, 3U, 8U}) {
      // Not ASSERT_EQ, which would print both.
      ASSERT_TRUE(metrics_with(num_threads, trace) == alone)
          << "recording " << seed << " with " << num_threads << " threads";
    }
    distinct.insert(alone.dump());
  }
  EXPECT_GT(distinct.size(), kRecordings * 9 / 10) << "recordings too much alike to prove anything";
}

INSTANTIATE_TEST_SUITE_P(AThousandRecordings, Threads, testing::Range(0U, 4U));

}  // namespace
}  // namespace gpuwhy
