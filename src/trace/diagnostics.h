// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpuwhy {

// kImpossible: numbers contradict each other, and no figure holds. kDataLoss: figures are
// incomplete. kWarning: figures may mislead. kInfo: worth knowing.
enum class Severity { kInfo, kWarning, kDataLoss, kImpossible };

// An imperfection of the data that does not stop an analysis. Shown under "Data quality", never
// thrown.
struct Diagnostic {
  std::string kind;  // stable, as "orphan_correlation"
  Severity severity = Severity::kInfo;
  std::int64_t count = 0;
  std::string sentence;  // for the user, with the count in it
};

using Diagnostics = std::vector<Diagnostic>;

}  // namespace gpuwhy
