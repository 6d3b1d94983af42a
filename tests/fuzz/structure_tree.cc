// SPDX-License-Identifier: Apache-2.0
//
// Changes of documents that are trees of values: JSON, lines of JSON, YAML, and the header of
// safetensors. Values mostly keep their kind, so that what comes out is still such a document.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/yaml.h"
#include "fuzz/structure.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kDeepest = 200;  // of what is changed; writing it recurses

constexpr std::int64_t kWholeNumbers[] = {
    0, 1, 2, -1, 8, 64, 4096, 2147483647, 2147483648, 4294967296, 1LL << 53, INT64_MAX};
constexpr double kFractions[] = {0.0, 0.5, -1.5, 1e-9, 1e15, 1e308};
constexpr std::string_view kTexts[] = {"",         "0",    "null", "decode",  "5%",   "12 ms",
                                       "bfloat16", "../x", "\n",   "<b>&\"'", "\x01", "a: b"};

struct Nodes {
  std::vector<Json*> all;
  std::vector<Json*> parents;  // with something in them
  std::vector<std::string> keys;
};

void find_nodes(Json& tree, Nodes& found) {
  found.all.push_back(&tree);
  if (tree.is_structured() && !tree.empty()) {
    found.parents.push_back(&tree);
    for (const auto& member : tree.items()) {
      if (tree.is_object()) {
        found.keys.push_back(member.key());
      }
      find_nodes(member.value(), found);
    }
  }
}

std::size_t depth_of(const Json& tree) {
  std::size_t deepest = 0;
  if (tree.is_structured()) {
    for (const Json& child : tree) {
      deepest = std::max(deepest, depth_of(child));
    }
  }
  return deepest + 1;
}

void change_leaf(Json& leaf, const Nodes& nodes, Random& random) {
  if (leaf.is_boolean()) {
    leaf = !leaf.get<bool>();
  } else if (leaf.is_number_integer()) {
    leaf = pick(random, 2) == 0
               ? one_of(kWholeNumbers, random)
               : static_cast<std::int64_t>(leaf.get<std::uint64_t>() + pick(random, 5) - 2);
  } else if (leaf.is_number()) {
    leaf = pick(random, 2) == 0 ? one_of(kFractions, random) : 1.5 * leaf.get<double>();
  } else if (leaf.is_string()) {
    const Json& other = *one_of(nodes.all, random);
    if (other.is_string() && pick(random, 2) == 0) {
      leaf = Json(other);
    } else if (pick(random, 2) == 0) {
      leaf = std::string(one_of(kTexts, random));
    } else {
      leaf = leaf.get<std::string>() + std::string(one_of(kTexts, random));
    }
  } else if (leaf.is_null()) {
    leaf = one_of(kWholeNumbers, random);
  }
}

// A member is removed, doubled, moved under another name or swapped.
void change_parent(Json& parent, const Nodes& nodes, Random& random) {
  const auto at = static_cast<std::ptrdiff_t>(pick(random, parent.size()));
  const Json copy = *std::next(parent.begin(), at);
  const std::size_t kind = pick(random, 4);
  if (kind == 0) {
    parent.erase(std::next(parent.begin(), at));
  } else if (parent.is_array()) {
    constexpr std::size_t kCopies[] = {1, 2, 30};
    for (std::size_t i = one_of(kCopies, random); i > 0; --i) {
      parent.push_back(copy);
    }
  } else if (kind == 1 && !nodes.keys.empty()) {
    parent[one_of(nodes.keys, random)] = copy;
  } else {
    parent[std::string(one_of(kTexts, random)) + std::to_string(pick(random, 4))] = copy;
  }
}

void change(Json& tree, Random& random) {
  Nodes nodes;
  find_nodes(tree, nodes);
  const std::size_t kind = pick(random, 16);
  Json& one = *one_of(nodes.all, random);
  if (kind < 10) {
    change_leaf(one, nodes, random);
  } else if (kind < 13 && !nodes.parents.empty()) {
    change_parent(*one_of(nodes.parents, random), nodes, random);
  } else if (kind < 15) {
    // Of the same kind, or of any.
    const Json& other = *one_of(nodes.all, random);
    if (kind == 13 || other.type() == one.type()) {
      const Json copy = other;
      one = copy;
    }
  } else {
    one = pick(random, 2) == 0 ? Json() : Json(one_of(kWholeNumbers, random));
  }
}

