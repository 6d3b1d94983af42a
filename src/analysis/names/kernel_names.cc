// SPDX-License-Identifier: Apache-2.0
//
// Short, unique, readable kernel names.
//
// Real names are hundreds of characters of templates, of which the first eighty are the same for
// every GEMM, so truncating them makes different kernels look alike.
//
//   void at::native::<unnamed>::indexSelectLargeIndex<(int)4, c10::BFloat16>(int, T2, T3)
//     ->  indexSelectLargeIndex<4, BFloat16>
//
// Parts common to all names are removed first (return type, parameters, namespaces, casts). A name
// that is still too long loses its middle: it begins with its family and ends with its tile and
// type. Where the function is a shell and its template arguments say what it does, a phrase says it
// instead: "mul bf16". Names that became equal get more room or, if that does not help, a number.
#include "analysis/names/kernel_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include <fmt/format.h>

#include "analysis/names/demangle.h"
#include "analysis/names/kernel_phrases.h"
#include "base/list_of.h"

namespace gpuwhy {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Nesting depth of brackets. Inside of parentheses < and > are comparisons: enable_if<((8)>(0))>.
class Nesting {
 public:
  void add(char c) {
    if (c == '(' || c == ')') {
      round_ += c == '(' ? 1 : -1;
    } else if (round_ <= 0 && (c == '<' || c == '>')) {
      angle_ += c == '<' ? 1 : -1;
    }
  }
  bool is_outside() const { return angle_ <= 0 && round_ <= 0; }

 private:
  int angle_ = 0;
  int round_ = 0;
};

// The part after the last blank outside of <...>: f for both "void f" and "std::enable_if<A,
// B>::type f".
std::string_view without_return_type(std::string_view name) {
  Nesting nesting;
  std::size_t start = 0;
  for (std::size_t i = 0; i + 1 < name.size(); ++i) {
    nesting.add(name[i]);
    if (name[i] == ' ' && nesting.is_outside()) {
      start = i + 1;
    }
  }
  return name.substr(start);
}

// "f<4, unnamed>::g>" -> "f<4, g>": ncu prints an unnamed namespace without its first bracket,
// where nsys has "<unnamed>::". A bracket right after a name is that of its arguments.
std::string without_unnamed(std::string_view name) {
  constexpr std::string_view kUnnamed = "unnamed>::";
  std::string balanced;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char before = i == 0 ? ' ' : name[i - 1];
    if (name.substr(i).starts_with(kUnnamed) && !is_word(before) && before != ':') {
      if (before == '<' && (i < 2 || !is_word(name[i - 2]))) {
        balanced.pop_back();
      }
      i += kUnnamed.size() - 1;
    } else {
      balanced += name[i];
    }
  }
  return balanced;
}

// "a::b::c<x::y, (int)4>" -> "c<y, 4>"
std::string without_namespaces_and_casts(std::string_view name) {
  static constexpr std::string_view kCasts[] = {"(int)",  "(bool)",          "(unsigned int)",
                                                "(long)", "(unsigned long)", "(short)"};
  static constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  std::string bare;
  std::size_t word_start = 0;  // in `bare`: where the current qualified word began
  for (std::size_t i = 0; i < name.size(); ++i) {
    const std::string_view rest = name.substr(i);
    if (rest.starts_with("::")) {
      bare.resize(word_start);
      ++i;
      continue;
    }
    if (rest.starts_with(kUnnamed)) {
      i += kUnnamed.size() - 1;
      continue;
    }
    const auto cast =
        std::ranges::find_if(kCasts, [&](std::string_view c) { return rest.starts_with(c); });
    if (cast != std::end(kCasts)) {
      i += cast->size() - 1;
      continue;
    }
    bare += name[i];
    if (!is_word(name[i])) {
      word_start = bare.size();
    }
  }
  return bare;
}

std::string shortened(const std::string& name, std::size_t limit) {
  if (name.size() <= limit) {
    return name;
  }
  const std::size_t tail = limit / 3;
  const std::size_t head = limit - tail - 3;
  return name.substr(0, head) + "..." + name.substr(name.size() - tail);
}

// "gemvx::" of a::gemvx::kernel<...>: many functions have no name of their own.
std::string space_of_common_name(std::string_view readable) {
  const std::string_view own = own_kernel_name(readable);
  if (own != "kernel" && own != "Kernel" && own != "globalKernel") {
    return {};
  }
  const std::string_view scope =
      readable.substr(0, static_cast<std::size_t>(own.data() - readable.data()));
  const std::string_view space = scope.ends_with("::")
                                     ? own_kernel_name(scope.substr(0, scope.size() - 2))
                                     : std::string_view();
  return space.empty() ? "" : std::string(space) + "::";
}

