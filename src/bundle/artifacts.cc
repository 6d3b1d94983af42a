// SPDX-License-Identifier: Apache-2.0
//
// Creation and layout of run bundles, the folders in which runs keep their files.
//
// The folder itself is the lock: mkdir either creates it or fails because another run has that
// second, so two runs never share a bundle, not even on a network file system. Run ids are in UTC,
// because ranks of one run may be in several time zones, and because clocks set back in autumn must
// not make a run look older than its predecessor.
#include "bundle/artifacts.h"

#include <cerrno>
#include <cstring>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/yaml.h"
#include "bundle/layout.h"
#include "bundle/scrub.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

constexpr int kMostRunsASecond = 10'000;

std::tm utc_of(std::chrono::system_clock::time_point time) {
  return fmt::gmtime(std::chrono::system_clock::to_time_t(time));
}

// False if it already exists.
bool make_private_directory(const fs::path& directory) {
  if (::mkdir(directory.c_str(), 0700) == 0) {
    return true;
  }
  if (errno == EEXIST) {
    return false;
  }
  throw Error(ErrorKind::kFailure,
              fmt::format("cannot create {}: {}", directory.string(), std::strerror(errno)));
}

// Creates a private folder and its parents; false if it already exists.
bool make_folder(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder.parent_path(), failure);
  if (failure) {
    throw Error(
        ErrorKind::kFailure,
        fmt::format("cannot create {}: {}", folder.parent_path().string(), failure.message()),
        "choose another place: artifacts.dir=/some/directory");
  }
  return make_private_directory(folder);
}

}  // namespace

fs::path make_run_folder(const fs::path& directory, std::chrono::system_clock::time_point now,
                         std::string_view suffix) {
  const std::string name = fmt::format("{:%Y%m%d-%H%M%S}{}", utc_of(now), suffix);
  for (int n = 1; n <= kMostRunsASecond; ++n) {
    fs::path folder = directory / (n == 1 ? name : fmt::format("{}-{}", name, n));
    if (make_folder(folder)) {
      return folder;
    }
  }
  throw Error(ErrorKind::kFailure,
              fmt::format("{} holds {} runs of one second", directory.string(), kMostRunsASecond));
}

Artifacts Artifacts::create(const fs::path& directory, std::chrono::system_clock::time_point now) {
  Artifacts artifacts(make_run_folder(directory, now, ""));
  artifacts.make_parts();
  return artifacts;
}

std::optional<Artifacts> Artifacts::create_named(const fs::path& directory,
                                                 const std::string& name) {
  std::error_code ignored;
  if (fs::is_symlink(directory, ignored)) {
    throw Error(ErrorKind::kFailure,
                fmt::format("{} is a link, and nothing is written through it", directory.string()));
  }
  Artifacts artifacts(directory / name);
  if (!make_folder(artifacts.root())) {
    return std::nullopt;
  }
  artifacts.make_parts();
  return artifacts;
}

void Artifacts::make_parts() const {
  for (const char* folder : {"nsys", "ncu", "baseline"}) {
    make_private_directory(root_ / folder);
  }
}

Artifacts Artifacts::from_root(const fs::path& root) {
  // A trailing slash would hide the run id.
  return Artifacts(root.has_filename() ? root : root.parent_path());
}

fs::path Artifacts::path(std::string_view name) const {
  const fs::path relative = fs::path(name).lexically_normal();
  if (name.empty() || relative.is_absolute() || *relative.begin() == "..") {
    throw Error(ErrorKind::kUsage, fmt::format("'{}' is not a file of a bundle", printable(name)));
  }
  return root_ / relative;
}

void Artifacts::write(std::string_view name, std::string_view contents) const {
  write_file(path(name), contents);
}

void write_provenance(const Artifacts& artifacts, const Provenance& provenance,
                      std::chrono::system_clock::time_point now) {
  Json env = json_document("env", 1);
  env["run_id"] = artifacts.run_id();
  env["time"] = utc_text(now);
  // A variable's value may be an argument too.
  const SecretValues values = secret_values(provenance.environment);
  env.update(without_values(scrub_tree(provenance.facts), values));
  env["environment"] = scrub_environment(provenance.environment);
  artifacts.write(layout::kEnv, to_json_text(env));
  artifacts.write(layout::kConfig,
                  to_yaml_text(without_values(scrub_tree(provenance.config), values)));
  artifacts.write(layout::kInputs,
                  to_yaml_text(without_values(scrub_tree(provenance.inputs), values)));
}

std::string utc_text(std::chrono::system_clock::time_point time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc_of(time));
}

}  // namespace gpuwhy
