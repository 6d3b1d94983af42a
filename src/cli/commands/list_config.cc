// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy list config: the configuration that a run with these arguments would have.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "base/yaml.h"
#include "cli/command.h"
#include "config/compose.h"
#include "config/options.h"
#include "config/presets.h"

namespace gpuwhy {
namespace {

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

Command list_config_command() {
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

}  // namespace gpuwhy
