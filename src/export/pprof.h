// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analysis/analysis.h"

namespace llmprof {

// kernels.pb.gz: the kernel table as a profile of pprof. A row is a sample whose stack is stage,
// family, kernel, with `gpu_time` in nanoseconds and `launches`, and its GPU as the label `device`.
std::string pprof_profile(const Analysis& analysis);

}  // namespace llmprof
