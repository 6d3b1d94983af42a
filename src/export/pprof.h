// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analysis/analysis.h"

namespace llmprof {

// kernels.pb.gz: the kernel table as a pprof profile. Each row is a sample with the stack stage,
// family, kernel, the values `gpu_time` (nanoseconds) and `launches`, and its GPU as the label
// `device`.
std::string pprof_profile(const Analysis& analysis);

}  // namespace llmprof
