// SPDX-License-Identifier: Apache-2.0
//
// Changes of PyTorch traces as JSON: keys dropped, doubled, renamed and retyped, numbers at the
// edges, texts with escapes, values nested deep, launches joined in circles, and gzip, also cut
// off.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <nlohmann/json.hpp>
#include <zlib.h>

#include "fuzz/structure.h"

namespace gpuwhy {
namespace {

using Tree = nlohmann::ordered_json;

constexpr std::size_t kDeepestJson = 500;  // of what is changed; writing it recurses

constexpr std::string_view kJsonKeys[] = {"ph",
                                          "cat",
                                          "name",
                                          "pid",
                                          "tid",
                                          "ts",
                                          "dur",
                                          "id",
                                          "args",
                                          "correlation",
                                          "device",
                                          "context",
                                          "stream",
                                          "bytes",
                                          "grid",
                                          "block",
                                          "graph node id",
                                          "kernel",
                                          "Module Hierarchy",
                                          "Input Dims",
                                          "Input type",
                                          "Concrete Inputs",
                                          "dtype",
                                          "In msg nelems",
                                          "Out msg nelems",
                                          "Group size",
                                          "Collective name",
                                          "Process Group Name",
                                          "Process Group Description",
                                          "Process Group Ranks",
                                          "traceEvents",
                                          "deviceProperties",
                                          "distributedInfo",
                                          "pg_config",
                                          "ranks",
                                          "baseTimeNanoseconds",
                                          "schemaVersion",
                                          "with_stack"};
// As JSON text: numbers at the edges and in other spellings, texts that mean something or hurt.
constexpr std::string_view kJsonValues[] = {
    "null",
    "true",
    "0",
    "-0.0",
    "-1",
    "1",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "123456789012345678901234567890",
    "0.0005",
    "1e3",
    "1E+15",
    "3999999999999999.999",
    "1e308",
    "4.9e-324",
    "\"\"",
    "\"7\"",
    "\"stream 7\"",
    "\"-9223372036854775808\"",
    "\"\\ud800\"",
    "\"\\u0000\\n\\t\\\"\\\\\"",
    "\"\\ud83d\\ude00<script>},{\"",
    "[]",
    "{}",
    "[[]]",
    "[[4, 4], [4, 4]]",
    "[[9223372036854775807, 2], [2, 9223372036854775807]]",
    "[[-1, 4], [], [0]]",
    "[[1, 32, 4096, 128], [1, 8, 4096, 128], [1, 8, 4096, 128]]",
    "[\"c10::BFloat16\", \"c10::BFloat16\"]",
    "[4294967296, 4294967296, 4294967296]",
    "\"[0, 1, 2]\"",
    "\"[0, 1, ...]\"",
    "\"allreduce\"",
    "\"BFloat16\"",
    "\"kernel\"",
    "\"cpu_op\"",
    "\"cuda_runtime\"",
    "\"gpu_memcpy\"",
    "\"gpu_memset\"",
    "\"python_function\"",
    "\"user_annotation\"",
    "\"ac2g\"",
    "\"cuda_profiler_range\"",
    "\"Trace\"",
    "\"X\"",
    "\"s\"",
    "\"f\"",
    "\"CUDA functions\"",
    "\"CPU functions\"",
    "\"aten::mm\"",
    "\"aten::scaled_dot_product_attention\"",
    "\"nn.Module: Layer_0\"",
    "\"ProfilerStep#3\"",
    "\"execute_context_1(8)_generation_2(2)\"",
    "\"hipLaunchKernel\"",
    "\"cudaGraphLaunch\"",
    "\"cudaStreamBeginCapture\"",
    "\"cudaDeviceSynchronize\"",
    "\"ncclDevKernel_AllReduce_Sum_bf16_RING_LL\"",
    "\"void flash_fwd_kernel<128>(Params)\"",
    "\"Memcpy HtoD (Pageable -> Device)\""};
// A value that stands for brackets nested this deep, written as such.
constexpr std::string_view kNested = "\x01nested ";
// A text that is written with escapes.
constexpr char kEscaped = '\x02';
// A value that stands for its own JSON text: what a tree cannot hold.
constexpr char kRaw = '\x03';

std::size_t depth_of(std::string_view text) {
  std::size_t depth = 0;
  std::size_t deepest = 0;
  for (const char c : text) {
    depth += c == '[' || c == '{' ? 1 : 0;
    depth -= (c == ']' || c == '}') && depth > 0 ? 1 : 0;
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

Tree json_value(Random& random) {
  return std::string(1, kRaw) + std::string(one_of(kJsonValues, random));
}

void write(const Tree& tree, Random& random, std::string& out);

void write_text(const std::string& text, Random& random, std::string& out) {
  if (text.starts_with(kRaw)) {
    out.append(text, 1);
  } else if (text.starts_with(kNested)) {
    const std::size_t depth = std::strtoull(text.c_str() + kNested.size(), nullptr, 10);
    std::string closing;
    for (std::size_t i = 0; i < depth; ++i) {
      const bool is_array = pick(random, 2) == 0;
      out += is_array ? "[" : R"({"a":)";
      closing += is_array ? ']' : '}';
    }
    out += '0';
    out.append(closing.rbegin(), closing.rend());
  } else if (text.starts_with(kEscaped)) {
    static constexpr char kDigits[] = "0123456789abcdef";
    out += '"';
    for (const char c : text.substr(1)) {
      const auto byte = static_cast<unsigned char>(c);
      out += "\\u00";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
    out += '"';
  } else {
    out += Tree(text).dump(-1, ' ', false, Tree::error_handler_t::replace);
  }
}

// Members may be written twice.
void write_members(const Tree& object, Random& random, std::string& out) {
  out += '{';
  bool is_first = true;
  for (const auto& [key, member] : object.items()) {
    const std::size_t times = pick(random, 400) == 0 ? 2 : 1;
    for (std::size_t i = 0; i < times; ++i) {
      out += is_first ? "" : ", ";
      is_first = false;
      write_text(key.starts_with(kRaw) || key.starts_with(kNested[0]) ? "key" : key, random, out);
      out += ": ";
      write(i == 0 ? member : json_value(random), random, out);
    }
  }
  out += '}';
}

void write(const Tree& tree, Random& random, std::string& out) {
  if (tree.is_object()) {
    write_members(tree, random, out);
  } else if (tree.is_array()) {
    out += '[';
    for (std::size_t i = 0; i < tree.size(); ++i) {
      out += i == 0 ? "" : ", ";
      write(tree[i], random, out);
    }
    out += ']';
  } else if (tree.is_string()) {
    write_text(tree.get_ref<const std::string&>(), random, out);
  } else {
    out += tree.dump();
  }
}

// All objects of the tree; events are most of them.
void find_objects(Tree& tree, std::vector<Tree*>& found) {
  if (tree.is_object() && !tree.empty()) {
    found.push_back(&tree);
  }
  if (tree.is_structured()) {
    for (Tree& child : tree) {
      find_objects(child, found);
    }
  }
}

Tree* events_of(Tree& tree) {
  if (tree.is_array()) {
    return &tree;
  }
  const auto found = tree.is_object() ? tree.find("traceEvents") : tree.end();
  return found != tree.end() && found->is_array() ? &*found : nullptr;
}

Tree& member(Tree& object, Random& random) {
  return *std::next(object.begin(), static_cast<std::ptrdiff_t>(pick(random, object.size())));
}

// The member of this name in a random event that has it, also among its arguments.
Tree* somewhere(const std::vector<Tree*>& objects, std::string_view key, Random& random) {
  for (int tries = 0; tries < 8; ++tries) {
    Tree& object = *one_of(objects, random);
    if (const auto found = object.find(key); found != object.end()) {
      return &*found;
    }
  }
  return nullptr;
}

void change_member(Tree& object, const std::vector<Tree*>& objects, Random& random) {
  Tree& one = member(object, random);
  switch (pick(random, 9)) {
    case 0:
      object.erase(
          std::next(object.begin(), static_cast<std::ptrdiff_t>(pick(random, object.size()))));
      break;
    case 1:
      object[std::string(one_of(kJsonKeys, random))] = json_value(random);
      break;
    case 2:
      if (one.is_number_integer()) {
        one = one.get<std::uint64_t>() + pick(random, 2000) - 1000;
      } else if (one.is_number()) {
        one = one.get<double>() + static_cast<double>(pick(random, 2000)) - 1000;
      } else if (one.is_string()) {
        one = std::string(1, kEscaped) + one.get<std::string>();
      }
      break;
    case 3:
      one = one.is_string() ? Tree(std::string(1, kRaw) + "12") : Tree(one.dump());  // another type
      break;
    case 4: {
      constexpr std::size_t kDepths[] = {2, 30, 600, 1020, 1030, 5000};
      one = std::string(kNested) + std::to_string(one_of(kDepths, random));
      break;
    }
    case 5: {
      // The same member of another object, so that ids meet.
      constexpr std::string_view kIds[] = {"correlation", "id",   "ts",  "dur", "cat",
                                           "name",        "args", "pid", "tid", "stream"};
      const std::string_view key = one_of(kIds, random);
      Tree* to = somewhere(objects, key, random);
      const Tree* from = somewhere(objects, key, random);
      if (to != nullptr && from != nullptr && to != from) {
        const Tree copy = *from;
        *to = copy;
      }
      break;
    }
    default:
      one = json_value(random);
  }
}

void change_events(Tree& events, Random& random) {
  const std::size_t at = pick(random, events.size());
  const auto place = [&](std::size_t i) { return events.begin() + static_cast<std::ptrdiff_t>(i); };
  switch (events.empty() ? 4 : pick(random, 5)) {
    case 0:
      events.erase(place(at));
      break;
    case 1: {
      const Tree copy = events[at];
      events.insert(place(pick(random, events.size())), copy);
      break;
    }
    case 2:
      std::swap(events[at], events[pick(random, events.size())]);
      break;
    case 3: {
      const Tree copy = events[at];
      for (std::size_t i = pick(random, 100); i > 0; --i) {
        events.push_back(copy);
      }
      break;
    }
    default:
      events.push_back(json_value(random));
  }
}

std::string packed(const std::string& text) {
  std::string bytes(compressBound(text.size()) + 64, '\0');
  z_stream stream{};
  constexpr int kGzip = 15 + 16;
  deflateInit2(&stream, 1, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  deflate(&stream, Z_FINISH);
  bytes.resize(stream.total_out);
  deflateEnd(&stream);
  return bytes;
}

// The text of gzip, as far as it goes; other bytes as they are.
std::string unpacked(std::string_view bytes, std::size_t most_bytes) {
  if (!bytes.starts_with("\x1f\x8b")) {
    return std::string(bytes);
  }
  std::string text(most_bytes, '\0');
  z_stream stream{};
  constexpr int kGzip = 15 + 16;
  inflateInit2(&stream, kGzip);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  inflate(&stream, Z_SYNC_FLUSH);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

std::optional<Tree> parsed(std::string_view bytes, std::size_t most_bytes) {
  const std::string text = unpacked(bytes, most_bytes);
  if (depth_of(text) > kDeepestJson) {
    return std::nullopt;
  }
  Tree tree = Tree::parse(text, nullptr, false);
  return tree.is_discarded() ? std::nullopt : std::optional(std::move(tree));
}

}  // namespace

std::optional<std::string> changed_kineto(std::string_view bytes, std::size_t most_bytes,
                                          Random& random) {
  std::optional<Tree> tree = parsed(bytes, most_bytes);
  if (!tree) {
    return std::nullopt;
  }
  for (std::size_t i = 1 + pick(random, 4); i > 0; --i) {
    std::vector<Tree*> objects;
    find_objects(*tree, objects);
    Tree* events = events_of(*tree);
    if (events != nullptr && pick(random, 4) == 0) {
      change_events(*events, random);
    } else if (!objects.empty()) {
      change_member(*one_of(objects, random), objects, random);
    }
  }
  std::string text;
  write(*tree, random, text);
  if (pick(random, 12) == 0) {
    text = packed(text);
    if (pick(random, 2) == 0) {
      text.resize(pick(random, text.size()));
    }
  } else if (pick(random, 30) == 0) {
    text.resize(pick(random, text.size()));  // a profiler that was killed
  }
  return text.empty() || text.size() > most_bytes ? std::nullopt : std::optional(std::move(text));
}

std::optional<std::string> grown_kineto(std::string_view bytes, std::size_t wanted_bytes,
                                        Random& random) {
  std::optional<Tree> tree = parsed(bytes, wanted_bytes);
  Tree* events = tree ? events_of(*tree) : nullptr;
  if (events == nullptr || events->empty()) {
    return std::nullopt;
  }
  const Tree pattern = *events;
  std::string text;
  write(pattern, random, text);
  const std::size_t copies = wanted_bytes / text.size();
  const std::string_view varied = pick(random, 2) == 0 ? one_of(kJsonKeys, random) : "";
  const auto vary = [&](Tree& object, std::size_t n) {
    for (auto& [key, one] : object.items()) {
      const bool is_varied = key == varied;
      if (one.is_number() && key == "ts") {
        one = one.get<double>() + 1000.0 * static_cast<double>(n);
      } else if (one.is_number_integer() && (key == "correlation" || key == "id" || is_varied)) {
        one = one.get<std::uint64_t>() + 10'000 * n;
      } else if (one.is_string() && is_varied) {
        one = one.get<std::string>() + std::to_string(n);
      }
    }
  };
  for (std::size_t n = 1; n < copies; ++n) {
    for (Tree event : pattern) {
      if (event.is_object()) {
        vary(event, n);
        if (const auto args = event.find("args"); args != event.end() && args->is_object()) {
          vary(*args, n);
        }
      }
      events->push_back(std::move(event));
    }
  }
  text.clear();
  write(*tree, random, text);
  return text;
}

}  // namespace gpuwhy
