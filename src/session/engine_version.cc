// SPDX-License-Identifier: Apache-2.0
//
// Name and version of the engine that a command line starts.
//
// The version is the one in the package's metadata folder next to the interpreter
// (lib/python3.11/site-packages/vllm-0.10.1.dist-info): reading it costs nothing, while asking the
// engine means to import it. What it gets wrong: a program that changes its own search path.
#include "session/engine_version.h"

#include <array>
#include <filesystem>
#include <set>

#include "base/text.h"
#include "session/run_options.h"

namespace llmprof {
namespace {

namespace fs = std::filesystem;

struct KnownEngine {
  const char* preset;   // of conf/workload/
  const char* name;     // as analysis/findings/workload.cc calls it
  const char* package;  // of Python, with '_' for '-'; empty: not of Python
};
constexpr std::array<KnownEngine, 6> kEngines = {{{"vllm", "vllm", "vllm"},
                                                  {"sglang", "sglang", "sglang"},
                                                  {"trtllm", "tensorrt-llm", "tensorrt_llm"},
                                                  {"transformers", "transformers", "transformers"},
                                                  {"llama_cpp", "llama.cpp", ""},
                                                  {"llama_server", "llama.cpp", ""}}};

// Versions of a package in one folder of packages.
void add_versions(const fs::path& packages, const std::string& package,
                  std::set<std::string>& versions) {
  constexpr std::string_view kEnding = ".dist-info";
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(packages, failure)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(package + "-") && name.ends_with(kEnding)) {
      versions.insert(
          name.substr(package.size() + 1, name.size() - package.size() - 1 - kEnding.size()));
    }
  }
}

// The version beside the interpreter or script at `program`; empty unless there is exactly one.
std::string installed_version(const fs::path& program, const std::string& package) {
  std::set<std::string> versions;
  std::error_code failure;
  const fs::path libraries = program.parent_path().parent_path() / "lib";
  for (const fs::directory_entry& entry : fs::directory_iterator(libraries, failure)) {
    if (entry.path().filename().string().starts_with("python3")) {
      add_versions(entry.path() / "site-packages", package, versions);
      add_versions(entry.path() / "dist-packages", package, versions);
    }
  }
  const std::string version = versions.size() == 1 ? *versions.begin() : "";
  return version.size() <= 64 && printable(version) == version ? version : "";
}

}  // namespace

EngineName engine_of(const std::vector<std::string>& argv) {
  const auto preset = argv.empty() ? std::nullopt : recognised_workload(argv);
  for (const KnownEngine& engine : kEngines) {
    if (preset && *preset == engine.preset) {
      const std::string package = engine.package;
      return {engine.name, package.empty() ? "" : installed_version(argv[0], package)};
    }
  }
  return {};
}

}  // namespace llmprof
