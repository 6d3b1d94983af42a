// SPDX-License-Identifier: Apache-2.0
//
// The description of one field of a row, and short forms to write one.
//
// A row is declared once: a struct, and beside it describe(const Row*, visitor), which calls the
// visitor with the key, the member and the Field of each. Reading and writing of JSON, its schema,
// the table of keys in docs/metrics.md, and the paths of values in reports follow from it. A member
// function is a value made of others, written and never read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "results/bucket.h"
#include "results/row.h"
#include "results/words.h"

namespace gpuwhy {

// What is known about a number.
struct MetricInfo {
  std::string_view unit;  // ns, bytes, FLOP, 1, fraction, 1/s, FLOP/s, bytes/s; empty: not a number
  std::string_view count;    // the key beside it that says of how many; empty: there is none
  std::string_view sources;  // of kernels, graphs, copies, calls, marks, baseline, ncu, model,
                             // gpus, requests
  std::string_view formula;  // its id: a heading of docs/metrics.md and a word
  std::string_view text;     // the same in words
};

// Everything that reading, writing, schema and documentation need to know about a field.
struct Field {
  MetricInfo info;
  bool is_null_if_empty = false;  // a text
  int name_place = 0;             // above 0: tells its row from others, named in this place
  bool is_signed = false;         // a number that may be below 0
  bool is_part = false;           // a number from 0 to 1
  std::size_t least_items = 0;    // of an array
  std::size_t most_items = SIZE_MAX;
  std::span<const char* const> words = {};  // all it may say; empty: anything
  unsigned forms = 0;                       // kForm...: where it stands beside metrics.json
  std::string_view form_name = {};          // what those call it; empty: as its key
};

// Forms of rows that hold some of their fields only.
inline constexpr unsigned kFormRanks = 1;    // summaries of ranks
inline constexpr unsigned kFormHistory = 2;  // tables of a history

constexpr Field number(std::string_view unit, std::string_view count, std::string_view sources,
                       std::string_view formula, std::string_view text) {
  return {{unit, count, sources, formula, text}};
}
// Uses the description of its parent.
inline constexpr Field kInherited = {};
// A text, a flag, or an object with fields.
constexpr Field plain(std::string_view text) {
  return {{"", "", "", "", text}};
}
constexpr Field names_row(std::string_view text, int place = 1) {
  Field field = plain(text);
  field.name_place = place;
  return field;
}
// A text, or a list of rows, that is null if empty.
constexpr Field maybe(std::string_view text) {
  Field field = plain(text);
  field.is_null_if_empty = true;
  return field;
}
constexpr Field is_signed(Field field) {
  field.is_signed = true;
  return field;
}
constexpr Field is_part(Field field) {
  field.is_part = true;
  return field;
}
constexpr Field items(Field field, std::size_t least, std::size_t most = SIZE_MAX) {
  field.least_items = least;
  field.most_items = most;
  return field;
}
constexpr Field one_of(Field field, std::span<const char* const> words) {
  field.words = words;
  return field;
}
constexpr Field in(unsigned forms, Field field, std::string_view name = {}) {
  field.forms = forms;
  field.form_name = name;
  return field;
}

// Kinds of members. A row's name is a text in every file, so is a word of an enumeration, and what
// has a text_of_member() and a read_member() of its own.
template <typename T>
inline constexpr bool kIsText =
    std::is_same_v<T, std::string> || std::is_same_v<T, RowName> || Worded<T>;
inline const std::string& text_of_member(const std::string& value) {
  return value;
}
inline const std::string& text_of_member(const RowName& value) {
  return value.text();
}
template <Worded T>
std::string text_of_member(T value) {
  return word_of(value);
}
inline void read_member(const std::string& text, std::string& value) {
  value = text;
}
inline void read_member(const std::string& text, RowName& value) {
  value = row_name(text);
}
template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <typename T>
inline constexpr bool kIsList = false;
template <typename T>
inline constexpr bool kIsList<std::vector<T>> = true;
template <>
inline constexpr bool kIsList<std::array<std::int64_t, 3>> = true;
using BucketTimes = std::array<std::int64_t, kNumBuckets>;
using NumberPair = std::pair<std::int64_t, std::int64_t>;
// The type of a data member, or of the result of a member function.
template <typename T, typename Member>
using ValueOf = std::remove_cvref_t<std::invoke_result_t<Member, const T&>>;

}  // namespace gpuwhy