// What to call a kernel, from short to long.
constexpr std::size_t kNumRounds = 3;
using Candidates = std::array<std::string, kNumRounds>;

Candidates candidates_of(const std::string& name) {
  constexpr std::array<std::size_t, kNumRounds> kLimits = {60, 90, 140};
  const std::string readable = without_unnamed(readable_kernel_name(name));
  const std::string bare = bare_kernel_name(name);
  const auto phrase = phrase_of(readable, bare);
  const std::string shown = phrase ? phrase->text : space_of_common_name(readable) + bare;
  Candidates candidates;
  for (std::size_t round = 0; round < kNumRounds; ++round) {
    const bool has_detail = round > 0 && phrase && !phrase->detail.empty();
    candidates[round] = shortened(
        has_detail ? fmt::format("{} [{}]", shown, phrase->detail) : shown, kLimits[round]);
  }
  return candidates;
}

}  // namespace

// The part before the parameter list: up to the first '(' outside of <...> that does not follow
// "operator" or open a cast or "(anonymous namespace)".
std::string_view without_parameters(std::string_view name) {
  Nesting nesting;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '(' && nesting.is_outside() && i > 0 &&
        (is_word(name[i - 1]) || name[i - 1] == '>')) {
      return name.substr(0, i);
    }
    nesting.add(name[i]);
  }
  return name;
}

std::string_view own_kernel_name(std::string_view demangled) {
  const std::string_view declared = without_parameters(demangled);
  Nesting nesting;
  std::size_t start = 0;
  for (std::size_t i = 0; i + 1 < declared.size(); ++i) {
    nesting.add(declared[i]);
    if ((declared[i] == ' ' || declared[i] == ':') && nesting.is_outside()) {
      start = i + 1;
    }
  }
  const std::string_view own = declared.substr(start);
  return own.substr(0, own.find('<'));
}

std::string bare_kernel_name(std::string_view name) {
  const std::string readable = without_unnamed(readable_kernel_name(name));
  // Only a function with a parameter list has its return type printed before it.
  const std::string_view declared = without_parameters(readable);
  const bool is_declaration = declared.size() < readable.size();
  std::string bare =
      without_namespaces_and_casts(is_declaration ? without_return_type(declared) : readable);
  return bare.empty() ? std::string(name) : bare;
}

std::vector<std::string> short_kernel_names(const std::vector<std::string>& names) {
  const auto candidates = list_of<Candidates>(names, candidates_of);
  std::vector<std::string> result(names.size());
  std::vector<std::size_t> open(names.size());
  for (std::size_t i = 0; i < open.size(); ++i) {
    open[i] = i;
  }
  // Each round adds detail to the names that are still ambiguous.
  for (std::size_t round = 0; round < kNumRounds; ++round) {
    std::map<std::string, std::vector<std::size_t>> groups;
    for (const std::size_t i : open) {
      result[i] = candidates[i][round];
      groups[result[i]].push_back(i);
    }
    open.clear();
    for (const auto& [name, members] : groups) {
      if (members.size() > 1) {
        open.insert(open.end(), members.begin(), members.end());
      }
    }
  }
  // By full name, so that the numbers do not depend on the order of the table.
  std::ranges::sort(open, [&](std::size_t a, std::size_t b) { return names[a] < names[b]; });
  std::map<std::string, int> used;
  for (const std::size_t i : open) {
    result[i] = fmt::format("{} #{}", result[i], ++used[result[i]]);
  }
  // A name may equal the shortened form of another one.
  std::map<std::string, int> seen;
  for (std::string& name : result) {
    const int count = ++seen[name];
    while (count > 1 && seen.contains(name)) {
      name += "'";
    }
    seen[name] = std::max(seen[name], 1);
  }
  return result;
}

std::map<std::string, std::string> short_names_of(const std::set<std::string>& names) {
  const std::vector<std::string> short_names = short_kernel_names({names.begin(), names.end()});
  std::map<std::string, std::string> result;
  auto short_name = short_names.begin();
  for (const std::string& name : names) {
    result.emplace_hint(result.end(), name, *short_name++);
  }
  return result;
}

}  // namespace gpuwhy
