// SPDX-License-Identifier: Apache-2.0
//
// Reader of GGUF headers, the file format of llama.cpp.
//
// A file is a magic word, counted key-value pairs, a counted list of tensors, then weights. Layout
// and block sizes are from ggml's gguf.md and ggml-common.h.
//
// Every count in the header is untrusted. Counts are capped far above those of any model, so that a
// file of a hundred bytes cannot request a terabyte, and one of a terabyte cannot keep us busy.
// Whether the weights after the header are complete is not checked.
#include "model/gguf.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "model/bounded_file.h"

namespace gpuwhy {
namespace {

constexpr std::uint64_t kMagic = 0x46554747;  // "GGUF"
constexpr std::uint64_t kMostPairs = 1 << 14;
constexpr std::uint64_t kMostTensors = 1 << 18;
constexpr std::uint64_t kMostItems = 1 << 24;  // of all lists: vocabularies have a million
constexpr std::uint64_t kLongestKey = 256;
constexpr std::uint64_t kLongestText = 1 << 12;  // that is kept
constexpr std::size_t kLongestKeptList = 4096;   // that is kept: one item per layer
constexpr std::uint64_t kMostKept = 1 << 20;     // items of all lists that are kept
constexpr std::uint64_t kMostDimensions = 8;

// A storage format: its id in the file and its block size.
struct BlockType {
  std::uint32_t id;
  const char* name;
  StoredWidth width;
};

constexpr BlockType kBlockTypes[] = {
    {0, "F32", {1, 4}},         {1, "F16", {1, 2}},         {2, "Q4_0", {32, 18}},
    {3, "Q4_1", {32, 20}},      {6, "Q5_0", {32, 22}},      {7, "Q5_1", {32, 24}},
    {8, "Q8_0", {32, 34}},      {9, "Q8_1", {32, 36}},      {10, "Q2_K", {256, 84}},
    {11, "Q3_K", {256, 110}},   {12, "Q4_K", {256, 144}},   {13, "Q5_K", {256, 176}},
    {14, "Q6_K", {256, 210}},   {15, "Q8_K", {256, 292}},   {16, "IQ2_XXS", {256, 66}},
    {17, "IQ2_XS", {256, 74}},  {18, "IQ3_XXS", {256, 98}}, {19, "IQ1_S", {256, 50}},
    {20, "IQ4_NL", {32, 18}},   {21, "IQ3_S", {256, 110}},  {22, "IQ2_S", {256, 82}},
    {23, "IQ4_XS", {256, 136}}, {24, "I8", {1, 1}},         {25, "I16", {1, 2}},
    {26, "I32", {1, 4}},        {27, "I64", {1, 8}},        {28, "F64", {1, 8}},
    {29, "IQ1_M", {256, 56}},   {30, "BF16", {1, 2}},       {34, "TQ1_0", {256, 54}},
    {35, "TQ2_0", {256, 66}},   {39, "MXFP4", {32, 17}},    {40, "NVFP4", {64, 36}},
};

enum ValueType : std::uint32_t {
  kU8 = 0,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

// The size of a scalar type in bytes; nullopt for strings, arrays and unknown types.
std::optional<std::size_t> size_of(std::uint64_t type) {
  switch (type) {
    case kU8:
    case kI8:
    case kBool:
      return 1;
    case kU16:
    case kI16:
      return 2;
    case kU32:
    case kI32:
    case kF32:
      return 4;
    case kU64:
    case kI64:
    case kF64:
      return 8;
    default:
      return std::nullopt;
  }
}

// Reads a header front to back, with limits on everything that the file can multiply.
class Parser {
 public:
  explicit Parser(const std::filesystem::path& path) : file_(path) {}

  GgufHeader parse() {
    // 24 bytes: magic, version and the two counts. Both counts are bounded before they are used as
    // loop limits.
    if (file_.left() < 24 || file_.read_integer(4) != kMagic) {
      file_.fail("is not a GGUF file");
    }
    const std::uint64_t version = file_.read_integer(4);
    if (version != 2 && version != 3) {
      file_.fail(fmt::format("has GGUF version {}; versions 2 and 3 are read", version));
    }
    const std::uint64_t num_tensors = bounded(file_.read_integer(8), kMostTensors, "tensors");
    const std::uint64_t num_pairs = bounded(file_.read_integer(8), kMostPairs, "keys");
    header_.metadata = Json::object();
    for (std::uint64_t i = 0; i < num_pairs; ++i) {
      read_pair();
    }
    for (std::uint64_t i = 0; i < num_tensors; ++i) {
      read_tensor();
    }
    set_format();
    return std::move(header_);
  }

