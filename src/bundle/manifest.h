// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "bundle/artifacts.h"

namespace llmprof {

// A file of a bundle as the manifest records it.
struct ManifestEntry {
  std::string path;  // relative, with '/'
  std::uint64_t size_bytes = 0;
  std::string sha256;
};

// Every regular file below the bundle's root but manifest.json itself, sorted by path. Links are
// not followed.
std::vector<ManifestEntry> hash_files(const Artifacts& artifacts);

// manifest.json: `run` (what was run and how it ended, scrubbed of secrets) and every file with
// size and sha256. Written last: a bundle without one is unfinished.
void write_manifest(const Artifacts& artifacts, const Json& run);

// A bundle as its manifest tells it. Throws kInput when there is none or it cannot be understood.
struct Manifest {
  std::string run_id;
  Json run;
  std::vector<ManifestEntry> files;
};
Manifest read_manifest(const Artifacts& artifacts);

// Sentences on what differs between manifest and disk; empty: nothing.
std::vector<std::string> differences(const Manifest& manifest, const Artifacts& artifacts);

}  // namespace llmprof
