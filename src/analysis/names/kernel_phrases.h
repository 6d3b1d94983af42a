// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gpuwhy {

// What a kernel does, of one whose name says it in template arguments.
struct KernelPhrase {
  std::string text;    // "mul bf16", "flash_fwd hdim128 bf16 causal"
  std::string detail;  // tells most kernels of one text apart: "vec4", "128x64"
};

// Of a name as readable_kernel_name() and bare_kernel_name() give it; absent where the bare name
// says enough.
std::optional<KernelPhrase> phrase_of(std::string_view readable, std::string_view bare);

}  // namespace gpuwhy
