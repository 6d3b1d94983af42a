// SPDX-License-Identifier: Apache-2.0
//
// Slices of generated models: each kernel in one of them, one after another.
#include "export/model_slices.h"

#include <random>

#include "analysis/model_trace.h"
#include "analysis/names/rules_json.h"
#include "config/presets.h"
#include "testing.h"

namespace gpuwhy {
namespace {

std::vector<ModelSlice> slices_of(const Profile& profile, const KernelStream& stream,
                                  ModelLevel level) {
  std::vector<ModelSlice> slices;
  for_each_model_slice(profile, stream, level,
                       [&](const ModelSlice& slice) { slices.push_back(slice); });
  return slices;
}

TEST(ModelSlices, HoldEachKernelOnceAndDoNotOverlap) {
  const Rules rules =
      rules_from(embedded_yaml("rules/kernels.yaml"), embedded_yaml("rules/stages.yaml"));
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    const ModelTraceOptions options = random_model(random);
    const Profile made = profile(make_model_trace(options, random).trace, rules);
    ASSERT_TRUE(made.structure.is_found()) << seed;
    for (const KernelStream& stream : made.structure.streams) {
      std::uint32_t num_in_passes = 0;
      std::uint32_t num_with_part = 0;
      for (const ModelPass& pass : stream.passes) {
        num_in_passes += pass.end - pass.begin;
        for (std::uint32_t i = pass.begin; i < pass.end; ++i) {
          num_with_part += made.kernel_parts[stream.kernels[i]] != kNone ? 1 : 0;
        }
      }
      for (const ModelLevel level :
           {ModelLevel::kPasses, ModelLevel::kLayers, ModelLevel::kParts}) {
        const std::vector<ModelSlice> slices = slices_of(made, stream, level);
        std::uint32_t num_kernels = 0;
        std::int64_t end_ns = INT64_MIN;
        for (const ModelSlice& slice : slices) {
          EXPECT_GE(slice.start_ns, end_ns);
          EXPECT_GE(slice.end_ns, slice.start_ns);
          end_ns = slice.end_ns;
          num_kernels += slice.kernels;
        }
        EXPECT_EQ(num_kernels, level == ModelLevel::kParts ? num_with_part : num_in_passes);
        EXPECT_LE(slices.size(), most_model_slices(made, level));
        if (level == ModelLevel::kPasses) {
          EXPECT_EQ(slices.size(), stream.passes.size());
        }
      }
    }
  }
}

TEST(ModelSlices, OfARecordingWithoutAModelAreNone) {
  Profile made;
  made.trace.emplace();
  for (const ModelLevel level : {ModelLevel::kPasses, ModelLevel::kLayers, ModelLevel::kParts}) {
    EXPECT_EQ(most_model_slices(made, level), 0U);
  }
}

}  // namespace
}  // namespace gpuwhy
