// SPDX-License-Identifier: Apache-2.0
//
// Words for what ran: engine, training or inference, layers, sequences.
#pragma once

#include <string>
#include <vector>

namespace gpuwhy {

struct Results;

// What the recording proves about the program; a part that it does not prove is empty.
struct WorkloadWords {
  std::string kind;       // "training", "inference"
  std::string framework;  // "vLLM", "PyTorch"
  std::string layers;     // "36 layers"
  std::string sequences;  // "32 sequences in a decode step"

  // "Inference with vLLM, a model of 36 layers, 32 sequences in a decode step"; empty: nothing is
  // known.
  std::string sentence() const;
  // The same as short facts: "inference with vLLM", "36 layers".
  std::vector<std::string> facts() const;
};

WorkloadWords workload_words(const Results& metrics);

}  // namespace gpuwhy
