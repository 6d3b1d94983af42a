// SPDX-License-Identifier: Apache-2.0
//
// llmprof view: where the page of a bundle is, and how to get it onto a screen. Whoever profiles
// over ssh has no browser there, so the line that fetches the file is printed too.
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "cli/command.h"
#include "ingest/ingest.h"

namespace llmprof {
namespace {

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
  const std::filesystem::path page = is_folder ? path / "report.html" : path;
  const auto refuse = [&](const std::filesystem::path& what, const char* why) {
    throw Error(ErrorKind::kInput, fmt::format("{} {}", printable(what.string()), why),
                "llmprof report BUNDLE --format html > report.html makes one");
  };
  if (!std::filesystem::is_regular_file(page, ignored)) {
    refuse(path, "holds no report.html");
  }
  if (!to_lower(InputFile(page).head()).starts_with("<!doctype html")) {
    refuse(page, "is no page of HTML");
  }
  return std::filesystem::absolute(page, ignored).lexically_normal();
}

int run_view(const std::string& bundle, Context& context) {
  const std::string page = report_page(bundle).string();
  context.console.out(printable(page) + "\n");
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
  auto bundle = std::make_shared<std::string>();
  Command command;
  command.name = "view";
  command.summary = "Print where a bundle's report.html is, and how to fetch it";
  command.options = {required({"BUNDLE", "", "Folder of a run or of analyze --out", bundle.get()})};
  command.examples = "  llmprof view llmprof-runs/20261115-101500\n";
  command.run = [bundle](Context& context) { return run_view(*bundle, context); };
  return command;
}

}  // namespace llmprof
