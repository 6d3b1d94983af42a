// SPDX-License-Identifier: Apache-2.0
//
// Totals per stage: durations of its instances on the host, and the kernels they launched.
#include "analysis/stages/stage_summary.h"

#include <algorithm>

#include "base/median.h"

namespace gpuwhy {
namespace {

template <typename Table>
void add_table_time(const Stages& stages, const Origins& origins, const Table& table,
                    std::vector<StageRow>& summaries) {
  for (std::size_t row = 0; row < table.size(); ++row) {
    bool is_graph = true;
    if constexpr (requires { table.is_graph_node(row); }) {
      is_graph = table.is_graph_node(row);
    }
    for (const std::uint32_t instance : {origins.instance[row], origins.nested[row]}) {
      if (instance != kNone) {
        StageRow& summary = summaries[stages.instances[instance].stage];
        summary.kernel_ns += table.end_ns[row] - table.start_ns[row];
        ++summary.num_kernels;
        summary.num_graph_kernels += is_graph ? 1 : 0;
      }
    }
  }
}

}  // namespace

std::vector<StageRow> summarise_stages(const Stages& stages) {
  std::vector<StageRow> summaries(stages.names.size());
  std::vector<std::vector<std::int64_t>> durations(stages.names.size());
  std::vector<std::int64_t> first_start(stages.names.size(), INT64_MAX);
  for (std::size_t i = 0; i < stages.names.size(); ++i) {
    summaries[i].stage = stages.names[i];
    summaries[i].is_nested = stages.is_nested[i];
  }
  // Open instances count as instances, but have no duration.
  for (const StageInstance& instance : stages.instances) {
    StageRow& summary = summaries[instance.stage];
    ++summary.num_instances;
    if (instance.tokens) {
      summary.tokens = summary.tokens.value_or(0) + *instance.tokens;
    }
    if (instance.is_open) {
      ++summary.num_open;
    } else {
      const std::int64_t duration = instance.end_ns - instance.start_ns;
      durations[instance.stage].push_back(duration);
      if (instance.start_ns < first_start[instance.stage]) {
        first_start[instance.stage] = instance.start_ns;
        summary.first_ns = duration;
      }
    }
  }
  // The steady mean leaves out the first instance, which pays for warm-up.
  for (std::size_t i = 0; i < summaries.size(); ++i) {
    for (const std::int64_t duration : durations[i]) {
      summaries[i].total_ns += duration;
      summaries[i].max_ns = std::max(summaries[i].max_ns, duration);
    }
    if (durations[i].size() > 1) {
      summaries[i].steady_mean_ns = (summaries[i].total_ns - summaries[i].first_ns) /
                                    static_cast<std::int64_t>(durations[i].size() - 1);
    }
    if (!durations[i].empty()) {
      summaries[i].min_ns = *std::min_element(durations[i].begin(), durations[i].end());
      summaries[i].median_ns = *lower_median(std::move(durations[i]));
    }
  }
  return summaries;
}

void add_kernel_time(const Trace& trace, const Stages& stages, const Attribution& attribution,
                     std::vector<StageRow>& summaries) {
  add_table_time(stages, attribution.kernels, trace.kernels, summaries);
  add_table_time(stages, attribution.graphs, trace.graphs, summaries);
}

}  // namespace gpuwhy
