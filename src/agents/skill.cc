// SPDX-License-Identifier: Apache-2.0
//
// The embedded SKILL.md and its recipes: sections below "## Capture", one per engine.
#include "agents/skill.h"

#include "agents/embedded_skill.h"
#include "base/text.h"

namespace gpuwhy {

std::string_view skill_text() {
  for (const EmbeddedFile& file : embedded_skill()) {
    if (file.path == "SKILL.md") {
      return file.text;
    }
  }
  return "";
}

std::vector<Recipe> recipes() {
  constexpr std::string_view kHeading = "\n### ";
  std::string_view text = skill_text();
  const std::size_t begin = text.find("\n## Capture\n");
  text.remove_prefix(begin == std::string_view::npos ? text.size() : begin + 1);
  text = text.substr(0, text.find("\n## "));
  std::vector<Recipe> found;
  for (std::size_t at = text.find(kHeading); at != std::string_view::npos;) {
    const std::size_t name = at + kHeading.size();
    at = text.find(kHeading, name);
    const std::string_view section =
        text.substr(name, at == std::string_view::npos ? at : at - name);
    const std::size_t line = std::min(section.find('\n'), section.size());
    found.push_back({trim(section.substr(0, line)), trim(section.substr(line))});
  }
  return found;
}

}  // namespace gpuwhy
