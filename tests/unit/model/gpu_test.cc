// SPDX-License-Identifier: Apache-2.0
//
// The table of GPUs itself, and how devices find their row.
#include "model/gpu.h"

#include <set>

#include "config/presets.h"
#include "testing.h"

namespace gpuwhy {
namespace {

const std::vector<GpuSpec>& table() {
  static const std::vector<GpuSpec> kTable = gpu_table(embedded_yaml("hardware/gpus.yaml"));
  return kTable;
}

const GpuSpec& row(const std::string& name) {
  const auto found = std::find_if(table().begin(), table().end(),
                                  [&](const GpuSpec& gpu) { return gpu.name == name; });
  EXPECT_NE(found, table().end()) << name;
  return *found;
}

TEST(GpuTable, HasRowsWithNamesOfTheirOwn) {
  EXPECT_EQ(table().size(), 73U);
  std::set<std::string> names;
  std::map<std::string, std::set<std::pair<std::int64_t, double>>> shapes_of_name;
  for (const GpuSpec& gpu : table()) {
    EXPECT_TRUE(names.insert(gpu.name).second) << gpu.name;
    for (const std::string& device : gpu.device_names) {
      // Two rows may share a name only if SMs and memory tell them apart.
      for (const double memory : gpu.memory_gb) {
        EXPECT_TRUE(shapes_of_name[device].insert({gpu.sms, memory}).second) << device;
      }
    }
    EXPECT_FALSE(gpu.source.empty()) << gpu.name;
    EXPECT_THAT((std::set<std::string>{"high", "medium", "low"}), testing::Contains(gpu.confidence))
        << gpu.name;
  }
}

// SMs x FLOP a clock x clock is physics: a sparse figure in the table would be twice that.
TEST(GpuTable, PeaksAgreeWithTheArithmetic) {
  int checked = 0;
  for (const GpuSpec& gpu : table()) {
    if (!gpu.tensor_mhz || !gpu.flop_per_clock_per_sm) {
      continue;
    }
    const double peak = gpu.flops_per_s("bf16").value_or(gpu.flops_per_s("fp16").value_or(0));
    const double physics =
        static_cast<double>(gpu.sms) * *gpu.flop_per_clock_per_sm * *gpu.tensor_mhz * 1e6;
    // The superchips' figures are rounded up by 4 % on their sheets; their rows say so.
    const bool is_rounded = gpu.name == "GB200" || gpu.name == "GB300";
    EXPECT_NEAR(peak / physics, 1, is_rounded ? 0.045 : 0.015) << gpu.name;
    EXPECT_EQ(is_rounded, is_rounded && gpu.note.find("4 % less") != std::string::npos);
    ++checked;
  }
  EXPECT_EQ(checked, 69);
}

// Figures with 2:4 sparsity as data sheets print them, which must not be ours.
TEST(GpuTable, NoPeakIsASparseOne) {
  static constexpr struct {
    const char* name;
    const char* dtype;
    double sparse_tflops;
  } kSheets[] = {
      {"H100-SXM5-80GB", "bf16", 1979},
      {"H100-SXM5-80GB", "fp8", 3958},
      {"H100-PCIe", "bf16", 1513},
      {"H100-PCIe", "fp8", 3026},
      {"H100-NVL", "fp8", 3341},
      {"H200-SXM", "bf16", 1979},
      {"L4", "bf16", 242},
      {"L4", "fp8", 485},
      {"RTX-4090", "fp8", 660.6},
      {"RTX-5090", "fp4", 3352},
      {"RTX-6000-Ada", "fp8", 1457},
      {"A100-SXM4-80GB", "bf16", 624},
      {"B200", "bf16", 4500},
      {"B200", "fp8", 9000},
      {"GB200", "fp4", 20000},
      {"Jetson-AGX-Orin-64GB", "int8", 170},
  };
  for (const auto& sheet : kSheets) {
    const double dense = *row(sheet.name).flops_per_s(sheet.dtype) / 1e12;
    EXPECT_NEAR(dense / sheet.sparse_tflops, 0.5, 0.005) << sheet.name << " " << sheet.dtype;
  }
  int quoted = 0;
  for (const GpuSpec& gpu : table()) {
    for (const std::string& dtype : gpu.sheet_quotes_sparse) {
      EXPECT_TRUE(gpu.dense_tflops.contains(dtype)) << gpu.name << " " << dtype;
      ++quoted;
    }
  }
  EXPECT_GT(quoted, 60);
}

TEST(GpuTable, NarrowTensorTypesAreFasterByTwo) {
  for (const GpuSpec& gpu : table()) {
    const auto bf16 = gpu.flops_per_s("bf16");
    const auto fp8 = gpu.flops_per_s("fp8");
    const auto tf32 = gpu.flops_per_s("tf32");
    if (bf16 && fp8) {
      EXPECT_NEAR(*fp8 / *bf16, 2, 0.03) << gpu.name;
    }
    if (bf16 && tf32) {
      EXPECT_NEAR(*bf16 / *tf32, 2, 0.03) << gpu.name;
    }
    if (gpu.device_gb_per_s) {
      EXPECT_NEAR(*gpu.device_gb_per_s / gpu.label_gb_per_s, 1, 0.045) << gpu.name;
    }
  }
}

TEST(FindGpu, EveryNameOfTheTableFindsItsRow) {
  for (const GpuSpec& gpu : table()) {
    for (const std::string& name : gpu.device_names) {
      const GpuAttributes attributes{gpu.sms,
                                     static_cast<std::int64_t>(gpu.memory_gb[0] * (1 << 30)), 0};
      const GpuMatch match = find_gpu(table(), name, attributes);
      ASSERT_TRUE(match.gpu) << name << ": " << match.reason;
      EXPECT_EQ(match.gpu->name, gpu.name) << name;
      EXPECT_THAT(match.notes, IsEmpty()) << name;
    }
    EXPECT_EQ(find_gpu(table(), gpu.name).gpu->name, gpu.name);
  }
}

TEST(FindGpu, TheLongestNameWins) {
  EXPECT_EQ(find_gpu(table(), "NVIDIA H200 NVL").gpu->name, "H200-NVL");
  EXPECT_EQ(find_gpu(table(), "NVIDIA H200").gpu->name, "H200-SXM");
  EXPECT_EQ(find_gpu(table(), "NVIDIA H100 80GB HBM3").gpu->name, "H100-SXM5-80GB");
  EXPECT_EQ(find_gpu(table(), "A100-SXM4-80GB").gpu->name, "A100-SXM4-80GB");
  EXPECT_EQ(find_gpu(table(), "nvidia geforce rtx 5090").gpu->name, "RTX-5090");
  EXPECT_EQ(find_gpu(table(), "GeForce RTX 4090").gpu->name, "RTX-4090");
}

TEST(FindGpu, ARelatedProductIsNotThisOne) {
  for (const char* name :
       {"NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 D", "NVIDIA H200 Turbo",
        "NVIDIA A10M", "NVIDIA L40SX", "NVIDIA Unheard-of 9000", "H100 and more", "H"}) {
    const GpuMatch match = find_gpu(table(), name);
    EXPECT_FALSE(match.gpu) << name;
    EXPECT_THAT(match.reason,
                AllOf(HasSubstr(name), HasSubstr("add a row"), HasSubstr("gpus.yaml")))
        << name;
  }
  EXPECT_THAT(find_gpu(table(), "").reason, HasSubstr("does not name its GPU"));
  EXPECT_THAT(find_gpu(table(), "NVIDIA A100-SXM4-80GB MIG 1g.10gb").reason, HasSubstr("slice"));
}

TEST(FindGpu, AttributesTellApartWhatSharesAName) {
  constexpr std::int64_t kGb = 1'000'000'000;
  EXPECT_EQ(find_gpu(table(), "NVIDIA H100", {132, 85 * kGb, 0}).gpu->name, "H100-SXM5-80GB");
  EXPECT_EQ(find_gpu(table(), "NVIDIA H100", {114, 85 * kGb, 0}).gpu->name, "H100-PCIe");
  EXPECT_EQ(find_gpu(table(), "NVIDIA H100", {132, 100 * kGb, 0}).gpu->name, "H100-NVL");
  EXPECT_EQ(find_gpu(table(), "Orin", {8, 8 * kGb, 0}).gpu->name, "Jetson-Orin-Nano-8GB");
  const GpuMatch match = find_gpu(table(), "NVIDIA H100");
  EXPECT_FALSE(match.gpu);
  EXPECT_THAT(match.reason, HasSubstr("name one of H100-SXM5-80GB, H100-PCIe, H100-NVL"));
}

TEST(FindGpu, TheDevicesBandwidthBeatsTheTable) {
  const GpuMatch match =
      find_gpu(table(), "NVIDIA A100-SXM4-40GB", {108, 42'300'000'000, 1'555'180'000'000});
  EXPECT_DOUBLE_EQ(match.gpu->bytes_per_s(), 1'555'180'000'000.0);
  EXPECT_THAT(match.notes, IsEmpty());
  const GpuMatch odd = find_gpu(table(), "NVIDIA A100-SXM4-40GB", {98, 42'300'000'000, 7});
  EXPECT_DOUBLE_EQ(odd.gpu->bytes_per_s(), 1.5552e12);
  EXPECT_THAT(odd.notes, ElementsAre(HasSubstr("98 SMs"), HasSubstr("the table's is used")));
}

TEST(GpuTable, ARowWithoutItsFiguresIsAnError) {
  const Json file = {{"gpus", {{{"name", "X"}, {"device_names", Json::array()}}}}};
  expect_error([&] { gpu_table(file); }, ErrorKind::kInput, HasSubstr("not complete"), "");
}

}  // namespace
}  // namespace gpuwhy