 private:
  std::uint64_t bounded(std::uint64_t count, std::uint64_t most, const char* what) const {
    if (count > most) {
      file_.fail(fmt::format("claims {} {}, more than the {} a model may have", count, what, most));
    }
    return count;
  }

  std::string read_name() {
    return file_.read_text(bounded(file_.read_integer(8), kLongestKey, "characters of a name"));
  }

  void read_pair() {
    const std::string key = read_name();
    const std::uint64_t type = file_.read_integer(4);
    header_.metadata[key] = type == kArray ? read_array() : read_value(type);
  }

  // Texts beyond the limit (chat templates, licences) are skipped and become null.
  Json read_value(std::uint64_t type) {
    if (type == kString) {
      const std::uint64_t length = file_.read_integer(8);
      if (length > kLongestText) {
        file_.skip(length);
        return nullptr;
      }
      return file_.read_text(length);
    }
    const auto size = size_of(type);
    if (!size) {
      file_.fail(fmt::format("has a value of unknown type {}", type));
    }
    const std::uint64_t raw = file_.read_integer(*size);
    switch (type) {
      case kI8:
        return static_cast<std::int8_t>(raw);
      case kI16:
        return static_cast<std::int16_t>(raw);
      case kI32:
        return static_cast<std::int32_t>(raw);
      case kI64:
        return static_cast<std::int64_t>(raw);
      case kF32:
        return std::bit_cast<float>(static_cast<std::uint32_t>(raw));
      case kF64:
        return std::bit_cast<double>(raw);
      case kBool:
        return raw != 0;
      default:
        return raw;
    }
  }

  // A list of numbers, which may be per layer, is kept; of any other list only the length:
  // {"length": n}.
  Json read_array() {
    const std::uint64_t type = file_.read_integer(4);
    const std::uint64_t count = bounded(file_.read_integer(8), items_left_, "items of a list");
    items_left_ -= count;
    if (type == kString) {
      for (std::uint64_t i = 0; i < count; ++i) {
        file_.skip(file_.read_integer(8));
      }
      return {{"length", count}};
    }
    const auto size = size_of(type);
    if (!size) {
      file_.fail(fmt::format("has a list of unknown type {}", type));
    }
    kept_items_ += count > kLongestKeptList ? 0 : count;
    if (count > kLongestKeptList || kept_items_ > kMostKept) {
      file_.skip(count * *size);
      return {{"length", count}};
    }
    Json list = Json::array();
    for (std::uint64_t i = 0; i < count; ++i) {
      list.push_back(read_value(type));
    }
    return list;
  }

  void read_tensor() {
    TensorRecord tensor;
    tensor.name = read_name();
    const std::uint64_t num_dimensions =
        bounded(file_.read_integer(4), kMostDimensions, "dimensions of a tensor");
    // The first dimension is the row: blocks do not cross rows.
    Count elements = 1;
    std::uint64_t row = 1;
    for (std::uint64_t i = 0; i < num_dimensions; ++i) {
      const std::uint64_t size = bounded(file_.read_integer(8), INT64_MAX, "rows of a tensor");
      row = i == 0 ? size : row;
      elements = elements * static_cast<std::int64_t>(size);
    }
    const std::uint64_t id = file_.read_integer(4);
    file_.skip(8);  // its offset
    const auto* const type =
        std::ranges::find_if(kBlockTypes, [&](const BlockType& known) { return known.id == id; });
    if (type == std::end(kBlockTypes)) {
      file_.fail(fmt::format("tensor {} has the unknown type {}", printable(tensor.name), id));
    }
    if (row % static_cast<std::uint64_t>(type->width.elements) != 0) {
      file_.fail(fmt::format("tensor {} does not fit the blocks of {}", printable(tensor.name),
                             type->name));
    }
    tensor.elements = elements.value();
    tensor.bytes = type->width.bytes_of(tensor.elements);
    bytes_by_type_[type->name] += tensor.elements;
    header_.tensors.push_back(std::move(tensor));
  }

  // The format of most weights names the file: "Q4_K_M" files mix several.
  void set_format() {
    std::int64_t most = 0;
    for (const auto& [name, elements] : bytes_by_type_) {
      if (elements.value() > most) {
        most = elements.value();
        header_.format = name;
      }
    }
  }

  BoundedFile file_;
  GgufHeader header_;
  std::uint64_t items_left_ = kMostItems;
  std::uint64_t kept_items_ = 0;
  std::map<std::string, Count> bytes_by_type_;
};

}  // namespace

GgufHeader read_gguf(const std::filesystem::path& path) {
  return Parser(path).parse();
}

}  // namespace gpuwhy
