// SPDX-License-Identifier: Apache-2.0
//
// Short, unique, readable kernel names.
//
// Real names are hundreds of characters of templates, of which the first eighty are the same for
// every GEMM, so truncating them makes different kernels look alike.
//
//   void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>,
//   ...>(int, T2, T3)  ->  vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, ...>
//
// Parts common to all names are removed first (return type, parameters, namespaces, casts). A name
// that is still too long loses its middle: it begins with its family and ends with its tile and
// type. Names that became equal get more room or, if that does not help, a number.
#include "analysis/kernel_names.h"

#include <algorithm>
#include <cctype>
#include <map>

#include <fmt/format.h>

namespace llmprof {
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

// "a::b::c<x::y, (int)4>" -> "c<y, 4>"
std::string without_namespaces_and_casts(std::string_view name) {
  static constexpr std::string_view kCasts[] = {"(int)",  "(bool)",          "(unsigned int)",
                                                "(long)", "(unsigned long)", "(short)"};
  static constexpr std::string_view kUnnamed[] = {"<unnamed>::", "(anonymous namespace)::"};
  std::string bare;
  std::size_t word_start = 0;  // in `bare`: where the current qualified word began
  for (std::size_t i = 0; i < name.size(); ++i) {
    const std::string_view rest = name.substr(i);
    if (rest.starts_with("::")) {
      bare.resize(word_start);
      ++i;
      continue;
    }
    const auto unnamed = std::find_if(std::begin(kUnnamed), std::end(kUnnamed),
                                      [&](std::string_view u) { return rest.starts_with(u); });
    if (unnamed != std::end(kUnnamed)) {
      i += unnamed->size() - 1;
      continue;
    }
    const auto cast = std::find_if(std::begin(kCasts), std::end(kCasts),
                                   [&](std::string_view c) { return rest.starts_with(c); });
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

std::string bare_kernel_name(std::string_view demangled) {
  // Only a function with a parameter list has its return type printed before it.
  const std::string_view declared = without_parameters(demangled);
  const bool is_declaration = declared.size() < demangled.size();
  std::string bare =
      without_namespaces_and_casts(is_declaration ? without_return_type(declared) : demangled);
  return bare.empty() ? std::string(demangled) : bare;
}

std::vector<std::string> short_kernel_names(const std::vector<std::string>& names) {
  constexpr std::size_t kLimits[] = {60, 90, 140};
  std::vector<std::string> bare;
  bare.reserve(names.size());
  for (const std::string& name : names) {
    bare.push_back(bare_kernel_name(name));
  }
  std::vector<std::string> result(names.size());
  std::vector<std::size_t> open(names.size());
  for (std::size_t i = 0; i < open.size(); ++i) {
    open[i] = i;
  }
  // Each round gives more room to the names that are still ambiguous.
  for (const std::size_t limit : kLimits) {
    std::map<std::string, std::vector<std::size_t>> groups;
    for (const std::size_t i : open) {
      result[i] = shortened(bare[i], limit);
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
  std::sort(open.begin(), open.end(),
            [&](std::size_t a, std::size_t b) { return names[a] < names[b]; });
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

}  // namespace llmprof
