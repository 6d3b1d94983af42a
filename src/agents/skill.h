// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace gpuwhy {

// SKILL.md: what a coding agent must know to profile with gpuwhy.
std::string_view skill_text();

// A way to record an engine, out of SKILL.md.
struct Recipe {
  std::string_view engine;  // "vllm"
  std::string_view text;    // Markdown, without its heading
};
std::vector<Recipe> recipes();

}  // namespace gpuwhy
