// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/efficiency_setup.h"
#include "model/gpu.h"
#include "model/llm.h"

namespace gpuwhy {

// A model as a user names it.
struct NamedModel {
  std::string name;
  Llm llm;
};

// `given` is a name in conf/model/llm, a YAML file of that form, or anything that load_llm()
// accepts. Throws kUsage with the nearest name otherwise.
NamedModel named_model(const std::string& given);

// Names in conf/model/llm, for completion.
std::vector<std::string> model_names();

// --image: "1024x1024", or "1024x1024+2x3" with a grid of crops. Throws kUsage.
ImageSize image_of(const std::string& text);

// conf/hardware/gpus.yaml.
std::vector<GpuSpec> known_gpus();

// The GPU that a user names; `given` may also be a YAML file of the same form, whose first row is
// used. Throws kUsage if several GPUs have the name; without a GPU if it is not known.
GpuMatch named_gpu(const std::string& given);
// The same, but a name that is not known is kUsage, too: a recording is compared with this GPU.
GpuMatch chosen_gpu(const std::string& given);

// What a user says of the model behind a recording. `setup` holds its numbers; the names complete
// it. Empty names: the recorded GPU, no image.
struct ModelChoice {
  std::string model;
  std::string gpu_name;
  std::string image;
  EfficiencySetup setup;
};
EfficiencySetup model_setup(const ModelChoice& choice);

}  // namespace gpuwhy
