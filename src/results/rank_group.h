// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "results/field.h"

namespace gpuwhy {

// How ranks share the model, where the user says so.
struct Parallelism {
  std::optional<std::int64_t> tensor;
  std::optional<std::int64_t> pipeline;
  std::optional<std::int64_t> data;

  bool is_given() const { return tensor || pipeline || data; }

  // Ranks that hold one copy of the model; nullopt if not given.
  std::optional<std::int64_t> ranks_per_model() const {
    constexpr std::int64_t kMost = 1'000'000;
    return tensor || pipeline
               ? std::optional(std::clamp<std::int64_t>(tensor.value_or(1), 1, kMost) *
                               std::clamp<std::int64_t>(pipeline.value_or(1), 1, kMost))
               : std::nullopt;
  }
};

// Ranks that run one copy of the model together.
struct RankGroupSummary {
  std::vector<std::int64_t> pids;
  std::vector<std::string> devices;
  std::int64_t num_steps = 0;
  std::string why;
};

template <typename F>
void describe(const RankGroupSummary*, F&& f) {
  using T = RankGroupSummary;
  const auto counted = [](std::string_view text) {
    return number("1", "", "marks kernels", "rank_groups", text);
  };
  f("pids", &T::pids, items(counted("processes of the group; marks of the first one count"), 1));
  f("devices", &T::devices, plain("their GPUs"));
  f("steps", &T::num_steps, counted("marks, each counted once for the group"));
  f("why", &T::why, maybe("what makes them a group, or keeps them apart"));
}

}  // namespace gpuwhy
