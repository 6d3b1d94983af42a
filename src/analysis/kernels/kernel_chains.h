// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "analysis/names/kernel_families.h"
#include "analysis/stages/attribution.h"
#include "results/kernel_chains.h"
#include "trace/trace.h"

namespace gpuwhy {

struct SteadyPart;

// Kernels with which cuDNN and MIOpen convert between NCHW and NHWC around convolutions.
bool converts_layout(std::string_view kernel_name);

// `steady` has the steady phase of each device: its chains are there again as the stage `steady`.
std::vector<KernelChains> find_kernel_chains(const Trace& trace, const KernelFamilies& families,
                                             const Stages& stages, const Attribution& attribution,
                                             const std::vector<SteadyPart>& steady);

}  // namespace gpuwhy
