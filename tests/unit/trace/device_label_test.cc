// SPDX-License-Identifier: Apache-2.0
//
// Labels of GPUs by vendor.
#include "trace/device_label.h"

#include "testing.h"

namespace gpuwhy {
namespace {

DeviceInfo device(const char* name) {
  DeviceInfo info;
  info.ordinal = 3;
  info.name = name;
  return info;
}

TEST(DeviceLabel, NamesTheRuntimeOfTheVendor) {
  EXPECT_EQ(device_label(device("NVIDIA H100 80GB HBM3")), "cuda:3");
  EXPECT_EQ(device_label(device("")), "cuda:3");
  EXPECT_EQ(device_label(device("AMD Instinct MI300X")), "hip:3");
  EXPECT_EQ(device_label(device("AMD Radeon Graphics")), "hip:3");
  EXPECT_EQ(device_label(device("Radeon RX 7900 XTX")), "hip:3");
  DeviceInfo unnamed = device("");
  unnamed.runtime = GpuRuntime::kHip;
  EXPECT_EQ(device_label(unnamed), "hip:3");
  unnamed.name = "MI300X";
  EXPECT_EQ(device_label(unnamed), "hip:3") << "a name that the user gave changes no label";
  unnamed.name = "";
  unnamed.runtime = GpuRuntime::kUnknown;
  EXPECT_EQ(device_label(unnamed), "GPU 3");
}

}  // namespace
}  // namespace gpuwhy
