// SPDX-License-Identifier: Apache-2.0
//
// Names of rows: which time of a recording a row is about.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace gpuwhy {

// Only a stage has a name that somebody chose: a mark, an engine's step. The others are the
// program's own: the one stage of a recording without marks, its parts by time, the whole of it,
// and what was launched in no stage.
enum class RowKind : std::uint8_t {
  kStage,
  kUnmarked,
  kStartup,
  kSteady,
  kEnding,
  kRecording,
  kOutside
};

// The words of metrics.json and of --stage, by kind. No stage bears one.
inline const std::array<std::string, 7> kRowWords = {"",       "all",     "startup", "steady",
                                                     "ending", "capture", "outside"};

// A row's name. Name and text are one to one, so files may hold the text.
struct RowName {
  RowKind kind = RowKind::kStage;
  std::string stage = {};  // of a stage only

  const std::string& text() const {
    return kind == RowKind::kStage ? stage : kRowWords[static_cast<std::size_t>(kind)];
  }
  bool operator==(const RowName&) const = default;
  // By text, as the files are sorted.
  std::strong_ordering operator<=>(const RowName& other) const { return text() <=> other.text(); }
};

// The name that a text of a file or of --stage means: one of the words, else a stage.
RowName row_name(std::string_view text);

// The stage that a user names. Throws kUsage for one of the words; `option` is where it stands, as
// "--mark".
RowName parse_stage_name(std::string_view given, std::string_view option);

// The stage that a recording names. It cannot be refused, so that one of the words gets another
// text: "capture (marked)".
RowName recorded_stage(std::string_view given);

}  // namespace gpuwhy
