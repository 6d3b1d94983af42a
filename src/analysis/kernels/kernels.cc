// SPDX-License-Identifier: Apache-2.0
//
// Kernel table: one row per (kernel, device, stage), the sum of the launches of each shape.
//
// Only sums, extremes and a histogram are kept, so the table of a hundred million launches is as
// large as that of a thousand. Graphs recorded as a whole are a separate family: their time is
// real, their kernels are unknown.
#include "analysis/kernels/kernels.h"

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analysis/names/kernel_names.h"
#include "results/duration_histogram.h"
#include "trace/device_label.h"

namespace gpuwhy {
namespace {

// What one row of the table is about.
struct RowKey {
  std::uint32_t stage = 0;  // of Stages, or kNone
  StringId name{};
  std::uint16_t device = 0;

  auto operator<=>(const RowKey&) const = default;
};

// One row of the table while it is added up.
class Row {
 public:
  void add(const LaunchTally& tally, std::uint32_t shape) {
    sums_.add(tally.sums());
    shapes_[shape].add(tally.sums());
    tally.each_bin(
        [&](int bin, std::int64_t launches) { bins_[static_cast<std::size_t>(bin)] += launches; });
  }

  void add(std::int64_t duration_ns) {
    sums_.add({1, duration_ns, duration_ns, duration_ns});
    ++bins_[static_cast<std::size_t>(bin_of(duration_ns))];
  }

  KernelRow record(const std::vector<LaunchShape>& shapes) const {
    KernelRow record;
    static_cast<LaunchSums&>(record) = sums_;
    record.median_ns = percentile_ns(50);
    record.p99_ns = percentile_ns(99);
    add_shapes(shapes, record);
    for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
      if (bins_[bin] > 0) {
        record.histogram.emplace_back(bin, bins_[bin]);
      }
    }
    return record;
  }

 private:
  // One kernel may run in two sizes, a hundred times apart: each has its own mean.
  void add_shapes(const std::vector<LaunchShape>& shapes, KernelRow& record) const {
    std::map<LaunchShape, const LaunchSums*> sizes;
    for (const auto& [shape, sums] : shapes_) {
      sizes[shapes[shape]] = &sums;
    }
    record.num_shapes = static_cast<std::int64_t>(sizes.size());
    for (const auto& [shape, sums] : sizes) {
      record.by_shape.push_back({*sums, shape.text()});
      if (record.shapes.size() < kMostShapes) {
        record.shapes.push_back(shape.text());
      }
    }
    std::sort(record.by_shape.begin(), record.by_shape.end(),
              [](const ShapeRow& a, const ShapeRow& b) {
                return std::tie(b.total_ns, a.shape) < std::tie(a.total_ns, b.shape);
              });
    record.by_shape.resize(sizes.size() < 2 ? 0 : std::min(sizes.size(), kMostShapes));
  }

  // The duration that `percent` of the launches do not exceed, rounded up to its bin, but never
  // beyond the measured range.
  std::int64_t percentile_ns(std::int64_t percent) const {
    std::int64_t seen = 0;
    for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
      seen += bins_[bin];
      if (seen > 0 && seen * 100 >= sums_.calls * percent) {
        return std::clamp(bin_upper_ns(static_cast<int>(bin)), sums_.min_ns, sums_.max_ns);
      }
    }
    return sums_.max_ns;
  }

  LaunchSums sums_;
  std::array<std::int64_t, kNumDurationBins> bins_{};
  std::map<std::uint32_t, LaunchSums> shapes_;
};

std::uint32_t stage_of(const Stages& stages, std::uint32_t instance) {
  return instance == kNone ? kNone : stages.instances[instance].stage;
}

}  // namespace

