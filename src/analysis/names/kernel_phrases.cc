// SPDX-License-Identifier: Apache-2.0
//
// Phrases for kernels of PyTorch, FlashAttention, CUTLASS, cuBLAS and Tensile.
//
// Their functions are shells: vectorized_elementwise_kernel is an addition or a copy, by its third
// template argument. A phrase has the operation, the type of its elements and, of matrix products
// and attention, the sizes. Words are looked for one after the other, so a name that was built to
// confuse gives an odd phrase and costs no time.
#include "analysis/names/kernel_phrases.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analysis/names/kernel_names.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kLongestRead = 4096;  // characters of template arguments

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

// The words of a text, in order; one may be empty only at the end.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  std::string_view next() {
    while (at_ < text_.size() && !is_word_character(text_[at_])) {
      ++at_;
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word_character(text_[at_])) {
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  // The text after the final word.
  std::string_view rest() const { return text_.substr(at_); }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

// A short name of a type; empty if the word is none.
std::string_view element_type(std::string_view word) {
  static constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {"float", "f32"},
      {"double", "f64"},
      {"Half", "f16"},
      {"__half", "f16"},
      {"half", "f16"},
      {"half_t", "f16"},
      {"BFloat16", "bf16"},
      {"__nv_bfloat16", "bf16"},
      {"__hip_bfloat16", "bf16"},
      {"bfloat16_t", "bf16"},
      {"bfloat16", "bf16"},
      {"long", "i64"},
      {"int", "i32"},
      {"short", "i16"},
      {"char", "i8"},
      {"bool", "bool"},
      {"Float8_e4m3fn", "f8e4m3"},
      {"Float8_e5m2", "f8e5m2"},
      {"float_e4m3_t", "f8e4m3"},
      {"float_e5m2_t", "f8e5m2"},
      {"__nv_fp8_e4m3", "f8e4m3"},
      {"tfloat32_t", "tf32"}};
  const auto* row =
      std::ranges::find_if(kTypes, [&](const auto& one) { return one.first == word; });
  return row == std::end(kTypes) ? std::string_view() : row->second;
}

// The first type of elements in a text; " 8B" where only their size is known.
std::string first_type(std::string_view text) {
  Words words(text);
  bool is_unsigned = false;
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (word == "OpaqueType") {
      std::string_view size = words.next();
      while (!size.empty() && !is_number(size)) {  // the words of a cast
        size = words.next();
      }
      return std::string(size) + "B";
    }
    if (const std::string_view type = element_type(word); !type.empty()) {
      return is_unsigned && type.starts_with('i') ? "u" + std::string(type.substr(1))
                                                  : std::string(type);
    }
    is_unsigned = word == "unsigned";
  }
  return {};
}

// The last type that a lambda takes: lambda(bool, float). Lambdas without one are around it; what
// follows ">(" belongs to the shell.
std::string lambda_type(std::string_view text) {
  static constexpr std::string_view kLambda = "lambda(";
  text = text.substr(0, text.find(">("));
  for (std::size_t at = text.find(kLambda); at != std::string_view::npos;
       at = text.find(kLambda, at + 1)) {
    std::string_view taken = text.substr(at + kLambda.size());
    taken = taken.substr(0, taken.find(')'));
    const std::size_t comma = taken.rfind(',');
    std::string type = first_type(comma == std::string_view::npos ? taken : taken.substr(comma));
    if (!type.empty()) {
      return type;
    }
  }
  return {};
}

// "mul" of MulFunctor, "exp" of exp_kernel_cuda, "argmax" of ArgMaxOps; empty if a word is not an
// operation.
std::string operation_in(std::string_view word) {
  static constexpr std::string_view kShells[] = {
      "BinaryFunctor",   "AUnaryFunctor", "BUnaryFunctor",      "gpu_index_kernel",
      "gpu_kernel_impl", "gpu_kernel",    "elementwise_kernel", "functor"};
  static constexpr std::string_view kBegins[] = {"CUDAFunctor_", "CUDAFunctorOnSelf_", "launch_"};
  static constexpr std::string_view kEnds[] = {"CUDAKernelImpl", "KernelImpl", "_kernel_cuda",
                                               "_kernel_impl",   "_cuda_out",  "_kernel",
                                               "Functor",        "_functor",   "Ops"};
  if (std::find(std::begin(kShells), std::end(kShells), word) != std::end(kShells)) {
    return {};
  }
  for (const std::string_view begin : kBegins) {
    if (word.starts_with(begin)) {
      return to_lower(word.substr(begin.size()));
    }
  }
  for (const std::string_view end : kEnds) {
    if (word.ends_with(end)) {
      word.remove_suffix(end.size());
      word.remove_suffix(word.ends_with("_internal") ? 9 : 0);
      word.remove_prefix(word.starts_with("_cuda_") ? 6 : 0);
      return to_lower(word);
    }
  }
  return {};
}

