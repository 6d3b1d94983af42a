// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace llama_runner {

struct Options {
  std::string model;
  std::string prompt;               // a text; empty: prompt_tokens made-up tokens
  std::int64_t prompt_tokens = 64;  // of each sequence
  std::int64_t new_tokens = 16;     // of each sequence; prefill makes the first
  std::int64_t batch = 1;           // sequences of a request
  std::int64_t requests = 3;        // one after the other
  std::int64_t warmup = 1;          // requests before them that no stage counts
  std::int64_t threads = 1;
  std::int64_t ubatch = 512;        // tokens computed at once
  std::int64_t gpu_layers = -1;     // all
  bool uses_plain_strings = false;  // marks without registered strings
  std::string metrics;              // where the timers go, as JSON
  std::string operators;            // where the table of operators goes, as CSV

  std::string made_model;  // a preset of make_model.h to write to `model` instead
  std::string tokenizer;   // of the made model: none, spm; empty: the preset's
};

extern const char* const kUsage;

// Throws std::runtime_error, in words for the user.
Options parse_options(int argc, char** argv);

}  // namespace llama_runner
