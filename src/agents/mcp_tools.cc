// SPDX-License-Identifier: Apache-2.0
//
// Tools of the MCP server: one row each with name, description and arguments.
//
// The arguments are checked by the schema that clients see. Tools only read: nothing is written,
// and no other program is started.
#include "agents/mcp_tools.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "agents/answers.h"
#include "agents/explanation.h"
#include "agents/skill.h"
#include "analysis/profile.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_page.h"
#include "base/text.h"
#include "bundle/layout.h"
#include "config/compose.h"
#include "ingest/ingest.h"
#include "report/comparison/comparison.h"
#include "results/json.h"
#include "session/reading/compared_runs.h"
#include "session/record/ncu_plan_command.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kUsualTokens = 2000;
constexpr std::int64_t kMostTokensOfAnswer = 100'000;
constexpr std::int64_t kMostTop = 1000;
constexpr std::size_t kMostKept = 4;  // analyses: two sides of a comparison, and two more

Json text_argument(std::string_view description) {
  return {{"type", "string"}, {"maxLength", 4096}, {"description", description}};
}

Json texts_argument(std::string_view description, int least) {
  return {{"type", "array"},
          {"items", {{"type", "string"}, {"maxLength", 4096}}},
          {"minItems", least},
          {"maxItems", 20},
          {"description", description}};
}

Json whole_argument(std::int64_t least, std::int64_t most, std::string_view description) {
  return {{"type", "integer"}, {"minimum", least}, {"maximum", most}, {"description", description}};
}

Json engine_argument() {
  Json engines = Json::array();
  for (const Recipe& recipe : recipes()) {
    engines.push_back(recipe.engine);
  }
  return {{"type", "string"}, {"enum", engines}, {"description", "What is to be recorded"}};
}

// All arguments by name. What means another thing in one tool has that tool before its name.
const Json& argument_table() {
  static const Json kArguments = {
      {"path", text_argument("A recording, bundle or metrics.json, relative to the root")},
      {"steps.stage", text_argument("Only this stage, as decode")},
      {"durations", {{"type", "boolean"}, {"description", "Also each step's length"}}},
      {"kernels.stage", text_argument("Only kernels launched in this stage")},
      {"family", text_argument("Only this family, as gemm")},
      {"name", text_argument("Only kernels with this text in their name")},
      {"top", whole_argument(1, kMostTop, "Rows; default 20")},
      {"key", text_argument("A word, or the key of a number")},
      {"base", texts_argument("Recordings or bundles before", 1)},
      {"candidate", texts_argument("Recordings or bundles after", 1)},
      {"engine", engine_argument()},
      {"steps", text_argument("Only these steps, counted from 0, as 10..20")},
      {"from", text_argument("Only from this time after the start, as 2s or 150ms")},
      {"to", text_argument("Only up to this time after the start")},
      {"gpu", whole_argument(0, 65535, "Only this GPU, as CUDA numbers it")},
      {"marks", texts_argument("Ranges that are stages, as decode=benchmark_loop", 0)},
      {"max_tokens",
       whole_argument(kLeastTokens, kMostTokensOfAnswer,
                      fmt::format("Size of the answer, counted as {} bytes per token; default {}",
                                  kBytesPerToken, kUsualTokens))},
      {"continuation", text_argument("`next` of the answer before, to go on there")}};
  return kArguments;
}

// Which part of a recording, as on the command line.
constexpr const char* kWindowArguments = "steps from to gpu marks";

// A tool: what clients see of it. The answer is in McpTools::answer().
struct ToolRow {
  std::string_view name;
  const char* description;
  const char* arguments;  // of its own; those of a part of a recording follow, where it has them
  std::vector<const char*> required;
  bool has_window = true;
};