struct Operation {
  std::string name;
  std::string type;
};

// The first operation in template arguments, and the type of its elements.
std::optional<Operation> operation_of(std::string_view arguments) {
  Words words(arguments);
  std::string outer_type;  // BinaryFunctor<Half, Half, Half, MulFunctor<float>>: of the elements
  bool is_scalar = false;
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (word == "BinaryFunctor" || word == "AUnaryFunctor" || word == "BUnaryFunctor") {
      outer_type = first_type(words.rest());
      is_scalar = word != "BinaryFunctor";
      continue;
    }
    std::string name = operation_in(word);
    if (name.empty()) {
      continue;
    }
    is_scalar |= word.starts_with("CUDAFunctorOnSelf_");
    const bool has_types = words.rest().starts_with('<');
    std::string type = !outer_type.empty() ? outer_type
                       : has_types         ? first_type(words.rest())
                                           : lambda_type(words.rest());
    return Operation{name + (is_scalar ? " scalar" : ""), std::move(type)};
  }
  return std::nullopt;
}

std::string joined(std::string text, std::string_view word) {
  if (!word.empty()) {
    text += " ";
    text += word;
  }
  return text;
}

// "direct_copy" of a type, with what it converts from and to.
std::string copy_text(const Operation& operation, bool is_cast) {
  static constexpr std::pair<std::string_view, std::string_view> kConversions[] = {
      {"bfloat16_copy", "copy {} -> bf16"},
      {"float16_copy", "copy {} -> f16"},
      {"float8_copy", "copy {} -> f8"},
      {"bfloat16tofloat32_copy", "copy {} -> f32"},
      {"float16tofloat32_copy", "copy {} -> f32"}};
  for (const auto& [name, format] : kConversions) {
    if (operation.name == name && !operation.type.empty()) {
      std::string text(format);
      return text.replace(text.find("{}"), 2, operation.type);
    }
  }
  return is_cast && !operation.type.empty() ? "copy -> " + operation.type
                                            : joined("copy", operation.type);
}

// vec4, 128x2: how the elements are shared out.
std::string elementwise_detail(std::string_view own, std::string_view arguments) {
  Words words(arguments);
  const std::string_view first = words.next();
  const std::string_view second = words.next();
  if (own.starts_with("vectorized_") && is_number(first)) {
    return fmt::format("vec{}", first);
  }
  if (own.starts_with("unrolled_")) {
    return "unrolled";
  }
  return is_number(first) && is_number(second) ? fmt::format("{}x{}", first, second)
                                               : std::string(own);
}

std::optional<KernelPhrase> elementwise_phrase(std::string_view own, std::string_view arguments,
                                               std::string_view readable) {
  const auto operation = operation_of(readable);
  if (!operation) {
    return std::nullopt;
  }
  const bool is_cast = arguments.find("LoadWithCast") != std::string_view::npos;
  const bool is_copy = operation->name.ends_with("copy") && !operation->name.starts_with("index");
  std::string text =
      is_copy ? copy_text(*operation, is_cast) : joined(operation->name, operation->type);
  return KernelPhrase{std::move(text), elementwise_detail(own, arguments)};
}

std::optional<KernelPhrase> phrase_with(std::string_view verb, std::string_view arguments,
                                        std::string_view readable) {
  const auto operation = operation_of(readable);
  if (!operation) {
    return std::nullopt;
  }
  Words words(arguments);
  const std::string_view first = words.next();
  const std::string_view second = words.next();
  return KernelPhrase{
      joined(fmt::format("{} {}", verb, operation->name), operation->type),
      is_number(first) && is_number(second) ? fmt::format("{}x{}", first, second) : ""};
}

