// SPDX-License-Identifier: Apache-2.0
#include "session/writing/software.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "base/units.h"
#include "capture/subprocess.h"
#include "capture/tools.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;
using std::string_literals::operator""s;

TEST(Software, NamesOfMetadataFolders) {
  EXPECT_THAT(package_of("torch-2.5.1+cu124.dist-info"), Optional(Pair("torch", "2.5.1+cu124")));
  EXPECT_THAT(package_of("TensorRT_LLM-0.12.0.dist-info"),
              Optional(Pair("tensorrt-llm", "0.12.0")));
  EXPECT_THAT(package_of("zope.event-5.0.dist-info"), Optional(Pair("zope-event", "5.0")));
  for (const std::string name :
       {"", "-", ".dist-info", "-1.dist-info", "torch.dist-info", "torch-.dist-info", "torch",
        "torch-2.5.1", "-.dist-info", "dist-info"}) {
    EXPECT_FALSE(package_of(name)) << name;
  }
  EXPECT_FALSE(package_of(std::string(4000, 'a') + "-1.dist-info"));
}

// A machine with a process 7, whose interpreter is that of a virtual environment.
class PlantedProcess : public testing::Test {
 protected:
  PlantedProcess() : packages(folder.path() / "venv/lib/python3.11/site-packages") {
    system.root = folder.path() / "root";
    // The interpreter holds the version of another library, too.
    add_python("x\0003.45.1\0003.11.\00013.11.1\0003.11.2-x\0/usr/3.11.7\0y"s);
    folder.add("venv/pyvenv.cfg", "");
    fs::create_directories(folder.path() / "venv/bin");
    fs::create_symlink(python, folder.path() / "venv/bin/python");
    fs::create_directories(packages / "torch-2.5.1.dist-info");
    fs::create_directories(folder.path() / "venv/lib/python3.9/site-packages/torch-1.0.dist-info");
    folder.add("root/proc/7/cmdline",
               (folder.path() / "venv/bin/python").string() + '\0' + "x.py" + '\0');
    fs::create_symlink(python, folder.path() / "root/proc/7/exe");
    map_files({python.string(), python.string()});
  }

  void add_python(const std::string& bytes) { python = folder.add("usr/bin/python3.11", bytes); }

  void map_files(const std::vector<std::string>& files) {
    std::string text =
        "7ffd1000-7ffd2000 r-xp 00000000 00:00 0  [vdso]\n7f00-7f01 rw-p 00000000 00:00 0\n";
    for (const std::string& file : files) {
      text += "7f0000001000-7f0000002000 r-xp 00000000 fe:01 123  " + file + "\n";
    }
    folder.add("root/proc/7/maps", text);
  }

  Json program() { return program_json({"/bin/sh"}, files_of_process(system, 7)); }

  TemporaryDirectory folder;
  System system;
  fs::path packages;
  fs::path python;
};

TEST_F(PlantedProcess, HasTheVersionsOfItsEnvironment) {
  map_files({python.string(), "/usr/local/cuda/lib64/libcudart.so.12.4.127",
             "/opt/libnccl.so.2.21.5", "/opt/libggml-cuda.so", "/lib/libc.so.6",
             "/x/libcudartlike.so.9", "/dev/nvidiactl"});
  const Json json = program();
  EXPECT_EQ(json["seen_running"], true);
  EXPECT_EQ(json["python"], "3.11.7");
  EXPECT_EQ(json["torch"], "2.5.1");
  EXPECT_EQ(json["cuda_runtime"], "12.4.127");
  EXPECT_EQ(json["path"], (folder.path() / "venv/bin/python").string());
  EXPECT_EQ(json["package_folders"], Json::array({packages.string()}));
  EXPECT_EQ(json["libraries"], Json::parse(R"([{"name": "libcudart", "version": "12.4.127"},
      {"name": "libggml", "version": null}, {"name": "libnccl", "version": "2.21.5"},
      {"name": "python3.11", "version": null}])"));
  EXPECT_TRUE(json["engine"].is_null());
  EXPECT_THAT(json["reasons"]["engine"].get<std::string>(), HasSubstr("no engine"));
  EXPECT_FALSE(json["reasons"].contains("torch"));
}