const std::vector<ToolRow>& tool_rows() {
  static const std::vector<ToolRow> kRows = {
      {"open",
       "What a recording holds: verdict, capture, GPUs, stages, data quality, and how many rows the "
       "other tools have. A folder that is not a bundle is listed; start with path \".\".",
       "path",
       {"path"}},
      {"findings",
       "What to fix first: findings by largest possible saving, with evidence and advice, where the "
       "time went (ledgers), and rules that could not be checked.",
       "path",
       {"path"}},
      {"steps",
       "Time to first token, time per output token, stages and their steps (median lengths on CPU "
       "and GPU, periods), and their ledgers.",
       "path stage durations",
       {"path"}},
      {"layers",
       "Passes, layers and parts of the model (qkv, attention, ...), read from the order of kernels; "
       "slow passes and slow layers with their cause.",
       "path",
       {"path"}},
      {"kernels",
       "Kernel families and kernels by total time, per GPU and stage.",
       "path stage family name top",
       {"path"}},
      {"explain",
       "What a word (launch_bound, MFU) means, or where a number comes from: value, unit, formula, "
       "sources. The key of a number is the `key` of its row, a dot and the field, as "
       "kernels[0].total_ns.",
       "key path",
       {"key"}},
      {"compare",
       "Two sides, before and after: verdict (pass, regress, inconclusive or invalid), metrics with "
       "ratios and confidence, and where the difference comes from. One run per side cannot tell "
       "noise from change.",
       "base candidate",
       {"base", "candidate"}},
      {"plan_capture",
       "How to record: commands for an engine. With a path: which kernel launches of that recording "
       "to profile with ncu, and the commands. The commands are for the user to run.",
       "engine path",
       {},
       false},
  };
  return kRows;
}

// JSON Schema of the arguments, in the part of it that check_value() knows: clients refuse what it
// refuses, and no argument is ignored.
Json schema_of(const ToolRow& row) {
  Json properties = Json::object();
  const std::string names = fmt::format("{} {} max_tokens continuation", row.arguments,
                                        row.has_window ? kWindowArguments : "");
  for (const std::string_view word : split(names, ' ')) {
    const std::string name(word);
    const auto own = argument_table().find(fmt::format("{}.{}", row.name, name));
    if (!name.empty()) {
      properties[name] = own != argument_table().end() ? *own : argument_table().at(name);
    }
  }
  Json schema = Json::object();
  schema["type"] = "object";
  schema["properties"] = std::move(properties);
  schema["required"] = row.required;
  schema["additionalProperties"] = false;
  return schema;
}

[[noreturn]] void fail_argument(const std::string& name, const std::string& why) {
  throw Error(ErrorKind::kUsage, fmt::format("argument '{}' {}", printable(name), why),
              "tools/list has the schema");
}

// A value against the part of JSON Schema that is used above.
void check_value(const std::string& name, const Json& value, const Json& schema) {
  const std::string& type = schema.at("type").get_ref<const std::string&>();
  if (type == "string") {
    if (!value.is_string() ||
        value.get_ref<const std::string&>().size() > schema.value("maxLength", SIZE_MAX)) {
      fail_argument(name, "must be a text of at most 4096 bytes");
    }
    if (const auto choices = schema.find("enum");
        choices != schema.end() &&
        std::find(choices->begin(), choices->end(), value) == choices->end()) {
      fail_argument(name, "must be one of " + to_json_line(*choices));
    }
  } else if (type == "integer") {
    const bool fits =
        value.is_number_integer() && value >= schema.at("minimum") && value <= schema.at("maximum");
    if (!fits) {
      fail_argument(name, fmt::format("must be a whole number from {} to {}",
                                      to_json_line(schema.at("minimum")),
                                      to_json_line(schema.at("maximum"))));
    }
  } else if (type == "boolean") {
    if (!value.is_boolean()) {
      fail_argument(name, "must be true or false");
    }
  } else {
    const bool fits = value.is_array() &&
                      value.size() >= schema.at("minItems").get<std::size_t>() &&
                      value.size() <= schema.at("maxItems").get<std::size_t>();
    if (!fits) {
      fail_argument(
          name, fmt::format("must be a list of {} to {} texts", to_json_line(schema.at("minItems")),
                            to_json_line(schema.at("maxItems"))));
    }
    for (const Json& item : value) {
      check_value(name, item, schema.at("items"));
    }
  }
}

