// SPDX-License-Identifier: Apache-2.0
//
// The events of a PyTorch profiler trace, a window of the text at a time.
//
// simdjson's On-Demand parser is fast because it indexes a whole document first; a trace of ten
// gigabytes is too large a document. So each window is made a document of its own: cut behind what
// looks like the end of an event, with a ']' put there for the moment. The guess may be wrong (the
// same characters can stand in a kernel's name, or deeper inside an event), which costs nothing but
// a second look: an event counts once the parser has stepped past it, and what is left over is
// parsed again with the next window. A guess inside a string is the one that the parser refuses
// outright; then the window's brackets are counted.
//
// Fields may come in any order, but profilers write `ph` and `cat` first, so most events that are
// of no use here (arrows, python functions) are left after two fields.
//
// What it gets wrong: brackets that do not match are not always noticed inside what is skipped.
#include "ingest/kineto_events.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#define SIMDJSON_DEVELOPMENT_CHECKS 0
#include <simdjson.h>

namespace llmprof {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::string_view kModulePrefix = "nn.Module: ";
constexpr std::string_view kModulePathKey = "\"Module Hierarchy\"";

// A token of the text without blanks behind it and quotes around it.
std::string_view bare(std::string_view token) {
  while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ') {
    token.remove_suffix(1);
  }
  if (token.size() >= 2 && token.front() == '"' && token.back() == '"') {
    token = token.substr(1, token.size() - 2);
  }
  return token;
}

// Also of "stream 7" and of numbers in quotes, as traces of 2021 have them.
std::optional<std::int64_t> integer_of(std::string_view token) {
  std::string_view text = bare(token);
  if (text.starts_with("stream ")) {
    text.remove_prefix(7);
  }
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  if (const auto read = std::from_chars(text.data(), end, value); read.ec == std::errc()) {
    return read.ptr == end ? std::optional(value) : std::nullopt;
  }
  std::uint64_t large = 0;
  const auto read = std::from_chars(text.data(), end, large);
  return read.ec == std::errc() && read.ptr == end ? std::optional(static_cast<std::int64_t>(large))
                                                   : std::nullopt;
}

struct Category {
  std::string_view name;
  KinetoKind kind;
};

// Spelt in two ways: as since 2022, and as in 2021. The most frequent first.
constexpr Category kCategories[] = {
    {"cpu_op", KinetoKind::kOperator},   {"python_function", KinetoKind::kModule},
    {"cuda_runtime", KinetoKind::kCall}, {"kernel", KinetoKind::kKernel},
    {"cuda_driver", KinetoKind::kCall},  {"gpu_memcpy", KinetoKind::kCopy},
    {"gpu_memset", KinetoKind::kMemset}, {"user_annotation", KinetoKind::kAnnotation},
    {"Operator", KinetoKind::kOperator}, {"Runtime", KinetoKind::kCall},
    {"Kernel", KinetoKind::kKernel},     {"Memcpy", KinetoKind::kCopy},
    {"Memset", KinetoKind::kMemset},     {"cpu_to_cuda", KinetoKind::kLegacyLaunch},
};

std::optional<KinetoKind> kind_of(std::string_view category) {
  for (const Category& one : kCategories) {
    if (one.name == category) {
      return one.kind;
    }
  }
  return std::nullopt;
}

bool is_gpu(KinetoKind kind) {
  return kind == KinetoKind::kKernel || kind == KinetoKind::kCopy || kind == KinetoKind::kMemset;
}

bool is_arrow(KinetoKind kind) {
  return kind == KinetoKind::kLegacyLaunch || kind == KinetoKind::kLegacyArrival;
}

// One event while its fields are read. Numbers stay text until it is known that they are wanted.
struct Fields {
  char phase = '\0';
  std::optional<KinetoKind> kind;
  bool is_unwanted = false;
  bool has_early_args = false;  // they came before it was known what they are about
  std::string_view pid;
  std::string_view tid;
  std::string_view ts;
  std::string_view dur;
  std::string_view id;
};

}  // namespace

