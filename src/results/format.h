// SPDX-License-Identifier: Apache-2.0
//
// Description of a file format: its names, the tool behind it, and what its events are called.
//
// Each importer has one. Help, hints, labels and advice are made of these words, so that a new
// format needs no line outside its own file for them.
#pragma once

#include <string_view>

namespace gpuwhy {

// One file format: its names, and words for messages about it.
struct FormatInfo {
  std::string_view name;       // "nsys SQLite", as in metrics.json
  std::string_view tool;       // "Nsight Systems"
  std::string_view tool_id;    // "nsys", as in summaries of ranks
  std::string_view kind;       // "SQLite export": one file of this format
  std::string_view made_with;  // the command or call that writes one
  bool has_events = true;      // false: totals, without timestamps

  // What it calls its events, for sentences to the user.
  std::string_view kernels = "kernel events";
  std::string_view copies = "copy events";
  std::string_view graphs = "graph events";
  std::string_view calls = "CUDA API events";
  std::string_view marks = "annotations and operators";

  // Advice on recording again: with GPU work if none was recorded, and with the kernels of CUDA
  // graphs.
  std::string_view record_gpu = "gpuwhy doctor checks driver and tools";
  std::string_view record_graphs = "the kernels of graphs";
  // And less, where events were lost.
  std::string_view record_less = "record again, shorter";
};

}  // namespace gpuwhy
