// SPDX-License-Identifier: Apache-2.0
//
// Options of the C functions: "name=value", as those of the command line.
#include "api/open_options.h"

#include <functional>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "base/units.h"

namespace gpuwhy {
namespace {

// One option: its name and its value.
struct GivenOption {
  std::string name;
  std::string value;
};

[[noreturn]] void refuse_option(const GivenOption& given, const char* wanted) {
  throw Error(ErrorKind::kUsage,
              fmt::format("{} takes {}, not '{}'", given.name, wanted, printable(given.value)));
}

GivenOption given_option(const char* text) {
  const std::string_view whole = text == nullptr ? std::string_view() : std::string_view(text);
  const std::size_t equals = whole.find('=');
  if (equals == std::string_view::npos) {
    throw Error(ErrorKind::kUsage,
                fmt::format("an option is name=value, not '{}'", printable(whole)));
  }
  return {std::string(whole.substr(0, equals)), std::string(whole.substr(equals + 1))};
}

[[noreturn]] void refuse_name(const GivenOption& given) {
  throw Error(ErrorKind::kUsage, fmt::format("there is no option '{}'", printable(given.name)),
              "the options of gpuwhy analyze, with _ for -");
}

std::int64_t at_least(std::int64_t least, std::int64_t most, const GivenOption& given) {
  const auto number = parse_whole(given.value);
  if (!number || *number < least || *number > most) {
    refuse_option(given, least == 0 ? "a whole number" : "a whole number of at least 1");
  }
  return *number;
}

// "10..20", "10.." or "10", as --steps takes it.
StepSpan step_span(const GivenOption& given) {
  const std::optional<StepSpan> steps = parse_steps(given.value);
  if (!steps) {
    refuse_option(given, "numbers of steps, as 10..20, 10.. or 10");
  }
  return *steps;
}

std::chrono::nanoseconds time_value(const GivenOption& given) {
  const auto time_ns = parse_duration_ns(given.value);
  if (!time_ns) {
    refuse_option(given, "a time, as 2s, 150ms or 40us");
  }
  return std::chrono::nanoseconds(*time_ns);
}

bool flag_value(const GivenOption& given) {
  if (given.value != "true" && given.value != "false") {
    refuse_option(given, "true or false");
  }
  return given.value == "true";
}

// Puts the value of an option where it belongs.
using Setter = std::function<void(const GivenOption&)>;

// A number of at least 1.
Setter count_into(std::optional<std::int64_t>& target) {
  return [&target](const GivenOption& given) { target = at_least(1, INT64_MAX, given); };
}
Setter text_into(std::string& target) {
  return [&target](const GivenOption& given) { target = given.value; };
}
Setter texts_into(std::vector<std::string>& target) {
  return [&target](const GivenOption& given) { target.push_back(given.value); };
}

// All options. The targets are members of `options`, which must stay where it is.
std::map<std::string, Setter> setters_of(OpenOptions& options) {
  RecordingOptions& reading = options.recording;
  ModelChoice& model = options.model;
  const auto number32 = [](std::optional<std::uint32_t>& target) -> Setter {
    return [&target](const GivenOption& given) {
      target = static_cast<std::uint32_t>(at_least(0, UINT32_MAX, given));
    };
  };
  return {
      {"model", text_into(model.model)},
      {"gpu_name", text_into(model.gpu_name)},
      {"image", text_into(model.image)},
      {"prompt_tokens", count_into(model.setup.prompt_tokens)},
      {"new_tokens", count_into(model.setup.new_tokens)},
      {"batch", count_into(model.setup.batch)},
      {"context", count_into(model.setup.context)},
      {"tp", count_into(reading.parallelism.tensor)},
      {"pp", count_into(reading.parallelism.pipeline)},
      {"dp", count_into(reading.parallelism.data)},
      {"ncu", texts_into(reading.ncu)},
      {"requests", text_into(reading.requests)},
      {"slo", text_into(reading.service_limits)},
      {"gpu", number32(reading.filter.device)},
      {"pid", number32(reading.filter.pid)},
      {"from", [&](const GivenOption& given) { reading.window.from = time_value(given); }},
      {"to", [&](const GivenOption& given) { reading.window.to = time_value(given); }},
      {"steps", [&](const GivenOption& given) { reading.window.steps = step_span(given); }},
      {"trim", [&](const GivenOption& given) { reading.window.is_trimmed = flag_value(given); }},
      {"mark", texts_into(reading.marks)},
      {"step", texts_into(reading.step_names)},
      {"rules", text_into(reading.rules)},
      {"annotations", text_into(reading.graph_names.annotations)},
      {"capture_trace", texts_into(reading.graph_names.capture_traces)},
      {"threads",
       [&](const GivenOption& given) { reading.num_threads = at_least(1, 1024, given); }},
      {"memory_limit",
       [&](const GivenOption& given) {
         reading.memory_limit_bytes = parse_bytes(given.value);
         if (!reading.memory_limit_bytes) {
           refuse_option(given, "a size, as 4GiB");
         }
       }},
  };
}

// Numbers of a model mean nothing without one; a batch also serves recovered steps.
void check_has_model(const ModelChoice& model) {
  const std::pair<const char*, bool> given[] = {
      {"prompt_tokens", model.setup.prompt_tokens.has_value()},
      {"new_tokens", model.setup.new_tokens.has_value()},
      {"context", model.setup.context.has_value()},
      {"image", !model.image.empty()}};
  for (const auto& [option, is_given] : given) {
    if (is_given && model.model.empty()) {
      throw Error(ErrorKind::kUsage, fmt::format("{} requires model", option),
                  "give a name of gpuwhy list models, or a path");
    }
  }
}

}  // namespace

OpenOptions open_options(std::span<const char* const> texts) {
  OpenOptions options;
  const std::map<std::string, Setter> setters = setters_of(options);
  for (const char* text : texts) {
    const GivenOption given = given_option(text);
    const auto setter = setters.find(given.name);
    if (setter == setters.end()) {
      refuse_name(given);
    }
    setter->second(given);
  }
  check_has_model(options.model);
  options.model.setup.num_gpus = options.recording.parallelism.ranks_per_model();
  return options;
}

CompareOptions compare_options(std::span<const char* const> texts) {
  CompareOptions options;
  for (const char* text : texts) {
    const GivenOption given = given_option(text);
    if (given.name != "effect") {
      refuse_name(given);
    }
    const auto fraction = parse_percent(given.value);
    if (!fraction) {
      refuse_option(given, "a percentage above 0");
    }
    options.smallest_effect = *fraction;
  }
  return options;
}

}  // namespace gpuwhy
