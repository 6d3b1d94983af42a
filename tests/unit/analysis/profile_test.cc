// SPDX-License-Identifier: Apache-2.0
//
// Failures of the steps of profile(), each in turn.
#include "analysis/profile.h"

#include <chrono>
#include <future>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "analysis/model_trace.h"
#include "analysis/names/rules_json.h"
#include "base/json.h"
#include "config/presets.h"
#include "testing.h"

namespace gpuwhy {
namespace {

using testing::IsSupersetOf;

// What a run came to: the names of its steps, or what it threw.
struct Outcome {
  std::set<std::string> steps;
  std::string thrown;
};

// Makes the profile of a small model, whose step `failing` throws its own name.
Outcome profile_with(const std::string& failing, bool has_timeline, unsigned num_threads) {
  PassTimer timer([&](const char* name) {
    if (name == failing) {
      // Until then the other threads have begun what they can.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      throw std::runtime_error(name);
    }
  });
  ProfileOptions options;
  options.has_timeline = has_timeline;
  options.num_threads = num_threads;
  options.timer = &timer;
  std::mt19937 random(1);
  Outcome outcome;
  try {
    profile(make_model_trace({}, random).trace,
            rules_from(embedded_yaml("rules/kernels.yaml"), embedded_yaml("rules/stages.yaml")),
            options);
  } catch (const std::runtime_error& error) {
    outcome.thrown = error.what();
  }
  for (const PassTimer::Pass& pass : timer.passes()) {
    outcome.steps.insert(pass.name);
  }
  return outcome;
}

// The same on a thread that is left behind if it hangs, with all that it uses.
std::optional<Outcome> profile_in_time(const std::string& failing, bool has_timeline,
                                       unsigned num_threads) {
  std::promise<Outcome> promise;
  std::future<Outcome> outcome = promise.get_future();
  std::thread([failing, has_timeline, num_threads, promise = std::move(promise)]() mutable {
    promise.set_value(profile_with(failing, has_timeline, num_threads));
  }).detach();
  if (outcome.wait_for(std::chrono::seconds(60)) == std::future_status::timeout) {
    return std::nullopt;
  }
  return outcome.get();
}

TEST(Profile, EndsWhicheverStepFails) {
  for (const bool has_timeline : {false, true}) {
    const std::set<std::string> steps = profile_with("none", has_timeline, 1).steps;
    ASSERT_THAT(steps, IsSupersetOf({"attribute", "step windows", "structure", "ledger", "steps",
                                     "kernel chains", "kernels", "operators", "ranges", "layers",
                                     "counts"}));
    ASSERT_EQ(steps.contains("slices"), has_timeline);
    for (const std::string& failing : steps) {
      for (const unsigned num_threads : {1U, 2U, 3U, 8U}) {
        const auto outcome = profile_in_time(failing, has_timeline, num_threads);
        ASSERT_TRUE(outcome) << failing << " fails, and a run with " << num_threads
                             << " threads waits for ever";
        EXPECT_EQ(outcome->thrown, failing) << num_threads << " threads";
      }
    }
  }
}

}  // namespace
}  // namespace gpuwhy
