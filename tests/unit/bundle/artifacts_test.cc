// SPDX-License-Identifier: Apache-2.0
#include "bundle/artifacts.h"

#include <thread>

#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/yaml.h"
#include "bundle/manifest.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

// 2026-11-14 23:54:07 UTC
const auto kNow = std::chrono::system_clock::from_time_t(1794700447);

TEST(Artifacts, ARunIdIsTheSecondInUtc) {
  const TemporaryDirectory directory;
  const Artifacts artifacts = Artifacts::create(directory.path() / "gpuwhy-runs", kNow);
  EXPECT_EQ(artifacts.run_id(), "20261114-235407");
  for (const char* folder : {"nsys", "ncu", "baseline"}) {
    EXPECT_TRUE(fs::is_directory(artifacts.path(folder))) << folder;
  }
  struct stat facts {};
  ASSERT_EQ(::stat(artifacts.root().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700U);
}

TEST(Artifacts, TwoRunsInOneSecondGetTwoDirectories) {
  const TemporaryDirectory directory;
  EXPECT_EQ(Artifacts::create(directory.path(), kNow).run_id(), "20261114-235407");
  EXPECT_EQ(Artifacts::create(directory.path(), kNow).run_id(), "20261114-235407-2");
  EXPECT_EQ(Artifacts::create(directory.path(), kNow).run_id(), "20261114-235407-3");
}

TEST(Artifacts, RunsThatRaceNeverShare) {
  const TemporaryDirectory directory;
  std::vector<std::string> ids(16);
  std::vector<std::thread> threads;
  for (std::string& id : ids) {
    threads.emplace_back([&] { id = Artifacts::create(directory.path(), kNow).run_id(); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
}

TEST(Artifacts, PathsStayInside) {
  const Artifacts artifacts = Artifacts::from_root("/some/run/");
  EXPECT_EQ(artifacts.run_id(), "run");
  EXPECT_EQ(artifacts.path("nsys/log.txt"), "/some/run/nsys/log.txt");
  EXPECT_EQ(artifacts.path("a/../b"), "/some/run/b");
  for (const char* name : {"", "..", "../x", "a/../../x", "/etc/passwd"}) {
    expect_error([&] { artifacts.path(name); }, ErrorKind::kUsage, _, _);
  }
}

TEST(Artifacts, AnUnusablePlaceSaysWhatToType) {
  const TemporaryDirectory directory;
  directory.add("file", "");
  expect_error([&] { Artifacts::create(directory.path() / "file/runs", kNow); },
               ErrorKind::kFailure, HasSubstr("cannot create"), HasSubstr("artifacts.dir="));
}

class Bundle : public testing::Test {
 protected:
  Bundle() : artifacts(Artifacts::create(directory.path(), kNow)) {
    const Json facts = {{"machine", {{"hostname", "box"}}},
                        {"program", {{"path", "/home/planted-secret-1/python"}}}};
    const std::map<std::string, std::string> environment = {{"CUDA_VISIBLE_DEVICES", "0,1"},
                                                            {"VLLM_API_KEY", "planted-secret-1"},
                                                            {"MY_PRIVATE_NOTE", "planted-secret-2"},
                                                            {"HF_TOKEN", "planted-secret-3"}};
    const Json config = {{"run", {{"mode", "deep"}}}, {"env", {{"HF_TOKEN", "planted-secret-4"}}}};
    const Json inputs = {{"command", {"serve", "--api-key", "planted-secret-5", "--port", "80"}}};
    write_provenance(artifacts, {facts, environment, config, inputs}, kNow);
    artifacts.write("nsys/log.txt", "hello\n");
    write_manifest(artifacts, {{"command", {"x", "--token=planted-secret-6"}}});
  }

  TemporaryDirectory directory;
  Artifacts artifacts;
};

TEST_F(Bundle, HoldsNoSecretInAnyFile) {
  for (const auto& file : fs::recursive_directory_iterator(artifacts.root())) {
    if (file.is_regular_file()) {
      EXPECT_THAT(read_file(file.path()), Not(HasSubstr("planted-secret"))) << file.path();
    }
  }
}

TEST_F(Bundle, KeepsWhatExplainsTheRun) {
  const Json env = parse_json(read_file(artifacts.path("env.json")), "env.json");
  EXPECT_EQ(env.at("schema"), "gpuwhy.env");
  EXPECT_EQ(env.at("run_id"), "20261114-235407");
  EXPECT_EQ(env.at("time"), "2026-11-14T23:54:07Z");
  EXPECT_EQ(env.at("machine").at("hostname"), "box");
  EXPECT_EQ(env.at("environment").at("CUDA_VISIBLE_DEVICES"), "0,1");
  EXPECT_EQ(env.at("environment").at("VLLM_API_KEY"), "[scrubbed]");
  EXPECT_FALSE(env.at("environment").contains("MY_PRIVATE_NOTE"));
  const Json inputs = parse_yaml(read_file(artifacts.path("inputs.yaml")), "inputs.yaml");
  EXPECT_THAT(inputs.at("command").get<std::vector<std::string>>(),
              ElementsAre("serve", "--api-key", "[scrubbed]", "--port", "80"));
  EXPECT_EQ(parse_yaml(read_file(artifacts.path("config.yaml")), "c").at("run").at("mode"), "deep");
}

TEST_F(Bundle, ManifestListsEveryFile) {
  const Manifest manifest = read_manifest(artifacts);
  EXPECT_EQ(manifest.run_id, "20261114-235407");
  std::vector<std::string> paths;
  for (const ManifestEntry& file : manifest.files) {
    paths.push_back(file.path);
  }
  EXPECT_THAT(paths, ElementsAre("config.yaml", "env.json", "inputs.yaml", "nsys/log.txt"));
  EXPECT_EQ(manifest.files[3].size_bytes, 6U);
  // sha256sum of "hello\n"
  EXPECT_EQ(manifest.files[3].sha256,
            "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
  EXPECT_THAT(differences(manifest, artifacts), IsEmpty());
}

TEST_F(Bundle, EveryKindOfChangeIsSeen) {
  const Manifest manifest = read_manifest(artifacts);
  artifacts.write("nsys/log.txt", "HELLO\n");
  artifacts.write("config.yaml", "short");
  artifacts.write("ncu/extra.txt", "");
  fs::remove(artifacts.path("inputs.yaml"));
  EXPECT_THAT(
      differences(manifest, artifacts),
      UnorderedElementsAre(HasSubstr("config.yaml has 5 bytes"), "inputs.yaml is missing",
                           "nsys/log.txt was changed", "ncu/extra.txt is not in the manifest"));
}

TEST_F(Bundle, LinksAreNotFollowed) {
  fs::create_symlink("/etc/passwd", artifacts.path("nsys/link"));
  fs::create_directory_symlink("/etc", artifacts.path("ncu/etc"));
  EXPECT_THAT(differences(read_manifest(artifacts), artifacts), IsEmpty());
}

TEST_F(Bundle, DamagedManifestsAreErrors) {
  const std::string good = read_file(artifacts.path("manifest.json"));
  for (const std::string& bad :
       {std::string("{}"), std::string("[]"), std::string("null"), good.substr(0, good.size() / 2),
        std::string(R"({"schema": "gpuwhy.manifest", "schema_version": 99})"),
        std::string(R"({"schema": "gpuwhy.manifest", "schema_version": 1, "run_id": 5})"),
        std::string(R"({"schema": "gpuwhy.manifest", "schema_version": 1, "run_id": "x", "run": {},
                        "files": [{"path": 1}]})"),
        std::string(R"({"schema": "gpuwhy.manifest", "schema_version": 1, "run_id": "x", "run": {},
                        "files": [{"path": "a", "size_bytes": -1.5, "sha256": ""}]})")}) {
    artifacts.write("manifest.json", bad);
    expect_error([&] { read_manifest(artifacts); }, ErrorKind::kInput, HasSubstr("manifest.json"),
                 _);
  }
  fs::remove(artifacts.path("manifest.json"));
  expect_error([&] { read_manifest(artifacts); }, ErrorKind::kInput,
               HasSubstr("not a bundle, or its run did not finish"), _);
}

}  // namespace
}  // namespace gpuwhy
