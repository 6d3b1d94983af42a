// SPDX-License-Identifier: Apache-2.0
//
// Bytes per weight of storage formats, kept as block sizes.
//
// Block sizes are what specifications state; "4.5 bits" is derived from them. Sources:
// ggml-common.h of llama.cpp for GGUF blocks, the OCP Microscaling specification 1.0 for MX,
// NVIDIA's NVFP4 description (16 elements and one E4M3 scale; the scale of the whole tensor is
// negligible).
#include "model/dtype_width.h"

#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

struct NamedWidth {
  std::string_view name;
  StoredWidth width;
};

constexpr NamedWidth kWidths[] = {
    {"float64", {1, 8}},  {"f64", {1, 8}},      {"float32", {1, 4}},       {"fp32", {1, 4}},
    {"f32", {1, 4}},      {"bfloat16", {1, 2}}, {"bf16", {1, 2}},          {"float16", {1, 2}},
    {"fp16", {1, 2}},     {"f16", {1, 2}},      {"float8_e4m3fn", {1, 1}}, {"float8_e5m2", {1, 1}},
    {"fp8", {1, 1}},      {"int8", {1, 1}},     {"mxfp4", {32, 17}},       {"mxfp8", {32, 33}},
    {"nvfp4", {16, 9}},   {"q4_0", {32, 18}},   {"q4_1", {32, 20}},        {"q5_0", {32, 22}},
    {"q5_1", {32, 24}},   {"q8_0", {32, 34}},   {"q8_1", {32, 36}},        {"q2_k", {256, 84}},
    {"q3_k", {256, 110}}, {"q4_k", {256, 144}}, {"q5_k", {256, 176}},      {"q6_k", {256, 210}},
    {"q8_k", {256, 292}}, {"iq4_nl", {32, 18}}, {"iq4_xs", {256, 136}},
};

}  // namespace

std::int64_t StoredWidth::bytes_of(std::int64_t num_elements) const {
  const __int128 scaled = static_cast<__int128>(num_elements) * bytes + (elements - 1);
  const __int128 result = scaled / elements;
  if (result > INT64_MAX) {
    throw Error(ErrorKind::kInput, "the model's weights take more bytes than 63 bits hold");
  }
  return static_cast<std::int64_t>(result);
}

long double StoredWidth::bytes_of(long double num_elements) const {
  return num_elements * static_cast<long double>(bytes) / static_cast<long double>(elements);
}

std::optional<StoredWidth> width_of(std::string_view format) {
  std::string name = to_lower(format);
  if (name.starts_with("torch.")) {
    name.erase(0, 6);
  }
  for (const NamedWidth& row : kWidths) {
    if (row.name == name) {
      return row.width;
    }
  }
  return std::nullopt;
}

}  // namespace gpuwhy
