// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

struct ggml_tensor;

namespace llama_runner {

// Times every operator of a llama.cpp graph, through the callback of its scheduler.
class OperatorTimer {
 public:
  // For llama_context_params::cb_eval; `self` is the OperatorTimer.
  static bool callback(ggml_tensor* tensor, bool is_asking, void* self);

  // What came before was a warm-up.
  void begin() { is_on_ = true; }

  // Around one forward pass.
  void begin_stage(const char* stage);
  void end_stage();

  // One row per stage (its passes, their time without the callback's own) and one per operator of a
  // layer, as CSV.
  std::string csv() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Key {
    std::string stage, op, name, layer;
    bool operator<(const Key& other) const {
      return std::tie(stage, op, name, layer) <
             std::tie(other.stage, other.op, other.name, other.layer);
    }
  };
  struct Total {
    std::int64_t calls = 0;
    std::int64_t ns = 0;
    std::optional<std::int64_t> flops;
    std::int64_t bytes = 0;
    std::string weights;  // names, joined by a blank
    std::string shape;    // of the last call
    std::string backend;
  };
  struct Stage {
    std::int64_t passes = 0;
    std::int64_t ns = 0;
  };

  void add(const ggml_tensor& tensor, std::int64_t ns);

  bool is_on_ = false;
  std::string stage_;
  std::string layer_;  // of the operator before
  Clock::time_point stage_start_;
  Clock::time_point op_start_;
  Clock::duration own_{};  // spent in the callback
  std::map<std::string, Stage> stages_;
  std::map<Key, Total> totals_;
};

}  // namespace llama_runner
