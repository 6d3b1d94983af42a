// SPDX-License-Identifier: Apache-2.0
#include "analysis/requests/requests.h"

#include <numeric>

#include "testing.h"

namespace gpuwhy {
namespace {

// Steps [0, 100), [110, 200), [200, 300), [350, 400): 10 of each without GPU work.
EngineLoop loop_of_four() {
  EngineLoop loop;
  std::int64_t sum = 0;
  for (const auto& [begin, end] : {std::pair{0, 100}, {110, 200}, {200, 300}, {350, 400}}) {
    LoopStep step;
    step.begin_ns = begin;
    step.end_ns = end;
    step.busy_ns = end - begin - 10;
    step.context_tokens = 0;
    step.context_requests = 0;
    step.sequences = 1;
    loop.length_before_ns.push_back(sum);
    sum += end - begin;
    loop.steps.push_back(step);
  }
  return loop;
}

void add(Requests& requests, std::int64_t sent, std::int64_t prompt,
         const std::vector<std::int64_t>& tokens, std::int64_t slot = kNoCount) {
  requests.id.push_back(std::to_string(requests.size()));
  requests.sent_ns.push_back(sent);
  requests.received_ns.push_back(kNoTime);
  requests.scheduled_ns.push_back(kNoTime);
  requests.first_token_ns.push_back(tokens.front());
  requests.done_ns.push_back(tokens.back());
  requests.prompt_tokens.push_back(prompt);
  requests.output_tokens.push_back(static_cast<std::int64_t>(tokens.size()));
  requests.slot.push_back(slot);
  requests.is_failed.push_back(0);
  requests.token_ns.insert(requests.token_ns.end(), tokens.begin(), tokens.end());
  requests.token_begin.push_back(requests.token_ns.size());
}

TEST(EngineLoop, TimeInStepsIsExact) {
  const EngineLoop loop = loop_of_four();
  EXPECT_EQ(loop.time_in_steps(0, 400), 340);
  EXPECT_EQ(loop.time_in_steps(50, 115), 55);
  EXPECT_EQ(loop.time_in_steps(100, 110), 0);
  EXPECT_EQ(loop.time_in_steps(-50, 10), 10);
  EXPECT_EQ(loop.time_in_steps(390, 900), 10);
  EXPECT_EQ(loop.time_in_steps(20, 10), 0);
  EXPECT_EQ(loop.last_ended(199), 0U);
  EXPECT_EQ(loop.last_ended(200), 1U);
  EXPECT_EQ(loop.last_ended(5), kNone);
  EXPECT_EQ(loop.first_begun(111), 2U);
}

TEST(Requests, PartsSumToTheTimeToFirstToken) {
  const EngineLoop loop = loop_of_four();
  Requests requests;
  add(requests, 50, 8, {420});
  RequestJoin join(requests);
  const std::uint32_t own[] = {1, 3};
  join.claim(0, RequestTold::kNamed, own);
  take_apart(requests, loop, join);
  // 50 to 100 behind step 0, to 110 nothing; steps 1 and 3; step 2 of others, then nothing.
  EXPECT_THAT(join.parts[0], ElementsAre(0, 50, 10, 80 + 40, 10 + 10, 100, 50, 20));
  EXPECT_EQ(std::accumulate(join.parts[0].begin(), join.parts[0].end(), std::int64_t{0}), 370);
}

TEST(Requests, PartsAreCutWhereTimesContradictSteps) {
  const EngineLoop loop = loop_of_four();
  Requests requests;
  add(requests, 150, 8, {190});
  RequestJoin join(requests);
  const std::uint32_t own[] = {1};
  join.claim(0, RequestTold::kNamed, own);
  take_apart(requests, loop, join);
  EXPECT_THAT(join.parts[0], ElementsAre(0, 0, 0, 40, 0, 0, 0, 0));
}

// Two requests in one slot, the first preempted after two tokens.
TEST(Requests, SlotsAreDividedByCounting) {
  EngineLoop loop;
  const std::vector<std::int64_t> tokens = {5, 3, 1, 10, 1, 4, 1};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    LoopStep step;
    step.begin_ns = static_cast<std::int64_t>(i) * 100;
    step.end_ns = step.begin_ns + 90;
    step.first_slot = static_cast<std::uint32_t>(i);
    step.num_slots = 1;
    loop.slots.push_back({7, tokens[i]});
    loop.length_before_ns.push_back(static_cast<std::int64_t>(i) * 90);
    loop.steps.push_back(step);
  }
  Requests requests;
  // A prompt of 8 in two chunks, one token, then 8 + 2 tokens again, and the last one.
  add(requests, 0, 8, {195, 295, 395, 495}, 7);
  add(requests, 120, 4, {600, 700}, 7);  // waits for the slot
  add(requests, 130, 9, {800}, 7);       // has no entries
  RequestJoin join(requests);
  join_by_slots(requests, loop, {}, join);
  EXPECT_THAT(join.told, ElementsAre(RequestTold::kNamed, RequestTold::kNamed, RequestTold::kNot));
  EXPECT_THAT(join.prefill_of(0), ElementsAre(0, 1));
  EXPECT_THAT(join.prefill_of(1), ElementsAre(5));
  EXPECT_THAT(join.token_step, ElementsAre(1, 2, 3, 4, 5, 6, kNone));
}

TEST(Requests, OrderIsBelievedOnlyWhereArrivalsAgree) {
  EngineLoop loop = loop_of_four();
  const std::int64_t context[] = {8, 0, 6, 2};
  for (std::size_t i = 0; i < 4; ++i) {
    loop.steps[i].context_tokens = context[i];
    loop.steps[i].context_requests = context[i] > 0 ? 1 : 0;
  }
  Requests requests;
  add(requests, -5, 8, {105, 203});  // step 0 alone
  add(requests, 150, 8, {410});      // steps 2 and 3
  RequestJoin join(requests);
  join_by_order(requests, loop, {}, join);
  EXPECT_THAT(join.told, ElementsAre(RequestTold::kInferred, RequestTold::kInferred));
  EXPECT_THAT(join.prefill_of(0), ElementsAre(0));
  EXPECT_THAT(join.prefill_of(1), ElementsAre(2, 3));
  EXPECT_THAT(join.token_step, ElementsAre(0, 1, 3));
  // A prompt that was cached in part reads less than its length: nothing is claimed.
  requests.prompt_tokens[1] = 20;
  RequestJoin cached(requests);
  join_by_order(requests, loop, {}, cached);
  EXPECT_EQ(cached.told[1], RequestTold::kNot);
}

// Only steps with prompts make first tokens: one that arrives late, after further decode steps, is
// still of the last such step. One that arrives after the next prompts were read is not claimed.
TEST(Requests, FirstTokensMayArriveLate) {
  EngineLoop loop = loop_of_four();
  const std::int64_t context[] = {0, 8, 0, 0};
  for (std::size_t i = 0; i < 4; ++i) {
    loop.steps[i].context_tokens = context[i];
    loop.steps[i].context_requests = context[i] > 0 ? 1 : 0;
  }
  Requests requests;
  add(requests, 90, 8, {380});
  RequestJoin join(requests);
  join_by_order(requests, loop, {}, join);
  EXPECT_THAT(join.told, ElementsAre(RequestTold::kInferred));
  EXPECT_THAT(join.prefill_of(0), ElementsAre(1));
  loop.steps[2].context_tokens = 5;
  loop.steps[2].context_requests = 1;
  RequestJoin other(requests);
  join_by_order(requests, loop, {}, other);
  EXPECT_NE(other.told[0], RequestTold::kInferred);
}

TEST(Requests, OffsetsAreBoundedFromBothSides) {
  const EngineLoop loop = loop_of_four();
  Requests requests;
  add(requests, 100, 8, {215});  // step 1: [110, 200)
  RequestJoin join(requests);
  const std::uint32_t own[] = {1};
  join.claim(0, RequestTold::kNamed, own);
  const OffsetBounds bounds = bounds_of(requests, loop, join);
  EXPECT_EQ(bounds.least_ns, -15);
  EXPECT_EQ(bounds.most_ns, 10);
}

TEST(Requests, RegularStepsDoNotTellTheClock) {
  EngineLoop loop;
  Requests requests;
  for (std::int64_t i = 0; i < 200; ++i) {
    LoopStep step;
    step.begin_ns = i * 10'000'000;
    step.end_ns = step.begin_ns + 10'000'000;
    step.sequences = 4;
    loop.length_before_ns.push_back(step.begin_ns);
    loop.steps.push_back(step);
    if (i >= 50 && i < 150) {
      add(requests, step.begin_ns, 8, {step.end_ns + 1'000'000});
    }
  }
  EXPECT_FALSE(rough_offset(requests, loop, -100'000'000, 100'000'000).is_clear);
}

// A closed loop of four streams: all begin and end together, and every round is like the one
// before. Offsets that are whole rounds or steps apart fit nearly as well.
struct ClosedLoop {
  static constexpr std::int64_t kStepNs = 5'000'000;
  static constexpr std::int64_t kStepsPerRound = 12;

