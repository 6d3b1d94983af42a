// SPDX-License-Identifier: Apache-2.0
#include "serve/window.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "base/file.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

TEST(Window, EachEngineFindsItsWordInTheBody) {
  EXPECT_EQ(window_body({}, false), "{}");
  RecordingPeriod wish;
  wish.num_steps = 20;
  EXPECT_EQ(window_body(wish, false), R"({"num_steps": 20, "max_iterations": 20})");
  wish.stage = "decode";
  EXPECT_EQ(
      window_body(wish, false),
      R"({"num_steps": 20, "max_iterations": 20, "profile_by_stage": true, "profile_stages": ["decode"]})");
  // nsys records one window, whatever its steps are.
  EXPECT_EQ(window_body(wish, true),
            R"({"num_steps": 20, "max_iterations": 20, "activities": ["CUDA_PROFILER"]})");
  // SGLang cannot count the steps of a stage without a number.
  wish.num_steps.reset();
  EXPECT_EQ(window_body(wish, false), "{}");
}

// What was called, in order.
struct Calls {
  std::vector<std::string> made;
  bool lasts_until_closed = false;
  bool can_open = true;
  std::atomic<bool> is_loaded{false};
  std::atomic<bool> is_closed{false};

  WindowCalls calls() {
    return {
        [this] {
          made.emplace_back(is_loaded ? "open late" : "open");
          return can_open;
        },
        [this] {
          is_loaded = true;
          const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
          while (lasts_until_closed && !is_closed && std::chrono::steady_clock::now() < deadline) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
          }
          is_loaded = false;
          return true;
        },
        [this] {
          made.emplace_back(is_loaded ? "close early" : "close");
          is_closed = true;
          return true;
        }};
  }
};

TEST(Window, IsAsLongAsTheLoadUnlessItIsLimited) {
  Calls whole;
  EXPECT_TRUE(record_part({}, whole.calls()));
  EXPECT_THAT(whole.made, ElementsAre("open", "close"));
  Calls part;
  part.lasts_until_closed = true;
  RecordingPeriod wish;
  wish.after_s = 1;
  wish.num_seconds = 1;
  EXPECT_TRUE(record_part(wish, part.calls()));
  EXPECT_THAT(part.made, ElementsAre("open late", "close early"));
}

TEST(Window, IsNeverOpenedAfterTheLoadNorLeftOpen) {
  Calls late;
  RecordingPeriod wish;
  wish.after_s = 1;
  EXPECT_FALSE(record_part(wish, late.calls()));
  EXPECT_THAT(late.made, IsEmpty());
  Calls refused;
  refused.can_open = false;
  EXPECT_FALSE(record_part({}, refused.calls()));
  EXPECT_THAT(refused.made, ElementsAre("open"));
  Calls failed;
  WindowCalls calls = failed.calls();
  calls.load = []() -> bool { throw std::runtime_error("no client"); };
  EXPECT_THROW(record_part({}, calls), std::runtime_error);
  EXPECT_THAT(failed.made, ElementsAre("open", "close"));
}

TEST(Window, FilesOfAStageAreToldByTheirNames) {
  const std::filesystem::path decode = "1-TP-0-DECODE.trace.json.gz";
  const std::filesystem::path extend = "1-TP-0-EXTEND.trace.json.gz";
  const std::filesystem::path newer = "1-TP-0-decode.trace.json.gz";
  EXPECT_THAT(files_of_stage({decode, extend, newer}, "decode"), ElementsAre(decode, newer));
  EXPECT_THAT(files_of_stage({decode, extend}, "prefill"), ElementsAre(extend));
  EXPECT_THAT(files_of_stage({decode, extend}, ""), ElementsAre(decode, extend));
  EXPECT_THAT(files_of_stage({"dp0_rank0.json.gz"}, "decode"), ElementsAre("dp0_rank0.json.gz"));
}

TEST(Window, AFileThatWasThereIsNotNewUnlessItChanged) {
  const TemporaryDirectory directory;
  const auto old = directory.path() / "old.json";
  const auto again = directory.path() / "again.json";
  write_file(old, "{}");
  write_file(again, "{}");
  std::filesystem::last_write_time(again,
                                   std::filesystem::last_write_time(again) - std::chrono::hours(1));
  const TraceFolder folder(directory.path());
  write_file(again, "{}");
  write_file(directory.path() / "notes.txt", "not a recording");
  EXPECT_THAT(folder.wait(std::chrono::seconds(20), [] { return false; }), ElementsAre(again));
  EXPECT_THAT(folder.wait(std::chrono::seconds(20), [] { return true; }), IsEmpty());
}

TEST(Window, ARecordingMustHoldTheStepsAskedFor) {
  const auto found = [](const RecordingPeriod& wish, std::map<std::string, std::int64_t> instances,
                        std::int64_t open_ns = 0) {
    std::vector<std::string> sentences;
    for (const Breach& breach : check_window("nsys", wish, instances, open_ns)) {
      EXPECT_EQ(breach.reason, Reason::kWindowShort);
      EXPECT_TRUE(breach.is_fatal);
      sentences.push_back(breach.sentence);
    }
    return sentences;
  };
  RecordingPeriod steps;
  steps.num_steps = 20;
  EXPECT_THAT(found(steps, {{"prefill", 4}, {"decode", 12}, {"mixed", 4}, {"idle", 50}}),
              IsEmpty());
  // The last step may be cut.
  EXPECT_THAT(found(steps, {{"decode", 19}}), IsEmpty());
  EXPECT_THAT(found(steps, {{"decode", 18}, {"graph_capture", 9}}),
              ElementsAre("20 steps were asked for, and 18 are in the recording"));
  steps.stage = "decode";
  EXPECT_THAT(found(steps, {{"prefill", 40}, {"decode", 1}}),
              ElementsAre("20 steps of decode were asked for, and 1 is in the recording"));
  steps.num_steps.reset();
  EXPECT_THAT(found(steps, {{"decode", 1}}), IsEmpty());
  EXPECT_THAT(found(steps, {{"prefill", 9}}),
              ElementsAre("1 step of decode was asked for, and 0 are in the recording"));
  RecordingPeriod seconds;
  seconds.num_seconds = 5;
  EXPECT_THAT(found(seconds, {}, 5'000'000'000), IsEmpty());
  EXPECT_THAT(found(seconds, {}), IsEmpty());
  EXPECT_THAT(found(seconds, {}, 3'000'000'000),
              ElementsAre(HasSubstr("5 s were asked for, and the load ended after 3.00 s")));
}

}  // namespace
}  // namespace gpuwhy