void check_arguments(const Json& arguments, const Json& schema) {
  if (!arguments.is_object()) {
    throw Error(ErrorKind::kUsage, "arguments must be an object");
  }
  const Json& properties = schema.at("properties");
  for (const auto& [name, value] : arguments.items()) {
    const auto found = properties.find(name);
    if (found == properties.end()) {
      std::vector<std::string> names;
      for (const auto& [known, unused] : properties.items()) {
        names.push_back(known);
      }
      fail_argument(name, fmt::format("is not known; there are: {}", fmt::join(names, ", ")));
    }
    check_value(name, value, *found);
  }
  for (const Json& name : schema.at("required")) {
    if (!arguments.contains(name.get_ref<const std::string&>())) {
      fail_argument(name.get<std::string>(), "is missing");
    }
  }
}

std::string text_of_argument(const Json& arguments, const char* name) {
  const auto found = arguments.find(name);
  return found == arguments.end() ? "" : found->get<std::string>();
}

std::chrono::nanoseconds time_of(const Json& arguments, const char* name) {
  const auto time = parse_duration_ns(text_of_argument(arguments, name));
  if (!time) {
    fail_argument(name, "must be a time, as 2s or 150ms");
  }
  return std::chrono::nanoseconds(*time);
}

// Whether a file is a metrics.json or a baseline of gpuwhy: both say so at their beginning.
bool is_own_json(const fs::path& file) {
  return is_own_document(file, "gpuwhy.");
}

std::string file_stamp(const fs::path& file) {
  std::error_code ignored;
  return fmt::format("{} {} {}", file.string(), fs::file_size(file, ignored),
                     fs::last_write_time(file, ignored).time_since_epoch().count());
}

// Only nsys opens a report, and it would write an export.
void refuse_report(const fs::path& file, const std::string& shown) {
  if (is_nsys_report(InputFile(file))) {
    throw Error(ErrorKind::kContract,
                fmt::format("{} is a report, which only nsys can open", printable(shown)),
                fmt::format("nsys export --type sqlite {}", printable(shown)));
  }
}

}  // namespace

McpTools::McpTools(const fs::path& root, System system,
                   std::optional<std::uint64_t> memory_limit_bytes)
    : root_(root), system_(std::move(system)), memory_limit_bytes_(memory_limit_bytes) {}

Json McpTools::descriptions() {
  Json tools = Json::array();
  for (const ToolRow& row : tool_rows()) {
    tools.push_back({{"name", row.name},
                     {"description", row.description},
                     {"inputSchema", schema_of(row)},
                     {"annotations", {{"readOnlyHint", true}, {"openWorldHint", false}}}});
  }
  return tools;
}

bool McpTools::is_tool(std::string_view name) {
  return std::any_of(tool_rows().begin(), tool_rows().end(),
                     [&](const ToolRow& row) { return row.name == name; });
}

// Messages of readers name files as they were opened. Where the root is on the machine is not for
// the client.
std::string McpTools::without_root(std::string text) const {
  const std::string prefix = root_.folder() + "/";
  for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) {
    text.erase(at, prefix.size());
  }
  return text;
}

RecordingOptions McpTools::options_of(const Json& arguments) const {
  RecordingOptions options;
  options.memory_limit_bytes = memory_limit_bytes_;
  options.graph_names.is_search_allowed = false;  // it may look outside of the root
  if (arguments.contains("from")) {
    options.window.from = time_of(arguments, "from");
  }
  if (arguments.contains("to")) {
    options.window.to = time_of(arguments, "to");
  }
  if (arguments.contains("steps")) {
    options.window.steps = parse_steps(text_of_argument(arguments, "steps"));
    if (!options.window.steps) {
      fail_argument("steps", "must be two numbers of steps, as 10..20");
    }
  }
  if (arguments.contains("gpu")) {
    options.filter.device = arguments.at("gpu").get<std::uint32_t>();
  }
  if (arguments.contains("marks")) {
    options.marks = arguments.at("marks").get<std::vector<std::string>>();
  }
  return options;
}

