// SPDX-License-Identifier: Apache-2.0
//
// Parsing of single events of a PyTorch trace.
//
// Fields may come in any order, but profilers write `ph` and `cat` first, so most irrelevant events
// (arrows, short Python functions) are skipped after a few fields. Numbers stay text until they are
// needed.
//
// What it gets wrong: mismatched brackets inside skipped parts are not always noticed.
#include "ingest/kineto/kineto_event_reader.h"

#include <cstring>
#include <optional>
#include <utility>

#include "ingest/kineto/kineto_numbers.h"
#include "trace/op_inputs.h"

namespace gpuwhy {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::string_view kModulePrefix = "nn.Module: ";
constexpr std::string_view kStepPrefix = "ProfilerStep#";

struct Category {
  std::string_view name;
  KinetoKind kind;
};

// In both spellings: since 2022, and as in 2021. The most frequent first.
constexpr Category kCategories[] = {
    {"cpu_op", KinetoKind::kOperator},   {"python_function", KinetoKind::kFunction},
    {"cuda_runtime", KinetoKind::kCall}, {"kernel", KinetoKind::kKernel},
    {"cuda_driver", KinetoKind::kCall},  {"gpu_memcpy", KinetoKind::kCopy},
    {"gpu_memset", KinetoKind::kMemset}, {"user_annotation", KinetoKind::kAnnotation},
    {"Operator", KinetoKind::kOperator}, {"Runtime", KinetoKind::kCall},
    {"Kernel", KinetoKind::kKernel},     {"Memcpy", KinetoKind::kCopy},
    {"Memset", KinetoKind::kMemset},     {"cpu_to_cuda", KinetoKind::kLegacyLaunch},
    {"Trace", KinetoKind::kSession},     {"cuda_profiler_range", KinetoKind::kCounted},
};

bool is_gpu(KinetoKind kind) {
  return kind == KinetoKind::kKernel || kind == KinetoKind::kCopy || kind == KinetoKind::kMemset;
}

bool is_arrow(KinetoKind kind) {
  return kind == KinetoKind::kLegacyLaunch || kind == KinetoKind::kLegacyArrival;
}

// The text of a string. Escapes are rare, and decoding them needs the parser's buffer.
std::string_view text_of(ondemand::value& value) {
  const std::string_view raw = bare_token(value.raw_json_token());
  if (std::memchr(raw.data(), '\\', raw.size()) == nullptr) {
    return raw;
  }
  std::string_view decoded;
  return value.get_string().get(decoded) == simdjson::SUCCESS ? decoded : raw;
}

std::uint32_t correlation_of(std::string_view token) {
  const auto id = integer_of(token);
  return id && *id >= 0 && *id < kNone ? static_cast<std::uint32_t>(*id) : kNone;
}

// Grid or block; elements that are not sizes stay 0.
void read_sizes(ondemand::value& value, std::int32_t (&sizes)[3]) {
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

}  // namespace

std::optional<KinetoKind> kineto_kind(std::string_view category) {
  for (const Category& one : kCategories) {
    if (one.name == category) {
      return one.kind;
    }
  }
  return std::nullopt;
}

// Fields of one event while it is read. Numbers stay text until they are needed.
struct KinetoEventReader::Fields {
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

// False if the text is not valid JSON.
bool KinetoEventReader::read_field(Fields& fields, ondemand::field& field) {
  const ondemand::raw_json_string key = field.key();
  ondemand::value& value = field.value();
  const auto is = [&](std::string_view name) { return key.unsafe_is_equal(name); };
  if (is("ph")) {
    const std::string_view phase = bare_token(value.raw_json_token());
    fields.phase = phase.size() == 1 ? phase[0] : '\0';
    fields.is_unwanted = fields.phase != 'X' && fields.phase != 's' && fields.phase != 'f';
  } else if (is("cat")) {
    fields.kind = kineto_kind(bare_token(value.raw_json_token()));
    fields.is_unwanted = !fields.kind;
  } else if (is("name")) {
    event.name = text_of(value);
  } else if (is("pid")) {
    fields.pid = bare_token(value.raw_json_token());
  } else if (is("tid")) {
    fields.tid = value.raw_json_token();
  } else if (is("ts")) {
    fields.ts = value.raw_json_token();
  } else if (is("dur")) {
    fields.dur = value.raw_json_token();
    fields.is_unwanted = fields.kind == KinetoKind::kFunction && !event.name.empty() &&
                         !event.name.starts_with(kModulePrefix) &&
                         ns_of_microseconds(fields.dur).value_or(0) < kLeastFunctionNs;
  } else if (is("id")) {
    fields.id = value.raw_json_token();
  } else if (is("args")) {
    // If `args` precede `cat`, it is not yet known whether they are needed: they are read in a
    // second pass.
    fields.has_early_args = !fields.kind;
    if (fields.kind &&
        (is_gpu(*fields.kind) || fields.kind == KinetoKind::kCall ||
         (fields.kind == KinetoKind::kOperator &&
          (wants_module_paths || event.name.empty() || has_kept_inputs(event.name))))) {
      return read_args(value);
    }
  }
  return true;
}

// Only these arguments are used, of the events that have them; all others are skipped unparsed.
constexpr std::pair<std::string_view, std::int64_t KinetoEvent::*> kNumbers[] = {
    {"device", &KinetoEvent::device},
    {"context", &KinetoEvent::context},
    {"stream", &KinetoEvent::stream},
    {"bytes", &KinetoEvent::bytes},
    {"Group size", &KinetoEvent::group_size},
    {"In msg nelems", &KinetoEvent::in_elements},
    {"Out msg nelems", &KinetoEvent::out_elements}};
constexpr std::pair<std::string_view, std::string_view KinetoEvent::*> kTexts[] = {
    {"kernel", &KinetoEvent::launched},
    {"Module Hierarchy", &KinetoEvent::module_path},
    {"dtype", &KinetoEvent::dtype},
    {"Collective name", &KinetoEvent::collective},
    {"Process Group Name", &KinetoEvent::group},
    {"Process Group Description", &KinetoEvent::group_description},
    {"Process Group Ranks", &KinetoEvent::group_ranks}};
constexpr std::pair<std::string_view, std::string_view KinetoEvent::*> kLists[] = {
    {"Input Dims", &KinetoEvent::input_sizes},
    {"Input type", &KinetoEvent::input_types},
    {"Concrete Inputs", &KinetoEvent::input_values}};

void KinetoEventReader::read_arg(std::string_view key, ondemand::value& value) {
  if (key == "correlation") {
    event.correlation = correlation_of(value.raw_json_token());
    return;
  }
  for (const auto& [name, target] : kNumbers) {
    if (key == name) {
      event.*target = integer_of(value.raw_json_token()).value_or(event.*target);
      return;
    }
  }
  if (key == "grid" || key == "block") {
    read_sizes(value, key == "grid" ? event.shape.grid : event.shape.block);
  } else if (key == "graph node id") {
    event.graph_node = static_cast<std::uint64_t>(integer_of(value.raw_json_token()).value_or(0));
  }
  for (const auto& [name, target] : kTexts) {
    if (key == name) {
      event.*target = text_of(value);
      return;
    }
  }
  for (const auto& [name, target] : kLists) {
    ondemand::array array;
    std::string_view text;
    if (key == name && value.get_array().get(array) == simdjson::SUCCESS &&
        array.raw_json().get(text) == simdjson::SUCCESS) {
      event.*target = text;
    }
  }
}

bool KinetoEventReader::read_args(ondemand::value& value) {
  ondemand::object args;
  if (value.get_object().get(args) != simdjson::SUCCESS) {
    return true;  // of another type: the event has no arguments
  }
  for (auto result : args) {
    ondemand::field field;
    if (std::move(result).get(field) != simdjson::SUCCESS) {
      return false;
    }
    // The raw key, without unescaping: none of the wanted names has an escape.
    const char* const key = field.key().raw();
    const char* key_end = key;
    while (*key_end != '"') {
      ++key_end;
    }
    read_arg({key, static_cast<std::size_t>(key_end - key)}, field.value());
    // That is all that is wanted of a call, but those of ROCm also tell the kernel.
    if (event.kind == KinetoKind::kCall && event.correlation != kNone &&
        !event.name.starts_with("hip")) {
      break;
    }
  }
  return true;
}

// Converts the fields to numbers. False if a required one is missing.
bool KinetoEventReader::finish(const Fields& fields) {
  const bool is_legacy_gpu = fields.pid == "CUDA functions";
  if (!fields.kind) {
    // Traces from before Kineto have no categories.
    if (fields.phase != 'X' || (!is_legacy_gpu && fields.pid != "CPU functions")) {
      return false;
    }
    event.kind = is_legacy_gpu ? KinetoKind::kKernel : KinetoKind::kOperator;
  } else {
    event.kind = *fields.kind;
    if (is_arrow(event.kind)) {
      event.kind = fields.phase == 's' ? KinetoKind::kLegacyLaunch : KinetoKind::kLegacyArrival;
    }
    if (event.kind == KinetoKind::kFunction && event.name.starts_with(kModulePrefix)) {
      event.kind = KinetoKind::kModule;
    }
    // In 2021 the profiler's own steps were operators.
    if (event.kind == KinetoKind::kOperator && event.name.starts_with(kStepPrefix)) {
      event.kind = KinetoKind::kAnnotation;
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
  // GPU work is placed by its device, host work by its thread.
  const bool has_place = is_gpu(event.kind) || event.kind == KinetoKind::kSession ||
                         event.kind == KinetoKind::kCounted ||
                         ((pid || fields.pid == "CPU functions") && tid) ||
                         (event.kind == KinetoKind::kLegacyArrival && tid);
  if (!start || !duration || *duration < 0 || !has_place) {
    unusable = start && duration && has_place ? Unusable::kEndsFirst : Unusable::kNoNumber;
    return false;
  }
  if (event.kind == KinetoKind::kFunction && *duration < kLeastFunctionNs) {
    return false;
  }
  event.pid = pid.value_or(0);
  event.tid = tid.value_or(0);
  event.start_ns = *start;
  event.duration_ns = *duration;
  if (is_arrow(event.kind)) {
    event.correlation = correlation_of(fields.id);
  }
  if (is_gpu(event.kind)) {
    // Without arguments, the process is the device and the thread is the stream.
    event.device = event.device < 0 ? (is_legacy_gpu ? event.tid : event.pid) : event.device;
    event.stream = event.stream < 0 ? event.tid : event.stream;
  }
  return true;
}

// False if the text is not valid JSON.
bool KinetoEventReader::read(ondemand::object& object) {
  event = KinetoEvent();
  is_wanted = false;
  unusable.reset();
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
  // Second pass for the arguments that came too early.
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
  is_wanted = finish(fields);
  return true;
}

}  // namespace gpuwhy
