// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace gpuwhy {

// A run bundle on disk: one folder with everything a run measured and produced, and its inputs.
class Artifacts {
 public:
  // Creates <directory>/<run id>/ with nsys/, ncu/ and baseline/ in it, readable only by its owner.
  // The run id is `now` in UTC as YYYYMMDD-HHMMSS; a second run in the same second becomes ...-2.
  // Throws kFailure.
  static Artifacts create(const std::filesystem::path& directory,
                          std::chrono::system_clock::time_point now);

  // <directory>/<name>/ with the same layout; nullopt if it exists. The first caller creates
  // `directory`.
  static std::optional<Artifacts> create_named(const std::filesystem::path& directory,
                                               const std::string& name);

  // An existing bundle, or a folder that will become one. Touches nothing.
  static Artifacts from_root(const std::filesystem::path& root);

  const std::filesystem::path& root() const { return root_; }
  std::string run_id() const { return root_.filename().string(); }

  // The path of a file in the bundle. `name` must be relative and stay inside, e.g. "nsys/log.txt".
  // Throws kUsage otherwise.
  std::filesystem::path path(std::string_view name) const;

  // Writes a whole file atomically.
  void write(std::string_view name, std::string_view contents) const;

 private:
  explicit Artifacts(std::filesystem::path root) : root_(std::move(root)) {}
  void make_parts() const;

  std::filesystem::path root_;
};

// Inputs and environment of a run. Secrets are removed when it is written, regardless of who filled
// it in.
struct Provenance {
  const Json& facts;  // gpuwhy, machine (host, CPU, GPUs, driver, tool versions), program
  const std::map<std::string, std::string>& environment;  // complete; an allow-list filters it
  const Json& config;                                     // the composed configuration
  const Json& inputs;  // command line, manifest, whatever the workload is fed
};

// Writes env.json, config.yaml and inputs.yaml.
void write_provenance(const Artifacts& artifacts, const Provenance& provenance,
                      std::chrono::system_clock::time_point now);

// Creates a folder in `directory`, readable only by its owner, named after the second and
// `suffix`.
std::filesystem::path make_run_folder(const std::filesystem::path& directory,
                                      std::chrono::system_clock::time_point now,
                                      std::string_view suffix);

// "2026-11-14T23:54:00Z"
std::string utc_text(std::chrono::system_clock::time_point time);

}  // namespace gpuwhy