// The arguments between the commas of <...>, without what is inside of one.
std::vector<std::string_view> split_arguments(std::string_view arguments) {
  std::vector<std::string_view> list;
  int depth = 0;
  std::size_t begin = 1;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const char c = arguments[i];
    depth += c == '<' || c == '(' ? 1 : 0;
    depth -= c == '>' || c == ')' ? 1 : 0;
    if (begin <= i && ((depth == 1 && c == ',') || depth == 0)) {
      list.push_back(trim(arguments.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  return list;
}

// flash_fwd_kernel<Flash_fwd_kernel_traits<hdim, rows, columns, ...>, dropout, causal, ...>; the
// kernels that split keys have no dropout.
std::optional<KernelPhrase> flash_phrase(std::string_view own, std::string_view arguments) {
  const std::vector<std::string_view> list = split_arguments(arguments);
  if (list.empty()) {
    return std::nullopt;
  }
  Words words(list[0]);
  words.next();
  const std::string_view hdim = words.next();
  const std::string_view rows = words.next();
  const std::string_view columns = words.next();
  if (!is_number(hdim)) {
    return std::nullopt;
  }
  const std::string_view name = own.ends_with("_kernel") ? own.substr(0, own.size() - 7) : own;
  std::string text = joined(fmt::format("{} hdim{}", name, hdim), [&] {
    std::string type = first_type(list[0]);
    return type == "bool" ? std::string() : type;
  }());
  const bool is_split = own.find("splitkv") != std::string_view::npos;
  const std::size_t causal = is_split ? 1 : 2;
  const bool has_mask = own.find("combine") == std::string_view::npos && causal < list.size();
  if (has_mask && (list[causal] == "true" || list[causal] == "1")) {
    text += " causal";
  }
  return KernelPhrase{std::move(text), fmt::format("{}x{}", rows, columns)};
}

// The first tile of three sizes: C<128>, C<64>, C<32>. Smaller ones are clusters.
std::array<std::int64_t, 3> tile_of(std::string_view text) {
  std::array<std::int64_t, 3> tile = {0, 0, 0};
  Words words(text);
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (word != "C" || !words.rest().starts_with('<')) {
      tile = {0, 0, 0};
      continue;
    }
    const std::string_view size = words.next();
    if (!is_number(size) || size.size() > 5) {
      continue;
    }
    tile = {tile[1], tile[2], std::stoll(std::string(size))};
    if (tile[0] * tile[1] * tile[2] >= 4096) {
      return tile;
    }
  }
  return {0, 0, 0};
}

// device_kernel<a::b::GemmKernel>, Kernel<cutlass_80_tensorop_...>,
// device_kernel<GemmUniversal<..>>
std::optional<KernelPhrase> shell_phrase(std::string_view readable) {
  const std::string_view declared = without_parameters(readable);
  const std::string_view own = own_kernel_name(readable);
  const std::size_t at = declared.rfind(own, declared.find('<'));
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  std::vector<std::string_view> list =
      split_arguments(declared.substr(at + own.size()).substr(0, kLongestRead));
  std::string_view inner = list.empty() ? std::string_view() : list[0];
  std::string_view head = own_kernel_name(inner);
  while (head.starts_with("enable_")) {
    const std::size_t open = inner.find('<');
    list =
        split_arguments(open == std::string_view::npos ? std::string_view() : inner.substr(open));
    inner = list.empty() ? std::string_view() : list[0];
    head = own_kernel_name(inner);
  }
  if (head.empty() || is_number(head) || !element_type(head).empty()) {
    return std::nullopt;
  }
  const std::size_t open = inner.find('<');
  if (open == std::string_view::npos) {
    // A struct of a common name is known by its namespace.
    const std::string_view scope = inner.substr(0, inner.size() - head.size());
    const std::string_view space =
        scope.size() > 2 ? own_kernel_name(scope.substr(0, scope.size() - 2)) : std::string_view();
    return KernelPhrase{
        head.size() > 12 || space.empty() ? std::string(head) : fmt::format("{}::{}", space, head),
        ""};
  }
  const std::string bare = bare_kernel_name(inner);
  const std::array<std::int64_t, 3> tile = tile_of(bare);
  if (tile[0] == 0) {
    return std::nullopt;
  }
  const std::string_view types = std::string_view(bare).substr(bare.find("C<"));
  std::string type;
  Words words(types);
  for (std::string_view word = words.next(); !word.empty() && type.empty(); word = words.next()) {
    const std::string_view found = element_type(word);
    type = found == "i32" || found == "bool" ? std::string_view() : found;
  }
  const std::string sizes = fmt::format("{}x{}x{}", tile[0], tile[1], tile[2]);
  if (head.starts_with("FlashAttn")) {
    return KernelPhrase{joined(fmt::format("{} hdim{}", head, tile[2]), type), sizes};
  }
  return KernelPhrase{joined(fmt::format("{} {}", head, sizes), type), ""};
}

bool begins_with_type(std::string_view part) {
  const std::size_t digit = part.find_first_of("0123456789");
  const std::string_view word = part.substr(0, digit);
  return digit != std::string_view::npos &&
         (word == "f" || word == "bf" || word == "tf" || word == "i" || word == "e" || word == "s");
}

// sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_...: "sm80_xmma_gemm f32f32 tn_n
// 128x128x8". The types after the first, of sums and results, are left out.
std::optional<KernelPhrase> xmma_phrase(std::string_view own) {
  constexpr std::string_view kTile = "_tilesize";
  const std::size_t tile = own.find(kTile);
  const std::size_t product = own.find("gemm_");
  if (tile == std::string_view::npos || product >= tile) {
    return std::nullopt;
  }
  const std::size_t after = product + 5;
  std::string type;
  std::string layout;
  for (const std::string_view part : split(own.substr(after, tile - after), '_')) {
    if (!begins_with_type(part)) {
      layout += (layout.empty() ? "" : "_") + std::string(part);
    } else if (type.empty()) {
      type = part;
    }
  }
  const std::vector<std::string_view> rest = split(own.substr(tile + kTile.size()), '_');
  // Of "execute_split_k_kernel__5x_cublas": it adds up parts of the sums.
  const bool is_split = own.find("_split_k", tile) != std::string_view::npos;
  std::string text = joined(std::string(own.substr(0, after - 1)), type);
  text = joined(joined(joined(std::move(text), layout), rest[0]), is_split ? "split_k" : "");
  return KernelPhrase{std::move(text), rest.size() > 1 ? std::string(rest[1]) : ""};
}

// Cijk_Alik_Bljk_BBS_BH_..._MT256x32x64_MI16x16x1_..._WG64_4_1: "Cijk_Alik_Bljk_BBS MT256x32x64".
std::optional<KernelPhrase> tensile_phrase(std::string_view own) {
  const std::vector<std::string_view> parts = split(own, '_');
  const auto tile = std::ranges::find_if(parts, [](std::string_view part) {
    return part.size() > 2 && part.starts_with("MT") && is_number(part.substr(2, 1));
  });
  if (tile == parts.end() || tile - parts.begin() < 4) {
    return std::nullopt;
  }
  const std::size_t group = own.rfind("_WG");
  return KernelPhrase{fmt::format("{}_{}_{}_{} {}", parts[0], parts[1], parts[2], parts[3], *tile),
                      group == std::string_view::npos ? "" : std::string(own.substr(group + 1))};
}

}  // namespace

std::optional<KernelPhrase> phrase_of(std::string_view readable, std::string_view bare) {
  const std::string_view own = bare.substr(0, bare.find('<'));
  const std::string_view arguments = bare.substr(own.size()).substr(0, kLongestRead);
  if (arguments.empty()) {
    const std::string_view name = own.substr(0, kLongestRead);
    return name.starts_with("Cijk_")                       ? tensile_phrase(name)
           : name.find("_xmma_") != std::string_view::npos ? xmma_phrase(name)
                                                           : std::nullopt;
  }
  // Casts are kept here: (int) may be what a lambda takes.
  const std::string_view declared = without_parameters(readable);
  const std::string_view whole_own = own_kernel_name(readable);
  const std::string_view whole_arguments =
      declared
          .substr(static_cast<std::size_t>(whole_own.data() + whole_own.size() - declared.data()))
          .substr(0, kLongestRead);
  if (own.find("elementwise_kernel") != std::string_view::npos) {
    return elementwise_phrase(own, arguments, whole_arguments);
  }
  if (own == "reduce_kernel") {
    return phrase_with("reduce", arguments, whole_arguments);
  }
  if (own == "multi_tensor_apply_kernel") {
    return phrase_with("foreach", arguments, whole_arguments);
  }
  if (own.starts_with("flash_fwd") || own.starts_with("flash_bwd")) {
    return flash_phrase(own, arguments);
  }
  if (own == "device_kernel" || own == "Kernel" || own == "Kernel2") {
    return shell_phrase(readable);
  }
  return std::nullopt;
}

}  // namespace gpuwhy