std::optional<std::int64_t> ns_of_microseconds(std::string_view token) {
  const std::string_view text = bare(token);
  constexpr std::int64_t kMostUs = 4'000'000'000'000'000;
  const char* at = text.data();
  const char* const end = at + text.size();
  const bool is_negative = at != end && *at == '-';
  at += is_negative ? 1 : 0;
  const char* const first_digit = at;
  std::int64_t whole = 0;
  for (; at != end && *at >= '0' && *at <= '9'; ++at) {
    if (whole > kMostUs) {
      return std::nullopt;
    }
    whole = 10 * whole + (*at - '0');
  }
  if (at == first_digit || whole > kMostUs) {
    return std::nullopt;
  }
  std::int64_t thousandths = 0;
  if (at != end && *at == '.') {
    int place = 100;
    for (++at; at != end && *at >= '0' && *at <= '9'; ++at, place /= 10) {
      thousandths += (*at - '0') * place;
      if (place == 0) {
        thousandths += *at >= '5' ? 1 : 0;  // the fourth digit rounds
        at = std::find_if(at, end, [](char c) { return c < '0' || c > '9'; });
        break;
      }
    }
  }
  if (at != end && (*at == 'e' || *at == 'E')) {
    double us = 0;
    const auto read = std::from_chars(text.data(), end, us);
    if (read.ec != std::errc() || read.ptr != end || std::abs(us) > static_cast<double>(kMostUs)) {
      return std::nullopt;
    }
    return std::llround(us * 1000);
  }
  if (at != end) {
    return std::nullopt;
  }
  const std::int64_t ns = 1000 * whole + thousandths;
  return is_negative ? -ns : ns;
}

struct KinetoEvents::Parser {
  ondemand::parser simd;
  KinetoEvent event;
  bool wants_module_paths = false;

  // What became of a window's document.
  struct Walk {
    simdjson::error_code error = simdjson::SUCCESS;
    std::size_t consumed = 0;  // of the document: events before it have been handed on
    bool has_ended = false;    // with the array's own ']'
  };

  Walk walk_to(char* text, std::size_t end, std::size_t capacity, KinetoArray& result,
               const Sink& sink);
  Walk walk(char* text, std::size_t length, std::size_t capacity, KinetoArray& result,
            const Sink& sink);
  bool read_event(ondemand::object& object, bool& is_wanted, KinetoArray& result);
  bool read_field(Fields& fields, ondemand::field& field);
  bool read_args(ondemand::value& value);
  void read_arg(std::string_view key, ondemand::value& value);
  void read_sizes(ondemand::value& value, std::int32_t (&sizes)[3]);
  bool finish(const Fields& fields, KinetoArray& result);

  static std::string_view text_of(ondemand::value& value);
};

// A string's text. Escapes are rare, and decoding them needs the parser's own buffer.
std::string_view KinetoEvents::Parser::text_of(ondemand::value& value) {
  const std::string_view raw = bare(value.raw_json_token());
  if (std::memchr(raw.data(), '\\', raw.size()) == nullptr) {
    return raw;
  }
  std::string_view decoded;
  return value.get_string().get(decoded) == simdjson::SUCCESS ? decoded : raw;
}

// False where the text makes no sense.
bool KinetoEvents::Parser::read_field(Fields& fields, ondemand::field& field) {
  const ondemand::raw_json_string key = field.key();
  ondemand::value& value = field.value();
  const auto is = [&](std::string_view name) { return key.unsafe_is_equal(name); };
  if (is("ph")) {
    const std::string_view phase = bare(value.raw_json_token());
    fields.phase = phase.size() == 1 ? phase[0] : '\0';
    fields.is_unwanted = fields.phase != 'X' && fields.phase != 's' && fields.phase != 'f';
  } else if (is("cat")) {
    fields.kind = kind_of(bare(value.raw_json_token()));
    fields.is_unwanted = !fields.kind;
  } else if (is("name")) {
    event.name = text_of(value);
    fields.is_unwanted =
        fields.kind == KinetoKind::kModule && !event.name.starts_with(kModulePrefix);
  } else if (is("pid")) {
    fields.pid = bare(value.raw_json_token());
  } else if (is("tid")) {
    fields.tid = value.raw_json_token();
  } else if (is("ts")) {
    fields.ts = value.raw_json_token();
  } else if (is("dur")) {
    fields.dur = value.raw_json_token();
  } else if (is("id")) {
    fields.id = value.raw_json_token();
  } else if (is("args")) {
    fields.has_early_args = !fields.kind;
    if (fields.kind && (is_gpu(*fields.kind) || fields.kind == KinetoKind::kCall ||
                        (fields.kind == KinetoKind::kOperator && wants_module_paths))) {
      return read_args(value);
    }
  }
  return true;
}