// Repeats a member of one list or mapping until the document has about `wanted_bytes`; with chance
// its numbers and texts differ in every copy.
void grow(Json& tree, std::size_t wanted_bytes, Random& random) {
  Nodes nodes;
  find_nodes(tree, nodes);
  if (nodes.parents.empty()) {
    return;
  }
  Json& parent = *one_of(nodes.parents, random);
  const auto at =
      std::next(parent.begin(), static_cast<std::ptrdiff_t>(pick(random, parent.size())));
  const std::string key = parent.is_object() ? at.key() : "";
  const Json pattern = *at;
  const bool is_varied = pick(random, 2) == 0;
  const std::size_t copy_bytes = to_json_line(pattern).size() + key.size() + 10;
  for (std::size_t n = 1; n * copy_bytes < wanted_bytes; ++n) {
    Json copy = pattern;
    if (is_varied) {
      Nodes of_copy;
      find_nodes(copy, of_copy);
      Json& one = *one_of(of_copy.all, random);
      if (one.is_number_integer()) {
        one = one.get<std::uint64_t>() + n;
      } else if (one.is_string()) {
        one = one.get<std::string>() + std::to_string(n);
      }
    }
    if (parent.is_object()) {
      parent.get_ref<Json::object_t&>().emplace_back(key + std::to_string(n), std::move(copy));
    } else {
      parent.push_back(std::move(copy));
    }
  }
}

std::optional<Json> parsed(std::string_view bytes) {
  Json tree = Json::parse(bytes, nullptr, false);
  if (tree.is_discarded() || depth_of(tree) > kDeepest) {
    return std::nullopt;
  }
  return tree;
}

// Of tensors with two-byte elements: a reader refuses offsets that do not fit the shape.
void fit_offsets(Json& header) {
  for (const auto& entry : header.items()) {
    Json& tensor = entry.value();
    if (!tensor.is_object() || !tensor.contains("shape") || !tensor["shape"].is_array() ||
        !tensor.contains("data_offsets")) {
      continue;
    }
    std::uint64_t num_elements = 1;
    for (const Json& size : tensor["shape"]) {
      num_elements *= size.is_number_unsigned() ? size.get<std::uint64_t>() : 1;
    }
    tensor["data_offsets"] = {0, 2 * num_elements};
  }
}

std::optional<std::string> if_it_fits(std::string text, std::size_t most_bytes) {
  return text.empty() || text.size() > most_bytes ? std::nullopt : std::optional(std::move(text));
}

}  // namespace

std::optional<std::string> changed_json(std::string_view bytes, std::size_t most_bytes,
                                        Random& random) {
  std::optional<Json> tree = parsed(bytes);
  if (!tree) {
    return std::nullopt;
  }
  change(*tree, random);
  return if_it_fits(to_json_line(*tree), most_bytes);
}

std::optional<std::string> grown_json(std::string_view bytes, std::size_t wanted_bytes,
                                      Random& random) {
  std::optional<Json> tree = parsed(bytes);
  if (!tree) {
    return std::nullopt;
  }
  grow(*tree, wanted_bytes, random);
  return to_json_line(*tree);
}

// One of the lines changes, or is removed or doubled.
std::optional<std::string> changed_json_lines(std::string_view bytes, std::size_t most_bytes,
                                              Random& random) {
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    lines.emplace_back(bytes.substr(0, end));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  if (lines.empty()) {
    return std::nullopt;
  }
  std::string& line = lines[pick(random, lines.size())];
  const std::size_t kind = pick(random, 8);
  if (kind == 0) {
    const std::string copy = line;
    lines.push_back(copy);
  } else if (kind == 1 && lines.size() > 1) {
    line.clear();
  } else {
    // Events of a server have a word before their JSON.
    const std::size_t begin = std::min(line.find('{'), line.size());
    const auto changed = changed_json(std::string_view(line).substr(begin), most_bytes, random);
    if (!changed) {
      return std::nullopt;
    }
    line = line.substr(0, begin) + *changed;
  }
  std::string text;
  for (const std::string& kept : lines) {
    text += kept + "\n";
  }
  return if_it_fits(std::move(text), most_bytes);
}

std::optional<std::string> changed_yaml(std::string_view bytes, std::size_t most_bytes,
                                        Random& random) {
  try {
    Json tree = parse_yaml(bytes, "fuzz.yaml");
    change(tree, random);
    return if_it_fits(pick(random, 4) == 0 ? to_json_line(tree) : to_yaml_text(tree), most_bytes);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<std::string> grown_yaml(std::string_view bytes, std::size_t wanted_bytes,
                                      Random& random) {
  try {
    Json tree = parse_yaml(bytes, "fuzz.yaml");
    grow(tree, wanted_bytes, random);
    return to_yaml_text(tree);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Eight bytes of length, then JSON.
std::optional<std::string> changed_safetensors(std::string_view bytes, std::size_t most_bytes,
                                               Random& random) {
  constexpr std::size_t kLengthBytes = 8;
  if (bytes.size() <= kLengthBytes) {
    return std::nullopt;
  }
  std::optional<Json> header = parsed(bytes.substr(kLengthBytes));
  if (!header) {
    return std::nullopt;
  }
  change(*header, random);
  if (header->is_object() && pick(random, 8) != 0) {
    fit_offsets(*header);
  }
  const std::string json = to_json_line(*header);
  std::string text;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    text += static_cast<char>(json.size() >> (8 * i) & 0xff);
  }
  return if_it_fits(text + json, most_bytes);
}

}  // namespace gpuwhy
