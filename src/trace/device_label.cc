// SPDX-License-Identifier: Apache-2.0
//
// Labels of GPUs. The name of a device tells its vendor; a device without a name gets the
// label of CUDA, since only PyTorch's traces of AMD GPUs are read and those have names.
#include "trace/device_label.h"

#include <string_view>

#include <fmt/format.h>

namespace llmprof {

std::string device_label(const DeviceInfo& device) {
  const std::string_view name = device.name;
  const bool is_amd = name.starts_with("AMD") || name.find("Instinct") != std::string_view::npos ||
                      name.find("Radeon") != std::string_view::npos;
  return fmt::format("{}:{}", is_amd ? "hip" : "cuda", device.ordinal);
}

}  // namespace llmprof
