// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "results/field.h"

namespace gpuwhy {

// kImpossible: numbers contradict each other, and no figure holds. kDataLoss: figures are
// incomplete. kWarning: figures may mislead. kInfo: worth knowing.
enum class Severity { kInfo, kWarning, kDataLoss, kImpossible };
inline constexpr const char* kSeverities[] = {"info", "warning", "data_loss", "impossible"};
constexpr std::span<const char* const> words_of(Severity /*type*/) {
  return kSeverities;
}

// An imperfection of the data that does not stop an analysis. Shown under "Data quality", never
// thrown.
struct Diagnostic {
  std::string kind;  // stable, as "orphan_correlation"
  Severity severity = Severity::kInfo;
  std::int64_t count = 0;
  std::string sentence;  // for the user, with the count in it
};

template <typename F>
void describe(const Diagnostic*, F&& f) {
  using T = Diagnostic;
  f("kind", &T::kind, plain("a stable name"));
  f("severity", &T::severity, plain("how bad it is"));
  f("count", &T::count, number("1", "", "", "data_quality", "rows it is about"));
  f("sentence", &T::sentence, plain("what was imperfect"));
}

using Diagnostics = std::vector<Diagnostic>;

}  // namespace gpuwhy
