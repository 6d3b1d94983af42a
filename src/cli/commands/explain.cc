// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy explain: where a number comes from, down to the rows of the recording.
//
// A reader who doubts a figure can have its formula, the tables it was made of, and the rows
// themselves; their sum is made again from the recording and compared with the figure.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include "agents/explanation.h"
#include "analysis/profile.h"
#include "base/error.h"
#include "base/exit_code.h"
#include "base/json.h"
#include "base/json_path.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/args.h"
#include "cli/command.h"
#include "cli/commands/explain_words.h"
#include "cli/commands/topics.h"
#include "cli/recording_options.h"
#include "ingest/ingest.h"
#include "results/catalog.h"
#include "session/reading/recording.h"
#include "trace/device_label.h"

namespace gpuwhy {
namespace {

struct ExplainOptions {
  std::vector<std::string> words;  // WORD, or FILE and KEY
  std::string file;
  std::string key;
  RowLimit rows{5};
  bool is_json = false;
  RecordingOptions recording;
};

// Rows of a recording behind one row of a table.
struct SourceRows {
  std::string_view source;  // as in MetricInfo
  std::vector<std::size_t> rows;
  std::vector<std::int64_t> start_ns;
  std::vector<std::int64_t> duration_ns;
  std::vector<std::string> details;

