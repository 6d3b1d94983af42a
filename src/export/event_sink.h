// SPDX-License-Identifier: Apache-2.0
//
// Interface between the walk over a recording and the writers of trace files: tracks, slices,
// marks, counters. event_walk.cc produces them; perfetto.cc and chrome.cc write them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/file.h"
#include "trace/string_pool.h"

namespace gpuwhy {

// Number of a text in an export: first the export's own texts, then those of the trace.
enum class TextId : std::uint32_t {};

// The texts of an export, without copying those of the trace.
class ExportTexts {
 public:
  explicit ExportTexts(const StringPool& recorded) : recorded_(recorded) {}

  // Only before the first call of of_recorded().
  TextId add(std::string_view text) { return static_cast<TextId>(own_.intern(text)); }
  TextId of_recorded(StringId id) const {
    return static_cast<TextId>(own_.size() + static_cast<std::size_t>(id));
  }

  std::string_view operator[](TextId id) const {
    const auto at = static_cast<std::size_t>(id);
    return at < own_.size() ? own_[static_cast<StringId>(at)]
                            : recorded_[static_cast<StringId>(at - own_.size())];
  }
  std::size_t size() const { return own_.size() + recorded_.size(); }

 private:
  const StringPool& recorded_;
  StringPool own_;
};

// Names are untrusted and may have any length. Returns what a viewer is given: valid UTF-8 without
// control characters, of limited length.
std::string shown_name(std::string_view text);

enum class TrackKind : std::uint8_t { kGroup, kProcess, kThread, kSlices, kCounter };

// A row of the viewer, or a group of rows.
struct ExportTrack {
  std::uint32_t id = 0;      // from 1
  std::uint32_t parent = 0;  // 0: none
  TrackKind kind = TrackKind::kSlices;
  std::string name;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint32_t rank = 0;  // among its siblings
  std::string unit = {};   // of a counter
};

// A key and value shown when a slice is selected.
struct SliceArgument {
  TextId name{};
  std::variant<std::int64_t, double, TextId> value;
};

// A bar on a track, or a mark.
struct ExportSlice {
  std::uint32_t track = 0;
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  TextId name{};
  TextId category{};
  bool is_mark = false;  // a moment: it has no end
  std::span<const SliceArgument> arguments;
};

// Writer of one file format. Calls follow the order in which event_walk.cc makes them.
class EventSink {
 public:
  EventSink(const ExportTexts& texts, FileWriter& file) : texts_(texts), file_(file) {}
  virtual ~EventSink() = default;
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;

  // The events up to the next call are in order of time and refer to nothing before this call.
  virtual void begin_sequence() = 0;
  // A track is declared before its events, possibly more than once.
  virtual void track(const ExportTrack& track) = 0;
  // Slices of a track nest: the last one begun ends first. A mark has no end.
  virtual void begin(const ExportSlice& slice) = 0;
  virtual void end(std::uint32_t track, std::uint64_t time_ns) = 0;
  virtual void counter(std::uint32_t track, std::uint64_t time_ns, double value) = 0;
  virtual void finish() {}
  virtual std::uint64_t closing_bytes() const { return 0; }  // written by finish()

  FileWriter& file() { return file_; }

 protected:
  std::string_view text(TextId id) const { return texts_[id]; }
  std::size_t num_texts() const { return texts_.size(); }
  void put(std::string_view bytes) { file_.write(bytes); }

 private:
  const ExportTexts& texts_;
  FileWriter& file_;
};

}  // namespace gpuwhy