  // Requests are sent and tokens arrive `slow_ns` earlier and later than they need be.
  explicit ClosedLoop(std::int64_t offset_ns, std::int64_t slow_ns = 0) {
    for (std::int64_t i = 0; i < 8 * kStepsPerRound; ++i) {
      LoopStep step;
      step.begin_ns = 20'000'000 + i * kStepNs;
      step.end_ns = step.begin_ns + kStepNs - 100'000;
      step.sequences = 4;
      const bool is_first = i % kStepsPerRound == 0;
      step.context_tokens = is_first ? 480 : 0;
      step.context_requests = is_first ? 4 : 0;
      loop.length_before_ns.push_back(i * (kStepNs - 100'000));
      loop.steps.push_back(step);
    }
    for (std::int64_t row = 0; row < 32; ++row) {
      const std::int64_t first = row / 4 * kStepsPerRound;
      std::vector<std::int64_t> tokens;
      for (std::int64_t i = 0; i < kStepsPerRound; ++i) {
        const LoopStep& step = loop.steps[static_cast<std::size_t>(first + i)];
        // The last tokens bring the next requests, which are in the step that begins then.
        tokens.push_back(step.end_ns + 20'000 + row % 4 * 10'000 + slow_ns - offset_ns);
      }
      const std::int64_t begin_ns = loop.steps[static_cast<std::size_t>(first)].begin_ns;
      add(requests, begin_ns - 40'000 - slow_ns - offset_ns, 120, tokens);
    }
  }

  RequestJoin joined(bool is_on_server_host) {
    requests.is_on_server_host = is_on_server_host;
    return join_on_clock(requests, loop, 0, 0, check);
  }

  EngineLoop loop;
  Requests requests;
  RequestClockCheck check;
};

TEST(Requests, ClockOfTheServersMachineDecidesWhereStepsAreAlike) {
  ClosedLoop made(0);
  const RequestJoin join = made.joined(true);
  EXPECT_EQ(made.check.state, "agrees");
  EXPECT_THAT(made.check.sentence, HasSubstr("same machine's"));
  EXPECT_LE(std::abs(made.check.offset_ns.value_or(-1)), made.check.error_ns.value_or(-1));
  EXPECT_LT(made.check.error_ns.value_or(INT64_MAX), 100'000);
  for (std::size_t row = 0; row < made.requests.size(); ++row) {
    ASSERT_EQ(join.told[row], RequestTold::kInferred) << row << ": " << join.reason[row];
    EXPECT_THAT(join.prefill_of(row), ElementsAre(row / 4 * ClosedLoop::kStepsPerRound));
  }
}

// On a busy machine no token is early, and tokens alone would leave the clock open by 19 ms.
TEST(Requests, ClockOfTheServersMachineIsKnownHoweverLateTokensAre) {
  ClosedLoop made(0, 19'000'000);
  const RequestJoin join = made.joined(true);
  EXPECT_EQ(made.check.state, "agrees");
  EXPECT_EQ(made.check.error_ns, 1'000'000);
  for (std::size_t row = 0; row < made.requests.size(); ++row) {
    ASSERT_EQ(join.told[row], RequestTold::kInferred) << row << ": " << join.reason[row];
    EXPECT_THAT(join.prefill_of(row), ElementsAre(row / 4 * ClosedLoop::kStepsPerRound));
  }
}

TEST(Requests, ClockOfAnotherMachineDoesNotDecideWhereStepsAreAlike) {
  ClosedLoop made(0);
  const RequestJoin join = made.joined(false);
  EXPECT_EQ(made.check.state, "refused");
  EXPECT_THAT(made.check.sentence, HasSubstr("several offsets"));
  EXPECT_THAT(join.told, testing::Each(RequestTold::kNot));
}

// Whatever is wrong with the clock of the server's machine: no claim that is false, and no error
// that is too small.
TEST(Requests, ClockOfTheServersMachineIsNotBelievedWhereItDoesNotFit) {
  for (const std::int64_t offset_ns : {-3'000'000, -400'000, 30'000, 700'000, 2'500'000}) {
    ClosedLoop made(offset_ns);
    const RequestJoin join = made.joined(true);
    if (made.check.state != "refused") {
      EXPECT_LE(std::abs(*made.check.offset_ns - offset_ns), *made.check.error_ns) << offset_ns;
    }
    for (std::size_t row = 0; row < made.requests.size(); ++row) {
      if (join.is_apart(row)) {
        EXPECT_THAT(join.prefill_of(row), ElementsAre(row / 4 * ClosedLoop::kStepsPerRound));
      }
    }
  }
}

}  // namespace
}  // namespace gpuwhy