void KinetoEvents::Parser::read_sizes(ondemand::value& value, std::int32_t (&sizes)[3]) {
  ondemand::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS) {
    return;
  }
  std::size_t i = 0;
  for (auto element : array) {
    ondemand::value size;
    if (element.get(size) != simdjson::SUCCESS) {
      return;
    }
    const auto number = integer_of(size.raw_json_token());
    if (i < 3 && number && *number >= 0 && *number <= INT32_MAX) {
      sizes[i] = static_cast<std::int32_t>(*number);
    }
    ++i;
  }
}

void KinetoEvents::Parser::read_arg(std::string_view key, ondemand::value& value) {
  const auto number = [&](std::int64_t& target) {
    target = integer_of(value.raw_json_token()).value_or(target);
  };
  if (key == "correlation") {
    const auto id = integer_of(value.raw_json_token());
    event.correlation = id && *id >= 0 && *id < kNone ? static_cast<std::uint32_t>(*id) : kNone;
  } else if (key == "device") {
    number(event.device);
  } else if (key == "context") {
    number(event.context);
  } else if (key == "stream") {
    number(event.stream);
  } else if (key == "bytes") {
    number(event.bytes);
  } else if (key == "grid") {
    read_sizes(value, event.shape.grid);
  } else if (key == "block") {
    read_sizes(value, event.shape.block);
  } else if (key == "graph node id") {
    event.is_graph_node = integer_of(value.raw_json_token()).value_or(0) != 0;
  } else if (key == "Collective name") {
    event.collective.name = text_of(value);
  } else if (key == "dtype") {
    event.collective.dtype = text_of(value);
  } else if (key == "Process Group Description") {
    event.collective.group = text_of(value);
  } else if (key == "In msg nelems") {
    number(event.collective.in_elements);
  } else if (key == "Out msg nelems") {
    number(event.collective.out_elements);
  } else if (key == "Group size") {
    number(event.collective.group_size);
  } else if (key == "Module Hierarchy") {
    event.module_path = text_of(value);
  }
}

bool KinetoEvents::Parser::read_args(ondemand::value& value) {
  ondemand::object args;
  if (value.get_object().get(args) != simdjson::SUCCESS) {
    return true;  // of another type: the event has no arguments
  }
  for (auto result : args) {
    ondemand::field field;
    if (std::move(result).get(field) != simdjson::SUCCESS) {
      return false;
    }
    const char* const key = field.key().raw();
    const char* key_end = key;
    while (*key_end != '"') {
      ++key_end;
    }
    read_arg({key, static_cast<std::size_t>(key_end - key)}, field.value());
    if (event.kind == KinetoKind::kCall && event.correlation != kNone) {
      break;  // all that is wanted of a call
    }
  }
  return true;
}

// Turns the texts of an event into numbers. False where one is missing.
bool KinetoEvents::Parser::finish(const Fields& fields, KinetoArray& result) {
  const bool is_legacy_gpu = fields.pid == "CUDA functions";
  if (!fields.kind) {
    // Before Kineto there were no categories.
    if (fields.phase != 'X' || (!is_legacy_gpu && fields.pid != "CPU functions")) {
      return false;
    }
    event.kind = is_legacy_gpu ? KinetoKind::kKernel : KinetoKind::kOperator;
  } else {
    event.kind = *fields.kind;
    if (is_arrow(event.kind)) {
      event.kind = fields.phase == 's' ? KinetoKind::kLegacyLaunch : KinetoKind::kLegacyArrival;
    }
  }
  if ((fields.phase == 'X') == is_arrow(event.kind)) {
    return false;
  }
  const auto pid = integer_of(fields.pid);
  const auto tid = integer_of(fields.tid);
  const auto start = ns_of_microseconds(fields.ts);
  const auto duration =
      is_arrow(event.kind) ? std::optional<std::int64_t>(0) : ns_of_microseconds(fields.dur);
  const bool has_place = is_gpu(event.kind) || ((pid || fields.pid == "CPU functions") && tid) ||
                         (event.kind == KinetoKind::kLegacyArrival && tid);
  if (!start || !duration || *duration < 0 || !has_place) {
    ++result.num_unusable;
    return false;
  }
  event.pid = pid.value_or(0);
  event.tid = tid.value_or(0);
  event.start_ns = *start;
  event.duration_ns = *duration;
  if (is_arrow(event.kind)) {
    const auto id = integer_of(fields.id);
    event.correlation = id && *id >= 0 && *id < kNone ? static_cast<std::uint32_t>(*id) : kNone;
  }
  if (is_gpu(event.kind)) {
    // The device stands for the process, and the stream for the thread, where arguments are absent.
    event.device = event.device < 0 ? (is_legacy_gpu ? event.tid : event.pid) : event.device;
    event.stream = event.stream < 0 ? event.tid : event.stream;
  }
  return true;
}

