// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "ingest/json_window.h"
#include "ingest/kineto_event.h"

namespace llmprof {

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

}  // namespace llmprof
