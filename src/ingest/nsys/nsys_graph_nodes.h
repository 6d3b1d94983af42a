// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ingest/nsys/nsys_numbers.h"
#include "ingest/nsys/nsys_tables.h"
#include "trace/trace.h"

namespace gpuwhy {

// The creations of graph nodes in an export, where any kernel is one. After the kernels.
void read_node_creations(const NsysTables& tables, TraceNumbers& numbers, Trace& trace);

}  // namespace gpuwhy
