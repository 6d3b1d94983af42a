// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "ingest/kineto/json_buffer.h"
#include "ingest/kineto/kineto_event.h"
#include "trace/left_out.h"

namespace gpuwhy {

// Statistics of reading an array of events.
struct KinetoArray {
  std::uint64_t num_events = 0;             // of any kind
  LeftOut left_out;                         // of a kind we keep
  bool was_repaired = false;                // control characters or invalid UTF-8 were replaced
  std::optional<std::uint64_t> stopped_at;  // where the text ended early or became invalid
};

// Reads the events of an array whose '[' is the next character of `window`, including its ']'.
// Never throws because of the contents.
class KinetoEvents {
 public:
  KinetoEvents();
  ~KinetoEvents();

  using Sink = std::function<void(const KinetoEvent&)>;
  KinetoArray read(JsonBuffer& window, const Sink& sink);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace gpuwhy
