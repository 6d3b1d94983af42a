// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy run --like BUNDLE: shows the command of a bundle and what it meets here, then asks.
//
// A bundle is untrusted. Its words become options as typed words do, only words that gpuwhy itself
// writes there are taken, and nothing starts before somebody said yes.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/yaml.h"
#include "bundle/layout.h"
#include "bundle/scrub.h"
#include "capture/workload.h"
#include "cli/args.h"
#include "cli/commands/run.h"
#include "config/override.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

Json read_part(const fs::path& bundle, const char* name) {
  std::error_code failure;
  if (!fs::is_regular_file(bundle / name, failure)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--like {}: it has no {}, so it is not the bundle of a finished run",
                            printable(bundle.string()), name),
                "gpuwhy run --like BUNDLE, a folder that gpuwhy run printed");
  }
  const std::string text = read_file(bundle / name);
  return name == std::string_view(layout::kEnv) ? parse_json(text, name) : parse_yaml(text, name);
}

bool is_scrubbed(const std::string& word) {
  return word.find(kScrubbed) != std::string::npos;
}

// The request that these words of gpuwhy run are; --like, --yes and the like are none of them.
RunRequest request_of(const Json& arguments) {
  const auto options = std::make_shared<RunCommandOptions>();
  std::vector<std::string> words = arguments.get<std::vector<std::string>>();
  words.insert(words.begin(), "run");
  std::string color;
  const Command* named = nullptr;
  const Parsed parsed = parse_arguments({run_command_into(options)}, words, color, named);
  words.erase(words.begin());
  RunRequest& request = options->request;
  if (!parsed.run || request_words(request) != words || !request.file.empty()) {
    throw Error(ErrorKind::kUsage,
                "--like: inputs.yaml has arguments that gpuwhy run does not write",
                "its command is there too: gpuwhy run -- COMMAND");
  }
  std::erase_if(request.overrides, [](const std::string& one) {
    return parse_override(one).key.starts_with("artifacts.");  // the others come with config.yaml
  });
  return request;
}

// Overrides that give `here` the values of `wanted`. Where bundles go is left to the user, and a
// key that the bundle does not know keeps its default.
void add_overrides(const Json& here, const Json& wanted, const std::string& path,
                   std::vector<std::string>& overrides) {
  for (const auto& [key, value] : wanted.items()) {
    const auto found = here.find(key);
    if (found != here.end() && found->is_object() && value.is_object()) {
      add_overrides(*found, value, path + key + ".", overrides);
    } else if ((found == here.end() || *found != value) && path + key != "artifacts.dir") {
      overrides.push_back(fmt::format("++{}{}={}", path, key, to_json_line(value)));
    }
  }
}

// Values by their path in env.json; a row of a list is known by its name.
using Facts = std::map<std::string, std::string>;

// Only those that say something about a difference: not clocks, folders, options of tools.
void add_facts(const Json& value, const std::string& path, Facts& facts) {
  constexpr std::string_view kCompared[] = {"gpuwhy.",
                                            "machine.distribution",
                                            "machine.kernel",
                                            "machine.cpu",
                                            "machine.driver_version",
                                            "machine.gpus.",
                                            "machine.tools.nsys.version",
                                            "machine.tools.ncu.version",
                                            "program.python",
                                            "program.packages.",
                                            "program.git.commit",
                                            "program.git.dirty",
                                            "environment."};
  for (const auto& [key, inner] : value.items()) {
    const bool is_row = value.is_array() && inner.is_object();
    const std::string below = path + (is_row ? inner.value("name", "") : key);
    if (inner.is_structured() && !is_row) {
      add_facts(inner, below + ".", facts);
    } else if (!inner.is_null() && std::ranges::any_of(kCompared, [&](std::string_view start) {
                 return below.starts_with(start) && (start.ends_with('.') || below == start);
               })) {
      const Json shown = is_row ? inner.value("version", Json("there")) : inner;
      facts[below] = shown.is_string() ? shown.get<std::string>() : to_json_line(shown);
    }
  }
}

// What the same request would write to its env.json here.
Facts facts_here(const RunRequest& request, const Json& then, const System& system) {
  const RunSetup setup = prepare_run(request, system);
  // Packages are where they were then, or beside the program of the command.
  std::optional<ProcessFiles> files;
  std::error_code failure;
  const fs::path program = then.at("program").value("path", "");
  if (fs::exists(program, failure)) {
    files = {program, fs::canonical(program, failure), {}, {}};
  }
  Json env = run_facts(setup, files, source_json(system, setup.work_argv));
  env["environment"] = scrub_environment(system.environment);
  Facts facts;
  add_facts(env, "", facts);
  return facts;
}

