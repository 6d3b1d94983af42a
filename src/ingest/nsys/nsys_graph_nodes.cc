// SPDX-License-Identifier: Apache-2.0
//
// Creations of CUDA graph nodes in nsys exports.
//
// A row tells a node's id, when and on which thread it was made, and which node it copies: graphs
// are captured once, and instantiated as copies. Since 2023 the table is CUDA_GRAPH_NODE_EVENTS;
// 2022 has the same columns in CUDA_GRAPH_EVENTS, which later versions use for whole graphs.
//
// Without the column of originals a copy cannot be distinguished from a captured node, and its
// time, that of the instantiation, would give it the wrong names. Such tables are left out.
#include "ingest/nsys/nsys_graph_nodes.h"

#include "ingest/nsys/nsys_columns.h"

namespace gpuwhy {

void read_node_creations(const NsysTables& tables, TraceNumbers& numbers, Trace& trace) {
  if (trace.graph_nodes.size() <= kUnnumberedNode + 1) {
    return;
  }
  for (const char* table : {"CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS"}) {
    const TableScan scan = tables.scan(table, column_names<NsysNodeColumns>());
    for (std::size_t chunk = 0; chunk < scan.num_chunks(); ++chunk) {
      scan.scan(chunk, [&](std::size_t, const SqlValue* row, bool) {
        const bool is_usable = row[NsysNodeColumns::kStart].kind == SqlValue::Kind::kInteger &&
                               row[NsysNodeColumns::kThread].kind == SqlValue::Kind::kInteger &&
                               row[NsysNodeColumns::kNode].as_integer() != 0;
        if (is_usable) {
          NodeCreation& creation = trace.node_creations.emplace_back();
          creation.node = static_cast<std::uint64_t>(row[NsysNodeColumns::kNode].as_integer());
          creation.original =
              static_cast<std::uint64_t>(row[NsysNodeColumns::kOriginal].as_integer());
          creation.time_ns = row[NsysNodeColumns::kStart].integer;
          creation.thread =
              numbers.thread(static_cast<std::uint64_t>(row[NsysNodeColumns::kThread].integer));
        }
      });
    }
  }
}

}  // namespace gpuwhy
