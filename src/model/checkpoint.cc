// SPDX-License-Identifier: Apache-2.0
//
// Loading of a model description from a path: config.json, GGUF, safetensors, or a directory.
//
// The configuration gives the shape, the tensor directory the stored bytes; a GGUF file has both. A
// .safetensors file alone does not say how many heads its matrices are split into, so it needs its
// config.json.
#include "model/checkpoint.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sorted_json.h"
#include "base/text.h"
#include "model/gguf.h"
#include "model/safetensors.h"

namespace gpuwhy {
namespace {

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kSingle = "model.safetensors";

bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

constexpr std::size_t kMostKeys = 20'000;

std::size_t count_keys(const SortedJson& value) {
  std::size_t count = value.is_object() ? value.size() : 0;
  if (value.is_structured()) {
    for (const SortedJson& inner : value) {
      count += count_keys(inner);
    }
  }
  return count;
}

// The number of keys is limited first, because Json takes quadratic time in them.
Llm from_config(const std::filesystem::path& path) {
  const SortedJson parsed = parse_sorted_json(read_file(path), path.string());
  if (count_keys(parsed) > kMostKeys) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} has more keys than a model's configuration", path.string()));
  }
  const Json config(parsed);
  return with_context(fmt::format("in {}", path.string()), [&] { return llm_from_config(config); });
}

// The stored format is that of most blocks; products may execute in another type.
Llm from_gguf(const std::filesystem::path& path) {
  const GgufHeader header = read_gguf(path);
  return with_context(fmt::format("in {}", path.string()), [&] {
    Llm llm = llm_from_config(config_from_gguf(header));
    llm.weight_dtype = header.format;
    // llama.cpp stores keys and values in F16 and multiplies in it, unless configured otherwise.
    llm.matmul_dtype = llm.attention_dtype = "fp16";
    apply_tensors(header.tensors, llm);
    return llm;
  });
}

Llm from_tensors(const std::filesystem::path& path, const std::filesystem::path& config) {
  if (!is_file(config)) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} does not say how the model is built", path.string()),
                "put its config.json beside it, or give a directory that has both");
  }
  Llm llm = from_config(config);
  apply_tensors(path.extension() == ".json" ? read_safetensors_index(path) : read_safetensors(path),
                llm);
  return llm;
}

Llm from_directory(const std::filesystem::path& path) {
  const std::filesystem::path config = path / "config.json";
  for (const char* tensors : {kIndex, kSingle}) {
    if (is_file(path / tensors)) {
      return from_tensors(path / tensors, config);
    }
  }
  if (!is_file(config)) {
    throw Error(ErrorKind::kInput, fmt::format("{} has no config.json", path.string()),
                "give the directory of a Hugging Face checkpoint, a config.json or a .gguf file");
  }
  return from_config(config);
}

}  // namespace

Llm load_llm(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return from_directory(path);
  }
  const std::string name = to_lower(path.filename().string());
  if (name.ends_with(".gguf")) {
    return from_gguf(path);
  }
  if (name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json")) {
    return from_tensors(path, path.parent_path() / "config.json");
  }
  return from_config(path);
}

}  // namespace gpuwhy