TEST_F(PlantedProcess, WheelsHaveTheWholeVersionOfCuda) {
  const std::string wheel = (packages / "nvidia/cuda_runtime/lib/libcudart.so.12").string();
  map_files({wheel});
  EXPECT_EQ(program()["cuda_runtime"], "12");
  fs::create_directories(packages / "nvidia_cuda_runtime_cu12-12.4.127.dist-info");
  EXPECT_EQ(program()["cuda_runtime"], "12.4.127");
}

// A shell script starts "python" of an environment that it has activated.
TEST_F(PlantedProcess, AProgramIsFoundOnItsOwnPath) {
  folder.add("root/proc/7/cmdline", std::string("python\0x.py\0", 12));
  fs::permissions(python, fs::perms::owner_all);
  const std::string path = "PATH=/nonexistent:" + (folder.path() / "venv/bin").string();
  folder.add("root/proc/7/environ", "HOME=/\0"s + path + '\0');
  EXPECT_EQ(program()["path"], (folder.path() / "venv/bin/python").string());
  EXPECT_EQ(program()["torch"], "2.5.1");
  folder.add("root/proc/7/environ", "");
  EXPECT_EQ(program()["path"], python.string());
}

// Files are mapped from a folder that is not beside the interpreter: it comes after the virtual
// environment's own.
TEST_F(PlantedProcess, FoldersThatFilesAreMappedFrom) {
  const fs::path system_folder = folder.path() / "usr/lib/python3/dist-packages";
  fs::create_directories(system_folder / "torch-1.13.0.dist-info");
  fs::create_directories(system_folder / "numpy-1.24.2.dist-info");
  map_files({(system_folder / "numpy/core/_multiarray.so").string()});
  EXPECT_EQ(program()["packages"], Json::parse(R"([{"name": "numpy", "version": "1.24.2"},
      {"name": "torch", "version": "2.5.1"}])"));
}

