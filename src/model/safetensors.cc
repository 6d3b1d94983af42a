// SPDX-License-Identifier: Apache-2.0
//
// Reader of safetensors headers: eight bytes of length, a JSON directory, then weights.
//
// The format is from the README of huggingface/safetensors. Its own reader accepts headers up to
// 100 MB; ours stops at 32 MiB, because a parsed header takes ten times its size and the largest
// published one has 5 MB.
//
// Integers are treated as packed weights: no published model has integer parameters.
#include "model/safetensors.h"

#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sorted_json.h"
#include "base/text.h"
#include "base/units.h"
#include "model/bounded_file.h"

namespace gpuwhy {
namespace {

constexpr std::uint64_t kLongestHeader = 32 * kMiB;
constexpr std::size_t kMostFiles = 4096;
constexpr std::size_t kDeepestShape = 16;

struct ElementType {
  std::string_view name;
  std::int64_t bytes;
  bool is_packed;
};

constexpr ElementType kElementTypes[] = {
    {"F64", 8, false}, {"F32", 4, false},     {"F16", 2, false},     {"BF16", 2, false},
    {"I64", 8, true},  {"I32", 4, true},      {"I16", 2, true},      {"I8", 1, true},
    {"U64", 8, true},  {"U32", 4, true},      {"U16", 2, true},      {"U8", 1, true},
    {"BOOL", 1, true}, {"F8_E4M3", 1, false}, {"F8_E5M2", 1, false}, {"F8_E8M0", 1, true},
};

[[noreturn]] void fail(const std::string& tensor, const char* what) {
  throw Error(ErrorKind::kInput, fmt::format("tensor {} {}", printable(tensor), what));
}

std::int64_t whole(const SortedJson& value, const std::string& tensor) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > INT64_MAX) {
    fail(tensor, "has a size that is not a whole number below 2^63");
  }
  return value.get<std::int64_t>();
}

// Checks that the byte range matches the shape, so that totals can be trusted.
TensorRecord record_of(const std::string& name, const SortedJson& entry) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
      !entry.contains("shape") || !entry["shape"].is_array() || !entry.contains("data_offsets") ||
      !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2 ||
      entry["shape"].size() > kDeepestShape) {
    fail(name, "lacks its dtype, shape or data_offsets");
  }
  const auto& dtype = entry["dtype"].get_ref<const std::string&>();
  const auto* const type = std::ranges::find_if(
      kElementTypes, [&](const ElementType& known) { return known.name == dtype; });
  if (type == std::end(kElementTypes)) {
    fail(name, "has a dtype that is not known");
  }
  Count elements = 1;
  for (const SortedJson& size : entry["shape"]) {
    elements = elements * whole(size, name);
  }
  const std::int64_t begin = whole(entry["data_offsets"][0], name);
  const std::int64_t end = whole(entry["data_offsets"][1], name);
  if (end < begin || end - begin != (elements * type->bytes).value()) {
    fail(name, "has offsets that do not fit its shape");
  }
  const bool is_scale = name.find("scale") != std::string::npos;
  return {name, elements.value(), end - begin, type->is_packed || is_scale};
}

}  // namespace

// Reads the header only; the weights are never touched.
std::vector<TensorRecord> read_safetensors(const std::filesystem::path& path) {
  return with_context(fmt::format("in {}", path.string()), [&] {
    BoundedFile file(path);
    const std::uint64_t length = file.left() < 8 ? 0 : file.read_integer(8);
    if (length < 2 || length > kLongestHeader || length > file.left()) {
      file.fail("is not a safetensors file, or its header is cut off");
    }
    const SortedJson header = parse_sorted_json(file.read_text(length), "its header");
    if (!header.is_object()) {
      file.fail("has a header that is not a mapping of tensors");
    }
    std::vector<TensorRecord> tensors;
    for (const auto& [name, entry] : header.items()) {
      if (name != "__metadata__") {
        tensors.push_back(record_of(name, entry));
      }
    }
    return tensors;
  });
}

// Reads the headers of all shards that the index names. A name with a slash is refused: an index
// must not lead out of its folder.
std::vector<TensorRecord> read_safetensors_index(const std::filesystem::path& index) {
  const SortedJson file = parse_sorted_json(read_file(index, kLongestHeader), index.string());
  if (!file.is_object() || !file.contains("weight_map") || !file["weight_map"].is_object()) {
    throw Error(ErrorKind::kInput, fmt::format("{} has no weight_map", index.string()));
  }
  std::set<std::string> names;
  for (const auto& [tensor, name] : file["weight_map"].items()) {
    if (!name.is_string() || name.get_ref<const std::string&>().find('/') != std::string::npos) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{} names a file that is not beside it", index.string()));
    }
    names.insert(name.get<std::string>());
    if (names.size() > kMostFiles) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{} names more than {} files", index.string(), kMostFiles));
    }
  }
  std::vector<TensorRecord> tensors;
  for (const std::string& name : names) {
    for (TensorRecord& tensor : read_safetensors(index.parent_path() / name)) {
      tensors.push_back(std::move(tensor));
    }
  }
  return tensors;
}

}  // namespace gpuwhy
