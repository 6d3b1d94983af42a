// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "analysis/profile.h"

namespace gpuwhy {

enum class ModelLevel : std::uint8_t { kPasses, kLayers, kParts };

// A pass, a layer or a part of the model as a viewer draws it.
struct ModelSlice {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t pass = 0;     // into the passes of its stream
  std::int32_t layer = 0;     // -1: before the first; the number of layers: after the last
  std::uint32_t part = 0;     // of a part: into StructureSummary::parts
  std::uint32_t kernels = 0;  // in it
};

// Calls `visit` for the slices of one level of a stream, in order of start. Kernels of a part that
// follow each other in a layer are one slice. None overlaps the next: where kernels do, it ends
// where the next one begins.
void for_each_model_slice(const Profile& profile, const KernelStream& stream, ModelLevel level,
                          const std::function<void(const ModelSlice&)>& visit);

// How many there are at most.
std::size_t most_model_slices(const Profile& profile, ModelLevel level);

}  // namespace gpuwhy