void print_rows(const char* heading, const std::vector<std::string>& rows, Console& console) {
  constexpr std::size_t kMostRows = 30;
  for (std::size_t i = 0; i < std::min(rows.size(), kMostRows); ++i) {
    console.err(fmt::format("{}  {}\n", i == 0 ? heading : "", printable(rows[i])));
  }
  if (rows.size() > kMostRows) {
    console.err(fmt::format("  and {} more\n", rows.size() - kMostRows));
  }
}

void compare(const RunRequest& request, const Json& inputs, const Json& env, Context& context) {
  std::vector<std::string> missing;
  std::vector<std::string> scrubbed;
  std::vector<std::string> different;
  std::ranges::copy_if(request.words, std::back_inserter(scrubbed), is_scrubbed);
  for (const std::string file : inputs.at("files")) {
    std::error_code failure;
    if (!fs::exists(file, failure)) {
      missing.push_back("file " + file);
    }
  }
  Facts then;
  add_facts(env, "", then);
  try {
    const Facts now = facts_here(request, env, context.system);
    for (const auto& [path, value] : then) {
      const auto here = now.find(path);
      const bool is_absent = here == now.end();
      if (value == kScrubbed && is_absent) {
        scrubbed.push_back(path);
      } else if (is_absent || here->second != value) {
        (is_absent && path.starts_with("machine.") ? missing : different)
            .push_back(
                fmt::format("{}: {} then, {} here", path, value, is_absent ? "n/a" : here->second));
      }
    }
  } catch (const Error& error) {
    missing.emplace_back(error.what());
  }
  print_rows("Missing here:\n", missing, context.console);
  print_rows("Scrubbed, to be given by hand:\n", scrubbed, context.console);
  print_rows("Different:\n", different, context.console);
}

bool is_confirmed(Console& console) {
  std::string answer;
  if (::isatty(STDIN_FILENO) != 0 && ::isatty(STDERR_FILENO) != 0) {
    console.err("Run it? [y/N] ");
    console.flush();
    std::getline(std::cin, answer);
  }
  return answer == "y" || answer == "yes";
}

RunRequest request_like(const RunCommandOptions& given, Context& context) {
  read_part(given.like, layout::kManifest);
  const Json inputs = read_part(given.like, layout::kInputs);
  RunRequest request = request_of(inputs.at("arguments"));
  std::vector<std::string> notes;
  add_overrides(*config_of(request, notes).tree, read_part(given.like, layout::kConfig), "",
                request.overrides);
  for (const std::string& more : given.request.overrides) {
    std::erase_if(request.overrides, [&](const std::string& one) {
      return parse_override(one).key == parse_override(more).key;
    });
    request.overrides.push_back(more);
  }
  request.command = given.request.command.empty() ? request.command : given.request.command;
  request.out = given.request.out;
  request.words = request_words(request);
  std::vector<std::string> argv = request.words;
  argv.insert(argv.begin(), {"gpuwhy", "run"});
  compare(request, inputs, read_part(given.like, layout::kEnv), context);
  print_rows("Command:\n", {shell_text(argv)},
             context.console);  // whole, and last before the question
  return request;
}

}  // namespace

RunCommandOptions options_like(const RunCommandOptions& given, Context& context) {
  RunRequest rest = given.request;
  rest.overrides.clear();
  rest.command.clear();
  rest.out.clear();
  if (!request_words(rest).empty() || given.num_repeats || !given.against.empty()) {
    throw Error(ErrorKind::kUsage,
                "--like takes overrides, a program and --out, nothing else of a run",
                "gpuwhy run --like BUNDLE [OVERRIDE...] [-- PROGRAM [ARG...]]");
  }
  RunCommandOptions options = given;
  try {
    options.request = request_like(given, context);
  } catch (const Json::exception&) {
    throw Error(ErrorKind::kInput,
                fmt::format("--like {}: a value of it is missing or of another type",
                            printable(given.like)));
  }
  if (!given.dry_run && std::ranges::any_of(options.request.words, is_scrubbed)) {
    throw Error(ErrorKind::kUsage, "--like: a value was scrubbed, so nothing was started",
                "give the override or the whole program again: gpuwhy run --like BUNDLE KEY=VALUE "
                "-- PROGRAM ARG...");
  }
  if (!given.yes && !given.dry_run && !is_confirmed(context.console)) {
    throw Error(ErrorKind::kUsage, "--like: not confirmed, so nothing was started",
                "if you trust this command: " +
                    printable(shell_text({"gpuwhy", "run", "--like", given.like, "--yes"})));
  }
  return options;
}

}  // namespace gpuwhy
