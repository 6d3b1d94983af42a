// SPDX-License-Identifier: Apache-2.0
//
// The eight tools of the MCP server: their schemas, and what they answer.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "agents/confined_root.h"
#include "base/json_fwd.h"
#include "capture/system.h"
#include "session/reading/recording.h"

namespace gpuwhy {

// What a tool said: one line of JSON within its budget.
struct ToolAnswer {
  std::string text;
  bool is_error = false;  // the arguments are wrong; what cannot be answered is not an error
};

class McpTools {
 public:
  // Throws kUsage if the root is not a folder.
  McpTools(const std::filesystem::path& root, System system,
           std::optional<std::uint64_t> memory_limit_bytes);

  // Name, description and inputSchema of each, as tools/list returns them.
  static Json descriptions();
  static bool is_tool(std::string_view name);

  // Calls a tool. Everything that can go wrong is an answer.
  ToolAnswer call(const std::string& name, const Json& arguments);

 private:
  Json answer(const std::string& name, const Json& arguments);
  Json listing(const std::string& path) const;
  Json comparison(const Json& arguments);
  Json capture_plan(const Json& arguments);
  // metrics.json of a recording or bundle, kept for the next question.
  SharedJson metrics_for(const std::string& path, const Json& arguments);
  RecordingOptions options_of(const Json& arguments) const;
  std::string without_root(std::string text) const;

  // An analysis, by everything that it depends on.
  struct Kept {
    std::string key;
    SharedJson metrics;
  };

  ConfinedRoot root_;
  System system_;
  std::optional<std::uint64_t> memory_limit_bytes_;
  std::deque<Kept> kept_;  // the last one asked for comes first
};

}  // namespace gpuwhy
