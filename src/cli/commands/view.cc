// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy view: opens the page of a bundle in a browser. Over ssh there is none, so the command
// that fetches the file is printed. --files lists what the bundle holds, and whether it still is
// what was written.
#include <memory>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "bundle/layout.h"
#include "bundle/manifest.h"
#include "capture/subprocess.h"
#include "capture/tools.h"
#include "cli/command.h"
#include "ingest/ingest.h"
#include "report/document/section_parts.h"

namespace gpuwhy {
namespace {

struct ViewOptions {
  std::string bundle;
  bool print = false;
  bool files = false;
  bool verify = false;
  bool json = false;
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

Document files_document(const Json& json) {
  Section section;
  section.id = "summary";  // without a heading
  section.tables.push_back(table_of(json, "files",
                                    {{"size", "size_bytes", CellFormat::kBytes},
                                     {"sha256", "sha256", CellFormat::kText},
                                     {"file", "path", CellFormat::kText}}));
  const Json& differences = field_of(json, "differences");
  for (const Json& difference : differences) {
    section.notes.push_back("FAIL  " + difference.get<std::string>());
  }
  if (differences.is_array() && differences.empty()) {
    section.notes.push_back(
        fmt::format("OK  all {} files are as they were written", field_of(json, "files").size()));
  }
  return {"", {std::move(section)}};
}

int list_files(const ViewOptions& options, Console& console) {
  const Artifacts artifacts = Artifacts::from_root(options.bundle);
  const Manifest manifest = read_manifest(artifacts);
  std::vector<std::string> found;
  if (options.verify) {
    found = differences(manifest, artifacts);
  }
  const Json json = json_of(manifest, options.verify ? &found : nullptr);
  console.out(options.json ? to_json_text(json)
                           : terminal_text(files_document(json), console.form()));
  return found.empty() ? kExitOk : kExitIncomplete;
}

// A path as scp takes it: what a shell would look at is quoted.
std::string shell_quoted(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (text.find_first_not_of(kPlain) == std::string::npos) {
    return text;
  }
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

// SSH_CONNECTION is "client port server port": the server's address is the one the client reached.
std::string server_of(const std::string& connection) {
  const std::vector<std::string_view> words = split(connection, ' ');
  if (words.size() < 4) {
    return "";
  }
  const std::string address(words[2]);
  return address.find(':') == std::string::npos ? address : "[" + address + "]";
}

std::filesystem::path report_page(const std::filesystem::path& path) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  const std::filesystem::path page = is_folder ? path / layout::kPage : path;
  const auto refuse = [&](const std::filesystem::path& what, const char* why) {
    throw Error(ErrorKind::kInput, fmt::format("{} {}", printable(what.string()), why),
                "gpuwhy report BUNDLE --format html > report.html makes one");
  };
  if (!std::filesystem::is_regular_file(page, ignored)) {
    refuse(path, "has no report.html");
  }
  if (!to_lower(InputFile(page).head()).starts_with("<!doctype html")) {
    refuse(page, "is not an HTML page");
  }
  return std::filesystem::absolute(page, ignored).lexically_normal();
}

// Starts the desktop's browser and does not wait for it. False if there is no desktop.
bool open_in_browser(const std::string& page, const System& system) {
  const bool has_desktop = !system.variable("DISPLAY").value_or("").empty() ||
                           !system.variable("WAYLAND_DISPLAY").value_or("").empty();
  const auto opener = has_desktop ? find_on_path(system, "xdg-open") : std::nullopt;
  const int nowhere = opener ? ::open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
  if (nowhere < 0) {
    return false;
  }
  Process process;
  process.argv = {opener->string(), page};
  process.environment = system.environment;
  start_process(process, nowhere, nowhere);
  ::close(nowhere);
  return true;
}

int run_view(const ViewOptions& options, Context& context) {
  if (options.files || options.verify || options.json) {
    return list_files(options, context.console);
  }
  const std::string page = report_page(options.bundle).string();
  context.console.out(printable(page) + "\n");
  const bool is_remote = context.system.variable("SSH_CONNECTION").has_value();
  if (!options.print && !is_remote && open_in_browser(page, context.system)) {
    return kExitOk;
  }
  const std::string server = server_of(context.system.variable("SSH_CONNECTION").value_or(""));
  if (!server.empty()) {
    const std::string user = context.system.variable("USER").value_or("");
    context.console.out(
        fmt::format("scp {} .\n", shell_quoted(printable(fmt::format(
                                      "{}{}{}:{}", user, user.empty() ? "" : "@", server, page)))));
  }
  return kExitOk;
}

}  // namespace

Command view_command() {
  auto options = std::make_shared<ViewOptions>();
  Command command =
      command_of("view", "Open the report of a bundle in a browser, or list and verify its files",
                 options, run_view);
  command.aliases = {"open"};
  command.options = {
      required({"BUNDLE", "", "Folder of a run or of analyze --out", &options->bundle}),
      {"--print", "", "Only print the path", &options->print},
      {"--files", "", "List the files of a run's bundle instead", &options->files},
      {"--verify", "", "The same, and hash each; exit with 7 when one differs", &options->verify},
      json_option(options->json),
  };
  command.examples =
      "  gpuwhy view gpuwhy-runs/20261115-101500\n"
      "  gpuwhy view --files --verify gpuwhy-runs/20261115-101500\n";
  return command;
}

}  // namespace gpuwhy
