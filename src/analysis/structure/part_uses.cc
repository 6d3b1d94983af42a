// SPDX-License-Identifier: Apache-2.0
//
// Time of the parts of a model by GPU.
//
// The structure of a recording sums over its GPUs. A summary is of one rank, so its sums are made
// again from the kernels. Kernels of one part in one kind of layer are one row, at whatever
// position they run.
//
// What it gets wrong: kinds of passes and layers are numbered within a recording, so "forward 2"
// and "layer B" of two ranks are the same only if both ranks run the same passes.
#include "analysis/structure/part_uses.h"

#include <map>
#include <tuple>

#include "trace/device_label.h"

namespace gpuwhy {

std::vector<PartRow> find_part_uses(const Trace& trace, const Structure& structure,
                                    const StructureSummary& summary,
                                    const std::vector<std::uint32_t>& kernel_parts) {
  std::map<std::pair<std::uint16_t, std::string>, std::int64_t> num_passes;
  for (const KernelStream& stream : structure.streams) {
    for (const ModelPass& pass : stream.passes) {
      num_passes[{stream.device, summary.passes[pass.kind].pass}] += pass.is_whole ? 1 : 0;
    }
  }
  struct Slot {
    std::int64_t launches = 0;
    std::int64_t total_ns = 0;
  };
  std::vector<std::vector<Slot>> by_device(trace.devices.size(),
                                           std::vector<Slot>(summary.parts.size()));
  for (std::size_t row = 0; row < kernel_parts.size(); ++row) {
    if (kernel_parts[row] != kNone) {
      Slot& slot = by_device[trace.kernels.device[row]][kernel_parts[row]];
      ++slot.launches;
      slot.total_ns += trace.kernels.end_ns[row] - trace.kernels.start_ns[row];
    }
  }
  std::vector<PartRow> found;
  for (std::size_t device = 0; device < trace.devices.size(); ++device) {
    std::map<std::tuple<std::string, std::string, std::string>, PartRow> sums;
    for (std::size_t i = 0; i < summary.parts.size(); ++i) {
      const Slot& use = by_device[device][i];
      const LayerPartRow& part = summary.parts[i];
      if (use.launches == 0) {
        continue;
      }
      PartRow& sum = sums[{part.pass, std::string(part.block()), part.part}];
      sum.launches += use.launches;
      sum.total_ns += use.total_ns;
    }
    for (auto& [key, sum] : sums) {
      sum.device = device_label(trace.devices[device]);
      std::tie(sum.pass, sum.block, sum.part) = key;
      sum.passes = num_passes[{device, sum.pass}];
      found.push_back(std::move(sum));
    }
  }
  return found;
}

}  // namespace gpuwhy