  std::int64_t total_ns() const {
    return std::accumulate(duration_ns.begin(), duration_ns.end(), std::int64_t{0});
  }
};

const Json* nearest_object(const Json& metrics, std::vector<PathStep> path) {
  path.pop_back();
  return path.empty() ? &metrics : find_path(metrics, path);
}

// The key that says of how many: beside the value, or beside what holds it.
Json count_beside(const Json& metrics, std::vector<PathStep> path, const std::string& key) {
  while (!key.empty() && path.size() > 1) {
    path.pop_back();
    const Json* around = find_path(metrics, path);
    if (around != nullptr && around->is_object() && around->contains(key)) {
      return around->at(key);
    }
  }
  return nullptr;
}

std::string field(const Json& row, const char* name) {
  const auto found = row.find(name);
  return found != row.end() && found->is_string() ? found->get<std::string>() : "";
}

// The rows of the array in which the path names one that is not there, as they are written:
// "devices[device=cuda:0], devices[device=cuda:1]"; empty: it fails elsewhere.
std::string rows_there_are(const Json& metrics, const std::vector<PathStep>& path) {
  constexpr std::size_t kMost = 8;
  for (std::size_t i = 0; i < path.size(); ++i) {
    std::vector<PathStep> before(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    if (!path[i].has_row || find_path(metrics, before) != nullptr) {
      continue;
    }
    before.back() = {path[i].name, false, SIZE_MAX, {}};
    const Json* rows = find_path(metrics, before);
    if (rows == nullptr || !rows->is_array()) {
      return "";
    }
    if (path[i].choices.empty()) {
      return fmt::format("{} has {}, counted from 0", path[i].name,
                         count_of(static_cast<std::int64_t>(rows->size()), "row"));
    }
    std::vector<std::string> names;
    for (const Json& row : *rows) {
      std::vector<std::string> chosen;
      for (const auto& [name, ignored] : path[i].choices) {
        const std::string value = row.is_object() ? field(row, name.c_str()) : "";
        chosen.push_back(fmt::format("{}={}", printable(name), printable(path_value(value))));
      }
      const std::string text = fmt::format("{}[{}]", path[i].name, fmt::join(chosen, ","));
      if (std::ranges::count(names, text) == 0) {
        names.push_back(text);
      }
    }
    const std::size_t all = names.size();
    names.resize(std::min(all, kMost));
    return names.empty() ? fmt::format("{} has no rows in this recording", path[i].name)
                         : fmt::format("there are: {}{}", fmt::join(names, ", "),
                                       all > kMost ? fmt::format(" and {} more", all - kMost) : "");
  }
  return "";
}

[[noreturn]] void fail_unknown(const Json& metrics, const std::vector<PathStep>& path,
                               const std::string& key) {
  std::string hint = "gpuwhy report BUNDLE --format json lists keys";
  const Json* around = nearest_object(metrics, path);
  if (const std::string rows = rows_there_are(metrics, path); !rows.empty()) {
    hint = rows;
  } else if (around != nullptr && around->is_object()) {
    std::vector<std::string> names;
    for (const auto& [name, value] : around->items()) {
      names.push_back(printable(name));
    }
    const auto meant = nearest(path.back().name, names);
    hint = meant ? fmt::format("did you mean {}?", *meant)
                 : fmt::format("there are: {}", fmt::join(names, ", "));
  }
  throw Error(ErrorKind::kUsage, fmt::format("metrics.json has no {}", printable(key)), hint);
}

std::string value_text(const Json& value, const MetricInfo* origin) {
  std::string text = printable(to_json_line(value));
  if (origin == nullptr || !value.is_number()) {
    return text;
  }
  const double number = value.get<double>();
  text += fmt::format(" {}", origin->unit);
  if (origin->unit == "ns" && std::abs(number) < 9e18) {
    return text + fmt::format(" ({})", format_duration_ns(std::llround(number)));
  }
  return origin->unit == "fraction" ? text + fmt::format(" ({})", format_fraction(number)) : text;
}

// Launches of the kernel, device and stage of a row of the kernel table.
SourceRows kernel_rows(const Json& row, const Profile& profile) {
  const Trace& trace = *profile.trace;
  const Stages& stages = profile.stages;
  const Kernels& kernels = trace.kernels;
  SourceRows found{"kernels", {}, {}, {}, {}};
  const std::string name = field(row, "kernel_name");
  const std::string device = field(row, "device");
  const RowName stage = row_name(field(row, "stage"));
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const std::uint32_t instance = profile.attribution.kernels.instance[i];
    const bool is_stage =
        stages.name_of(instance == kNone ? kNone : stages.instances[instance].stage) == stage;
    if (is_stage && trace.strings[kernels.name[i]] == name &&
        device_label(trace.devices[kernels.device[i]]) == device) {
      found.rows.push_back(i);
      found.start_ns.push_back(kernels.start_ns[i]);
      found.duration_ns.push_back(kernels.end_ns[i] - kernels.start_ns[i]);
      found.details.push_back(
          fmt::format("stream {}, correlation {}, {}", trace.streams[kernels.stream[i]].stream,
                      kernels.correlation[i], trace.shapes[kernels.shape[i]].text()));
    }
  }
  return found;
}

// Marks of a stage that have an end.
SourceRows mark_rows(const Json& row, const Profile& profile) {
  const Trace& trace = *profile.trace;
  const Stages& stages = profile.stages;
  SourceRows found{"marks", {}, {}, {}, {}};
  for (std::size_t i = 0; i < stages.instances.size(); ++i) {
    const StageInstance& instance = stages.instances[i];
    if (stages.names[instance.stage].text() == field(row, "stage") && !instance.is_open) {
      found.rows.push_back(i);
      found.start_ns.push_back(instance.start_ns);
      found.duration_ns.push_back(instance.end_ns - instance.start_ns);
      found.details.push_back(fmt::format(
          "thread {}{}",
          instance.thread < trace.threads.size() ? trace.threads[instance.thread].tid : 0,
          instance.tokens ? fmt::format(", {} tokens", *instance.tokens) : ""));
    }
  }
  return found;
}

// The figure's own sum, made again of its rows.
std::string check_text(const SourceRows& found, const Json& row, const char* total,
                       const char* count) {
  const auto total_ns = row.value(total, std::int64_t{-1});
  // Marks without an end have no length to add.
  const auto calls = row.value(count, std::int64_t{-1}) - row.value("open", std::int64_t{0});
  const bool is_equal =
      total_ns == found.total_ns() && calls == static_cast<std::int64_t>(found.rows.size());
  return fmt::format("  {} rows sum to {} ns: {}\n", found.rows.size(), found.total_ns(),
                     is_equal
                         ? fmt::format("matches {} and {}", total, count)
                         : fmt::format("does NOT match {} {} and {} {}: the metrics were made from "
                                       "another recording",
                                       total, total_ns, count, calls));
}

std::string rows_text(const SourceRows& found, std::size_t most) {
  std::vector<std::size_t> order(found.rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return found.start_ns[a] < found.start_ns[b]; });
  std::string text;
  for (std::size_t i = 0; i < std::min(most, order.size()); ++i) {
    text += fmt::format("    start {} ns, {} ns, {}\n", found.start_ns[order[i]],
                        found.duration_ns[order[i]], found.details[order[i]]);
  }
  return order.size() > most ? text + fmt::format("    and {} more\n", order.size() - most) : text;
}

std::string source_rows_text(const ExplainOptions& options, const std::vector<PathStep>& path,
                             const LoadedMetrics& loaded, const System& system) {
  const Json& metrics = *loaded.json;
  const bool is_kernel = path[0].name == "kernels";
  const Json* row = find_path(metrics, {path[0]});
  if ((!is_kernel && path[0].name != "stages") || row == nullptr || !row->is_object()) {
    return "";
  }
  try {
    std::optional<Profile> made;
    if (!loaded.profile) {
      made = profile_alone({options.file}, options.recording, system);
    }
    const Profile& profile = made ? *made : *loaded.profile;
    if (!profile.trace) {
      return "  rows: n/a (a summary of kernels has no rows of its own)\n";
    }
    const SourceRows found = is_kernel ? kernel_rows(*row, profile) : mark_rows(*row, profile);
    return check_text(found, *row, is_kernel ? "total_ns" : "host_total_ns",
                      is_kernel ? "calls" : "instances") +
           rows_text(found, options.rows.rows);
  } catch (const Error& error) {
    return fmt::format("  rows: n/a ({})\n", error.what());
  }
}

// The findings of that name, with their arithmetic.
std::string findings_text(const LoadedMetrics& loaded,
                          const std::function<bool(std::size_t)>& wants, std::size_t width) {
  const auto value_of = [&](const std::string& key) {
    const std::vector<PathStep> path = parse_path(key);
    const Json* value = find_path(*loaded.json, path);
    if (value == nullptr) {
      return std::string("n/a");
    }
    return value->is_structured() ? fmt::format("{} values", value->size())
                                  : value_text(*value, metric_info(path_pattern(path)));
  };
  std::string text;
  for (std::size_t i = 0; i < loaded.metrics.findings.size(); ++i) {
    if (wants(i)) {
      text +=
          (text.empty() ? "" : "\n") + finding_text(loaded.metrics.findings[i], value_of, width);
    }
  }
  return text;
}

// A word of the glossary, or a key of metrics.json without a recording: what it means.
int explain_word(const std::string& word, Context& context) {
  const std::size_t width = context.console.width();
  if (const Term* term = find_term(word)) {
    context.console.out(term_text(*term, width));
    return kExitOk;
  }
  if (const MetricInfo* info = metric_info(path_pattern(parse_path(word)))) {
    context.console.out(
        wrapped(fmt::format("{} ({}): {}", printable(word), info->unit, info->text), width, 2) +
        "\n");
    return kExitOk;
  }
  if (const Term* column = find_column(word)) {
    context.console.out(term_text(*column, width));
    return kExitOk;
  }
  std::vector<std::string> names;
  for (const Term& term : glossary()) {
    names.emplace_back(term.name);
  }
  for (const Topic& topic : all_topics()) {
    names.emplace_back(topic.name);
  }
  const auto meant = nearest(word, names);
  throw Error(
      ErrorKind::kUsage, fmt::format("explain: there is no word '{}'", printable(word)),
      word.find('[') != std::string::npos
          ? fmt::format("a key needs its recording: gpuwhy explain FILE '{}'", printable(word))
      : meant ? fmt::format("did you mean {}?", *meant)
              : "gpuwhy explain FILE KEY explains a number; gpuwhy explain words lists words");
}

int explain_key(const ExplainOptions& options, Context& context) {
  if (const Term* term = find_term(options.key)) {
    const std::size_t width = context.console.width();
    context.console.out(term_text(*term, width));
    const LoadedMetrics loaded = load_metrics({options.file}, options.recording, context.system);
    const std::string here = findings_text(
        loaded, [&](std::size_t i) { return word_of(loaded.metrics.findings[i].id) == term->name; },
        width);
    if (term->kind == "finding") {
      context.console.out("\n" + (here.empty() ? "This recording has no such finding.\n" : here));
    }
    return kExitOk;
  }
  const std::vector<PathStep> path = parse_path(options.key);
  const LoadedMetrics loaded = load_metrics({options.file}, options.recording, context.system);
  if (loaded.profile) {
    say_how_read(*loaded.profile, context.console);
  }
  const Json& metrics = *loaded.json;
  const Json* value = find_path(metrics, path);
  if (value != nullptr && path.size() == 1 && path[0].name == "findings" && value->is_object()) {
    context.console.out(findings_text(
        loaded, [&](std::size_t i) { return &metrics.at("findings").at(i) == value; },
        context.console.width()));
    return kExitOk;
  }
  if (value == nullptr) {
    fail_unknown(metrics, path, options.key);
  }
  const MetricInfo* origin = metric_info(path_pattern(path));
  const bool is_plain = !value->is_structured();
  std::string text = fmt::format("{}{}\n", printable(options.key),
                                 is_plain ? " = " + value_text(*value, origin)
                                          : fmt::format(": {} values inside", value->size()));
  const Json* around = nearest_object(metrics, path);
  if (value->is_null() && around != nullptr && around->is_object() && around->contains("reason")) {
    text += fmt::format("  n/a: {}\n", printable(field(*around, "reason")));
  }
  if (origin != nullptr) {
    text += fmt::format("  formula  {}: {}\n", origin->formula, origin->text);
    const Json* name = find_path(metrics, parse_path("capture.format"));
    const FormatInfo format = format_named(
        name != nullptr && name->is_string() ? name->get_ref<const std::string&>() : "");
    std::vector<std::string> sources;
    for (const std::string_view source : split(origin->sources, ' ')) {
      if (!source.empty()) {
        sources.push_back(source_text(source, format));
      }
    }
    text += sources.empty() ? "" : fmt::format("  from     {}\n", fmt::join(sources, ", "));
    const Json count = count_beside(metrics, path, std::string(origin->count));
    text += count.is_null()
                ? ""
                : fmt::format("  n        {} ({})\n", to_json_line(count), origin->count);
  }
  if (path[0].name == "findings" && around != nullptr && !field(*around, "bound").empty() &&
      path.back().name.starts_with("saving")) {
    text += fmt::format("  bound    {}\n", printable(field(*around, "bound")));
  }
  if (is_plain && path.size() > 1) {
    text += source_rows_text(options, path, loaded, context.system);
  }
  if (!is_plain && value->is_object()) {
    for (const auto& [name, inner] : value->items()) {
      text += fmt::format("  {} = {}\n", printable(name),
                          inner.is_structured() ? fmt::format("({} values)", inner.size())
                                                : printable(to_json_line(inner)));
    }
  }
  text += "  definitions: docs/metrics.md, " + path[0].name + "\n";
  context.console.out(text);
  return kExitOk;
}

void print_topic(const Topic& topic, bool is_json, Console& console) {
  if (is_json) {
    Json document = json_document("topic", 1);
    document["topic"] = topic.name;
    document["summary"] = topic.summary;
    document["text"] = topic.text();
    console.out(to_json_text(document));
  } else {
    console.out(
        wrapped_help(fmt::format("{}\n\n{}", topic.summary, topic.text()), console.width()));
  }
}

// A number or a word without rows of the recording, as agents get it.
int explain_json(const ExplainOptions& options, Context& context) {
  const bool has_file = options.words.size() == 2;
  const SharedJson metrics =
      has_file ? load_metrics({options.words[0]}, options.recording, context.system).json : nullptr;
  Json document = json_document("explain", 1);
  document.update(explanation(options.words.back(), has_file ? *metrics : Json()));
  context.console.out(to_json_text(document));
  return kExitOk;
}

}  // namespace

