// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

#include "bundle/secret_values.h"

namespace llmprof {

struct SqliteScrub {
  std::int64_t changed_texts = 0;
  bool held_secret = false;  // beyond environments, which go for their place alone
  SecretValues keys;         // what was taken out because it is a secret
};

// Takes environments, keys and `values` (of secret_values()) out of the texts of an nsys SQLite
// export, in place and without a trace in free pages. Where there were keys the report it was made
// from holds them too. Throws kFailure.
SqliteScrub scrub_sqlite(const std::filesystem::path& sqlite, const SecretValues& values);

}  // namespace llmprof
