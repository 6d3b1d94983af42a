// SPDX-License-Identifier: Apache-2.0
//
// Name and version of the engine that a command line starts, and whether its preset fits it.
//
// The version is the one in the package's metadata folder next to the interpreter
// (lib/python3.11/site-packages/vllm-0.10.1.dist-info): reading it costs nothing, while asking the
// engine means to import it. What it gets wrong: a program that changes its own search path.
//
// Whether a version takes a setting is read from its sources, for the same reason: a word that the
// file does not have is an option that the engine would end at, or a variable that it ignores. What
// that gets wrong: a word that moved to another file.
#include "session/writing/engine_version.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "capture/tools.h"
#include "session/record/run_options.h"
#include "session/writing/software.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

struct KnownEngine {
  const char* preset;   // of conf/workload/
  const char* name;     // as analysis/findings/workload.cc calls it
  const char* package;  // of Python, with '_' for '-'; empty: not of Python
  // The sources that show whether a version takes what the preset sets: which version it was read
  // from, the file, and the words in it. Empty: the preset sets nothing.
  const char* read_in = "";
  const char* file = "";
  std::array<const char*, 3> words = {};
};
constexpr std::array<KnownEngine, 6> kEngines = {
    {{"vllm",
      "vllm",
      "vllm",
      "0.26.1rc0",
      "vllm/config/profiler.py",
      {"profiler", "detailed_trace_annotation", "max_iterations"}},
     {"sglang",
      "sglang",
      "sglang",
      "the sources of 2026-08-23",
      "sglang/srt/environ.py",
      {"SGLANG_ENABLE_NVTX_SCHEDULER"}},
     {"trtllm",
      "tensorrt-llm",
      "tensorrt_llm",
      "the sources of 2026-10",
      "tensorrt_llm/_torch/pyexecutor/py_executor.py",
      {"TLLM_PROFILE_START_STOP"}},
     {"transformers", "transformers", "transformers"},
     {"llama_cpp", "llama.cpp", ""},
     {"llama_server", "llama.cpp", ""}}};

// The version beside the interpreter or script at `program`; empty unless there is exactly one.
std::string installed_version(const fs::path& program, const std::string& package) {
  std::set<std::string> versions;
  std::string name = package;
  std::ranges::replace(name, '_', '-');
  for (const fs::path& packages : package_folders(program)) {
    std::error_code failure;
    for (const fs::directory_entry& entry : fs::directory_iterator(packages, failure)) {
      const auto found = package_of(entry.path().filename().string());
      if (found && found->first == name) {
        versions.insert(found->second);
      }
    }
  }
  const std::string version = versions.size() == 1 ? *versions.begin() : "";
  return version.size() <= 64 && printable(version) == version ? version : "";
}

// The text of a source file; empty if it cannot be read. No real one is larger than this.
std::string source_text(const fs::path& path) {
  constexpr std::size_t kMostBytes = 4 << 20;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

// Whether a name is in a text, alone: "profiler" is not in "torch_profiler_dir".
bool has_name(std::string_view text, std::string_view name) {
  const auto is_part = [&](std::size_t at) {
    return at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    if (!is_part(at - 1) && !is_part(at + name.size())) {
      return true;
    }
  }
  return false;
}

std::optional<PresetFit> fit_of(const fs::path& program, const KnownEngine& engine) {
  PresetFit fit{engine.package, "", engine.read_in, engine.file, {}};
  for (const fs::path& packages : package_folders(program)) {
    std::error_code failure;
    if (fit.file.empty() || !fs::is_directory(packages / fit.package, failure)) {
      continue;
    }
    fit.version = installed_version(program, fit.package);
    const std::string text = source_text(packages / fit.file);
    for (const char* const word : engine.words) {
      if (word != nullptr && !has_name(text, word)) {
        fit.unknown.emplace_back(word);
      }
    }
    return fit;
  }
  return std::nullopt;
}

const KnownEngine* engine_started_by(const std::vector<std::string>& argv) {
  const auto preset = argv.empty() ? std::nullopt : recognised_workload(argv);
  const auto* engine = std::find_if(kEngines.begin(), kEngines.end(), [&](const KnownEngine& one) {
    return preset && *preset == one.preset;
  });
  return engine == kEngines.end() ? nullptr : engine;
}

}  // namespace

std::optional<PresetFit> preset_fit(const std::vector<std::string>& argv) {
  const KnownEngine* const engine = engine_started_by(argv);
  return engine == nullptr ? std::nullopt : fit_of(argv[0], *engine);
}

std::vector<std::string> accepted_arguments(const std::vector<std::string>& arguments,
                                            const std::vector<std::string>& unknown) {
  std::vector<std::string> accepted;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string name = arguments[i].substr(arguments[i].rfind('.') + 1);
    const bool is_option = arguments[i].starts_with("--");
    if (is_option && std::find(unknown.begin(), unknown.end(), name) != unknown.end()) {
      ++i;  // and its value
    } else {
      accepted.push_back(arguments[i]);
    }
  }
  return accepted;
}

Check check_engines(const System& system) {
  std::vector<std::string> found;
  std::vector<std::string> unfit;
  for (const KnownEngine& engine : kEngines) {
    // Beside the engine's own program, else beside Python.
    std::optional<PresetFit> fit;
    for (const std::string program : {engine.package, "python3", "python"}) {
      const auto path = find_on_path(system, program);
      fit = fit || !path ? fit : fit_of(*path, engine);
    }
    if (!fit) {
      continue;
    }
    found.push_back(fmt::format("{} {}", engine.name,
                                fit->version.empty() ? "of an unknown version" : fit->version));
    if (!fit->unknown.empty()) {
      unfit.push_back(fmt::format("{} has no {} in {}, which its preset uses (read in {})",
                                  found.back(), fmt::join(fit->unknown, " and no "), fit->file,
                                  fit->read_in));
    }
  }
  if (!unfit.empty()) {
    return {"engines", CheckStatus::kWarn, fmt::format("{}", fmt::join(unfit, "; ")),
            "steps may not be marked: docs/serving.md lists the settings of each engine"};
  }
  if (found.empty()) {
    return {"engines", CheckStatus::kSkip, "no vLLM, SGLang or TensorRT-LLM is on PATH", ""};
  }
  return {"engines", CheckStatus::kOk,
          fmt::format("{}: the sources have what the presets use", fmt::join(found, ", ")), ""};
}

EngineName engine_of(const std::vector<std::string>& argv) {
  const KnownEngine* const engine = engine_started_by(argv);
  if (engine == nullptr) {
    return {};
  }
  const std::string package = engine->package;
  return {engine->name, package.empty() ? "" : installed_version(argv[0], package)};
}

}  // namespace gpuwhy