Command explain_command() {
  auto options = std::make_shared<ExplainOptions>();
  Command command;
  command.name = "explain";
  command.summary = "Explain a word (launch_bound, MFU), a topic or a number of a recording";
  command.options = {
      {"WORD", "",
       "A topic, finding, bucket or term; or FILE KEY: a recording, bundle or metrics.json, and a key "
       "such as findings[0] or stages[stage=decode].host_total_ns; none: the topics",
       &options->words},
      {"--rows", "N", "Rows of the recording to print, or all", &options->rows},
      json_option(options->is_json),
  };
  add_recording_options(command, options->recording);
  command.examples =
      "  gpuwhy explain launch_bound\n"
      "  gpuwhy explain recording\n"
      "  gpuwhy explain run.sqlite 'findings[0]'\n"
      "  gpuwhy explain run.sqlite capture.kernel_ns\n"
      "  gpuwhy explain BUNDLE 'kernels[0].total_ns'\n";
  command.run = [options](Context& context) -> int {
    const Topic* topic =
        options->words.empty() ? &all_topics().front() : find_topic(options->words[0]);
    if (topic != nullptr && options->words.size() <= 1) {
      print_topic(*topic, options->is_json, context.console);
      return kExitOk;
    }
    if (options->is_json && options->words.size() <= 2) {
      return explain_json(*options, context);
    }
    if (options->words.size() == 1) {
      return explain_word(options->words[0], context);
    }
    if (options->words.size() > 2) {
      throw Error(ErrorKind::kUsage, "explain takes a word, or a file and a key",
                  "a key with blanks or brackets needs quotes");
    }
    options->file = options->words[0];
    options->key = options->words[1];
    return explain_key(*options, context);
  };
  return command;
}

}  // namespace gpuwhy
