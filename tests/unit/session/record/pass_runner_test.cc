// SPDX-License-Identifier: Apache-2.0
#include "session/record/pass_runner.h"

#include "base/file.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

class ToldProgress : public Progress {
 public:
  void begin(const std::string& step) override { told.push_back(step + "..."); }
  void update(const StepProgress&) override {}
  void end(const std::string& outcome) override { told.back() += " " + outcome; }
  void note(const std::string&) override {}

  std::vector<std::string> told;
};

std::vector<PassCommand> shell(const std::string& line) {
  return {{{"/bin/sh", "-c", line}, {{"TOKEN", "a-secret-of-the-user"}}, {}}};
}

// Passes of a run without any real tool.
class PassRunnerTest : public testing::Test {
 protected:
  std::vector<std::string> run(const std::vector<Pass>& passes) {
    setup_.passes = passes;
    PassRunner runner(setup_, artifacts_, system_, progress_);
    runner.run_passes();
    breaches_ = runner.breaches();
    records_ = runner.passes();
    return progress_.told;
  }

  TemporaryDirectory directory_;
  const System system_{{{"TOKEN", "a-secret-of-the-user"}, {"TMPDIR", directory_.path().string()}},
                       "/"};
  const Artifacts artifacts_ = *Artifacts::create_named(directory_.path() / "runs", "one");
  RunSetup setup_;
  ToldProgress progress_;
  std::vector<Breach> breaches_;
  std::vector<PassRecord> records_;
};

void run_it(PassRunner& runner) {
  runner.add(check_step(runner.pass().name, {}, runner.run_only_step(), {}));
}

Pass pass_of(const char* name, std::vector<PassCommand> (*commands)(const CommandInputs&)) {
  return {name, "nsys", commands, run_it};
}

TEST_F(PassRunnerTest, KeepsCommandsAndOutputWithoutSecrets) {
  const Pass says = pass_of("first", [](const CommandInputs&) { return shell("echo $TOKEN"); });
  const Pass adds = pass_of("second", [](const CommandInputs&) { return shell("echo more"); });
  EXPECT_EQ(run({says, adds}), (std::vector<std::string>{"first... done", "second... done"}));
  EXPECT_EQ(read_file(artifacts_.path("nsys/log.txt")), "[scrubbed]\nmore\n");
  EXPECT_EQ(read_file(artifacts_.path("nsys/cmd.txt")),
            "/bin/sh -c 'echo $TOKEN'\n/bin/sh -c 'echo more'\n");
  ASSERT_EQ(records_.size(), 2U);
  EXPECT_EQ(records_[1].commands.front().back(), "echo more");
  EXPECT_EQ(records_[1].steps.front().exit_code, 0);
}

TEST_F(PassRunnerTest, AnErrorIsABreachOfItsPassAndTheNextRuns) {
  Pass broken = pass_of("nsys", nullptr);
  broken.run = [](PassRunner&) { throw Error(ErrorKind::kEnvironment, "no tool", "get it"); };
  Pass unable = pass_of("torch", nullptr);
  unable.obstacle = [](PassRunner&) { return std::optional(Reason::kToolMissing); };
  const Pass last = pass_of("ncu", [](const CommandInputs&) { return shell("exit 3"); });
  EXPECT_EQ(run({broken, unable, last}),
            (std::vector<std::string>{"nsys... failed (tool_failed)", "torch... n/a (tool_missing)",
                                      "ncu... failed (workload_failed)"}));
  ASSERT_EQ(breaches_.size(), 2U);
  EXPECT_EQ(breaches_[0].sentence + breaches_[0].next, "no toolget it");
  EXPECT_EQ(records_[0].status + records_[1].status, "failedskipped");
}

TEST_F(PassRunnerTest, NothingRunsAfterABaselineThatFailed) {
  const Pass first = pass_of("baseline", [](const CommandInputs&) { return shell("exit 1"); });
  const Pass next = pass_of("nsys", [](const CommandInputs&) { return shell("exit 0"); });
  EXPECT_EQ(run({first, next}), (std::vector<std::string>{"baseline... failed (workload_failed)",
                                                          "nsys... n/a (baseline_failed)"}));
}

// Only a signal, or a failure of gpuwhy, removes them.
TEST_F(PassRunnerTest, FilesHeldBackAreKeptAfterTheSearch) {
  Pass writes = pass_of("nsys", nullptr);
  writes.run = [](PassRunner& runner) {
    runner.hold_back(runner.folder() / "kept");
    runner.hold_back(runner.folder() / "run.nsys-rep");
    runner.artifacts().write("nsys/kept", "");
    runner.artifacts().write("nsys/run.nsys-rep", "the report has a-secret-of-the-user");
  };
  EXPECT_EQ(run({writes}), (std::vector<std::string>{"nsys... done"}));
  EXPECT_TRUE(fs::exists(artifacts_.path("nsys/kept")));
  EXPECT_FALSE(fs::exists(artifacts_.path("nsys/run.nsys-rep")));
  ASSERT_EQ(breaches_.size(), 1U);
  EXPECT_EQ(breaches_[0].reason, Reason::kSecretsInReport);

  Pass fails = writes;
  fails.run = [](PassRunner& runner) {
    runner.hold_back(runner.folder() / "kept");
    throw std::bad_alloc();
  };
  EXPECT_THROW(run({fails}), std::bad_alloc);
  EXPECT_FALSE(fs::exists(artifacts_.path("nsys/kept")));
}

}  // namespace
}  // namespace gpuwhy
