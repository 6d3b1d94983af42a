// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/names/kernel_families.h"
#include "analysis/stages/attribution.h"
#include "analysis/stages/stages.h"
#include "results/copy.h"
#include "results/device.h"
#include "trace/trace.h"

namespace gpuwhy {

// The extent of a recording, from the first event of any kind to the last. Ranges that never ended
// do not extend it.
struct Extent {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};
Extent extent_of(const Trace& trace);

// The same with the marked stages during which the GPU worked: a step begins on the CPU before its
// first launch.
Extent with_marks(Extent extent, const Trace& trace, const Stages& stages);

// What a recording says of itself. What it amounts to is found later.
CaptureRow capture_row(const CaptureInfo& info);

// The time of day of the capture's start; empty for times that no calendar has.
std::string recorded_at(const CaptureRow& capture);

// One row per GPU, by name, without its row of the ledger. `busy_ns` is by device.
std::vector<DeviceRow> summarise_devices(const Trace& trace,
                                         const std::vector<std::int64_t>& busy_ns,
                                         std::int64_t capture_ns);

// One row per GPU, direction and kind of host memory.
std::vector<CopyRow> summarise_copies(const Trace& trace);

// How many API calls there were by their correlation numbers, which count all calls of a process,
// also those that are not recorded.
std::int64_t count_numbered_calls(const Trace& trace);

// By StringId: communication kernels, and kernels that only a model's steps run. Loading weights
// runs only copies and fills.
std::vector<bool> communication_kernels(const Trace& trace, const KernelFamilies& families);
std::vector<bool> model_kernels(const Trace& trace, const KernelFamilies& families);

// Notes how much work was launched after the mark of its step had ended.
void add_joined(const Attribution& attribution, Diagnostics& diagnostics);

bool has_diagnostic(const Diagnostics& diagnostics, std::string_view kind);

// Adds a warning if kernels have no recorded launch: orphan_kernel.
void add_orphans(const Origins& kernels, std::size_t num_kernels, Diagnostics& diagnostics);

}  // namespace gpuwhy
