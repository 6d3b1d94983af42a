// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace gpuwhy {

// Why the host kept a GPU waiting.
enum class IdleKind : std::uint8_t {
  kNotHost,     // it did not
  kWaiting,     // it waited for earlier work
  kLaunching,   // short gaps: it launches more slowly than the GPU works
  kHostWork,    // a long gap: it did something else
  kFirstUse,    // once: it loaded or compiled code, or made a context
  kAllocating,  // it allocated or freed memory
  kBlocked,     // the call that launches took the time
};
inline constexpr std::size_t kNumIdleKinds = 7;
extern const char* const kIdleKindNames[kNumIdleKinds];
inline std::span<const char* const> words_of(IdleKind /*type*/) {
  return kIdleKindNames;
}

// One cause of gaps. Gaps of the same kind, call and scope share one.
struct IdleLabel {
  IdleKind kind = IdleKind::kNotHost;
  std::string call;   // the API call that took at least half of the gap; may be empty
  std::string scope;  // the innermost operator or range around it, numbers as N; may be empty

  auto operator<=>(const IdleLabel&) const = default;
};

}  // namespace gpuwhy
