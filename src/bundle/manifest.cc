// SPDX-License-Identifier: Apache-2.0
//
// Manifest of a bundle: all files with size and hash, so that a copy can be verified.
//
// The manifest is the commit point of a run: it is written last, and a bundle without one is an
// aborted run. It does not list itself, because a file cannot contain its own hash.
#include "bundle/manifest.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/units.h"
#include "bundle/layout.h"
#include "bundle/scrub.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

constexpr int kVersion = 1;
constexpr std::uint64_t kLargest = 2 * kGiB;  // a dozen files of 10,000 ranks take 20 MB

Error damaged_manifest(const fs::path& path) {
  return {ErrorKind::kInput,
          fmt::format("{} is damaged: a field is missing or of the wrong type", path.string())};
}

// Also throws Json::exception, for a missing or mistyped field: read_manifest() makes the same
// Error of it.
ManifestEntry entry_of(const Json& file, const fs::path& manifest) {
  const auto size_bytes = json_integer(file.at("size_bytes"));
  if (!size_bytes || *size_bytes < 0) {
    throw damaged_manifest(manifest);
  }
  return {file.at("path").get<std::string>(), static_cast<std::uint64_t>(*size_bytes),
          file.at("sha256").get<std::string>()};
}

}  // namespace

std::vector<ManifestEntry> hash_files(const Artifacts& artifacts) {
  std::vector<ManifestEntry> entries;
  std::error_code failure;
  // The error_code form: a folder that vanishes during the walk must not end the program.
  for (auto file = fs::recursive_directory_iterator(artifacts.root(), failure);
       !failure && file != fs::recursive_directory_iterator(); file.increment(failure)) {
    const fs::file_status status = file->symlink_status();
    const std::string path = file->path().lexically_relative(artifacts.root()).generic_string();
    if (fs::is_regular_file(status) && path != layout::kManifest) {
      entries.push_back({path, file->file_size(), sha256_of_file(file->path())});
    }
  }
  if (failure) {
    throw Error(ErrorKind::kInput,
                fmt::format("cannot read {}: {}", artifacts.root().string(), failure.message()));
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return entries;
}

void write_manifest(const Artifacts& artifacts, const Json& run) {
  Json manifest = json_document("manifest", kVersion);
  manifest["run_id"] = artifacts.run_id();
  manifest["run"] = scrub_tree(run);
  manifest["files"] = Json::array();
  for (const ManifestEntry& entry : hash_files(artifacts)) {
    manifest["files"].push_back(
        {{"path", entry.path}, {"size_bytes", entry.size_bytes}, {"sha256", entry.sha256}});
  }
  artifacts.write(layout::kManifest, to_json_text(manifest));
}

Manifest read_manifest(const Artifacts& artifacts) {
  const fs::path path = artifacts.path(layout::kManifest);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} has no {}: it is not a bundle, or its run did not finish",
                            artifacts.root().string(), layout::kManifest));
  }
  // A newer version is refused rather than read halfway: fields may have changed their meaning.
  const Json document = parse_json(read_file(path, kLargest), path.string());
  try {
    if (document.at("schema") != "gpuwhy.manifest" || document.at("schema_version") > kVersion) {
      throw Error(
          ErrorKind::kInput,
          fmt::format("{} is of a kind or version this gpuwhy does not know", path.string()),
          "use the gpuwhy that wrote it, or a newer one");
    }
    Manifest manifest{document.at("run_id").get<std::string>(), document.at("run"), {}};
    for (const Json& file : document.at("files")) {
      manifest.files.push_back(entry_of(file, path));
    }
    return manifest;
  } catch (const Json::exception&) {
    throw damaged_manifest(path);
  }
}

std::vector<std::string> differences(const Manifest& manifest, const Artifacts& artifacts) {
  std::map<std::string, ManifestEntry> on_disk;
  for (ManifestEntry& entry : hash_files(artifacts)) {
    on_disk.emplace(entry.path, std::move(entry));
  }
  // What the manifest lists, then what it does not.
  std::vector<std::string> found;
  for (const ManifestEntry& listed : manifest.files) {
    const auto present = on_disk.find(listed.path);
    const std::string name = printable(listed.path);
    if (present == on_disk.end()) {
      found.push_back(name + " is missing");
      continue;
    }
    if (present->second.size_bytes != listed.size_bytes) {
      found.push_back(fmt::format("{} has {} bytes instead of {}", name, present->second.size_bytes,
                                  listed.size_bytes));
    } else if (present->second.sha256 != listed.sha256) {
      found.push_back(name + " was changed");
    }
    on_disk.erase(present);
  }
  for (const auto& [path, entry] : on_disk) {
    found.push_back(printable(path) + " is not in the manifest");
  }
  return found;
}

}  // namespace gpuwhy
