// SPDX-License-Identifier: Apache-2.0
//
// Address and credentials of a fleet's history. Credentials come from the environment or from a
// file of the user, never from the command line, which every process of the machine can read.
#include "cli/commands/fleet_target.h"

#include <algorithm>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUserVariable = "GPUWHY_CLICKHOUSE_USER";
constexpr const char* kPasswordVariable = "GPUWHY_CLICKHOUSE_PASSWORD";
constexpr const char* kFileVariable = "GPUWHY_CLICKHOUSE_CREDENTIALS";

// Words as in ~/.netrc: login NAME password SECRET.
ServerCredentials read_credentials(const fs::path& path) {
  const std::string text = read_file(path, 64 * kKiB);
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0 && (facts.st_mode & 077) != 0) {
    throw Error(ErrorKind::kInput, fmt::format("{} can be read by others", path.string()),
                fmt::format("chmod 600 {}", path.string()));
  }
  std::vector<std::string> words;
  for (const std::string_view line : split(text, '\n')) {
    for (const std::string_view word : split(line, ' ')) {
      if (!trim(word).empty()) {
        words.emplace_back(trim(word));
      }
    }
  }
  ServerCredentials credentials;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    if (words[i] == "login") {
      credentials.user = words[i + 1];
    } else if (words[i] == "password") {
      credentials.password = words[i + 1];
    }
  }
  if (credentials.user.empty()) {
    throw Error(ErrorKind::kInput, fmt::format("{} names no user", path.string()),
                "its form: login NAME password SECRET");
  }
  return credentials;
}

ServerCredentials find_credentials(const FleetTargetOptions& target, const System& system) {
  ServerCredentials credentials;
  const std::string file =
      target.credentials.empty() ? system.variable(kFileVariable).value_or("") : target.credentials;
  if (!file.empty()) {
    credentials = read_credentials(file);
  } else {
    credentials.user = system.variable(kUserVariable).value_or("");
    credentials.password = system.variable(kPasswordVariable).value_or("");
    if (credentials.user.empty() && !credentials.password.empty()) {
      credentials.user = "default";
    }
  }
  // A line break would be another header.
  const std::string both = credentials.user + credentials.password;
  if (std::any_of(both.begin(), both.end(),
                  [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
    throw Error(ErrorKind::kUsage, "the credentials hold control characters");
  }
  return credentials;
}

}  // namespace

void add_fleet_target(Command& command, FleetTargetOptions& target) {
  command.add(
      OptionGroup::kHistory,
      {required({"--to", "WHERE",
                 "ClickHouse as http://HOST:8123[,http://OTHER:8123], or a folder of summaries",
                 &target.to}),
       {"--database", "NAME", "The server's database", &target.database},
       {"--credentials", "FILE",
        "login NAME password SECRET; or GPUWHY_CLICKHOUSE_USER and _PASSWORD", &target.credentials},
       {"--ca", "FILE", "Certificates to trust instead of the machine's", &target.ca_file},
       at_most(86400, {"--timeout", "SECONDS", "For one request", &target.timeout_s})});
}

bool is_server(const std::string& to) {
  return to.find("://") != std::string::npos;
}

ServerOptions server_options(const FleetTargetOptions& target, const System& system,
                             std::int64_t wait_s) {
  if (!is_server(target.to)) {
    throw Error(ErrorKind::kUsage, fmt::format("{} is not a server address", printable(target.to)),
                "as http://host:8123; a folder of summaries needs no push and has no SQL");
  }
  ServerOptions options;
  for (const std::string_view url : split(target.to, ',')) {
    options.urls.push_back(checked_server_url(std::string(trim(url))));
  }
  options.database = target.database;
  options.credentials = find_credentials(target, system);
  options.http.ca_file = target.ca_file;
  options.http.timeout_s = static_cast<int>(target.timeout_s);
  options.patience_s = static_cast<int>(wait_s);
  return options;
}

FleetHistory open_history(const FleetTargetOptions& target, const System& system) {
  FleetHistory history;
  if (is_server(target.to)) {
    history.server = std::make_unique<ClickHouse>(server_options(target, system));
    history.source = server_history(*history.server);
  } else {
    history.source = folder_history(target.to);
  }
  return history;
}

fs::path spool_folder(const std::string& told, const ServerOptions& options, const System& system) {
  if (!told.empty()) {
    return told;
  }
  std::vector<std::string> parts = options.urls;
  std::sort(parts.begin(), parts.end());
  parts.push_back(options.database);
  const std::string id = sha256_hex(fmt::format("{}", fmt::join(parts, "\n"))).substr(0, 16);
  fs::path state;
  if (const auto told_state = system.variable("XDG_STATE_HOME")) {
    state = *told_state;
  } else if (const auto home = system.variable("HOME")) {
    state = fs::path(*home) / ".local" / "state";
  } else {
    throw Error(ErrorKind::kUsage, "there is no place for batches that wait",
                "name one: --spool DIR");
  }
  return state / "gpuwhy" / "spool" / id;
}

}  // namespace gpuwhy
