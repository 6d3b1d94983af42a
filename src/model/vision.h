// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "model/count.h"

namespace gpuwhy {

// Shape of the towers that turn an image into tokens for a language model.
struct VisionShape {
  enum class Kind : std::uint8_t {
    kDeepseekOcr,  // SAM ViT-B, a convolutional compressor, CLIP-L, a linear projector
    kQwen2Vl,
    kQwen25Vl,  // windowed attention, gated MLP
    kSiglip,    // Gemma 3
    kLlama4,
  };

  Kind kind = Kind::kSiglip;
  std::int64_t width = 0;
  std::int64_t layers = 0;
  std::int64_t ff = 0;
  std::int64_t patch_px = 0;
  std::int64_t image_px = 0;              // what images are scaled to; Qwen takes them as they are
  std::int64_t temporal_patch = 1;        // frames a patch spans
  std::int64_t merge = 1;                 // patches a side that become one token
  std::int64_t window_px = 0;             // 0: every layer sees the whole image
  std::vector<std::int64_t> full_layers;  // with a window: layers that see everything
  std::int64_t text_width = 0;            // of the language model
};

// Parameters of the vision part.
struct VisionParams {
  std::int64_t towers = 0;
  std::int64_t projector = 0;
};
VisionParams params_of(const VisionShape& shape);

// An image in the size that the tower receives.
struct ImageSize {
  std::int64_t width_px = 0;
  std::int64_t height_px = 0;
  // DeepSeek-OCR: grid of detail crops in addition to the whole image; 0 for none.
  std::int64_t crops_wide = 0;
  std::int64_t crops_high = 0;
};

// Cost of encoding one image.
struct VisionCost {
  std::int64_t tower_flops = 0;  // executed: padded windows and positions included
  std::int64_t projector_flops = 0;
  std::int64_t tokens = 0;  // handed to the language model

  std::int64_t flops() const { return tower_flops + projector_flops; }
};
// Throws kUsage for a size that the tower does not accept.
VisionCost image_cost(const VisionShape& shape, const ImageSize& image);

// The tower that a config.json describes; nullopt if it has none. Throws kInput.
std::optional<VisionShape> vision_from_config(const Json& config, std::int64_t text_width);

}  // namespace gpuwhy
