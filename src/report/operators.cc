// SPDX-License-Identifier: Apache-2.0
//
// Operators as a part of metrics.json.
#include <algorithm>

#include "base/units.h"
#include "report/report.h"

namespace llmprof {

Json operators_json(const Operators& operators) {
  Json document = {
      {"source", operators.source},
      {"time_of", operators.is_gpu_time ? "the time is that of the kernels they launched themselves"
                                        : "the time is the host's"},
      {"covered_ns", operators.covered_ns},
      {"whole_ns", operators.whole_ns}};
  document["rows"] = Json::array();
  for (const OperatorRecord& row : operators.rows) {
    document["rows"].push_back(
        {{"name", row.name},
         {"stage", row.stage},
         {"total_ns", row.total_ns},
         {"calls", row.calls},
         {"mean_ns", fraction_of(row.total_ns, std::max<std::int64_t>(row.calls, 1))},
         {"share_fraction", fraction_of(row.total_ns, operators.whole_ns)},
         {"kernels", row.num_kernels},
         {"flops", number_or_null(row.flops)},
         {"bytes", number_or_null(row.bytes)}});
  }
  document["layers"] = Json::array();
  for (const LayerTotal& layer : operators.layers) {
    document["layers"].push_back(
        {{"layer", layer.layer}, {"total_ns", layer.total_ns}, {"calls", layer.calls}});
  }
  return document;
}

}  // namespace llmprof
