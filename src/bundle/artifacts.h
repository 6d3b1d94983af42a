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

#include "base/json.h"

namespace llmprof {

// A run bundle on disk: one folder that holds everything a run measured and made, and what it was
// made from.
class Artifacts {
 public:
  // Makes <stage2_dir>/<run id>/ with nsys/, ncu/ and stage1/ in it, readable by its owner alone.
  // The run id is `now` in UTC as YYYYMMDD-HHMMSS; a second run in the same second becomes ...-2.
  // Throws kFailure.
  static Artifacts create(const std::filesystem::path& stage2_dir,
                          std::chrono::system_clock::time_point now);

  // <directory>/<name>/ in the same form; nothing where it exists. `directory` is made where it is
  // not there, by whoever comes first.
  static std::optional<Artifacts> create_named(const std::filesystem::path& directory,
                                               const std::string& name);

  // An existing bundle, or a folder about to become one; touches nothing.
  static Artifacts from_root(const std::filesystem::path& root);

  const std::filesystem::path& root() const { return root_; }
  std::string run_id() const { return root_.filename().string(); }

  // Path of a file in the bundle; `name` is relative and stays inside, as "nsys/log.txt". Throws
  // kUsage otherwise.
  std::filesystem::path path(std::string_view name) const;

  // Writes whole files, atomically.
  void write(std::string_view name, std::string_view contents) const;

 private:
  explicit Artifacts(std::filesystem::path root) : root_(std::move(root)) {}

  std::filesystem::path root_;
};

// What a run came from. Scrubbed of secrets on the way to disk, whoever filled it in.
struct Provenance {
  Json machine;                                    // host, CPU, GPUs, driver, tool versions
  std::map<std::string, std::string> environment;  // all of it; an allow-list passes
  Json config;                                     // the composed configuration
  Json inputs;  // command line, manifest, whatever the workload is fed
};

// env.json, config.yaml, inputs.yaml.
void write_provenance(const Artifacts& artifacts, const Provenance& provenance,
                      std::chrono::system_clock::time_point now);

// "2026-11-14T23:54:00Z"
std::string utc_text(std::chrono::system_clock::time_point time);

}  // namespace llmprof
