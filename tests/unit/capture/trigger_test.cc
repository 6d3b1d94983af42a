// SPDX-License-Identifier: Apache-2.0
//
// Gates as both tools want them; where ncu is installed its own parser judges the expressions.
#include "capture/trigger.h"

#include <cstdlib>

#include "capture/subprocess.h"
#include "testing.h"

namespace gpuwhy {
namespace {

using Kind = TriggerWish::Kind;

void expect_refused(const char* text, const std::string& reason, const std::string& hint) {
  SCOPED_TRACE(text);
  expect_error([&] { parse_trigger(text); }, ErrorKind::kUsage,
               AllOf(HasSubstr("would open no capture"), HasSubstr(reason)), HasSubstr(hint));
}

SeenMark seen(const char* domain, const char* name, bool is_registered = true) {
  return {{domain, name}, 3, is_registered, true, false};
}

NcuTool ncu_with(std::vector<std::string> options) {
  NcuTool ncu;
  ncu.path = "/opt/ncu";
  ncu.options = std::move(options);
  return ncu;
}

TEST(ParseGate, Words) {
  EXPECT_EQ(parse_trigger("auto").kind, Kind::kAuto);
  EXPECT_EQ(parse_trigger("none").kind, Kind::kEverything);
  EXPECT_EQ(parse_trigger("cuda_profiler_api").kind, Kind::kCudaProfilerApi);
}

TEST(ParseGate, MarksInBothSpellings) {
  for (const char* text : {"LLM:request", "LLM@request"}) {
    const TriggerWish wish = parse_trigger(text);
    EXPECT_EQ(wish.kind, Kind::kMark);
    EXPECT_EQ(wish.mark, (StageMark{"LLM", "request"})) << text;
  }
  EXPECT_EQ(parse_trigger(":forward pass").mark, (StageMark{"", "forward pass"}));
  EXPECT_EQ(parse_trigger("my domain:step:1").mark, (StageMark{"my domain", "step:1"}))
      << "the first colon parts them: ranges have colons more often than domains";
  EXPECT_EQ(parse_trigger("prefill:decode").mark, (StageMark{"prefill", "decode"}))
      << "both are stages, so nothing tells that they are swapped";
}

TEST(ParseGate, WhatNoToolCouldMatchIsRefusedWithItsReason) {
  expect_refused("LLM:*", "wildcards match nothing", "run.gate=LLM:request");
  expect_refused("LLM:decode_?", "wildcards match nothing", "DOMAIN:RANGE");
  expect_refused("*@request", "wildcards match nothing", "DOMAIN:RANGE");
  expect_refused("LLM:prefill,LLM:decode_all", "one range only", "run.gate=LLM:request");
  expect_refused("LLM:", "the range has no name", "DOMAIN:RANGE");
  expect_refused("LLM@", "the range has no name", "DOMAIN:RANGE");
  expect_refused(":", "the range has no name", "DOMAIN:RANGE");
  expect_refused("request", "it has no domain", "run.gate=LLM:request, or run.gate=:request");
  expect_refused("my range", "it has no domain", "the default domain is :RANGE");
  expect_refused("", "it has no domain", "DOMAIN:RANGE");
  expect_refused("request@LLM", "'request' is a range, not a domain: the order is swapped",
                 "run.gate=LLM:request");
  expect_refused("prefill:LLM", "the order is swapped", "run.gate=LLM:prefill");
  expect_refused("LLM:mail@host", "a name with @", "run.gate=none");
}

TEST(ParseGate, HostileTextIsShownSafely) {
  expect_error([] { parse_trigger("\x1b[31m"); }, ErrorKind::kUsage,
               AllOf(HasSubstr("\\x1b[31m"), Not(HasSubstr("\x1b"))), _);
}

TEST(ChooseGate, WithoutABaselinePass) {
  EXPECT_EQ(choose_trigger(parse_trigger("auto"), nullptr).kind, Kind::kEverything);
  EXPECT_THAT(choose_trigger(parse_trigger("auto"), nullptr).reason, HasSubstr("no baseline pass"));
  EXPECT_EQ(choose_trigger(parse_trigger("none"), nullptr).kind, Kind::kEverything);
  EXPECT_EQ(choose_trigger(parse_trigger("cuda_profiler_api"), nullptr).kind,
            Kind::kCudaProfilerApi);
  const CaptureTrigger gate = choose_trigger(parse_trigger("LLM:anything"), nullptr);
  EXPECT_EQ(gate.kind, Kind::kMark);
  EXPECT_EQ(gate.mark, (StageMark{"LLM", "anything"}));
  EXPECT_FALSE(gate.is_registered) << "unknown, so nsys must look at all strings";
}

TEST(ChooseGate, AutoTakesTheWidestMark) {
  const std::vector<SeenMark> marks = {seen("", "request"), seen("LLM", "decode_step"),
                                       seen("LLM", "prefill", false), seen("LLM", "other")};
  const CaptureTrigger gate = choose_trigger(parse_trigger("auto"), &marks);
  EXPECT_EQ(gate.kind, Kind::kMark);
  EXPECT_EQ(gate.mark, (StageMark{"LLM", "prefill"})) << "domain LLM before the default domain";
  EXPECT_FALSE(gate.is_registered);
  EXPECT_THAT(gate.reason, HasSubstr("entered 3 times"));

  const std::vector<SeenMark> plain = {seen("", "decode_step"), seen("", "decode")};
  EXPECT_EQ(choose_trigger(parse_trigger("auto"), &plain).mark, (StageMark{"", "decode"}));
  EXPECT_TRUE(choose_trigger(parse_trigger("auto"), &plain).is_registered);
}

TEST(ChooseGate, AutoRecordsEverythingWhereNoStageIsMarked) {
  const std::vector<SeenMark> foreign = {seen("NCCL", "ncclAllReduce"), seen("other", "request")};
  const std::vector<SeenMark> nothing;
  for (const std::vector<SeenMark>* marks : {&foreign, &nothing}) {
    const CaptureTrigger gate = choose_trigger(parse_trigger("auto"), marks);
    EXPECT_EQ(gate.kind, Kind::kEverything);
    EXPECT_THAT(gate.reason, HasSubstr("no mark of a stage"));
  }
}

TEST(ChooseGate, TheOtherWishesDoNotLookAtMarks) {
  const std::vector<SeenMark> marks = {seen("LLM", "request")};
  EXPECT_EQ(choose_trigger(parse_trigger("none"), &marks).kind, Kind::kEverything);
  EXPECT_EQ(choose_trigger(parse_trigger("cuda_profiler_api"), &marks).kind,
            Kind::kCudaProfilerApi);
}

TEST(ChooseGate, AMarkMustHaveBeenSeen) {
  const std::vector<SeenMark> marks = {seen("LLM", "request", false), seen("Engine", "step")};
  EXPECT_EQ(choose_trigger(parse_trigger("Engine:step"), &marks).mark,
            (StageMark{"Engine", "step"}));
  EXPECT_TRUE(choose_trigger(parse_trigger("Engine:step"), &marks).is_registered);
  EXPECT_FALSE(choose_trigger(parse_trigger("LLM:request"), &marks).is_registered);

  const auto expect_not_fired = [&](const std::vector<SeenMark>& in, const char* gate,
                                    const std::string& message, const std::string& hint) {
    SCOPED_TRACE(gate);
    expect_error([&] { choose_trigger(parse_trigger(gate), &in); }, ErrorKind::kContract,
                 HasSubstr(message), HasSubstr(hint));
  };
  expect_not_fired(marks, "step:Engine", "range and domain are swapped", "run.gate=Engine:step");
  expect_not_fired(marks, "LLM:reqest", "never entered", "did you mean run.gate=LLM:request?");
  expect_not_fired(marks, "zzzzzzzz:yyyyyyyyyyy", "never entered",
                   "seen: LLM:request, Engine:step");
  expect_not_fired({}, "LLM:request", "saw no NVTX range", "run.gate=none");
}

TEST(ChooseGate, AListOfSeenMarksStaysShort) {
  std::vector<SeenMark> marks;
  for (int i = 0; i < 1000; ++i) {
    marks.push_back(seen("D", ("range number " + std::to_string(i)).c_str()));
  }
  try {
    choose_trigger(parse_trigger("zzzzzzzz:yyyyyyyyyyy"), &marks);
    ADD_FAILURE() << "no Error was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.hint(), HasSubstr("range number 7"));
    EXPECT_THAT(error.hint(), Not(HasSubstr("range number 8")));
  }
}

TEST(NsysGate, Options) {
  CaptureTrigger gate{Kind::kMark, {"LLM", "request"}, true, ""};
  EXPECT_THAT(nsys_trigger_options(gate),
              ElementsAre("--capture-range=nvtx", "--nvtx-capture=request@LLM",
                          "--capture-range-end=none"));
  gate.mark.domain = "";
  EXPECT_THAT(nsys_trigger_options(gate), Contains("--nvtx-capture=request"));
  gate.kind = Kind::kCudaProfilerApi;
  EXPECT_THAT(nsys_trigger_options(gate),
              ElementsAre("--capture-range=cudaProfilerApi", "--capture-range-end=stop"));
  gate.kind = Kind::kEverything;
  EXPECT_THAT(nsys_trigger_options(gate), IsEmpty());
}

TEST(NsysGate, StringsThatAreNotRegisteredMustBeLookedAt) {
  CaptureTrigger gate{Kind::kMark, {"LLM", "request"}, false, ""};
  EXPECT_THAT(nsys_trigger_environment(gate),
              ElementsAre(Pair("NSYS_NVTX_PROFILER_REGISTER_ONLY", "0")));
  gate.is_registered = true;
  EXPECT_THAT(nsys_trigger_environment(gate), IsEmpty());
  for (const Kind kind : {Kind::kEverything, Kind::kCudaProfilerApi}) {
    EXPECT_THAT(nsys_trigger_environment({kind, {}, false, ""}), IsEmpty());
  }
}

TEST(NcuGate, PushPopHasASlashStartEndHasNone) {
  const NcuTool old = ncu_with({"--nvtx"});
  SeenMark mark = seen("LLM", "prefill");
  EXPECT_THAT(ncu_gate_options({mark}, old),
              ElementsAre("--nvtx", "--nvtx-include", "LLM@prefill/"));
  mark.is_push_pop = false;
  mark.is_start_end = true;
  EXPECT_THAT(ncu_gate_options({mark}, old),
              ElementsAre("--nvtx", "--nvtx-include", "LLM@prefill"));
  mark.is_push_pop = true;
  EXPECT_THAT(ncu_gate_options({mark, seen("", "a b")}, old),
              ElementsAre("--nvtx", "--nvtx-include", "LLM@prefill/", "--nvtx-include",
                          "LLM@prefill", "--nvtx-include", "a b/"));
  EXPECT_THAT(ncu_gate_options({}, old), IsEmpty());
}

TEST(NcuGate, ScopeIsSaidWhereItCanBe) {
  EXPECT_THAT(
      ncu_gate_options({seen("LLM", "prefill")}, ncu_with({"--nvtx-push-pop-scope"})),
      ElementsAre("--nvtx", "--nvtx-include", "LLM@prefill/", "--nvtx-push-pop-scope", "process"));
  EXPECT_THAT(ncu_gate_options({}, ncu_with({"--nvtx-push-pop-scope"})), IsEmpty());
}

TEST(NcuGate, ItsOwnCharactersAreEscaped) {
  EXPECT_THAT(ncu_gate_options({seen("d@", R"(@,[]/*+\ .)")}, ncu_with({})),
              ElementsAre("--nvtx", "--nvtx-include", R"(d\@@\@\,\[\]\/\*\+\\ ./)"));
}

// What ncu itself says to a filter.
int answer_of(const NcuTool& ncu, std::vector<std::string> options) {
  options.insert(options.begin(), ncu.path.string());
  options.emplace_back("/bin/true");
  Process question{options, {{"PATH", "/usr/bin:/bin"}, {"HOME", "/tmp"}}};
  question.timeout = std::chrono::seconds(60);
  return run_process(question).exit_code;
}

TEST(NcuGate, TheInstalledNcuAcceptsWhateverARangeIsNamed) {
  const char* path = std::getenv("PATH");
  const System system{{{"PATH", path == nullptr ? "" : path}}, "/"};
  if (!find_on_path(system, "ncu")) {
    GTEST_SKIP() << "ncu is not installed";
  }
  const NcuTool ncu = ensure_ncu(system);
  // First that it does judge: domains of two kinds, no domain before @, a bad expression.
  for (const char* broken : {"a@b@c", "@a", "a@b/c@d", "regex:("}) {
    EXPECT_EQ(answer_of(ncu, {"--nvtx", "--nvtx-include", broken}), 255) << broken;
  }
  std::vector<SeenMark> marks;
  for (const char* name :
       {"prefill", "user@host", "a,b", "[a]", "a/b", "*", "+", "a b", "\\", "a\\",
        "\xc3\xa9\xe4\xb8\xad", "x@", "/", ",@/", "-x", "a\nb", "'\"$(x)"}) {
    for (const char* domain : {"", "LLM", name}) {
      marks.push_back({{domain, name}, 1, true, true, true});
    }
  }
  marks.push_back({{"LLM", "@"}, 1, true, true, true});  // in the default domain 2022.3 refuses it
  if (answer_of(ncu, ncu_gate_options(marks, ncu)) == 0) {
    return;
  }
  for (const SeenMark& mark : marks) {
    EXPECT_EQ(answer_of(ncu, ncu_gate_options({mark}, ncu)), 0) << mark.mark.text();
  }
  ADD_FAILURE() << "each alone is taken, all together are not";
}

}  // namespace
}  // namespace gpuwhy
