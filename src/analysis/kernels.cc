// SPDX-License-Identifier: Apache-2.0
//
// Kernel table: one row per (kernel, device, stage), from one pass over the kernels.
//
// Groups are found by a hash of the three numbers. Only sums, extremes and a histogram are kept, so
// the table of a hundred million launches is as large as that of a thousand. Graphs recorded as a
// whole are a separate family: their time is real, their kernels are unknown.
#include "analysis/kernels.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "analysis/duration_histogram.h"
#include "analysis/kernel_names.h"
#include "trace/device_label.h"

namespace llmprof {
namespace {

struct GroupKey {
  std::uint32_t stage = 0;  // of Stages, or kNone
  StringId name{};
  std::uint16_t device = 0;

  bool operator==(const GroupKey&) const = default;
};

struct GroupHash {
  std::size_t operator()(const GroupKey& key) const {
    return (static_cast<std::uint64_t>(key.name) << 32) ^
           (static_cast<std::uint64_t>(key.device) << 20) ^ (key.stage & 0xfffff);
  }
};

struct Group {
  std::int64_t total_ns = 0;
  std::int64_t calls = 0;
  std::int64_t min_ns = INT64_MAX;
  std::int64_t max_ns = 0;
  std::vector<std::uint32_t> bins = std::vector<std::uint32_t>(kNumDurationBins);
  std::uint32_t last_shape = kNone;
  std::unordered_set<std::uint32_t> shapes;

  void add_shape(std::uint32_t shape) {
    if (shape != last_shape) {
      shapes.insert(shape);
      last_shape = shape;
    }
  }

  void add(std::int64_t duration_ns) {
    total_ns += duration_ns;
    ++calls;
    min_ns = std::min(min_ns, duration_ns);
    max_ns = std::max(max_ns, duration_ns);
    ++bins[static_cast<std::size_t>(bin_of(duration_ns))];
  }

  // The duration that `percent` of the launches do not exceed, rounded up to its bin, but never
  // beyond the measured range.
  std::int64_t percentile_ns(std::int64_t percent) const {
    std::int64_t seen = 0;
    for (std::size_t bin = 0; bin < bins.size(); ++bin) {
      seen += bins[bin];
      if (seen > 0 && seen * 100 >= calls * percent) {
        return std::clamp(bin_upper_ns(static_cast<int>(bin)), min_ns, max_ns);
      }
    }
    return max_ns;
  }
};

// Rows by key. Consecutive launches often share one, so the last is cached.
class Groups {
 public:
  Group& operator[](const GroupKey& key) {
    if (last_ == nullptr || !(key == last_key_)) {
      last_ = &groups_[key];
      last_key_ = key;
    }
    return *last_;
  }

  const std::unordered_map<GroupKey, Group, GroupHash>& all() const { return groups_; }

