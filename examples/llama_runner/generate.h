// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operators.h"
#include "options.h"

namespace llama_runner {

// One request by the program's own clock.
struct RequestTimes {
  std::int64_t ttft_ns = 0;  // until each sequence has its first token
  std::int64_t decode_ns = 0;
  std::vector<std::int64_t> step_ns;
};

struct RunResult {
  std::string description;  // what llama.cpp calls the model
  std::int64_t params = 0;
  std::int64_t weight_bytes = 0;
  std::int64_t prompt_tokens = 0;  // of each sequence
  std::int64_t load_ns = 0;
  std::vector<RequestTimes> requests;
  std::uint64_t output_hash = 0;  // of all tokens made: the same model makes the same ones
};

// Loads the model and serves the requests, marked. `operators`, if given, learns what each operator
// took. Throws std::runtime_error.
RunResult run_requests(const Options& options, OperatorTimer* operators);

}  // namespace llama_runner
