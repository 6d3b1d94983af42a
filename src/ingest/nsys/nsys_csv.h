// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "trace/kernel_summary.h"

namespace gpuwhy {

// The kernel summary of nsys stats as CSV: gpukernsum, or cuda_gpu_kern_sum since 2023, with or
// without grids and blocks. Throws kInput if the text has none.
KernelSummary parse_nsys_csv(std::string_view text);

}  // namespace gpuwhy
