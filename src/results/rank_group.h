// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "results/field.h"

namespace gpuwhy {

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
