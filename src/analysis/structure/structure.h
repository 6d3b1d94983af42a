// SPDX-License-Identifier: Apache-2.0
//
// The model as the order of kernels shows it: passes, layers, and the place of a kernel in its
// layer. Needs neither marks nor operators, so it also works inside CUDA graphs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/names/kernel_families.h"
#include "analysis/names/kernel_symbols.h"
#include "trace/trace.h"

namespace gpuwhy {

// What a forward pass computes, where the work of its kernels tells.
enum class PassWorkKind : std::uint8_t { kUnknown, kPrefill, kDecode };

// One pass through the layers of a model, as positions in KernelStream::kernels.
struct ModelPass {
  std::uint32_t kind = 0;             // into Structure::kinds
  std::uint32_t begin = 0;            // with its prologue: embedding, first norm
  std::uint32_t end = 0;              // with its epilogue: last norm, lm_head, sampling
  std::vector<std::uint32_t> layers;  // first kernel of each, then the end of the last
  bool is_whole = true;               // false: the capture begins or ends inside
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  PassWorkKind work = PassWorkKind::kUnknown;  // of recover_steps()

  int num_layers() const { return static_cast<int>(layers.size()) - 1; }
  // The layer of a kernel, from 0: -1 before the first, num_layers() after the last.
  int layer_at(std::uint32_t position) const {
    const auto after = std::upper_bound(layers.begin(), layers.end(), position);
    return static_cast<int>(after - layers.begin()) - 1;
  }
};

// Passes with the same layers: forward, backward, another model.
struct ModelPassKind {
  std::uint32_t num_layers = 0;
  std::uint32_t num_passes = 0;     // whole ones
  std::uint32_t layer_kernels = 0;  // of a layer, median
  bool is_backward = false;         // by the names of its kernels
  std::vector<std::string> signs;   // why this is a model, in words; two at least
};

// Kernels of one process on one GPU in order of start.
struct KernelStream {
  std::uint16_t device = 0;            // into Trace::devices
  std::uint16_t process = 0;           // into Trace::processes
  std::vector<std::uint32_t> kernels;  // into Trace::kernels
  std::vector<std::uint32_t> symbols;  // of the same kernels
  std::vector<ModelPass> passes;       // by start
};

struct Structure {
  KernelSymbols symbols;
  std::vector<ModelPassKind> kinds;
  std::vector<KernelStream> streams;  // by the numbers of device and process
  std::string reason;                 // why there are no passes; empty: there are

  bool is_found() const { return !kinds.empty(); }
};

Structure find_structure(const Trace& trace, const KernelFamilies& families);

}  // namespace gpuwhy
