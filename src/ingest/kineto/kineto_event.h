// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "trace/trace.h"

namespace gpuwhy {

// Kinds of trace events that are kept.
enum class KinetoKind : std::uint8_t {
  kOperator,
  kModule,      // an nn.Module's forward
  kFunction,    // of Python, from kLeastFunctionNs on
  kAnnotation,  // record_function of a program or an engine
  kCall,
  kKernel,
  kCopy,
  kMemset,
  kLegacyLaunch,   // before Kineto: the operator's end of an arrow to a kernel
  kLegacyArrival,  // and the kernel's end, just before the kernel itself
  kSession,        // the time in which the profiler recorded
  kCounted,        // a range in which CUPTI counted, which replaces the record of kernels
};

// The kind of an event with this `cat`; nullopt if it is not kept.
std::optional<KinetoKind> kineto_kind(std::string_view category);

// One event to keep. Texts are views that are valid during the call.
struct KinetoEvent {
  KinetoKind kind = KinetoKind::kOperator;
  std::string_view name;
  std::int64_t pid = 0;
  std::int64_t tid = 0;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t device = 0;
  std::int64_t context = 0;
  std::int64_t stream = 0;
  std::int64_t bytes = 0;
  std::uint32_t correlation = kNone;
  LaunchShape shape;
  std::uint64_t graph_node = 0;  // id of the node that ran as this kernel; 0: none, or not told
  std::string_view launched;     // of a call, where the profiler tells: the kernel
  std::string_view module_path;  // of an operator, where the profiler was asked for it
  // Of a matrix product or attention, as JSON: sizes, types and values of its inputs.
  std::string_view input_sizes;
  std::string_view input_types;
  std::string_view input_values;
  // Of a collective, and of its kernels.
  std::string_view collective;
  std::string_view group;
  std::string_view group_description;
  std::string_view group_ranks;  // "[0, 1]"; more than thirty are cut: "[0, 1, ...]"
  std::string_view dtype;
  std::int64_t group_size = 0;
  std::int64_t in_elements = 0;
  std::int64_t out_elements = 0;
};

}  // namespace gpuwhy
