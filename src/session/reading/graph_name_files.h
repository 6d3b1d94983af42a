// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace gpuwhy {

// Files that name the kernels of CUDA graphs.
struct GraphNameFiles {
  std::string annotations;                  // of PyTorch, by node id
  std::vector<std::string> capture_traces;  // of the capture, or of the program without graphs
  bool is_search_allowed = true;            // also beside the recording
};

// Names the kernels of CUDA graphs by what the recording itself holds, then by the files that are
// given; where none are, by those beside the recording that have their usual names. Files that
// helped, or did not, are diagnostics of the trace. Throws kInput where a given file cannot be
// read, and kEnvironment where it needs more than `memory_bytes`.
void name_graph_kernels(const std::filesystem::path& recording, const GraphNameFiles& files,
                        std::optional<std::uint64_t> memory_bytes, Trace& trace);

}  // namespace gpuwhy
