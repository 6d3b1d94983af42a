// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ingest/json_window.h"
#include "trace/trace.h"

namespace llmprof {

enum class KinetoKind : std::uint8_t {
  kOperator,
  kModule,      // an nn.Module's forward
  kAnnotation,  // record_function of a program or an engine
  kCall,
  kKernel,
  kCopy,
  kMemset,
  kLegacyLaunch,   // before Kineto: the operator's end of an arrow to a kernel
  kLegacyArrival,  // and the kernel's end, just before the kernel itself
};

// What the arguments of a collective's kernel say; empty or kNoPayload where they do not.
struct KinetoCollective {
  std::string_view name;
  std::string_view dtype;
  std::string_view group;
  std::int64_t in_elements = kNoPayload;
  std::int64_t out_elements = kNoPayload;
  std::int64_t group_size = kNoPayload;
};

// One event worth keeping. Texts are views that end with the call they are given to.
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
  bool is_graph_node = false;
  std::string_view module_path;  // of an operator, where the profiler was asked for it
  KinetoCollective collective;
};

// How the reading of an array of events went.
struct KinetoArray {
  std::uint64_t num_events = 0;    // of any kind
  std::uint64_t num_unusable = 0;  // of a kind we keep, but without a time or a place
  bool was_repaired = false;       // control characters or bytes that are no UTF-8 were replaced
  std::optional<std::uint64_t> stopped_at;  // the byte where the text ended or made no sense
};

// Reads the events of an array whose '[' is the next character of `window`, up to and with its ']'.
// Never throws for what the text says.
class KinetoEvents {
 public:
  KinetoEvents();
  ~KinetoEvents();

  using Sink = std::function<void(const KinetoEvent&)>;
  KinetoArray read(JsonWindow& window, const Sink& sink);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

// "1365627862757.064" microseconds are 1365627862757064 ns: exactly, since a double does not hold
// the times of day that older traces count in. Nothing for what is no number or beyond the year
// 2096.
std::optional<std::int64_t> ns_of_microseconds(std::string_view text);

}  // namespace llmprof
