// SPDX-License-Identifier: Apache-2.0
//
// Requests of a serving benchmark as columns, independent of the client that wrote them.
//
// Times are nanoseconds on the client's clock. Columns, because a file has tens of thousands of
// requests with thousands of tokens each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwhy {

inline constexpr std::int64_t kNoTime = INT64_MIN;  // of a request: not known
inline constexpr std::int64_t kNoCount = -1;        // tokens or slot: not known

// What the zero of a client's clock is.
enum class RequestClock : std::uint8_t {
  kEpoch,      // 1970 in UTC
  kMonotonic,  // unknown: the boot of the client's machine, or the start of its process
  kUntimed,    // requests have lengths but no times
};

// All requests of a file, in file order.
struct Requests {
  std::string path;
  std::string format;  // in words, as "vllm bench serve"
  RequestClock clock = RequestClock::kEpoch;
  // Spacing of the stamps; a record in milliseconds cannot be joined more finely.
  std::int64_t resolution_ns = 1;
  // The client ran on the server's machine: both wall clocks are one.
  bool is_on_server_host = false;

  std::vector<std::string> id;
  std::vector<std::int64_t> sent_ns;
  std::vector<std::int64_t> received_ns;   // by the server, on the server's clock
  std::vector<std::int64_t> scheduled_ns;  // first, as the server says; on the server's clock
  std::vector<std::int64_t> first_token_ns;
  std::vector<std::int64_t> done_ns;
  std::vector<std::int64_t> prompt_tokens;
  std::vector<std::int64_t> output_tokens;
  std::vector<std::int64_t> slot;  // of the engine's batch
  std::vector<std::uint8_t> is_failed;
  // Arrivals of tokens or chunks, request by request: those of row i begin at token_begin[i].
  std::vector<std::uint64_t> token_begin = {0};
  std::vector<std::int64_t> token_ns;

  std::int64_t num_skipped = 0;  // records without a request or a time
  std::string skipped_reason;    // of the first one

  std::size_t size() const { return sent_ns.size(); }

  std::span<const std::int64_t> tokens_of(std::size_t row) const {
    return {token_ns.data() + token_begin[row], token_ns.data() + token_begin[row + 1]};
  }
};

}  // namespace gpuwhy
