// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels in CUDA graphs. A replay is one call on the host, so nothing around that
// call tells the operators and layers of its kernels. These functions find what was open when the
// nodes of the graph were made and write it to Trace::graph_nodes, where all later steps read it.
// Call them in the order of trust, before the trace is cut to a window: a name that is known is
// kept.
#pragma once

#include <cstdint>

#include "results/range.h"
#include "trace/node_annotations.h"
#include "trace/trace.h"

namespace gpuwhy {

// By the tables of graph nodes in an nsys export: the NVTX ranges open when the node was captured.
// Frees Trace::node_creations.
void name_nodes_by_nvtx(Trace& trace);

// By the names the program gave to its nodes.
void name_nodes_by_annotations(const GraphAnnotations& annotations, Trace& trace);

// Result of an alignment.
struct AlignedKernels {
  std::int64_t num_known = 0;    // launches the other recording names
  std::int64_t num_aligned = 0;  // kernels of graphs that got a name from them
  bool is_exhausted = false;     // it took too long: some replays were not compared
};

// By order: the kernels of each replay are aligned with the launches of a recording of the capture,
// or of the same program without graphs. The two may be one recording.
AlignedKernels name_nodes_by_order(const Trace& capture, Trace& trace);

// Whether a kernel of a graph has no operator and no module yet.
bool has_unnamed_nodes(const Trace& trace);

// How many kernels of CUDA graphs have names, and how they were found.
GraphNames count_graph_names(const Trace& trace);

}  // namespace gpuwhy
