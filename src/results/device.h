// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "results/field.h"
#include "results/row.h"

namespace gpuwhy {

// One GPU of the recording.
struct DeviceRow {
  std::string device;
  std::string name;
  std::int64_t busy_ns = 0;  // at least one kernel, copy or graph runs
  double busy_fraction = 0;  // of the capture
  std::int64_t num_kernels = 0;
  // As the recording describes the device; 0 if unknown.
  std::int64_t num_sms = 0;
  std::int64_t compute_major = 0;  // of the compute capability, as the vendor numbers it
  std::int64_t compute_minor = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t memory_bytes_per_s = 0;
  std::int64_t copy_ns = 0;           // sum of copies and memsets
  std::int64_t pageable_copy_ns = 0;  // of these, from or to pageable memory of the host
  RowName busy_stage;                 // of the row of the ledger that says how busy it was
};

template <typename F>
void describe(const DeviceRow*, F&& f) {
  using T = DeviceRow;
  f("device", &T::device, names_row("the GPU, as cuda:0"));
  f("name", &T::name, maybe("as the driver spells it"));
  f("busy_ns", &T::busy_ns,
    number("ns", "kernels", "kernels copies graphs", "devices.busy",
           "time in which at least one kernel, copy or graph runs; overlaps count once"));
  f("busy_fraction", &T::busy_fraction,
    number("fraction", "kernels", "kernels copies graphs", "devices.busy",
           "busy_ns / capture.duration_ns"));
  f("kernels", &T::num_kernels, number("1", "", "kernels", "devices.kernels", "launches"));
  f("sms", &T::num_sms,
    number("1", "", "", "devices", "its streaming multiprocessors; 0: not recorded"));
  f("copy_ns", &T::copy_ns,
    number("ns", "", "copies", "devices.copies", "sum of copies and memsets"));
  f("busy_stage", &T::busy_stage,
    maybe("the row of ledgers whose busy_fraction says how busy it was: of the only marked stage, "
          "else of the steady phase, else of the capture"));
  f("pageable_copy_ns", &T::pageable_copy_ns,
    number("ns", "", "copies", "devices.copies",
           "of copy_ns: from or to pageable memory of the host"));
}

}  // namespace gpuwhy
