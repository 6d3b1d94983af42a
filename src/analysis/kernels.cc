// SPDX-License-Identifier: Apache-2.0
//
// Kernel table: one row per (kernel, device, stage), the sum of the launches of each shape.
//
// Only sums, extremes and a histogram are kept, so the table of a hundred million launches is as
// large as that of a thousand. Graphs recorded as a whole are a separate family: their time is
// real, their kernels are unknown.
#include "analysis/kernels.h"

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analysis/kernel_names.h"
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
    add_times(tally.total_ns(), tally.calls(), tally.min_ns(), tally.max_ns());
    tally.each_bin(
        [&](int bin, std::int64_t launches) { bins_[static_cast<std::size_t>(bin)] += launches; });
    shapes_.insert(shape);
  }

  void add(std::int64_t duration_ns) {
    add_times(duration_ns, 1, duration_ns, duration_ns);
    ++bins_[static_cast<std::size_t>(bin_of(duration_ns))];
  }

  KernelRow record(const std::vector<LaunchShape>& shapes) const {
    KernelRow record;
    record.total_ns = total_ns_;
    record.calls = calls_;
    record.min_ns = min_ns_;
    record.max_ns = max_ns_;
    record.median_ns = percentile_ns(50);
    record.p99_ns = percentile_ns(99);
    for (const std::uint32_t shape : shapes_) {
      record.shapes.push_back(shapes[shape]);
    }
    std::sort(record.shapes.begin(), record.shapes.end());
    for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
      if (bins_[bin] > 0) {
        record.histogram[static_cast<int>(bin)] = bins_[bin];
      }
    }
    return record;
  }

 private:
  void add_times(std::int64_t total_ns, std::int64_t calls, std::int64_t min_ns,
                 std::int64_t max_ns) {
    total_ns_ += total_ns;
    calls_ += calls;
    min_ns_ = std::min(min_ns_, min_ns);
    max_ns_ = std::max(max_ns_, max_ns);
  }

  // The duration that `percent` of the launches do not exceed, rounded up to its bin, but never
  // beyond the measured range.
  std::int64_t percentile_ns(std::int64_t percent) const {
    std::int64_t seen = 0;
    for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
      seen += bins_[bin];
      if (seen > 0 && seen * 100 >= calls_ * percent) {
        return std::clamp(bin_upper_ns(static_cast<int>(bin)), min_ns_, max_ns_);
      }
    }
    return max_ns_;
  }

  std::int64_t total_ns_ = 0;
  std::int64_t calls_ = 0;
  std::int64_t min_ns_ = INT64_MAX;
  std::int64_t max_ns_ = 0;
  std::array<std::int64_t, kNumDurationBins> bins_{};
  std::set<std::uint32_t> shapes_;
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
  const std::vector<std::string> names(distinct.begin(), distinct.end());
  const std::vector<std::string> short_names = short_kernel_names(names);
  for (KernelRow& record : analysis.kernels) {
    const auto at = std::lower_bound(names.begin(), names.end(), record.kernel_name);
    record.short_name = short_names[static_cast<std::size_t>(at - names.begin())];
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
