// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "bundle/artifacts.h"

namespace gpuwhy {

// A file of a bundle as the manifest records it.
struct ManifestEntry {
  std::string path;  // relative, with '/'
  std::uint64_t size_bytes = 0;
  std::string sha256;
};

// Every regular file in the bundle except manifest.json, sorted by path. Links are not followed.
std::vector<ManifestEntry> hash_files(const Artifacts& artifacts);

// Writes manifest.json: `run` (what was run and how it ended, without secrets) and every file with
// size and sha256. Written last: a bundle without one is incomplete.
void write_manifest(const Artifacts& artifacts, const Json& run);

// A bundle as its manifest describes it. Throws kInput if there is none or it is unreadable.
struct Manifest {
  std::string run_id;
  Json run;
  std::vector<ManifestEntry> files;
};
Manifest read_manifest(const Artifacts& artifacts);

// One sentence per difference between manifest and disk; empty if there are none.
std::vector<std::string> differences(const Manifest& manifest, const Artifacts& artifacts);

}  // namespace gpuwhy
