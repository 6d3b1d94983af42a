// SPDX-License-Identifier: Apache-2.0
//
// What a model target of conf/model/llm says of itself: how it is run, and what it costs.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/efficiency/efficiency.h"
#include "capture/machine.h"
#include "capture/system.h"
#include "session/reading/named_model.h"

namespace gpuwhy {

struct Config;

// model.workload, and the file it is about. Argument lists, in which {model} stands for the model's
// file, {out} for the folder of the pass in the bundle and {file} for where the table of operators
// is wanted.
struct TargetWorkload {
  std::vector<std::string> command;    // what runs it, where no command is given after --
  std::vector<std::string> prepare;    // makes the model's file where it is not there
  std::vector<std::string> operators;  // after the command, ask for a table of operators
  std::filesystem::path model_file;    // model.config where it is a path; may be empty

  // There is something to make before the first pass.
  bool needs_preparation() const;
};

// Programs are found on PATH or beside gpuwhy; `has_command`: the user gave one, the target's is
// not needed. Throws kUsage when one is needed and nowhere, or when the model's file is missing and
// nothing makes it.
TargetWorkload target_workload_of(const Config& config, const System& system, bool has_command);

// `words` with the placeholders of `values` replaced, as {"out", "/bundle/nsys"}. Other braces
// stay.
std::vector<std::string> filled(std::vector<std::string> words,
                                const std::map<std::string, std::string>& values);

// The model as the configuration describes it, by its file where that is a path; nothing where it
// does not say its shape. Throws kInput.
std::optional<NamedModel> target_model(const Config& config);

// Its name, size, file and the file's SHA-256, for a bundle; null where no model is named.
Json target_json(const Config& config, const std::optional<NamedModel>& model);

}  // namespace gpuwhy
