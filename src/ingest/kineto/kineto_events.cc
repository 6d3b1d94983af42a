// SPDX-License-Identifier: Apache-2.0
//
// Reader of the event array of a PyTorch trace, one window of text at a time.
//
// simdjson's On-Demand parser is fast because it first indexes a whole document, but a trace of ten
// gigabytes is too large a document. So each window becomes a document: cut after what looks like
// the end of an event, with a temporary ']' there. The guess may be wrong (the same characters may
// occur in a kernel name, or deeper inside an event), which only costs a second look: an event
// counts once the parser has moved past it, and the rest is parsed again with the next window. Only
// a guess inside a string is rejected by the parser; then the brackets of the window are counted.
#include "ingest/kineto/kineto_events.h"

#include <cstring>
#include <new>
#include <span>
#include <utility>

#include "ingest/kineto/kineto_event_reader.h"

namespace gpuwhy {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::string_view kModulePathKey = "\"Module Hierarchy\"";

// After the last '}' that is followed by a comma and a '{'; else after the last '}'; 0 if there is
// none.
std::size_t likely_end(std::string_view text) {
  constexpr std::size_t kMostTail = 1 << 16;
  const auto skip_blank = [&](std::size_t at) {
    while (at < text.size() && static_cast<unsigned char>(text[at]) <= ' ') {
      ++at;
    }
    return at;
  };
  std::size_t last = std::string_view::npos;
  for (std::size_t at = text.rfind('}'); at != std::string_view::npos && at > 0;
       at = text.rfind('}', at - 1)) {
    last = last == std::string_view::npos ? at : last;
    const std::size_t comma = skip_blank(at + 1);
    const std::size_t brace = skip_blank(comma + 1);
    if (brace < text.size() && text[comma] == ',' && text[brace] == '{') {
      return at + 1;
    }
    if (text.size() - at > kMostTail) {
      break;
    }
  }
  return last == std::string_view::npos ? 0 : last + 1;
}

// Replaces bytes that JSON does not allow. Outside of strings they were blanks.
void repair(char* text, std::size_t length) {
  for (char& c : std::span(text, length)) {
    const auto byte = static_cast<unsigned char>(c);
    c = byte < ' ' ? ' ' : byte < 0x80 ? c : '?';
  }
}

}  // namespace

struct KinetoEvents::Parser {
  ondemand::parser simd;
  KinetoEventReader reader;

  // The result of parsing a window.
  struct Walk {
    simdjson::error_code error = simdjson::SUCCESS;
    std::size_t consumed = 0;  // of the document: events before it have been handed on
    bool has_ended = false;    // with the array's own ']'
  };

  Walk walk_to(char* text, std::size_t end, std::size_t capacity, KinetoArray& result,
               const Sink& sink);
  Walk walk(char* text, std::size_t length, std::size_t capacity, KinetoArray& result,
            const Sink& sink);
};

// Parses the first `end` bytes of `text`, which begin with '[', as if a ']' followed.
KinetoEvents::Parser::Walk KinetoEvents::Parser::walk_to(char* text, std::size_t end,
                                                         std::size_t capacity, KinetoArray& result,
                                                         const Sink& sink) {
  reader.wants_module_paths =
      memmem(text, end, kModulePathKey.data(), kModulePathKey.size()) != nullptr;
  const char behind = std::exchange(text[end], ']');
  Walk result_of = walk(text, end + 1, capacity, result, sink);
  text[end] = behind;
  return result_of;
}

KinetoEvents::Parser::Walk KinetoEvents::Parser::walk(char* text, std::size_t length,
                                                      std::size_t capacity, KinetoArray& result,
                                                      const Sink& sink) {
  Walk walk;
  ondemand::document document;
  ondemand::array array;
  walk.error = simd.iterate(text, length, capacity).get(document);
  if (walk.error == simdjson::SUCCESS) {
    walk.error = document.get_array().get(array);
  }
  if (walk.error != simdjson::SUCCESS) {
    return walk;
  }
  // An event is complete once the parser has found what follows it.
  bool has_event = false;
  const auto hand_on = [&] {
    result.num_events += has_event ? 1 : 0;
    if (const auto why = std::exchange(reader.unusable, std::nullopt)) {
      result.left_out[static_cast<std::size_t>(*why)].add(reader.event.kind == KinetoKind::kKernel);
    }
    if (std::exchange(reader.is_wanted, false)) {
      sink(reader.event);
    }
  };
  reader.unusable.reset();
  reader.is_wanted = false;
  for (auto element : array) {
    ondemand::value value;
    walk.error = element.get(value);
    if (walk.error != simdjson::SUCCESS) {
      return walk;
    }
    hand_on();
    has_event = true;
    walk.consumed = static_cast<std::size_t>(value.raw_json_token().data() - text);
    ondemand::object object;
    if (value.get_object().get(object) == simdjson::SUCCESS && !reader.read(object)) {
      walk.error = simdjson::TAPE_ERROR;
      return walk;
    }
  }
  hand_on();
  const char* location = nullptr;
  walk.has_ended = document.current_location().get(location) == simdjson::SUCCESS;
  walk.consumed = walk.has_ended ? static_cast<std::size_t>(location - text) : length - 1;
  return walk;
}

KinetoEvents::KinetoEvents() : parser_(std::make_unique<Parser>()) {
  // Allocated once for all windows of the usual size; iterate() grows it for larger ones.
  if (parser_->simd.allocate(JsonBuffer::kSize + JsonBuffer::kPadding) != simdjson::SUCCESS) {
    throw std::bad_alloc();
  }
}
KinetoEvents::~KinetoEvents() = default;

// If an event was wrongly guessed to be complete, the parser reports an error, and brackets are
// counted to find the last complete one. A complete event that is invalid ends the reading.
KinetoArray KinetoEvents::read(JsonBuffer& window, const Sink& sink) {
  KinetoArray result;
  bool is_guess = true;
  while (true) {
    char* text = window.data();
    text[0] = '[';  // or the comma after the last event
    const std::size_t end =
        is_guess ? likely_end(window.text()) : end_of_last_element(window.text());
    // No event ends in this window: it is the end of the array, or an event longer than the window.
    if (end == 0) {
      const std::size_t next = window.text().find_first_not_of(" \n\r\t", 1);
      if (next != std::string_view::npos && text[next] == ']') {
        window.consume(next + 1);
        return result;
      }
      is_guess = true;
      if (window.fill()) {
        continue;
      }
      break;
    }
    const Parser::Walk walk = parser_->walk_to(text, end, window.capacity(), result, sink);
    if (walk.error == simdjson::UTF8_ERROR || walk.error == simdjson::UNESCAPED_CHARS) {
      repair(text, end);
      result.was_repaired = true;
      continue;
    }
    // What was consumed counts; the rest is tried again with an exact end.
    if (walk.error != simdjson::SUCCESS) {
      window.consume(walk.consumed == 0 ? 0 : walk.consumed - 1);
      if (!is_guess) {
        break;
      }
      is_guess = false;
      continue;
    }
    is_guess = true;
    window.consume(walk.consumed);
    if (walk.has_ended || window.take(']')) {
      return result;
    }
    if (window.peek() != ',') {
      break;
    }
    window.fill();
  }
  result.stopped_at = window.offset();
  return result;
}

}  // namespace gpuwhy
