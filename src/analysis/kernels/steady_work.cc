// SPDX-License-Identifier: Apache-2.0
//
// Kernel time inside the steady phase of a recording without marks.
//
// Findings speak of the steady phase, so the times they name must lie in it. Kernels outside of it
// are few, and are subtracted from the totals.
#include "analysis/kernels/steady_work.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "trace/device_label.h"

namespace gpuwhy {

std::vector<SteadyPart> steady_parts(const Trace& trace, const std::vector<LedgerRow>& phases) {
  std::vector<SteadyPart> windows(trace.devices.size());
  for (std::size_t device = 0; device < windows.size(); ++device) {
    const std::string label = device_label(trace.devices[device]);
    for (const LedgerRow& phase : phases) {
      if (phase.stage.kind == RowKind::kSteady && phase.device == label) {
        windows[device] = {phase.start_ns, phase.end_ns};
      }
    }
  }
  return windows;
}

void measure_steady(const Trace& trace, const Stages& stages, const Attribution& attribution,
                    const std::vector<SteadyPart>& windows, Analysis& analysis) {
  // Kernel, stage and GPU, as the kernel table has them; then what else launches are grouped by.
  using RecordKey = std::tuple<std::string_view, std::string_view, std::string_view>;
  using GroupKey = std::tuple<RecordKey, std::string_view, LaunchShape, std::uint16_t>;
  // The same by numbers of the trace: name, stage, device, mangled name, shape, process.
  using Numbers =
      std::tuple<StringId, std::uint32_t, std::uint16_t, StringId, std::uint32_t, std::uint16_t>;
  if (std::none_of(windows.begin(), windows.end(),
                   [](const SteadyPart& window) { return window.is_known(); })) {
    return;
  }
  std::map<Numbers, std::int64_t> by_numbers;
  const Kernels& kernels = trace.kernels;
  for (std::size_t row = 0; row < kernels.size(); ++row) {
    const std::uint16_t device = kernels.device[row];
    const SteadyPart& window = windows[device];
    if (window.is_known() && !window.has(kernels.start_ns[row])) {
      const std::uint32_t instance = attribution.kernels.instance[row];
      by_numbers[{kernels.name[row], instance == kNone ? kNone : stages.instances[instance].stage,
                  device, kernels.mangled_name[row], kernels.shape[row], kernels.process[row]}] +=
          kernels.end_ns[row] - kernels.start_ns[row];
    }
  }
  std::vector<std::string> labels;
  labels.reserve(trace.devices.size());
  for (const DeviceInfo& device : trace.devices) {
    labels.push_back(device_label(device));
  }
  std::map<std::string_view, bool> has_window;
  for (std::size_t device = 0; device < labels.size(); ++device) {
    has_window[labels[device]] = windows[device].is_known();
  }
  std::map<RecordKey, std::int64_t> outside_ns;
  std::map<GroupKey, std::int64_t> group_outside_ns;
  for (const auto& [numbers, time_ns] : by_numbers) {
    const auto& [name, stage, device, mangled, shape, process] = numbers;
    const RecordKey record(trace.strings[name], stages.name_of(stage).text(), labels[device]);
    outside_ns[record] += time_ns;
    group_outside_ns[{record, trace.strings[mangled], trace.shapes[shape], process}] += time_ns;
  }
  for (KernelRow& record : analysis.kernels) {
    if (has_window[record.device]) {
      const auto found = outside_ns.find({record.kernel_name, record.stage.text(), record.device});
      record.steady_ns = record.total_ns - (found == outside_ns.end() ? 0 : found->second);
    }
  }
  for (LaunchGroup& group : analysis.launch_groups) {
    if (has_window[group.gpu]) {
      const auto found = group_outside_ns.find({{group.kernel_name, group.stage.text(), group.gpu},
                                                group.mangled_name,
                                                group.shape,
                                                group.process});
      group.steady_ns = group.total_ns - (found == group_outside_ns.end() ? 0 : found->second);
    }
  }
}

}  // namespace gpuwhy
