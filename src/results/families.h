// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gpuwhy {

// The family of kernels that move data between GPUs: such a kernel waits, and its length says
// little about its GPU.
inline constexpr std::string_view kCommunication = "communication";

}  // namespace gpuwhy
