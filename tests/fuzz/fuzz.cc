// SPDX-License-Identifier: Apache-2.0
//
// libFuzzer entry point of all targets; LLMPROF_FUZZ_TARGET selects one.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "fuzz/targets.h"

namespace {

const llmprof::FuzzTarget* chosen() {
  const char* wanted = std::getenv("LLMPROF_FUZZ_TARGET");
  for (const llmprof::FuzzTarget& target : llmprof::fuzz_targets()) {
    if (wanted != nullptr && std::string_view(wanted) == target.name) {
      return &target;
    }
  }
  std::fprintf(stderr, "LLMPROF_FUZZ_TARGET must be one of:");
  for (const llmprof::FuzzTarget& target : llmprof::fuzz_targets()) {
    std::fprintf(stderr, " %s", target.name);
  }
  std::fprintf(stderr, "\n");
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const llmprof::FuzzTarget* const kTarget = chosen();
  kTarget->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
