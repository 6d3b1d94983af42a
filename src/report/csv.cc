// SPDX-License-Identifier: Apache-2.0
//
// CSV tables for scripts: full names, integer nanoseconds, stable columns.
#include "base/csv.h"

#include <algorithm>

#include <fmt/format.h>

#include "report/metrics.h"

namespace gpuwhy {

std::string kernels_csv(const std::vector<KernelRecord>& records) {
  std::string text = "kernel_name,device,stage,family,total_ns,calls,mean_ns,min_ns,max_ns\n";
  for (const KernelRecord& record : records) {
    const double mean_ns = static_cast<double>(record.total_ns) /
                           static_cast<double>(std::max<std::int64_t>(record.calls, 1));
    text += fmt::format("{},{},{},{},{},{},{:.1f},{},{}\n", csv_cell(record.kernel_name),
                        record.device, csv_cell(record.stage.text()), csv_cell(record.family),
                        record.total_ns, record.calls, mean_ns, record.min_ns, record.max_ns);
  }
  return text;
}

std::string ranges_csv(const std::vector<RangeTotal>& ranges) {
  std::string text =
      "range,instances,host_ns,host_own_ns,longest_ns,longest_start_ns,kernels,kernel_ns\n";
  for (const RangeTotal& range : ranges) {
    text += fmt::format("{},{},{},{},{},{},{},{}\n", csv_cell(range.range), range.instances,
                        range.host_ns, range.host_own_ns, range.longest_ns, range.longest_start_ns,
                        range.kernels, range.kernel_ns);
  }
  return text;
}

}  // namespace gpuwhy
