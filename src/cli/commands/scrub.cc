// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy scrub: secrets out of a recording or a bundle, before it goes to somebody else.
#include "bundle/scrub.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "bundle/scrub_files.h"
#include "cli/command.h"
#include "session/reading/recording.h"

namespace gpuwhy {
namespace {

struct ScrubCommandOptions {
  std::string path;
  std::string secrets;
  std::string rules;
  bool dry_run = false;
  bool json = false;
};

// Secrets that only the user can tell, a line each: a file, since every user of a machine reads
// command lines.
std::vector<std::string> given_secrets(const std::string& file) {
  std::vector<std::string> values;
  if (!file.empty()) {
    const std::string text = read_file(file);
    for (const std::string_view line : split(text, '\n')) {
      if (!trim(line).empty()) {
        values.emplace_back(trim(line));
      }
    }
  }
  return values;
}

const char* word_of(ScrubbedFile::What what) {
  return what == ScrubbedFile::What::kChanged   ? "changed"
         : what == ScrubbedFile::What::kRemoved ? "removed"
         : what == ScrubbedFile::What::kSkipped ? "skipped"
                                                : "not searched";
}

void print_result(const ScrubResult& result, bool is_dry, Console& console) {
  for (const ScrubbedFile& file : result.files) {
    console.out(fmt::format("{}  {}{}\n", word_of(file.what), printable(file.path),
                            file.why.empty() ? "" : " (" + printable(file.why) + ")"));
    for (const auto& [rule, count] : file.places) {
      console.out(fmt::format("  {} x {}\n", count, printable(rule)));
    }
  }
  console.out(result.files.empty()
                  ? "clean: nothing was found\n"
                  : fmt::format("{} found\n", count_of(static_cast<std::int64_t>(result.num_keys),
                                                       "different secret")));
  if (is_dry) {
    console.out("dry run: this is what would be done; nothing was written\n");
  }
  const auto num_unsearched = std::count_if(
      result.files.begin(), result.files.end(),
      [](const ScrubbedFile& file) { return file.what == ScrubbedFile::What::kNotSearched; });
  if (num_unsearched > 0) {
    console.out(fmt::format(
        "{} files could not be searched: unpack them and scrub again, or leave them out\n",
        num_unsearched));
  }
}

int run_scrub(const ScrubCommandOptions& options, Context& context) {
  use_secret_rules(options.rules, context.system);
  std::vector<std::string> values = given_secrets(options.secrets);
  for (std::string& value : secret_values(context.system.environment)) {
    values.push_back(std::move(value));
  }
  const ScrubResult result =
      options.dry_run ? dry_scrub_files(options.path, values, context.system.temporary_directory())
                      : scrub_files(options.path, values);
  if (options.json) {
    Json json = json_document("scrub", 1);
    json["secrets_found"] = result.num_keys;
    json["left"] = result.left;
    json["files"] = Json::array();
    for (const ScrubbedFile& file : result.files) {
      Json places = Json::object();
      for (const auto& [rule, count] : file.places) {
        places[rule] = count;
      }
      json["files"].push_back({{"path", file.path},
                               {"what", word_of(file.what)},
                               {"why", text_or_null(file.why)},
                               {"places", places}});
    }
    json["dry_run"] = options.dry_run;
    context.console.out(to_json_text(json));
  } else {
    print_result(result, options.dry_run, context.console);
  }
  if (!result.left.empty()) {
    throw Error(ErrorKind::kFailure,
                fmt::format("{} still holds a secret that could not be taken out",
                            printable(result.left.front())),
                "do not pass it on");
  }
  return kExitOk;
}

}  // namespace

Command scrub_command() {
  auto options = std::make_shared<ScrubCommandOptions>();
  Command command = command_of("scrub", "Remove secrets from a recording or a bundle, in place",
                               options, run_scrub);
  command.options = {
      required({"PATH", "", "A bundle, or a recording as SQLite", &options->path}),
      {"--secrets", "FILE", "More secrets to remove, one per line", &options->secrets},
      {"--rules", "FILE", "More shapes of secrets, as conf/rules/secrets.yaml", &options->rules},
      {"--dry-run", "", "Say what would be replaced, by file and rule, and write nothing",
       &options->dry_run},
      json_option(options->json),
  };
  command.examples =
      "  gpuwhy scrub run.sqlite\n"
      "  gpuwhy scrub gpuwhy-runs/20261114-235400 --dry-run\n"
      "  gpuwhy scrub gpuwhy-runs/20261114-235400 --secrets my-secrets.txt\n";
  return command;
}

}  // namespace gpuwhy