void summarise_kernels(const Trace& trace, const KernelFamilies& families, const Stages& stages,
                       const Attribution& attribution, const LaunchTallies& tallies,
                       Analysis& analysis) {
  const auto add_record = [&](const RowKey& key, const Row& row, std::string name,
                              std::string family) {
    KernelRow record = row.record(trace.shapes);
    record.kernel_name = std::move(name);
    record.device = device_label(trace.devices[key.device]);
    record.stage = stages.name_of(key.stage);
    record.family = std::move(family);
    analysis.capture.kernel_ns += record.total_ns;
    analysis.capture.unattributed_kernel_ns += key.stage == kNone ? record.total_ns : 0;
    analysis.kernels.push_back(std::move(record));
  };

  // The tallies of a row side by side, so that only one histogram is needed.
  std::vector<std::pair<RowKey, const LaunchTallies::value_type*>> parts;
  parts.reserve(tallies.size());
  for (const LaunchTallies::value_type& tally : tallies) {
    parts.emplace_back(RowKey{tally.first.stage, tally.first.name, tally.first.device}, &tally);
  }
  std::sort(parts.begin(), parts.end());
  for (auto part = parts.begin(); part != parts.end();) {
    const RowKey key = part->first;
    Row row;
    for (; part != parts.end() && part->first == key; ++part) {
      row.add(part->second->second, part->second->first.shape);
    }
    add_record(key, row, std::string(trace.strings[key.name]), families[key.name]);
  }

  std::map<RowKey, Row> graphs;
  for (std::size_t row = 0; row < trace.graphs.size(); ++row) {
    const std::uint32_t stage = stage_of(stages, attribution.graphs.instance[row]);
    graphs[{stage, StringId{}, trace.graphs.device[row]}].add(trace.graphs.end_ns[row] -
                                                              trace.graphs.start_ns[row]);
  }
  for (const auto& [key, row] : graphs) {
    add_record(key, row, "[CUDA graph, recorded as a whole]", std::string(kOpaqueGraph));
    analysis.capture.opaque_graph_ns += analysis.kernels.back().total_ns;
  }
  finish_kernel_table(analysis);
}

void finish_kernel_table(Analysis& analysis) {
  std::sort(analysis.kernels.begin(), analysis.kernels.end(),
            [](const KernelRow& a, const KernelRow& b) {
              return std::tuple(-a.total_ns, a.kernel_name, a.device, a.stage) <
                     std::tuple(-b.total_ns, b.kernel_name, b.device, b.stage);
            });

  std::set<std::string> distinct;
  std::map<std::string, FamilyRow> families;
  for (const KernelRow& record : analysis.kernels) {
    distinct.insert(record.kernel_name);
    FamilyRow& total = families[record.family];
    total.family = record.family;
    total.total_ns += record.total_ns;
    total.calls += record.calls;
  }
  const std::map<std::string, std::string> short_names = short_names_of(distinct);
  for (KernelRow& record : analysis.kernels) {
    record.short_name = short_names.at(record.kernel_name);
    record.kernel_fraction = fraction_of(record.total_ns, analysis.capture.kernel_ns);
  }
  for (auto& [name, total] : families) {
    analysis.families.push_back(total);
  }
  std::sort(analysis.families.begin(), analysis.families.end(),
            [](const FamilyRow& a, const FamilyRow& b) {
              return std::tuple(-a.total_ns, a.family) < std::tuple(-b.total_ns, b.family);
            });

  // If more than a tenth of the time has no family, the names deserve a rule.
  const auto other = families.find(std::string(kOtherFamily));
  if (other != families.end() && other->second.total_ns * 10 > analysis.capture.kernel_ns) {
    for (const KernelRow& record : analysis.kernels) {
      const bool is_new =
          std::find(analysis.unmatched_names.begin(), analysis.unmatched_names.end(),
                    record.kernel_name) == analysis.unmatched_names.end();
      if (record.family == kOtherFamily && is_new && analysis.unmatched_names.size() < 10) {
        analysis.unmatched_names.push_back(record.kernel_name);
      }
    }
  }
}

}  // namespace gpuwhy
