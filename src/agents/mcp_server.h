// SPDX-License-Identifier: Apache-2.0
//
// The MCP server: JSON-RPC 2.0 messages in, messages out. Who reads and writes them is the
// caller's business.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agents/mcp_tools.h"

namespace gpuwhy {

// The longest message that is read.
inline constexpr std::size_t kMostMessageBytes = std::size_t{1} << 20;

// What a message is about, for a reader that is ahead of the server. Ids are JSON on one line.
struct MessageIds {
  std::string id;       // of a request; empty: it wants no answer
  std::string cancels;  // the request that is not wanted any more; empty: none
};
MessageIds ids_of_message(std::string_view message);

class McpServer {
 public:
  McpServer(McpTools tools, std::string version)
      : tools_(std::move(tools)), version_(std::move(version)) {}

  // The answer to a message, one line without its end; nullopt: it wants none. Throws nothing but
  // what the machine lacks.
  std::optional<std::string> answer(std::string_view message);

  // The answer to a message that is too long to be read.
  static std::string answer_too_long();

 private:
  std::optional<Json> answer_one(const Json& message);
  Json result_of(const std::string& method, const Json& params);

  McpTools tools_;
  std::string version_;
  std::string protocol_;  // that was agreed on; empty: none yet
};

}  // namespace gpuwhy