// A bundle answers with its metrics.json, which is what its report shows, and is analyzed again
// only for a part of it. The key of what is kept has the file's size and time, so that a recording
// which is written again is read again.
SharedJson McpTools::metrics_for(const std::string& path, const Json& arguments) {
  const fs::path resolved = root_.resolve(path);
  const RecordingOptions options = options_of(arguments);
  const bool is_whole =
      options.window.is_empty() && options.filter.is_empty() && options.marks.empty();
  std::error_code ignored;
  fs::path file = resolved;
  if (fs::is_directory(resolved, ignored)) {
    root_.check_links(resolved);
    const fs::path metrics = resolved / layout::kMetrics;
    const fs::path recording = resolved / layout::kNsysSqlite;
    const bool has_metrics = fs::is_regular_file(metrics, ignored);
    const bool has_recording = fs::is_regular_file(recording, ignored);
    if (!has_metrics && !has_recording) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("'{}' is a folder, but not a bundle", printable(path)),
                  "the tool open lists what is in it");
    }
    file = has_metrics && (is_whole || !has_recording) ? metrics : recording;
  }
  std::string key = file_stamp(file);
  for (const char* name : {"from", "to", "steps", "gpu", "marks"}) {
    key += arguments.contains(name) ? fmt::format(" {}={}", name, to_json_line(arguments.at(name)))
                                    : "";
  }
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.key == key; });
  if (found != kept_.end()) {
    std::rotate(kept_.begin(), found, found + 1);
    return kept_.front().metrics;
  }
  SharedJson metrics;
  if (is_own_json(file)) {
    metrics = load_metrics({file.string()}, options, system_).json;
  } else {
    refuse_report(file, path);
    // The folder and not the file: a bundle has counters and operators beside its recording.
    const fs::path whole = fs::is_directory(resolved, ignored) ? resolved : file;
    const Profile made = profile_recordings({whole.string()}, options, system_);
    metrics = std::make_shared<Json>(metrics_json(made.analysis));
  }
  kept_.push_front({std::move(key), metrics});
  kept_.resize(std::min(kept_.size(), kMostKept));
  return metrics;
}

Json McpTools::listing(const std::string& path) const {
  Json answer = Json::object();
  answer["folder"] = path;
  answer["entries"] = Json::array();
  for (const ConfinedRoot::Entry& entry : root_.entries(root_.resolve(path))) {
    answer["entries"].push_back(
        {{"path", entry.path},
         {"kind", entry.is_folder ? "folder" : "file"},
         {"size_bytes", entry.is_folder ? Json(nullptr) : Json(entry.size_bytes)}});
  }
  return answer;
}

// Each side as `gpuwhy compare` reads it, but through the root, and from what is kept.
Json McpTools::comparison(const Json& arguments) {
  const auto side = [&](const char* name) {
    std::vector<ComparedRun> runs;
    for (const Json& path : arguments.at(name)) {
      const auto text = path.get<std::string>();
      const fs::path resolved = root_.resolve(text);
      std::error_code ignored;
      const bool is_folder = fs::is_directory(resolved, ignored);
      const std::size_t first = runs.size();
      if (is_folder || !is_own_json(resolved)) {
        runs.push_back({text, metrics_for(text, arguments), inputs_of_bundle(resolved)});
      } else {
        const std::vector<ComparedRun> of_file =
            load_compared({resolved.string()}, system_, options_of(arguments));
        runs.insert(runs.end(), of_file.begin(), of_file.end());
      }
      for (std::size_t i = first; i < runs.size(); ++i) {
        runs[i].label = without_root(runs[i].label);
      }
    }
    return summaries_of(runs);
  };
  const std::vector<RunSummary> base = side("base");
  const std::vector<RunSummary> candidate = side("candidate");
  return parse_json(comparison_json(compare_runs(base, candidate, {})), "the comparison");
}

