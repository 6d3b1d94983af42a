// SPDX-License-Identifier: Apache-2.0
//
// FLOPs, parameters and tokens of the vision towers in front of a language model.
//
// Towers are plain transformers without causal masking: a patch embedding, blocks and a projector.
// They differ in biases, norms and attention range. There is one function per tower, each derived
// from the published module and checked against the checkpoint's number of parameters.
//
// DeepSeek-OCR's sizes are those of its two fixed towers (SAM ViT-B with 14 x 14 windows, CLIP-L on
// SAM's features); only the image size varies. Its crops are a batch: cost is linear in their
// number. What it gets wrong: windows at an image's ragged edge are counted as full for Qwen2.5-VL,
// and a video frame as an image.
#include "model/vision.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "model/config_reader.h"

namespace gpuwhy {
namespace {

// SAM ViT-B and CLIP ViT-L/14 as in DeepSeek-OCR.
constexpr std::int64_t kSamWidth = 768;
constexpr std::int64_t kSamLayers = 12;
constexpr std::int64_t kSamGlobalLayers = 4;  // 2, 5, 8, 11
constexpr std::int64_t kSamHeads = 12;
constexpr std::int64_t kSamHeadDim = 64;
constexpr std::int64_t kSamWindow = 14;  // patches a side
constexpr std::int64_t kSamPatchPx = 16;
constexpr std::int64_t kSamImagePx = 1024;  // its position tables are made for
constexpr std::int64_t kSamNeck = 256;
constexpr std::int64_t kClipWidth = 1024;
constexpr std::int64_t kClipLayers = 24;
constexpr std::int64_t kClipPatches = 257;  // 224 px in patches of 14, and one for the class
constexpr std::int64_t kClipPatchPx = 14;
constexpr std::int64_t kOcrTokenPx = 64;  // 16 px per patch, 4 x 4 patches per token
constexpr std::int64_t kOcrCropPx = 640;
constexpr std::int64_t kLargestPx = 1 << 16;

Count linear(Count in, Count out) {
  return in * out;
}
Count biased(Count in, Count out) {
  return in * out + out;
}

// Norms with bias, all projections with bias, a plain MLP.
Count classic_block_params(Count width, Count ff) {
  return Count(4) * width + Count(4) * biased(width, width) + biased(width, ff) + biased(ff, width);
}

// A block on `tokens`, each attending to `seen` others.
Count block_flops(Count tokens, Count seen, Count width, Count mlp_elements) {
  return Count(2) * tokens * Count(4) * width * width + Count(4) * tokens * seen * width +
         Count(2) * tokens * mlp_elements;
}

Count convolution(Count side, Count in, Count out) {  // 3 x 3
  return Count(2) * side * side * in * out * 9;
}

Count sam_params() {
  const Count width = kSamWidth;
  const std::int64_t side = kSamImagePx / kSamPatchPx;
  const Count patch = biased(Count(3) * kSamPatchPx * kSamPatchPx, width);
  const Count positions = Count(side) * side * width;
  const Count blocks = Count(kSamLayers) * classic_block_params(width, Count(4) * width);
  const auto relative = [](std::int64_t reach) { return Count(2) * (2 * reach - 1) * kSamHeadDim; };
  const Count tables = Count(kSamLayers - kSamGlobalLayers) * relative(kSamWindow) +
                       Count(kSamGlobalLayers) * relative(side);
  const Count neck = linear(width, kSamNeck) + Count(kSamNeck) * kSamNeck * 9 + 4 * kSamNeck;
  const Count compressor = Count(kSamNeck) * 512 * 9 + Count(512) * 1024 * 9;
  return patch + positions + blocks + tables + neck + compressor;
}

Count clip_params() {
  const Count width = kClipWidth;
  const Count patch = Count(3) * kClipPatchPx * kClipPatchPx * width;  // in the file, not executed
  return Count(kClipLayers) * classic_block_params(width, Count(4) * width) + patch +
         Count(kClipPatches) * width + width + Count(2) * width;
}

Count sam_flops(std::int64_t image_px) {
  const std::int64_t side = image_px / kSamPatchPx;
  const Count tokens = Count(side) * side;
  const std::int64_t padded_side = (side + kSamWindow - 1) / kSamWindow * kSamWindow;
  const Count padded = Count(padded_side) * padded_side;
  const Count width = kSamWidth;
  const Count mlp = Count(2) * width * Count(4) * width;
  const auto relative = [](Count num, std::int64_t reach) {
    return Count(4) * kSamHeads * num * reach * kSamHeadDim;
  };
  // Windows are padded before attention; the MLP sees only the image's own patches.
  const Count windowed = block_flops(padded, kSamWindow * kSamWindow, width, 0) +
                         relative(padded, kSamWindow) + Count(2) * tokens * mlp;
  const Count global = block_flops(tokens, tokens, width, mlp) + relative(tokens, side);
  const Count patch = Count(2) * tokens * Count(3) * kSamPatchPx * kSamPatchPx * width;
  const Count neck = Count(2) * tokens * width * kSamNeck + convolution(side, kSamNeck, kSamNeck);
  const Count compressor = convolution(side / 2, kSamNeck, 512) + convolution(side / 4, 512, 1024);
  return patch + Count(kSamLayers - kSamGlobalLayers) * windowed +
         Count(kSamGlobalLayers) * global + neck + compressor;
}

Count clip_flops(Count tokens) {
  const Count mlp = Count(2) * kClipWidth * (4 * kClipWidth);
  return Count(kClipLayers) * block_flops(tokens, tokens, kClipWidth, mlp);
}

void require(bool holds, const std::string& what) {
  if (!holds) {
    throw Error(ErrorKind::kUsage, what);
  }
}

VisionCost ocr_view(const VisionShape& shape, std::int64_t image_px) {
  require(image_px % kOcrTokenPx == 0 && image_px >= kOcrTokenPx,
          fmt::format("DeepSeek-OCR takes square images of a multiple of {} px", kOcrTokenPx));
  const std::int64_t side = image_px / kOcrTokenPx;
  VisionCost cost;
  cost.tower_flops = (sam_flops(image_px) + clip_flops(Count(side) * side + 1)).value();
  cost.projector_flops =
      (Count(2) * side * side * Count(2 * kClipWidth) * shape.text_width).value();
  return cost;
}

// The whole image at base size, plus the crops as a batch.
VisionCost ocr_cost(const VisionShape& shape, const ImageSize& image) {
  require(image.width_px == image.height_px, "DeepSeek-OCR scales an image to a square");
  VisionCost cost = ocr_view(shape, image.width_px);
  const std::int64_t side = image.width_px / kOcrTokenPx;
  cost.tokens = side * (side + 1) + 1;  // a row ends in a newline, the image in a separator
  const std::int64_t crops = image.crops_wide * image.crops_high;
  if (crops > 0) {
    const VisionCost crop = ocr_view(shape, kOcrCropPx);
    const std::int64_t crop_side = kOcrCropPx / kOcrTokenPx;
    cost.tower_flops += crops * crop.tower_flops;
    cost.projector_flops += crops * crop.projector_flops;
    cost.tokens += image.crops_high * crop_side * (image.crops_wide * crop_side + 1);
  }
  return cost;
}

bool is_qwen(const VisionShape& shape) {
  return shape.kind == VisionShape::Kind::kQwen2Vl || shape.kind == VisionShape::Kind::kQwen25Vl;
}

// Qwen's merger: two layers on merge x merge adjacent patches.
Count merger_elements(const VisionShape& shape) {
  const Count joined = Count(shape.width) * shape.merge * shape.merge;
  return linear(joined, joined) + linear(joined, shape.text_width);
}

// Full layers attend over all tokens, the others over one window. The tower works on single
// patches; the merger joins merge x merge of them into one token of the language model.
VisionCost qwen_cost(const VisionShape& shape, const ImageSize& image) {
  const std::int64_t unit = shape.patch_px * shape.merge;
  require(
      image.width_px % unit == 0 && image.height_px % unit == 0,
      fmt::format("the image's sides must be multiples of {} px: the engine scales it so", unit));
  const Count tokens = Count(image.width_px / shape.patch_px) * (image.height_px / shape.patch_px);
  const bool is_gated = shape.kind == VisionShape::Kind::kQwen25Vl;
  const Count mlp = Count(is_gated ? 3 : 2) * shape.width * shape.ff;
  const std::int64_t window_side = shape.window_px / shape.patch_px;
  const Count window = std::min(tokens.value(), window_side * window_side);
  const bool has_window = shape.window_px > 0;
  const Count num_full =
      has_window ? static_cast<std::int64_t>(shape.full_layers.size()) : shape.layers;
  const Count pixels = Count(3) * shape.temporal_patch * shape.patch_px * shape.patch_px;
  VisionCost cost;
  cost.tower_flops =
      (Count(2) * tokens * pixels * shape.width +
       num_full * block_flops(tokens, tokens, shape.width, mlp) +
       (Count(shape.layers) - num_full) * block_flops(tokens, window, shape.width, mlp))
          .value();
  cost.tokens = tokens.value() / (shape.merge * shape.merge);
  cost.projector_flops = (Count(2) * cost.tokens * merger_elements(shape)).value();
  return cost;
}

// Towers that scale every image to one size.
VisionCost fixed_cost(const VisionShape& shape, const ImageSize& image) {
  require(image.width_px == shape.image_px && image.height_px == shape.image_px,
          fmt::format("this tower takes images of {0}x{0} px", shape.image_px));
  const bool is_llama = shape.kind == VisionShape::Kind::kLlama4;
  const Count patches = Count(shape.image_px / shape.patch_px) * (shape.image_px / shape.patch_px);
  const Count tokens = patches + (is_llama ? 1 : 0);  // Llama's has a class token
  const Count mlp = Count(2) * shape.width * shape.ff;
  const Count pixels = Count(3) * shape.patch_px * shape.patch_px;
  VisionCost cost;
  cost.tower_flops = (Count(2) * patches * pixels * shape.width +
                      Count(shape.layers) * block_flops(tokens, tokens, shape.width, mlp))
                         .value();
  cost.tokens = patches.value() / (shape.merge * shape.merge);
  const Count per_token =
      is_llama ? Count(shape.width) * 4 * 4096 + Count(4096) * 4096 + Count(4096) * shape.text_width
               : Count(shape.width) * shape.text_width;
  cost.projector_flops = (Count(2) * cost.tokens * per_token).value();
  return cost;
}

VisionParams qwen_params(const VisionShape& shape) {
  const Count width = shape.width;
  const bool is_gated = shape.kind == VisionShape::Kind::kQwen25Vl;
  const Count norm = is_gated ? width : Count(2) * width;  // RMS or with bias
  const Count mlp = is_gated ? Count(2) * biased(width, shape.ff) + biased(shape.ff, width)
                             : biased(width, shape.ff) + biased(shape.ff, width);
  const Count block = Count(2) * norm + Count(4) * biased(width, width) + mlp;
  const Count joined = width * shape.merge * shape.merge;
  const Count patch = Count(3) * shape.temporal_patch * shape.patch_px * shape.patch_px * width;
  return {(patch + Count(shape.layers) * block).value(),
          (norm + biased(joined, joined) + biased(joined, shape.text_width)).value()};
}

VisionParams siglip_params(const VisionShape& shape) {
  const Count width = shape.width;
  const Count patches = Count(shape.image_px / shape.patch_px) * (shape.image_px / shape.patch_px);
  return {(biased(Count(3) * shape.patch_px * shape.patch_px, width) + patches * width +
           Count(shape.layers) * classic_block_params(width, shape.ff) + Count(2) * width)
              .value(),
          (linear(width, shape.text_width) + width).value()};
}

// The adapter joins four patches by pixel shuffle and has width 4096 (Llama4VisionConfig).
VisionParams llama4_params(const VisionShape& shape) {
  const Count width = shape.width;
  const Count patches = Count(shape.image_px / shape.patch_px) * (shape.image_px / shape.patch_px);
  return {(linear(Count(3) * shape.patch_px * shape.patch_px, width) + (patches + 2) * width +
           Count(shape.layers) * classic_block_params(width, shape.ff) + Count(4) * width)
              .value(),
          (linear(width * 4, 4096) + linear(4096, 4096) + linear(4096, shape.text_width)).value()};
}

VisionShape qwen2_vl_shape(const ConfigReader& vision) {
  VisionShape shape;
  shape.kind = VisionShape::Kind::kQwen2Vl;
  shape.width = vision.size({"embed_dim"}, 1280);
  shape.layers = vision.size({"depth"}, 32);
  shape.ff = (Count(shape.width) * vision.size({"mlp_ratio"}, 4)).value();
  shape.patch_px = vision.size({"patch_size"}, 14);
  shape.temporal_patch = vision.size({"temporal_patch_size"}, 2);
  shape.merge = vision.size({"spatial_merge_size"}, 2);
  return shape;
}

VisionShape qwen25_vl_shape(const ConfigReader& vision) {
  VisionShape shape;
  shape.kind = VisionShape::Kind::kQwen25Vl;
  shape.width = vision.size({"hidden_size"}, 1280);
  shape.layers = vision.size({"depth"}, 32);
  shape.ff = vision.size({"intermediate_size"}, 3420);
  shape.patch_px = vision.size({"patch_size"}, 14);
  shape.temporal_patch = vision.size({"temporal_patch_size"}, 2);
  shape.merge = vision.size({"spatial_merge_size"}, 2);
  shape.window_px = vision.size({"window_size"}, 112);
  shape.full_layers = vision.sizes("fullatt_block_indexes", {7, 15, 23, 31});
  if (static_cast<std::int64_t>(shape.full_layers.size()) > shape.layers) {
    throw Error(ErrorKind::kInput, "vision_config.fullatt_block_indexes has more than its layers");
  }
  return shape;
}

VisionShape siglip_shape(const ConfigReader& vision) {
  VisionShape shape;
  shape.width = vision.size({"hidden_size"}, 1152);
  shape.layers = vision.size({"num_hidden_layers"}, 27);
  shape.ff = vision.size({"intermediate_size"}, 4304);
  shape.patch_px = vision.size({"patch_size"}, 14);
  shape.image_px = vision.size({"image_size"}, 896);
  shape.merge = 4;  // 64 x 64 patches become 16 x 16 tokens
  return shape;
}

VisionShape llama4_shape(const ConfigReader& vision) {
  VisionShape shape;
  shape.kind = VisionShape::Kind::kLlama4;
  shape.width = vision.size({"hidden_size"}, 1408);
  shape.layers = vision.size({"num_hidden_layers"}, 34);
  shape.ff = vision.size({"intermediate_size"}, 5632);
  shape.patch_px = vision.size({"patch_size"}, 14);
  shape.image_px = vision.size({"image_size"}, 336);
  shape.merge = 2;
  return shape;
}

// The root says deepseek_vl_v2, like that of another model; the two towers identify it.
bool is_deepseek_ocr(const ConfigReader& vision) {
  return vision.has_object("width") &&
         ConfigReader(vision.object("width"), "width").has("sam_vit_b");
}

}  // namespace

VisionParams params_of(const VisionShape& shape) {
  switch (shape.kind) {
    case VisionShape::Kind::kDeepseekOcr:
      // Includes a learned newline and a separator.
      return {(sam_params() + clip_params() + Count(2) * shape.text_width).value(),
              biased(2 * kClipWidth, shape.text_width).value()};
    case VisionShape::Kind::kQwen2Vl:
    case VisionShape::Kind::kQwen25Vl:
      return qwen_params(shape);
    case VisionShape::Kind::kSiglip:
      return siglip_params(shape);
    case VisionShape::Kind::kLlama4:
      return llama4_params(shape);
  }
  return {};
}

VisionCost image_cost(const VisionShape& shape, const ImageSize& image) {
  require(image.width_px > 0 && image.height_px > 0 && image.width_px <= kLargestPx &&
              image.height_px <= kLargestPx,
          fmt::format("an image has 1 to {} px a side", kLargestPx));
  require(image.crops_wide >= 0 && image.crops_high >= 0 && image.crops_wide <= 100 &&
              image.crops_high <= 100,
          "a grid of crops has at most 100 per side");
  if (shape.kind == VisionShape::Kind::kDeepseekOcr) {
    return ocr_cost(shape, image);
  }
  return is_qwen(shape) ? qwen_cost(shape, image) : fixed_cost(shape, image);
}

// Nothing for a tower that is not known: the caller notes that only the text is counted.
std::optional<VisionShape> vision_from_config(const Json& config, std::int64_t text_width) {
  const ConfigReader root(config, "");
  if (!root.has_object("vision_config")) {
    return std::nullopt;
  }
  const ConfigReader vision(root.object("vision_config"), "vision_config");
  const std::string type = root.text("model_type", "");
  VisionShape shape;
  if (is_deepseek_ocr(vision)) {
    shape.kind = VisionShape::Kind::kDeepseekOcr;
  } else if (type == "qwen2_vl") {
    shape = qwen2_vl_shape(vision);
  } else if (type == "qwen2_5_vl") {
    shape = qwen25_vl_shape(vision);
  } else if (type == "gemma3") {
    shape = siglip_shape(vision);
  } else if (type == "llama4") {
    shape = llama4_shape(vision);
  } else {
    return std::nullopt;
  }
  shape.text_width = text_width;
  if (shape.kind != VisionShape::Kind::kDeepseekOcr && shape.patch_px > shape.image_px &&
      !is_qwen(shape)) {
    throw Error(ErrorKind::kInput, "vision_config.patch_size is larger than image_size");
  }
  return shape;
}

}  // namespace gpuwhy
