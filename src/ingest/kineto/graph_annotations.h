// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "trace/node_annotations.h"

namespace gpuwhy {

// PyTorch's kernel_annotations_rank*.json. `name` is for messages. Throws kInput if it is not such
// a file.
GraphAnnotations parse_graph_annotations(std::string_view text, const std::string& name);
GraphAnnotations load_graph_annotations(const std::filesystem::path& path);

}  // namespace gpuwhy
