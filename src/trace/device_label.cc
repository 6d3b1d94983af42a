// SPDX-License-Identifier: Apache-2.0
//
// Labels of GPUs. The runtime that launched on a device tells its vendor, if the recording shows
// it; otherwise its name does.
#include "trace/device_label.h"

#include <string_view>

#include <fmt/format.h>

namespace gpuwhy {

std::string device_label(const DeviceInfo& device) {
  const std::string_view name = device.name;
  const bool is_amd = name.starts_with("AMD") || name.find("Instinct") != std::string_view::npos ||
                      name.find("Radeon") != std::string_view::npos;
  if (name.empty() && device.runtime == GpuRuntime::kUnknown) {
    return fmt::format("GPU {}", device.ordinal);
  }
  const bool is_hip = is_amd || device.runtime == GpuRuntime::kHip;
  return fmt::format("{}:{}", is_hip ? "hip" : "cuda", device.ordinal);
}

}  // namespace gpuwhy
