// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace llmprof {

struct SqliteScrub {
  std::int64_t changed_texts = 0;
  std::vector<std::string>
      keys;  // what was taken out because it is a secret, not for its place alone
};

// Takes environments, keys and `values` (of secret_values()) out of the texts of an nsys SQLite
// export, in place and without a trace in free pages. Where there were keys the report it was made
// from holds them too. Throws kFailure.
SqliteScrub scrub_sqlite(const std::filesystem::path& sqlite,
                         const std::vector<std::string>& values);

}  // namespace llmprof
