// SPDX-License-Identifier: Apache-2.0
//
// What killed runs left, on a made machine and with a process of this one.
#include "capture/stale_runs.h"

#include <csignal>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "bundle/layout.h"
#include "capture/subprocess.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

class MadeMachine : public testing::Test {
 protected:
  // A process as /proc shows it; the name may hold anything.
  void add_process(int pid, const std::string& name, const std::string& start_time,
                   const std::string& environment) {
    const std::string folder = fmt::format("root/proc/{}/", pid);
    directory.add(folder + "stat",
                  fmt::format("{} ({}) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 {} 20 21\n",
                              pid, name, start_time));
    directory.add(folder + "comm", name + "\n");
    directory.add(folder + "environ", environment);
  }

  std::filesystem::path add_bundle(const std::string& name, const std::string& running) {
    directory.add("artifacts/" + name + "/" + layout::kRunning, running);
    return directory.path() / "artifacts" / name;
  }

  Leftovers find() { return find_leftovers(system, directory.path() / "artifacts"); }

  std::string belongs_to(const std::filesystem::path& bundle) const {
    return "A=1" + std::string(1, '\0') + kRunVariable + "=" + bundle.string() + '\0' + "Z=";
  }

  TemporaryDirectory directory;
  System system{{}, directory.path() / "root"};
};

TEST_F(MadeMachine, NothingIsLeftWhereNothingIs) {
  const Leftovers left = find();
  EXPECT_THAT(left.bundles, IsEmpty());
  EXPECT_THAT(left.processes, IsEmpty());
  EXPECT_THAT(left.running, IsEmpty());
}

TEST_F(MadeMachine, ARunThatGoesOnIsNotALeftover) {
  add_process(500, "gpuwhy) S (x", "77", "");
  const auto bundle = add_bundle("one", R"({"pid": 500, "start_time": "77"})");
  add_process(501, "python", "80", belongs_to(bundle));
  const Leftovers left = find();
  EXPECT_THAT(left.running, ElementsAre(bundle));
  EXPECT_THAT(left.bundles, IsEmpty());
  EXPECT_THAT(left.processes, IsEmpty());
}

TEST_F(MadeMachine, AKilledOneLeavesItsBundleAndItsProcesses) {
  const auto gone = add_bundle("b-gone", R"({"pid": 500, "start_time": "77"})");
  const auto reused = add_bundle("a-reused", R"({"pid": 502, "start_time": "77"})");
  add_process(502, "bash", "9999", "");
  add_process(601, "python3", "80", belongs_to(reused));
  add_process(600, "nsys", "80", belongs_to(gone));
  add_process(602, "other", "80", "GPUWHY_RUNNER=/x");
  directory.add("root/proc/self/environ", belongs_to(gone));
  directory.add("root/proc/12x/environ", belongs_to(gone));
  std::filesystem::create_directories(directory.path() / "artifacts/complete");
  const Leftovers left = find();
  EXPECT_THAT(left.bundles, ElementsAre(reused, gone)) << "a reused process number proves nothing";
  EXPECT_THAT(left.running, IsEmpty());
  ASSERT_EQ(left.processes.size(), 2U);
  EXPECT_EQ(left.processes[0].pid, 600);
  EXPECT_EQ(left.processes[0].name, "nsys");
  EXPECT_EQ(left.processes[0].bundle, gone);
  EXPECT_EQ(left.processes[1].pid, 601);
}

TEST_F(MadeMachine, AProcessOfABundleThatWasRemovedIsLeft) {
  add_process(700, "python", "80", belongs_to("/absent/bundle"));
  const Leftovers left = find();
  ASSERT_EQ(left.processes.size(), 1U);
  EXPECT_EQ(left.processes[0].bundle, "/absent/bundle");
}

TEST_F(MadeMachine, BrokenFilesAreNobodyAtWork) {
  add_process(500, "gpuwhy", "77", "");
  for (const char* text :
       {"", "{", "[]", "{}", R"({"pid": "500", "start_time": "77"})", R"({"pid": 500})",
        R"({"pid": 500, "start_time": 77})", R"({"pid": 1e300, "start_time": "77"})",
        R"({"pid": null, "start_time": ""})", R"({"pid": 501, "start_time": ""})"}) {
    add_bundle("x", text);
    EXPECT_EQ(find().bundles.size(), 1U) << text;
    EXPECT_THAT(find().running, IsEmpty()) << text;
  }
  for (const char* stat : {"", "500", "500 (x)", "500 (x) ", "500 (x) S 1 2"}) {
    directory.add("root/proc/500/stat", stat);
    add_bundle("x", R"({"pid": 500, "start_time": ""})");
    EXPECT_EQ(find().bundles.size(), 1U) << stat;
  }
}

TEST(RealMachine, ThisVeryProcessIsAtWork) {
  const TemporaryDirectory directory;
  directory.add(std::string("bundle/") + layout::kRunning,
                running_text("gpuwhy-x", "/tmp/gpuwhy-x"));
  const System system{{}, "/"};
  EXPECT_THAT(find_leftovers(system, directory.path()).running,
              ElementsAre(directory.path() / "bundle"));
  const Json running = parse_json(running_text("gpuwhy-x", "/tmp/gpuwhy-x"), "running.json");
  EXPECT_EQ(running.at("pid").get<int>(), ::getpid());
  EXPECT_EQ(running.at("session").get<std::string>(), "gpuwhy-x");
}

// The user is told to remove it, and the bundle may be untrusted.
TEST_F(MadeMachine, OnlyAFolderOfOursIsAScratchFolder) {
  const auto scratch = directory.path() / "gpuwhy-x";
  const auto link = directory.path() / "gpuwhy-link";
  std::filesystem::create_directory(scratch);
  std::filesystem::create_directory_symlink(scratch, link);
  directory.add("gpuwhy-file", "");
  int count = 0;
  for (const std::string& path :
       {scratch.string(), link.string(), (directory.path() / "gpuwhy-file").string(),
        (directory.path() / "artifacts").string(), scratch.string() + "/../gpuwhy-x",
        std::string("gpuwhy-x"), std::string("/nowhere/gpuwhy-x")}) {
    add_bundle(fmt::format("b{}", ++count),
               to_json_text(Json{{"pid", 500}, {"start_time", "77"}, {"scratch", path}}));
  }
  const auto foreign = directory.path() / "gpuwhy-foreign";
  std::filesystem::create_directory(foreign);
  if (::chown(foreign.c_str(), 4711, 4711) == 0) {
    add_bundle(
        "b-foreign",
        to_json_text(Json{{"pid", 500}, {"start_time", "77"}, {"scratch", foreign.string()}}));
  }
  EXPECT_THAT(find().scratch, ElementsAre(scratch));
}

TEST(RealMachine, AProcessIsFoundByItsVariable) {
  const TemporaryDirectory directory;
  const std::string bundle = (directory.path() / "killed").string();
  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  const pid_t pid = start_process({{"/bin/sleep", "60"}, {{kRunVariable, bundle}}}, null, null);
  ::close(null);
  // A program that was just started shows its environment a moment later.
  std::vector<int> found;
  for (int i = 0; i < 5000 && found.empty(); ++i) {
    ::usleep(10'000);
    for (const auto& process : find_leftovers({{}, "/"}, directory.path()).processes) {
      if (process.bundle == bundle) {
        found.push_back(process.pid);
        EXPECT_EQ(process.name, "sleep");
      }
    }
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  EXPECT_THAT(found, ElementsAre(pid));
}

}  // namespace
}  // namespace gpuwhy
