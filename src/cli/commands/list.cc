// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy list: what this build knows, printed from the very tables it works with, so that the list
// cannot lie; and the configuration that a run with given arguments would have.
#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "base/yaml.h"
#include "capture/contract.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "config/compose.h"
#include "config/embedded.h"
#include "config/options.h"
#include "config/presets.h"
#include "ingest/ingest.h"

namespace gpuwhy {
namespace {

struct ListOptions {
  bool json = false;
  JsonPages pages;
  std::string what;
};

using Rows = std::vector<Json>;  // objects that share their keys, which are the headings

void add_commands(const std::vector<Command>& commands, const std::string& before, Rows& rows) {
  for (const Command& command : commands) {
    const std::string name = before + command.name;
    if (command.run && !command.is_hidden) {
      rows.push_back({{"command", name}, {"summary", command.summary}});
    }
    add_commands(command.subcommands, name + " ", rows);
  }
}

Rows command_rows() {
  Rows rows;
  add_commands(all_commands(), "", rows);
  return rows;
}

// The first comment line of a file of conf/ says what it is for.
std::string headline(std::string_view path) {
  for (const EmbeddedFile& file : embedded_conf()) {
    if (file.path == path && file.text.starts_with("# ")) {
      return std::string(file.text.substr(2, file.text.find('\n') - 2));
    }
  }
  return "";
}

Rows preset_rows() {
  Rows rows;
  for (const PresetGroup& group : runner_declaration().groups) {
    for (const std::string& name : preset_names(group.name)) {
      rows.push_back({{"preset", group.name + "=" + name},
                      {"fills", group.mount},
                      {"default", name == group.default_choice ? "yes" : ""},
                      {"summary", headline(group.name + "/" + name + ".yaml")}});
    }
  }
  return rows;
}

Rows model_rows() {
  Rows rows;
  for (const std::string& name : preset_names("model/llm")) {
    const Json model = embedded_yaml("model/llm/" + name + ".yaml");
    rows.push_back({{"model", name},
                    {"name", model.at("name")},
                    {"params", model.at("params")},
                    {"dtype", model.at("dtype")},
                    {"variant", model.at("variant")}});
  }
  return rows;
}

Rows gpu_rows() {
  Rows rows;
  const Json table = embedded_yaml("hardware/gpus.yaml");
  for (const Json& gpu : table.at("gpus")) {
    const Json& peaks = gpu.at("dense_tflops");
    Json row = {{"gpu", gpu.at("name")},
                {"sms", gpu.at("sms")},
                {"memory_gb_per_s", gpu.at("memory_gb_per_s")}};
    for (const char* dtype : {"fp32", "tf32", "bf16", "fp16", "fp8", "fp4"}) {
      row[fmt::format("{}_tflops", dtype)] = peaks.contains(dtype) ? peaks[dtype] : Json(nullptr);
    }
    row["confidence"] = gpu.at("confidence");
    row["device_names"] =
        fmt::format("{}", fmt::join(gpu.at("device_names").get<std::vector<std::string>>(), ", "));
    rows.push_back(row);
  }
  return rows;
}

Rows key_rows() {
  Rows rows;
  const Config config = compose(std::nullopt, {});
  for (const auto& [path, origin] : config.origins) {
    rows.push_back({{"key", path},
                    {"set_by", origin},
                    {"value", to_json_line(*find_value(*config.tree, path))}});
  }
  return rows;
}

Rows exit_code_rows() {
  Rows rows;
  for (const ExitCodeMeaning& entry : kExitCodes) {
    rows.push_back({{"code", static_cast<int>(entry.code)}, {"meaning", entry.meaning}});
  }
  return rows;
}

Rows format_rows() {
  Rows rows;
  const auto add = [&](const FormatInfo& format, const char* holds) {
    rows.push_back({{"format", format.name},
                    {"file", format.kind},
                    {"holds", holds},
                    {"tool", format.tool},
                    {"made_with", format.made_with}});
  };
  for (const FormatInfo& format : recording_formats()) {
    add(format, format.has_events ? "events" : "totals");
  }
  for (const FormatInfo& format : counter_formats()) {
    add(format, "counters");
  }
  return rows;
}

Rows reason_rows() {
  Rows rows;
  for (const ReasonInfo& reason : all_reasons()) {
    rows.push_back(
        {{"reason", reason.code}, {"exit_code", reason.exit_code}, {"meaning", reason.meaning}});
  }
  return rows;
}

struct Listing {
  const char* name;
  Rows (*rows)();
  const char* optional = "";  // headings that a narrow terminal leaves out, with blanks between
  const char* note = "";      // below the table
};

constexpr Listing kListings[] = {
    {"commands", command_rows},
    {"presets", preset_rows, "fills default"},
    {"models", model_rows, "name dtype"},
    {"gpus", gpu_rows, "device_names confidence sms tf32 fp4", "fp32 to fp4: dense TFLOP/s.\n"},
    {"keys", key_rows, "set_by"},
    {"exit-codes", exit_code_rows},
    {"reasons", reason_rows},
    {"formats", format_rows, "tool holds made_with"},
};

// As a table has it: short, where the key of the JSON says the unit.
std::string heading_text(const std::string& key) {
  constexpr std::string_view kUnit = "_tflops";
  return key == "memory_gb_per_s" ? "GB/s"
         : key.ends_with(kUnit)   ? key.substr(0, key.size() - kUnit.size())
                                  : key;
}

// "8.03 B", as people name models.
std::string parameters_text(double count) {
  return count < 1e9 ? fmt::format("{:.3g} M", count / 1e6) : fmt::format("{:.4g} B", count / 1e9);
}

std::string cell_text(const std::string& heading, const Json& cell) {
  if (cell.is_null()) {
    return "n/a";
  }
  if (heading == "params" && cell.is_number()) {
    return parameters_text(cell.get<double>());
  }
  return printable(cell.is_string() ? cell.get<std::string>() : to_json_line(cell));
}

int run_list(const ListOptions& options, Context& context) {
  check_pages(options.pages, options.json);
  const Listing& listing = *std::ranges::find_if(
      kListings, [&](const Listing& one) { return options.what == one.name; });
  const Rows rows = listing.rows();
  if (options.json) {
    Json document = json_document("list", 1);
    document["kind"] = options.what;
    document["rows"] = rows;
    context.console.out(paged(to_json_text(document), options.pages));
    return kExitOk;
  }
  Table table;
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    table.headings.clear();
    for (const auto& [heading, cell] : row.items()) {
      table.headings.push_back(heading_text(heading));
      cells.push_back(cell_text(heading, cell));
    }
    table.rows.push_back(cells);
  }
  for (const std::string_view heading : split(listing.optional, ' ')) {
    table.optional.emplace_back(heading);
  }
  context.console.out(table_text(table, context.console.width()) + listing.note);
  return kExitOk;
}

struct ShowOptions {
  bool json = false;
  bool origin = false;
  std::string file;
  std::vector<std::string> overrides;
};

// Origins share one column, but a line far longer than the others does not push it to the right.
constexpr std::size_t kWidestColumn = 56;

void print_with_origins(const Config& config, Console& console) {
  const std::vector<YamlLine> lines = yaml_lines(*config.tree);
  std::size_t column = 0;
  for (const YamlLine& line : lines) {
    const std::size_t width = display_width(line.text);
    column = width <= kWidestColumn ? std::max(column, width) : column;
  }
  std::string previous;
  for (const YamlLine& line : lines) {
    const auto origin = config.origins.find(line.path);
    // A list over several lines has one origin, told on the first.
    if (origin == config.origins.end() || line.path == previous) {
      console.out(line.text + "\n");
      continue;
    }
    previous = line.path;
    const std::size_t width = display_width(line.text);
    const std::size_t padding = width < column ? column - width : 0;
    console.out(fmt::format("{}{:>{}}  {}\n", line.text, "", padding,
                            console.painted(Color::kDim, "# " + printable(origin->second))));
  }
}

Json json_of(const Config& config) {
  Json document = json_document("config", 1);
  document["config"] = *config.tree;
  document["origins"] = config.origins;
  document["notes"] = config.notes;
  return document;
}

int run_show(const ShowOptions& options, Context& context) {
  const Config config = compose(user_file(options.file), options.overrides);
  options_of(config);  // what would stop a run stops here
  if (options.json) {
    context.console.out(to_json_text(json_of(config)));
    return kExitOk;
  }
  if (options.origin) {
    print_with_origins(config, context.console);
  } else {
    context.console.out(to_yaml_text(*config.tree));
  }
  for (const std::string& note : config.notes) {
    context.console.err(fmt::format("note: {}\n", note));
  }
  return kExitOk;
}

std::vector<std::string> likely_overrides() {
  std::vector<std::string> words;
  for (const auto& [path, origin] : compose(std::nullopt, {}).origins) {
    words.push_back(path + "=");
  }
  for (const PresetGroup& group : runner_declaration().groups) {
    for (const std::string& name : preset_names(group.name)) {
      words.push_back(group.name + "=" + name);
    }
  }
  return words;
}

Command config_command() {
  auto options = std::make_shared<ShowOptions>();
  Command command;
  command.name = "config";
  command.summary = "Print the configuration of a run with these arguments, as YAML";
  command.options = {
      {"--origin", "", "Print the origin of each value", &options->origin},
      config_option(options->file),
      json_option(options->json),
      override_option(options->overrides),
  };
  command.examples =
      "  gpuwhy list config run.mode=light --origin\n"
      "  gpuwhy list config profiling/ncu=deep 'pipeline.nsys.trace=[cuda, nvtx]'\n";
  command.run = [options](Context& context) { return run_show(*options, context); };
  return command;
}

}  // namespace

Option config_option(std::string& target) {
  return {"--config", "FILE", "A YAML file laid over the presets", &target};
}

Option override_option(std::vector<std::string>& target) {
  Option option{"OVERRIDE", "", "key.sub=value, +new.key=value, ~key or group/name=preset",
                &target};
  option.suggestions = likely_overrides;
  return option;
}

Command list_command() {
  auto options = std::make_shared<ListOptions>();
  Option what{"WHAT", "", "", &options->what};
  for (const Listing& listing : kListings) {
    what.choices.emplace_back(listing.name);
  }
  what.help = fmt::format("One of: {}", fmt::join(what.choices, ", "));
  what.is_required = true;
  Command command;
  command.name = "list";
  command.summary = "List what this build knows: models, GPUs, presets, configuration";
  command.options = {what, json_option(options->json)};
  add_page_options(command, options->pages);
  command.subcommands = {config_command()};
  command.run = [options](Context& context) { return run_list(*options, context); };
  return command;
}

}  // namespace gpuwhy