TEST_F(PlantedProcess, HostileNamesAndFilesAreOnlyNames) {
  fs::create_directories(packages / "evil\x1b[2J\n-\xff.dist-info");
  fs::create_directory_symlink(packages, packages / "loop-1.dist-info");
  fs::create_directory_symlink("self", packages.parent_path() / "self");
  map_files({"/a/" + std::string(100'000, 'b') + "/libcudart.so.1", "/../\\012/libnccl.so.\x1b[2J",
             packages.parent_path() / "self/site-packages/x.so", "/site-packages/", "//", "/"});
  add_python("");
  fs::resize_file(python, 300 * kMiB);
  const Json json = program();
  EXPECT_TRUE(json["python"].is_null());
  EXPECT_THAT(json["reasons"]["python"].get<std::string>(), HasSubstr("Python"));
  EXPECT_EQ(json["cuda_runtime"], "1");
  EXPECT_EQ(json["torch"], "2.5.1");
  EXPECT_FALSE(to_json_text(json).empty());
}

TEST_F(PlantedProcess, ManyMappingsAreCut) {
  std::ofstream maps(folder.path() / "root/proc/7/maps");
  for (int i = 0; i < 250'000; ++i) {
    maps << "7f00-7f01 r-xp 0 0 0 /usr/lib/libx.so\n";
  }
  maps << "7f00-7f01 r-xp 0 0 0 /usr/lib/libcudart.so.12\n";
  maps.close();
  EXPECT_TRUE(files_of_process(system, 7)->libraries.empty());
}

TEST_F(PlantedProcess, OneThatWasNotSeenSaysSo) {
  EXPECT_FALSE(files_of_process(system, 8));
  folder.add("root/proc/9/maps", "");
  EXPECT_FALSE(files_of_process(system, 9));
  const Json json = program_json({(folder.path() / "venv/bin/python").string()}, std::nullopt);
  EXPECT_EQ(json["seen_running"], false);
  EXPECT_EQ(json["python"], "3.11.7");
  EXPECT_EQ(json["torch"], "2.5.1");
  EXPECT_EQ(json["reasons"]["cuda_runtime"], "it was not seen running");
}

class Repository : public testing::Test {
 protected:
  void SetUp() override {
    system = this_system();
    system.environment["HOME"] = folder.path();
    system.environment["GIT_DIR"] = "/nonexistent";  // is not handed to git
    if (!find_on_path(system, "git")) {
      GTEST_SKIP() << "git is not installed";
    }
    file = folder.add("repository/bin/work", "one\n");
    git({"init", "--quiet"});
    git({"add", "bin/work"});
    git({"-c", "user.name=x", "-c", "user.email=x@x", "commit", "--quiet", "-m", "x"});
  }

  std::string git(std::vector<std::string> words) {
    words.insert(words.begin(), find_on_path(system, "git")->string());
    std::map<std::string, std::string> environment = system.environment;
    environment.erase("GIT_DIR");
    const ProcessResult result =
        run_process({words, environment, std::chrono::seconds(20), folder.path() / "repository"});
    EXPECT_TRUE(result.succeeded()) << result.err;
    return result.out;
  }

  Json state() { return source_json(system, {"/bin/sh", "--option", file}); }

  // What a repository could start, if it were asked to.
  std::string trap() {
    return folder.add_script("trap", "touch " + (folder.path() / "sprung").string() + "\ncat\n");
  }
  bool is_sprung() { return fs::exists(folder.path() / "sprung"); }

  TemporaryDirectory folder;
  System system;
  std::string file;
};

TEST_F(Repository, HasACommitAndMayBeDirty) {
  Json json = state();
  EXPECT_EQ(json["commit"].get<std::string>() + "\n", git({"rev-parse", "HEAD"}));
  EXPECT_EQ(json["folder"], fs::canonical(folder.path() / "repository").string());
  EXPECT_EQ(json["dirty"], false);
  folder.add("repository/new", "");  // git does not track it
  EXPECT_EQ(state()["dirty"], false);
  folder.add("repository/bin/work", "two\n");
  EXPECT_EQ(state()["dirty"], true);
  EXPECT_TRUE(state()["reason"].is_null());
}

TEST_F(Repository, StartsNoProgramOfItsConfiguration) {
  git({"config", "core.fsmonitor", trap()});
  folder.add("repository/bin/work", "two\n");
  EXPECT_EQ(state()["dirty"], true);
  EXPECT_FALSE(is_sprung());
  git({"config", "--unset", "core.fsmonitor"});
  folder.add("repository/.gitattributes", "* filter=evil\n");
  git({"config", "filter.evil.clean", trap()});
  const auto expect_unasked = [&] {
    folder.add("repository/bin/work", "thr\n");
    const Json json = state();
    EXPECT_EQ(json["commit"].get<std::string>().size(), 40U);
    EXPECT_TRUE(json["dirty"].is_null());
    EXPECT_THAT(json["reason"].get<std::string>(), HasSubstr("may start programs"));
    EXPECT_FALSE(is_sprung());
  };
  expect_unasked();
  git({"config", "--unset", "filter.evil.clean"});
  folder.add("repository/more", "[Filter \"evil\"]\n  process = " + trap() + "\n");
  git({"config", "include.path", "../more"});
  expect_unasked();
  // The trap is one: git as people call it springs it.
  git({"status", "--porcelain"});
  EXPECT_TRUE(is_sprung());
}

TEST_F(Repository, WhatIsNotKnownHasAReason) {
  fs::remove_all(folder.path() / "repository/.git");
  git({"init", "--quiet"});
  EXPECT_TRUE(state()["commit"].is_null());
  EXPECT_THAT(state()["reason"].get<std::string>(), HasSubstr("HEAD"));
  system.environment["PATH"] = folder.path();
  EXPECT_EQ(state()["reason"], "git is not on PATH");
  fs::permissions(folder.add("git", "no program\n"), fs::perms::owner_all);
  EXPECT_THAT(state()["reason"].get<std::string>(), HasSubstr("not a program"));
}

}  // namespace
}  // namespace gpuwhy
