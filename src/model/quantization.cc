// SPDX-License-Identifier: Apache-2.0
//
// Stored width and execution type of a model's weights, from its quantization settings.
//
// These are two separate properties: weight-only formats (AWQ, GPTQ, MXFP4 in gpt-oss) are stored
// narrow but multiplied in bf16, so an int4 peak would be the wrong denominator. Embedding, head,
// norms and router stay wide in all of these methods. Widths include the scales: 4 bits with a
// group of 128 are 4.16 bits.
//
// Lists of modules that are not converted are read for attention, shared experts and dense layers,
// if they name most layers.
//
// What it gets wrong: a few layers that stay wide are counted as narrow. A tensor directory, if
// available, overrides all of this.
#include "model/quantization.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "model/config_reader.h"

namespace gpuwhy {
namespace {

struct Quantization {
  StoredWidth width;
  std::string name;
  std::string executes;  // empty: as the dtype
  bool is_experts_only = false;
};

// `bits` per weight, and for each group a scale of 16 bits and a zero point as wide as a weight. A
// group of -1 or null is a whole column, whose scales are negligible.
StoredWidth grouped(std::int64_t bits, const Json& config) {
  bits = std::clamp<std::int64_t>(bits, 1, 16);
  const auto found = config.find("group_size");
  if (found == config.end() || !found->is_number_integer() || found->get<std::int64_t>() < 1) {
    return {8, bits};
  }
  const std::int64_t group = ConfigReader(config, "quantization_config").size({"group_size"});
  return {8 * group, group * bits + 16 + bits};
}

std::string group_name(const Json& config) {
  const auto found = config.find("group_size");
  return found != config.end() && found->is_number_integer() && found->get<std::int64_t>() > 0
             ? fmt::format(" g{}", found->get<std::int64_t>())
             : "";
}

std::optional<Quantization> fp8_of(const Json& config) {
  const ConfigReader reader(config, "quantization_config");
  const auto block = reader.sizes("weight_block_size", {});
  if (block.size() == 2 && block[0] > 0 && block[1] > 0) {
    const Count elements = Count(block[0]) * block[1];  // and a scale of 32 bits
    return Quantization{{elements.value(), (elements + 4).value()},
                        fmt::format("fp8 in blocks of {}x{}", block[0], block[1]),
                        "fp8"};
  }
  return Quantization{{1, 1}, "fp8", "fp8"};
}

// bitsandbytes: blocks of 64 with a 32-bit scale, or with an 8-bit scale and 32 bits per 256 of
// those.
std::optional<Quantization> bits_and_bytes_of(const Json& config) {
  const ConfigReader reader(config, "quantization_config");
  if (reader.flag("load_in_8bit", false)) {
    return Quantization{{1, 1}, "int8", ""};
  }
  if (!reader.flag("load_in_4bit", false)) {
    return std::nullopt;
  }
  const bool is_double = reader.flag("bnb_4bit_use_double_quant", false);
  return Quantization{is_double ? StoredWidth{16384, 8452} : StoredWidth{64, 36}, "nf4", ""};
}

// compressed-tensors: the weights of the first group represent all.
std::optional<Quantization> compressed_of(const Json& config) {
  const Json& groups = ConfigReader(config, "quantization_config").object("config_groups");
  if (groups.empty() || !groups.begin()->is_object()) {
    return std::nullopt;
  }
  const Json& weights = ConfigReader(*groups.begin(), "config_groups").object("weights");
  const ConfigReader reader(weights, "weights");
  const std::int64_t bits = reader.size({"num_bits"}, 8);
  const bool is_float = reader.text("type", "int") == "float";
  const bool has_activations =
      !ConfigReader(*groups.begin(), "config_groups").object("input_activations").empty();
  if (is_float && bits == 8) {
    return Quantization{{1, 1}, "fp8", has_activations ? "fp8" : ""};
  }
  // A scale of 8 bits for 32 values, or for 16.
  if (is_float && bits == 4 && reader.size({"group_size"}, 16) == 32) {
    return Quantization{{32, 17}, "mxfp4", has_activations ? "fp4" : ""};
  }
  if (is_float && bits == 4) {
    return Quantization{{16, 9}, "nvfp4", has_activations ? "fp4" : ""};
  }
  if (bits == 8) {
    return Quantization{{1, 1}, "int8", has_activations ? "int8" : ""};
  }
  return Quantization{grouped(bits, weights), fmt::format("int{}{}", bits, group_name(weights)),
                      ""};
}

// Nothing for an unknown method: the caller then takes the weights as unquantized and says so.
std::optional<Quantization> quantization_of(const Json& config) {
  const ConfigReader reader(config, "quantization_config");
  const std::string method = to_lower(reader.text("quant_method", ""));
  if (method == "fp8" || method == "fbgemm_fp8") {
    return fp8_of(config);
  }
  if (method == "awq" || method == "gptq") {
    const std::int64_t bits = reader.size({"bits", "w_bit"}, 4);
    return Quantization{grouped(bits, config),
                        fmt::format("{} int{}{}", method, bits, group_name(config)), ""};
  }
  // A StoredWidth is elements and bytes: 32 values of 4 bits and one scale byte are 17 bytes.
  if (method == "mxfp4") {
    return Quantization{{32, 17}, "mxfp4 experts", "", true};
  }
  if (method == "bitsandbytes") {
    return bits_and_bytes_of(config);
  }
  if (method == "compressed-tensors") {
    return compressed_of(config);
  }
  if (method == "modelopt") {
    const std::string algorithm = to_lower(reader.text("quant_algo", ""));
    if (algorithm == "nvfp4") {
      return Quantization{{16, 9}, "nvfp4", "fp4"};
    }
    return algorithm == "fp8" ? fp8_of(config) : std::nullopt;
  }
  return std::nullopt;
}

// "bfloat16" -> "bf16": the names of peaks in gpus.yaml.
std::string peak_name(const std::string& dtype) {
  const std::string name = to_lower(dtype);
  if (name.find("bfloat16") != std::string::npos || name == "bf16") {
    return "bf16";
  }
  if (name.find("float16") != std::string::npos || name == "fp16" || name == "half") {
    return "fp16";
  }
  if (name.find("float32") != std::string::npos || name == "fp32") {
    return "fp32";
  }
  return name.find("float8") != std::string::npos || name == "fp8" ? "fp8" : "bf16";
}

std::string dtype_of(const Json& root, const Json& text) {
  for (const Json* config : {&text, &root}) {
    for (const char* key : {"torch_dtype", "dtype"}) {
      std::string name = ConfigReader(*config, "").text(key, "");
      if (!name.empty()) {
        return name;
      }
    }
  }
  return "bfloat16";  // what nearly every checkpoint of today is
}

const Json& quantization_config(const Json& root, const Json& text) {
  const Json& nested = ConfigReader(text, "").object("quantization_config");
  return nested.empty() ? ConfigReader(root, "").object("quantization_config") : nested;
}

void apply(const Quantization& found, Llm& llm) {
  llm.weight_dtype = found.name;
  if (!found.executes.empty()) {
    llm.matmul_dtype = found.executes;
  }
  if (!found.is_experts_only) {
    for (const LlmPart part :
         {LlmPart::kQkv, LlmPart::kOut, LlmPart::kMlp, LlmPart::kShared, LlmPart::kIndexer}) {
      llm.width(part) = found.width;
    }
  }
  llm.width(LlmPart::kExperts) = found.width;
}

// Whether a list of modules that stay wide names those of `word` in general or in most layers.
bool stays_wide(const std::vector<std::string>& modules, std::string_view word,
                std::size_t num_layers) {
  std::size_t listed = 0;
  for (const std::string& module : modules) {
    const std::size_t at = module.find(word);
    if (at == std::string::npos) {
      continue;
    }
    if (module.starts_with("re:") || module.starts_with("*") ||
        module.find(".*.") != std::string::npos) {
      return true;
    }
    // One layer's module as a whole, not a tensor in it.
    const std::string_view rest = std::string_view(module).substr(at + word.size());
    listed +=
        rest.find('.') == std::string_view::npos && rest.find("norm") == std::string_view::npos;
  }
  return 2 * listed > num_layers;
}

void keep_wide_parts(const Json& config, const StoredWidth& wide, Llm& llm) {
  const ConfigReader reader(config, "quantization_config");
  for (const char* key : {"ignore", "modules_to_not_convert", "exclude_modules"}) {
    if (!reader.has_list(key)) {
      continue;
    }
    const std::vector<std::string> modules = reader.texts(key);
    if (stays_wide(modules, "attn", llm.layers.size())) {
      llm.width(LlmPart::kQkv) = llm.width(LlmPart::kOut) = llm.width(LlmPart::kIndexer) = wide;
    }
    if (stays_wide(modules, "shared_expert", llm.layers.size())) {
      llm.width(LlmPart::kShared) = wide;
    }
    if (stays_wide(modules, "mlp\\.(", llm.layers.size())) {
      llm.width(LlmPart::kMlp) = wide;
    }
  }
}

// An 8-bit KV cache, as vLLM (kv_cache_scheme) and TensorRT-LLM (kv_cache_quant_algo) declare it.
bool has_narrow_kv(const Json& config) {
  const ConfigReader reader(config, "quantization_config");
  const Json& scheme = reader.object("kv_cache_scheme");
  return (!scheme.empty() && ConfigReader(scheme, "kv_cache_scheme").size({"num_bits"}, 8) == 8) ||
         to_lower(reader.text("kv_cache_quant_algo", "")) == "fp8";
}

}  // namespace

void read_widths(const Json& root, const Json& text, Llm& llm) {
  const std::string dtype = dtype_of(root, text);
  const auto known = width_of(dtype);
  if (!known) {
    llm.notes.push_back(fmt::format("dtype '{}' is not known: taken as bf16", printable(dtype)));
  }
  const StoredWidth width = known.value_or(StoredWidth{});
  // The checkpoint's dtype applies to every part; a quantization then overrides its own parts.
  llm.widths.fill(width);
  llm.weight_dtype = peak_name(dtype);
  // Attention is not computed in fp8 even if the weights are, and neither is the cache stored so
  // unless the configuration says it.
  llm.attention_dtype = llm.weight_dtype == "fp8" ? "bf16" : llm.weight_dtype;
  llm.matmul_dtype = llm.weight_dtype;
  llm.kv_width = llm.weight_dtype == "fp8" ? StoredWidth{} : width;
  const Json& config = quantization_config(root, text);
  if (config.empty()) {
    return;
  }
  if (const auto found = quantization_of(config)) {
    apply(*found, llm);
    keep_wide_parts(config, width, llm);
  } else {
    llm.notes.push_back(
        fmt::format("quantization '{}' is not known: weights are taken as {}",
                    printable(ConfigReader(config, "quantization_config").text("quant_method", "")),
                    llm.weight_dtype));
  }
  // DeepSeek-V4: experts are narrower than what quantization_config says.
  if (to_lower(ConfigReader(text, "").text("expert_dtype", "")) == "fp4") {
    llm.width(LlmPart::kExperts) = {32, 17};
    llm.weight_dtype += ", experts mxfp4";
  }
  if (has_narrow_kv(config)) {
    llm.kv_width = {1, 1};
  }
}

}  // namespace gpuwhy
