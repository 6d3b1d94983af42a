// SPDX-License-Identifier: Apache-2.0
//
// Ranks in file names: a word such as tp or rank, at most one separator, a number.
//
// The word must begin where no letter or digit precedes it, and the number must end where none
// follows, so "http2" and "tp4x" say nothing. A word that occurs twice with two numbers says
// nothing either.
#include "analysis/ranks/rank_names.h"

#include <set>
#include <string>

#include "base/parse_number.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z');
}

// The number after each occurrence of `word`; the name is in lower case.
std::optional<std::int64_t> number_after(const std::string& name, std::string_view word) {
  std::set<std::int64_t> numbers;
  for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
    std::size_t begin = at + word.size();
    if (at > 0 && is_word(name[at - 1])) {
      continue;
    }
    begin +=
        begin < name.size() && std::string_view("-_=").find(name[begin]) != std::string_view::npos
            ? 1
            : 0;
    std::size_t end = begin;
    while (end < name.size() && is_digit(name[end])) {
      ++end;
    }
    if (end == begin || (end < name.size() && is_word(name[end]))) {
      continue;
    }
    if (const auto number = parse_whole(std::string_view(name).substr(begin, end - begin))) {
      numbers.insert(*number);
    }
  }
  return numbers.size() == 1 ? std::optional(*numbers.begin()) : std::nullopt;
}

bool has_place(const RankName& name) {
  return name.tensor || name.pipeline;
}

}  // namespace

RankName rank_in_name(std::string_view file_name) {
  const std::string name = to_lower(file_name);
  return {number_after(name, "rank"), number_after(name, "tp"), number_after(name, "pp"),
          number_after(name, "dp")};
}

bool are_of_one_replica(const RankName& a, const RankName& b) {
  return has_place(a) && has_place(b) && a.data == b.data &&
         (a.tensor != b.tensor || a.pipeline != b.pipeline);
}

bool are_of_two_replicas(const RankName& a, const RankName& b) {
  return a.data && b.data && a.data != b.data;
}

}  // namespace gpuwhy