 private:
  std::unordered_map<GroupKey, Group, GroupHash> groups_;
  GroupKey last_key_;
  Group* last_ = nullptr;
};

std::uint32_t stage_of(const Stages& stages, std::uint32_t instance) {
  return instance == kNone ? kNone : stages.instances[instance].stage;
}

}  // namespace

void summarise_kernels(const Trace& trace, const KernelFamilies& families, const Stages& stages,
                       const Attribution& attribution, Analysis& analysis) {
  Groups groups;
  for (std::size_t row = 0; row < trace.kernels.size(); ++row) {
    const std::uint32_t stage = stage_of(stages, attribution.kernels.instance[row]);
    Group& group = groups[{stage, trace.kernels.name[row], trace.kernels.device[row]}];
    group.add(trace.kernels.end_ns[row] - trace.kernels.start_ns[row]);
    group.add_shape(trace.kernels.shape[row]);
  }
  Groups graphs;
  for (std::size_t row = 0; row < trace.graphs.size(); ++row) {
    const std::uint32_t stage = stage_of(stages, attribution.graphs.instance[row]);
    graphs[{stage, StringId{}, trace.graphs.device[row]}].add(trace.graphs.end_ns[row] -
                                                              trace.graphs.start_ns[row]);
  }
  const auto add_record = [&](const GroupKey& key, const Group& group, std::string name,
                              std::string family) {
    KernelRecord record;
    record.kernel_name = std::move(name);
    record.device = device_label(trace.devices[key.device]);
    record.stage = key.stage == kNone ? kOutsideStages : stages.names[key.stage];
    record.family = std::move(family);
    record.total_ns = group.total_ns;
    record.calls = group.calls;
    record.min_ns = group.min_ns;
    record.max_ns = group.max_ns;
    record.median_ns = group.percentile_ns(50);
    record.p99_ns = group.percentile_ns(99);
    for (const std::uint32_t shape : group.shapes) {
      record.shapes.push_back(trace.shapes[shape]);
    }
    std::sort(record.shapes.begin(), record.shapes.end());
    for (std::size_t bin = 0; bin < group.bins.size(); ++bin) {
      if (group.bins[bin] > 0) {
        record.histogram[static_cast<int>(bin)] = group.bins[bin];
      }
    }
    analysis.kernel_ns += group.total_ns;
    analysis.unattributed_ns += key.stage == kNone ? group.total_ns : 0;
    analysis.kernels.push_back(std::move(record));
  };
  for (const auto& [key, group] : groups.all()) {
    add_record(key, group, std::string(trace.strings[key.name]), families[key.name]);
  }
  for (const auto& [key, group] : graphs.all()) {
    add_record(key, group, "[CUDA graph, recorded as a whole]", std::string(kOpaqueGraph));
    analysis.opaque_graph_ns += group.total_ns;
  }
  finish_kernel_table(analysis);
}

void finish_kernel_table(Analysis& analysis) {
  std::sort(analysis.kernels.begin(), analysis.kernels.end(),
            [](const KernelRecord& a, const KernelRecord& b) {
              return std::tuple(-a.total_ns, a.kernel_name, a.device, a.stage) <
                     std::tuple(-b.total_ns, b.kernel_name, b.device, b.stage);
            });

  std::set<std::string> distinct;
  std::map<std::string, FamilyTotal> families;
  for (const KernelRecord& record : analysis.kernels) {
    distinct.insert(record.kernel_name);
    FamilyTotal& total = families[record.family];
    total.family = record.family;
    total.total_ns += record.total_ns;
    total.calls += record.calls;
  }
  const std::vector<std::string> names(distinct.begin(), distinct.end());
  const std::vector<std::string> short_names = short_kernel_names(names);
  for (KernelRecord& record : analysis.kernels) {
    const auto at = std::lower_bound(names.begin(), names.end(), record.kernel_name);
    record.short_name = short_names[static_cast<std::size_t>(at - names.begin())];
  }
  for (auto& [name, total] : families) {
    analysis.families.push_back(total);
  }
  std::sort(analysis.families.begin(), analysis.families.end(),
            [](const FamilyTotal& a, const FamilyTotal& b) {
              return std::tuple(-a.total_ns, a.family) < std::tuple(-b.total_ns, b.family);
            });

  // If more than a tenth of the time has no family, the names deserve a rule.
  const auto other = families.find(std::string(kOther));
  if (other != families.end() && other->second.total_ns * 10 > analysis.kernel_ns) {
    for (const KernelRecord& record : analysis.kernels) {
      const bool is_new =
          std::find(analysis.unmatched_names.begin(), analysis.unmatched_names.end(),
                    record.kernel_name) == analysis.unmatched_names.end();
      if (record.family == kOther && is_new && analysis.unmatched_names.size() < 10) {
        analysis.unmatched_names.push_back(record.kernel_name);
      }
    }
  }
}

std::vector<KernelRecord> top_n_kernels(const std::vector<KernelRecord>& records, std::size_t n) {
  return {records.begin(),
          records.begin() + static_cast<std::ptrdiff_t>(std::min(n, records.size()))};
}

}  // namespace llmprof
