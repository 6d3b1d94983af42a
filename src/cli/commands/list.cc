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
#include "config/presets.h"
#include "ingest/ingest.h"
#include "report/document/section_parts.h"
#include "session/record/run_options.h"

namespace gpuwhy {
namespace {

struct ListOptions {
  OutputForm output;
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
  const char* note = "";  // below the table
};

constexpr Listing kListings[] = {
    {"commands", command_rows}, {"presets", preset_rows},
    {"models", model_rows},     {"gpus", gpu_rows, "fp32 to fp4: dense TFLOP/s."},
    {"keys", key_rows},         {"exit-codes", exit_code_rows},
    {"reasons", reason_rows},   {"formats", format_rows},
};

// As a table has it: short, where the key of the JSON says the unit.
std::string heading_text(const std::string& key) {
  constexpr std::string_view kUnit = "_tflops";
  return key == "memory_gb_per_s" ? "GB/s"
         : key.ends_with(kUnit)   ? key.substr(0, key.size() - kUnit.size())
                                  : key;
}

Document list_document(const Listing& listing) {
  Section section;
  section.id = "summary";  // without a heading: the command has just been typed
  ReportTable& table = section.tables.emplace_back();
  for (const Json& row : listing.rows()) {
    table.columns.clear();
    table.rows.emplace_back();
    for (const auto& [key, cell] : row.items()) {
      const CellFormat format = key == "params" ? CellFormat::kFlops : CellFormat::kText;
      table.columns.push_back({heading_text(key), key, format});
      table.rows.back().cells.push_back({cell_of(cell), format, ""});
    }
  }
  if (*listing.note != '\0') {
    section.notes.emplace_back(listing.note);
  }
  return {"", {std::move(section)}};
}

int run_list(const ListOptions& options, Context& context) {
  check_pages(options.output.pages, options.output.is_json());
  const Listing& listing = *std::ranges::find_if(
      kListings, [&](const Listing& one) { return options.what == one.name; });
  const auto json = [&] {
    Json document = json_document("list", 1);
    document["kind"] = options.what;
    document["rows"] = listing.rows();
    return to_json_text(document);
  };
  print_answer(
      options.output, [&] { return list_document(listing); }, json, context.console);
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
  common_options_of(config);  // what would stop a run stops here
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
  Command command =
      command_of("config", "Print the configuration of a run with these arguments, as YAML",
                 options, run_show);
  command.options = {
      {"--origin", "", "Print the origin of each value", &options->origin},
      config_option(options->file),
      json_option(options->json),
      override_option(options->overrides),
  };
  command.examples =
      "  gpuwhy list config run.mode=light --origin\n"
      "  gpuwhy list config profiling/ncu=deep 'pipeline.nsys.trace=[cuda, nvtx]'\n";
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
  Command command =
      command_of("list", "List what this build knows: models, GPUs, presets, configuration",
                 options, run_list);
  command.options = {what};
  add_output_options(command, options->output);
  command.subcommands = {config_command()};
  return command;
}

}  // namespace gpuwhy
