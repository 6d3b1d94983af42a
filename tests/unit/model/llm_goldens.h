// SPDX-License-Identifier: Apache-2.0
//
// The models of tests/data/llm_costs.yaml.
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/yaml.h"
#include "folders.h"
#include "model/llm.h"

namespace gpuwhy {

inline const Json& golden_models() {
  static const Json kModels =
      parse_yaml(read_file(std::string(data_folder()) + "/llm_costs.yaml"), "llm_costs.yaml")
          .at("models");
  return kModels;
}

inline const Json& golden_model(const std::string& name) {
  for (const Json& model : golden_models()) {
    if (model.at("name") == name) {
      return model;
    }
  }
  throw Error(ErrorKind::kFailure, "no such golden: " + name);
}

inline Llm golden_llm(const std::string& name) {
  return llm_from_config(golden_model(name).at("config"));
}

}  // namespace gpuwhy
