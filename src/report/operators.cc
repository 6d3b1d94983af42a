// SPDX-License-Identifier: Apache-2.0
//
// The operators of a framework, for machines.
#include "report/report.h"

namespace llmprof {

Json operators_json(const Operators& operators) {
  Json rows = Json::array();
  for (const OperatorRecord& row : operators.rows) {
    rows.push_back({{"operator", row.name},
                    {"stage", text_or_null(row.stage)},
                    {"total_ns", row.total_ns},
                    {"calls", row.calls},
                    {"kernels", row.num_kernels},
                    {"flops", number_or_null(row.flops)},
                    {"bytes", number_or_null(row.bytes)}});
  }
  Json layers = Json::array();
  for (const LayerTotal& layer : operators.layers) {
    layers.push_back(
        {{"layer", layer.layer}, {"total_ns", layer.total_ns}, {"calls", layer.calls}});
  }
  return {{"source", operators.source},
          {"gpu_time", operators.is_gpu_time},
          {"covered_ns", operators.covered_ns},
          {"whole_ns", operators.whole_ns},
          {"rows", rows},
          {"layers", layers}};
}

}  // namespace llmprof
