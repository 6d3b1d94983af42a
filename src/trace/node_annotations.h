// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

namespace gpuwhy {

// Names that a program gave to the nodes of its CUDA graphs, by node id: module paths or labels.
using GraphAnnotations = std::unordered_map<std::uint64_t, std::string>;

}  // namespace gpuwhy
