// SPDX-License-Identifier: Apache-2.0
//
// Writer of Chrome's JSON trace event format.
//
// Events are written as they arrive: a JSON tree of a recording would take fifty times its size.
//
// The format has two levels, processes and threads. GPUs and processes become processes, and the
// lanes of their rows become threads, with our own numbers: a GPU has no process id, and streams of
// different GPUs may share a number. Times are microseconds with three decimals, so they are exact
// nanoseconds unless a reader converts them to double.
#include "export/chrome.h"

#include <cmath>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "analysis/profile.h"

namespace gpuwhy {
namespace {

constexpr std::string_view kEnd = "\n]}\n";

// As a JSON string; shown_name() returns UTF-8 without control characters.
std::string json_text(std::string_view name) {
  std::string text = "\"";
  for (const char c : shown_name(name)) {
    if (c == '"' || c == '\\') {
      text += '\\';
    }
    text += c;
  }
  return text + '"';
}

std::string microseconds(std::uint64_t time_ns) {
  return fmt::format("{}.{:03}", time_ns / 1000, time_ns % 1000);
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

// The process and thread under which a track is drawn.
struct ChromePlace {
  std::uint32_t process = 0;
  std::string prefix;  // of the names of what is below
  std::string name;    // as JSON
};

// Events need no closing record per slice, so a file cut at any event is still readable.
class ChromeSink : public EventSink {
 public:
  ChromeSink(const ExportTexts& texts, FileWriter& file) : EventSink(texts, file) {
    put("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
        "{\"ph\":\"M\",\"name\":\"trace_written_by\",\"pid\":0,\"args\":{\"name\":\"gpuwhy\"}}");
    shown_.resize(texts.size());
  }

  void begin_sequence() override {}

  void track(const ExportTrack& track) override {
    const ChromePlace parent = places_[track.parent];
    ChromePlace& place = places_[track.id];
    place = ChromePlace{track.parent == 0 ? track.id : parent.process, parent.prefix,
                        json_text(track.name)};
    if (track.parent == 0) {
      put_name("process_name", place.process, 0, track.name);
      put(
          fmt::format(",\n{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{},\"args\":"
                      "{{\"sort_index\":{}}}}}",
                      place.process, track.rank));
    } else if (track.kind == TrackKind::kThread) {
      place.prefix = track.name + ": ";
    } else if (track.kind == TrackKind::kSlices) {
      put_name("thread_name", place.process, track.id, place.prefix + track.name);
    }
  }

  // An X event for a slice, an i event for a mark.
  void begin(const ExportSlice& slice) override {
    std::string text =
        fmt::format(",\n{{\"ph\":\"{}\",\"name\":{},\"cat\":{},\"pid\":{},\"tid\":{},\"ts\":{}",
                    slice.is_mark ? "i" : "X", shown(slice.name), shown(slice.category),
                    places_[slice.track].process, slice.track, microseconds(slice.start_ns));
    text += slice.is_mark ? ",\"s\":\"t\""
                          : fmt::format(",\"dur\":{}", microseconds(slice.end_ns - slice.start_ns));
    if (!slice.arguments.empty()) {
      text += ",\"args\":{";
      for (const SliceArgument& argument : slice.arguments) {
        text += &argument == slice.arguments.data() ? "" : ",";
        text += shown(argument.name) + ":" + value_of(argument);
      }
      text += "}";
    }
    put(text + "}");
  }

  void end(std::uint32_t, std::uint64_t) override {}  // an X event has its length

  void counter(std::uint32_t track, std::uint64_t time_ns, double value) override {
    const ChromePlace& place = places_[track];
    put(fmt::format(",\n{{\"ph\":\"C\",\"name\":{},\"pid\":{},\"ts\":{},\"args\":{{\"%\":{}}}}}",
                    place.name, place.process, microseconds(time_ns), number(value)));
  }

  void finish() override { put(kEnd); }
  std::uint64_t closing_bytes() const override { return kEnd.size(); }

 private:
  void put_name(const char* what, std::uint32_t process, std::uint32_t thread,
                const std::string& name) {
    put(fmt::format(
        ",\n{{\"ph\":\"M\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}}", what,
        process, thread, json_text(name)));
  }

  // The JSON string of a text, escaped once.
  const std::string& shown(TextId id) {
    std::string& known = shown_[static_cast<std::size_t>(id)];
    if (known.empty()) {
      known = json_text(text(id));
    }
    return known;
  }

  std::string value_of(const SliceArgument& argument) {
    if (const auto* whole = std::get_if<std::int64_t>(&argument.value)) {
      return fmt::format("{}", *whole);
    }
    if (const auto* real = std::get_if<double>(&argument.value)) {
      return number(*real);
    }
    return shown(std::get<TextId>(argument.value));
  }

  std::unordered_map<std::uint32_t, ChromePlace> places_;
  std::vector<std::string> shown_;  // by TextId
};

}  // namespace

ExportedTrace write_chrome_trace(const Profile& profile, const std::filesystem::path& path,
                                 std::uint64_t budget_bytes) {
  return write_recording<ChromeSink>(profile, path, budget_bytes);
}

}  // namespace gpuwhy
