// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

#include "bundle/secret_values.h"

namespace gpuwhy {

// Result of scrubbing one database.
struct SqliteScrub {
  std::int64_t changed_texts = 0;
  bool held_secret = false;  // besides environments, which are always removed
  SecretValues keys;         // secrets that were removed
};

// Removes environments, secrets and `values` (see secret_values()) from the texts of an nsys SQLite
// export, in place and without leaving them in free pages. If there were any, the report it was
// exported from has them too. Throws kFailure.
SqliteScrub scrub_sqlite(const std::filesystem::path& sqlite, const SecretValues& values);

}  // namespace gpuwhy
