// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gpuwhy {

// Requests to send to a server that speaks OpenAI's completions, or llama.cpp's own API.
struct LoadOptions {
  std::string url;           // "http://127.0.0.1:8000"
  std::string api = "auto";  // openai, llama; auto: asks the server
  std::string model;         // as the server calls it; empty: asks the server
  std::int64_t num_requests = 32;
  std::int64_t num_streams = 4;              // at once, where there is no rate
  std::optional<std::int64_t> rate_per_min;  // open loop: arrivals at random (Poisson)
  std::int64_t prompt_tokens = 128;
  std::int64_t output_tokens = 64;
  std::int64_t seed = 1;         // of prompts and arrivals
  std::int64_t timeout_s = 600;  // of one request
};

// What came of it.
struct LoadResult {
  std::int64_t num_sent = 0;
  std::int64_t num_failed = 0;
  std::int64_t output_tokens = 0;
  std::int64_t duration_ns = 0;
  std::string first_error;
};

// Whether a server at this address runs on the client's own machine, so that both have one clock. A
// tunnel to another machine looks the same.
bool is_loopback(std::string_view url);

// Sends the requests and gives one line of JSON for each (docs/requests.md) to `write`. Ends early
// when `is_stopped` says so. Throws kUsage for a wrong address, kEnvironment if the server does not
// answer.
LoadResult run_load(const LoadOptions& options,
                    const std::function<void(const std::string& line)>& write,
                    const std::function<bool()>& is_stopped);

}  // namespace gpuwhy
