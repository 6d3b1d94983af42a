// SPDX-License-Identifier: Apache-2.0
#include "serve/drive.h"

#include <chrono>
#include <stdexcept>

#include "base/file.h"
#include "serve/last_statement.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

TEST(Drive, AServerThatEndsBeforeItIsReadyHasDied) {
  const TemporaryDirectory directory;
  DriveScript script;
  script.server.argv = {directory.add_script("server", "echo no memory; exit 3\n").string()};
  script.ready_url = "http://127.0.0.1:9/health";
  script.events = directory.path() / "drive.json";
  std::string output;
  const DriveResult result = drive(script, [&](std::string_view text) { output += text; });
  EXPECT_EQ(result.failure, Reason::kServerDied);
  EXPECT_THAT(result.sentence, HasSubstr("exited with code 3 before it was ready"));
  EXPECT_EQ(output, "no memory\n");
  const auto kept = read_drive_result(script.events);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->failure, Reason::kServerDied);
  EXPECT_EQ(kept->server_exit_code, 3);
}

TEST(Drive, AServerThatDoesNotAnswerIsStopped) {
  const TemporaryDirectory directory;
  DriveScript script;
  script.server.argv = {directory.add_script("server", "exec sleep 60\n").string()};
  script.server.environment = {{"PATH", "/usr/bin:/bin"}};
  script.ready_url = "http://127.0.0.1:9/health";
  script.start_timeout_s = 1;
  const DriveResult result = drive(script, [](std::string_view) {});
  EXPECT_EQ(result.failure, Reason::kServerNotReady);
  EXPECT_THAT(result.sentence, HasSubstr("did not answer with 200 within 1 s"));
  EXPECT_EQ(result.server_exit_code, 130);
}

// A worker waits for the first rank, whose nsys gave up: nobody would answer in 600 s.
TEST(Drive, ARankThatNsysDidNotStartEndsTheWaitForTheServer) {
  const TemporaryDirectory directory;
  DriveScript script;
  script.server.environment = {{"PATH", "/usr/bin:/bin"}};
  script.ready_url = "http://127.0.0.1:9/health";
  script.has_ranks = true;
  for (const char* rest : {"sleep 60", "exit 1"}) {  // srun lets the others wait, mpirun ends them
    script.server.argv = {
        directory
            .add_script("server",
                        std::string("printf 'Agent laun'; sleep 0.3; echo cher failed.; ") + rest)
            .string()};
    const DriveResult result = drive(script, [](std::string_view) {});
    EXPECT_EQ(result.failure, Reason::kServerDied);
    EXPECT_EQ(result.sentence, kRankNotStarted);
  }
  script.has_ranks = false;
  EXPECT_THAT(drive(script, [](std::string_view) {}).sentence,
              HasSubstr("exited with code 1 before it was ready"));
}

TEST(Drive, ClientsGetTheEnvironmentOfBefore) {
  const std::map<std::string, std::string> environment = {
      {"PATH", "/bin"},
      {"LD_PRELOAD", "/scratch/marks.so"},
      {"NVTX_INJECTION64_PATH", "/scratch/timer.so"},
      {"GPUWHY_CLIENT_LD_PRELOAD", "/mine.so"}};
  const std::map<std::string, std::string> expected = {{"PATH", "/bin"},
                                                       {"LD_PRELOAD", "/mine.so"}};
  EXPECT_EQ(client_environment(environment, {"LD_PRELOAD", "NVTX_INJECTION64_PATH"}), expected);
}

TEST(Drive, FailedClientsAreToldByTheirError) {
  const auto told = [](const char* out, const char* err) {
    ProcessResult ended;
    ended.out = out;
    ended.err = err;
    return last_statement(ended);
  };
  EXPECT_EQ(told("", "Traceback (most recent call last):\n  File \"a.py\"\nOSError: gone\n"),
            "OSError: gone");
  EXPECT_EQ(told("", "error: no server\n  hint: start one\n"), "error: no server");
  EXPECT_EQ(told("only here\n", "\n"), "only here");
  EXPECT_EQ(told("", "10%\r20%\rstopped\n"), "stopped");
  EXPECT_EQ(told("", "  all is indented\n"), "  all is indented");
  EXPECT_EQ(told("", ""), "");
}

TEST(Drive, TheClientDecides) {
  const TemporaryDirectory directory;
  DriveScript script;
  script.server.argv = {directory.add_script("server", "exec sleep 60\n").string()};
  script.server.environment = {{"PATH", "/usr/bin:/bin"}};
  script.client = {
      directory.add_script("client", "echo some; echo refused >&2; exit 7\n").string()};
  script.client_log = directory.path() / "client.txt";
  const DriveResult failed = drive(script, [](std::string_view) {});
  EXPECT_EQ(failed.failure, Reason::kClientFailed);
  EXPECT_EQ(failed.sentence, "the client exited with code 7: refused");
  EXPECT_EQ(read_file(script.client_log), "some\nrefused\n");
  EXPECT_GT(failed.end_ns, failed.start_ns);
  script.client = {directory.add_script("client", "exit 0\n").string()};
  EXPECT_EQ(drive(script, [](std::string_view) {}).failure, std::nullopt);
}

// The client would run for a minute more.
TEST(Drive, WhoeverReadsTheOutputMayFail) {
  const TemporaryDirectory directory;
  DriveScript script;
  script.server.argv = {
      directory.add_script("server", "sleep 0.3; echo here; exec sleep 60\n").string()};
  script.server.environment = {{"PATH", "/usr/bin:/bin"}};
  script.client = {directory.add_script("client", "exec sleep 60\n").string()};
  script.client_environment = {{"PATH", "/usr/bin:/bin"}};
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(drive(script,
                     [](std::string_view text) {
                       if (!text.empty()) {
                         throw std::runtime_error("no terminal");
                       }
                     }),
               std::runtime_error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(Drive, AResultThatIsNotWholeIsNone) {
  const TemporaryDirectory directory;
  EXPECT_FALSE(read_drive_result(directory.path() / "absent"));
  write_file(directory.path() / "broken", "{\"event\":\"end\"}");
  EXPECT_FALSE(read_drive_result(directory.path() / "broken"));
}

}  // namespace
}  // namespace gpuwhy
