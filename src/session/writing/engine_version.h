// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "capture/doctor.h"

namespace gpuwhy {

// The inference or training engine of a program.
struct EngineName {
  std::string name;  // "vllm", "sglang", "tensorrt-llm", "transformers", "llama.cpp"; may be empty
  std::string version;  // empty: unknown
};

// The engine that a command line starts, and its version if exactly one is installed where the
// program comes from. `argv[0]` is a path. Starts nothing.
EngineName engine_of(const std::vector<std::string>& argv);

// Whether an installed engine takes what its preset in conf/workload/ sets: its sources have the
// words or not. Starts nothing.
struct PresetFit {
  std::string package;
  std::string version;               // installed; empty: unknown
  std::string read_in;               // the version that the preset was read from
  std::string file;                  // of the sources
  std::vector<std::string> unknown;  // words of the preset that they do not have
};

// Of the engine that a command line starts; nullopt if it is not found beside the program, or the
// preset names no sources.
std::optional<PresetFit> preset_fit(const std::vector<std::string>& argv);

// Arguments of a preset without those that the engine would refuse: "--group.NAME" and its value
// where NAME is one of `unknown`.
std::vector<std::string> accepted_arguments(const std::vector<std::string>& arguments,
                                            const std::vector<std::string>& unknown);

// The engines that programs on PATH would start.
Check check_engines(const System& system);

}  // namespace gpuwhy