// Commands are answers: they are shown to the user, and never run here. The plan is for any release
// of ncu, since asking the installed one would start it.
Json McpTools::capture_plan(const Json& arguments) {
  Json answer = Json::object();
  const std::string engine = text_of_argument(arguments, "engine");
  for (const Recipe& recipe : recipes()) {
    if (engine == recipe.engine) {
      answer["engine"] = engine;
      answer["recipe"] = recipe.text;
    }
  }
  const std::string path = text_of_argument(arguments, "path");
  if (!arguments.contains("path")) {
    if (engine.empty()) {
      throw Error(ErrorKind::kUsage, "plan_capture needs an engine, or the path of a recording");
    }
    return answer;
  }
  const fs::path resolved = root_.resolve(path);
  std::error_code ignored;
  if (fs::is_directory(resolved, ignored)) {
    root_.check_links(resolved);
  }
  refuse_report(fs::is_directory(resolved, ignored) ? resolved / layout::kNsysSqlite : resolved,
                path);
  const Profile profile = profile_alone({resolved.string()}, options_of(arguments), system_);
  require_plannable(profile, path);
  const RunOptions run_options = run_options_of(compose(std::nullopt, {}));
  NcuTool ncu;
  ncu.path = "ncu";
  const NcuPlan plan = make_plan(run_options, ncu, profile, program_seconds(resolved.string()));
  answer["plan"] =
      parse_json(plan_json(plan, plan_commands(plan, run_options, ncu, profile)), "the plan");
  return answer;
}

Json McpTools::answer(const std::string& name, const Json& arguments) {
  const std::string path = text_of_argument(arguments, "path");
  if (name == "open") {
    std::error_code ignored;
    const fs::path resolved = root_.resolve(path);
    const bool is_bundle = fs::exists(resolved / layout::kMetrics, ignored) ||
                           fs::exists(resolved / layout::kNsysSqlite, ignored);
    if (fs::is_directory(resolved, ignored) && !is_bundle) {
      return listing(path);
    }
    return open_answer(*metrics_for(path, arguments));
  }
  if (name == "findings") {
    return findings_answer(*metrics_for(path, arguments));
  }
  if (name == "steps") {
    return steps_answer(*metrics_for(path, arguments), text_of_argument(arguments, "stage"),
                        arguments.value("durations", false));
  }
  if (name == "layers") {
    return layers_answer(*metrics_for(path, arguments));
  }
  if (name == "kernels") {
    return kernels_answer(
        *metrics_for(path, arguments),
        {text_of_argument(arguments, "stage"), text_of_argument(arguments, "family"),
         text_of_argument(arguments, "name"), arguments.value("top", std::size_t{20})});
  }
  if (name == "explain") {
    const SharedJson metrics = arguments.contains("path") ? metrics_for(path, arguments) : nullptr;
    return explanation(text_of_argument(arguments, "key"), metrics ? *metrics : Json());
  }
  return name == "compare" ? comparison(arguments) : capture_plan(arguments);
}

ToolAnswer McpTools::call(const std::string& name, const Json& arguments) {
  PageRequest request{kUsualTokens, ""};
  const auto paged = [&](const Json& document) { return json_page(document, request); };
  const auto failed = [&](const Error& error, bool is_mistake) {
    Json document = cannot_answer(without_root(error.what()), without_root(error.hint()));
    if (is_mistake) {
      document = {{"error", document["cannot_answer"]}, {"next", document["next"]}};
    }
    return ToolAnswer{json_page(document, {request.max_tokens, ""}), is_mistake};
  };
  try {
    const auto row = std::find_if(tool_rows().begin(), tool_rows().end(),
                                  [&](const ToolRow& one) { return one.name == name; });
    check_arguments(arguments, schema_of(*row));
    request.max_tokens = arguments.value("max_tokens", kUsualTokens);
    request.after = text_of_argument(arguments, "continuation");
    return {paged(answer(name, arguments)), false};
  } catch (const Error& error) {
    return failed(error, error.kind() == ErrorKind::kUsage);
  } catch (const std::bad_alloc&) {
    return failed(Error(ErrorKind::kEnvironment, "out of memory", "gpuwhy mcp --memory-limit 4GiB"),
                  false);
  }
}

}  // namespace gpuwhy
