// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy artifacts: what a bundle holds, and whether it still is what was written.
#include <memory>

#include <fmt/format.h>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "bundle/manifest.h"
#include "cli/command.h"

namespace gpuwhy {
namespace {

struct ArtifactsOptions {
  bool json = false;
  bool verify = false;
  std::string bundle;
};

Json json_of(const Manifest& manifest, const std::vector<std::string>* found) {
  Json document = json_document("artifacts", 1);
  document["run_id"] = manifest.run_id;
  document["files"] = Json::array();
  for (const ManifestEntry& file : manifest.files) {
    document["files"].push_back(
        {{"path", file.path}, {"size_bytes", file.size_bytes}, {"sha256", file.sha256}});
  }
  document["differences"] = found == nullptr ? Json(nullptr) : Json(*found);
  return document;
}

void print(const Manifest& manifest, const std::vector<std::string>* found, Console& console) {
  Table table{{"size", "sha256", "file"}, {}};
  for (const ManifestEntry& file : manifest.files) {
    table.rows.push_back({format_bytes(file.size_bytes), printable(file.sha256.substr(0, 12)),
                          printable(file.path)});
  }
  console.out(table_text(table, console.width()));
  if (found == nullptr) {
    return;
  }
  for (const std::string& difference : *found) {
    console.out(fmt::format("{}  {}\n", console.painted(Color::kRed, "FAIL"), difference));
  }
  if (found->empty()) {
    console.out(fmt::format("{}  all {} files are as they were written\n",
                            console.painted(Color::kGreen, "OK"), manifest.files.size()));
  }
}

int run_artifacts(const ArtifactsOptions& options, Context& context) {
  const Artifacts artifacts = Artifacts::from_root(options.bundle);
  const Manifest manifest = read_manifest(artifacts);
  std::vector<std::string> found;
  if (options.verify) {
    found = differences(manifest, artifacts);
  }
  const std::vector<std::string>* shown = options.verify ? &found : nullptr;
  if (options.json) {
    context.console.out(to_json_text(json_of(manifest, shown)));
  } else {
    print(manifest, shown, context.console);
  }
  return found.empty() ? kExitOk : kExitIncomplete;
}

}  // namespace

Command artifacts_command() {
  auto options = std::make_shared<ArtifactsOptions>();
  Command command;
  command.name = "artifacts";
  command.summary = "List the files of a run bundle; --verify checks each against its hash";
  command.options = {
      required({"BUNDLE", "", "Folder of a run", &options->bundle}),
      {"--verify", "", "Hash every file; exit with 7 when one differs", &options->verify},
      json_option(options->json),
  };
  command.run = [options](Context& context) { return run_artifacts(*options, context); };
  return command;
}

}  // namespace gpuwhy