// False where the text makes no sense.
bool KinetoEvents::Parser::read_event(ondemand::object& object, bool& is_wanted,
                                      KinetoArray& result) {
  event = KinetoEvent();
  event.device = -1;
  event.stream = -1;
  Fields fields;
  for (auto one : object) {
    ondemand::field field;
    if (std::move(one).get(field) != simdjson::SUCCESS) {
      return false;
    }
    if (!read_field(fields, field)) {
      return false;
    }
    if (fields.is_unwanted) {
      return true;
    }
    if (fields.kind) {
      event.kind = *fields.kind;
    }
  }
  if (fields.has_early_args && fields.kind && object.reset().error() == simdjson::SUCCESS) {
    for (auto one : object) {
      ondemand::field field;
      if (std::move(one).get(field) != simdjson::SUCCESS) {
        return false;
      }
      if (field.key().unsafe_is_equal("args") && !read_args(field.value())) {
        return false;
      }
    }
  }
  is_wanted = finish(fields, result);
  return true;
}

// Walks the first `end` bytes of `text`, which begin with '[', as if a ']' followed.
KinetoEvents::Parser::Walk KinetoEvents::Parser::walk_to(char* text, std::size_t end,
                                                         std::size_t capacity, KinetoArray& result,
                                                         const Sink& sink) {
  wants_module_paths = memmem(text, end, kModulePathKey.data(), kModulePathKey.size()) != nullptr;
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
  // An event is whole once the parser has found what follows it.
  bool has_event = false;
  bool is_wanted = false;
  KinetoArray counted;
  const auto hand_on = [&] {
    result.num_events += has_event ? 1 : 0;
    result.num_unusable += std::exchange(counted.num_unusable, 0);
    if (std::exchange(is_wanted, false)) {
      sink(event);
    }
  };
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
    if (value.get_object().get(object) == simdjson::SUCCESS &&
        !read_event(object, is_wanted, counted)) {
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
  // Once for all windows of the usual size; iterate() asks for more where one has grown.
  if (parser_->simd.allocate(JsonWindow::kSize + JsonWindow::kPadding) != simdjson::SUCCESS) {
    throw std::bad_alloc();
  }
}
KinetoEvents::~KinetoEvents() = default;

namespace {

// Behind the last '}' that a comma and a '{' follow; else behind the last '}'; 0 without one.
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

// Bytes that JSON does not allow become ones that it does; outside of strings they were blanks.
void repair(char* text, std::size_t length) {
  for (char& c : std::span(text, length)) {
    const auto byte = static_cast<unsigned char>(c);
    c = byte < ' ' ? ' ' : byte < 0x80 ? c : '?';
  }
}

}  // namespace

// An event that is guessed to be whole and is not shows itself by an error; then brackets are
// counted to see where the last whole one ends. A whole one that makes no sense ends the reading.
KinetoArray KinetoEvents::read(JsonWindow& window, const Sink& sink) {
  KinetoArray result;
  bool is_guess = true;
  while (true) {
    char* text = window.data();
    text[0] = '[';  // or the comma behind the last event
    const std::size_t end =
        is_guess ? likely_end(window.text()) : end_of_last_element(window.text());
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

}  // namespace llmprof
