// SPDX-License-Identifier: Apache-2.0
//
// JSON-RPC 2.0 and the methods of the Model Context Protocol (modelcontextprotocol.io).
//
// Requests get an answer with their id, notifications none. A client that calls tools before it
// initialized the session is answered: there is nothing that could go wrong. Resources, prompts and
// logging are not offered, so their methods are unknown.
#include "agents/mcp_server.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

// The latest is offered to a client that asks for another one.
constexpr std::string_view kProtocols[] = {"2025-06-18", "2025-03-26", "2024-11-05"};
constexpr std::string_view kBatchProtocol = "2025-03-26";  // the only one with batches
constexpr std::size_t kMostBatch = 32;

enum RpcCode : int {
  kParseError = -32700,
  kInvalidRequest = -32600,
  kMethodNotFound = -32601,
  kInvalidParams = -32602,
  kInternalError = -32603,
};

constexpr const char* kInstructions =
    "Profiles of LLM workloads on GPUs. Order: open (path \".\" lists recordings), findings, then steps, layers or kernels for "
    "detail, explain for any number or word. Each answer is a page: {from, next, value}; if next is not null, call again with it "
    "as continuation. The key of a number is the key of its row, a dot and the field. cannot_answer is an answer: do not guess "
    "beyond it. A saving is an upper bound, not a promise.";

// Thrown by a method, answered as an error of the protocol. Mistakes in the arguments of a tool are
// answers of the tool instead: the model that called it can read and correct them.
struct RpcError {
  int code;
  std::string message;
};

Json envelope(const Json& id) {
  Json message = Json::object();
  message["jsonrpc"] = "2.0";
  message["id"] = id;
  return message;
}

Json error_message(const Json& id, int code, const std::string& text) {
  Json message = envelope(id);
  message["error"] = {{"code", code}, {"message", text}};
  return message;
}

const Json& part(const Json& object, const char* name) {
  static const Json kNull;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : kNull;
}

bool is_id(const Json& id) {
  return id.is_string() || id.is_number_integer();
}

}  // namespace

MessageIds ids_of_message(std::string_view text) {
  MessageIds ids;
  try {
    const Json message = parse_json(text, "the message");
    if (const Json& id = part(message, "id"); is_id(id) && message.contains("method")) {
      ids.id = to_json_line(id);
    }
    const Json& cancelled = part(part(message, "params"), "requestId");
    if (part(message, "method") == "notifications/cancelled" && is_id(cancelled)) {
      ids.cancels = to_json_line(cancelled);
    }
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the server answers it
  }
  return ids;
}

std::string McpServer::answer_too_long() {
  return to_json_line(error_message(nullptr, kInvalidRequest, "a message may have at most 1 MiB"));
}

std::optional<std::string> McpServer::answer(std::string_view text) {
  if (text.size() > kMostMessageBytes) {
    return answer_too_long();
  }
  Json message;
  try {
    message = parse_json(text, "the message");
  } catch (const Error& error) {
    return to_json_line(error_message(nullptr, kParseError, printable(error.what())));
  }
  if (!message.is_array()) {
    const std::optional<Json> said = answer_one(message);
    return said ? std::optional(to_json_line(*said)) : std::nullopt;
  }
  if (protocol_ != kBatchProtocol || message.empty() || message.size() > kMostBatch) {
    return to_json_line(error_message(
        nullptr, kInvalidRequest, "batches have 1 to 32 messages, in protocol 2025-03-26 only"));
  }
  Json answers = Json::array();
  for (const Json& one : message) {
    if (std::optional<Json> said = answer_one(one)) {
      answers.push_back(std::move(*said));
    }
  }
  return answers.empty() ? std::nullopt : std::optional(to_json_line(answers));
}

std::optional<Json> McpServer::answer_one(const Json& message) {
  const Json& method = part(message, "method");
  const Json& id = part(message, "id");
  const bool is_request = message.is_object() && message.contains("id");
  if (part(message, "jsonrpc") != "2.0" || (is_request && !is_id(id))) {
    return error_message(is_id(id) ? id : Json(nullptr), kInvalidRequest,
                         "not a message of JSON-RPC 2.0");
  }
  if (!method.is_string()) {
    // An answer to a question of ours: there are none.
    const bool is_answer = message.contains("result") || message.contains("error");
    return is_answer
               ? std::nullopt
               : std::optional(error_message(id, kInvalidRequest, "a message needs a method"));
  }
  if (!is_request) {
    return std::nullopt;  // a notification
  }
  try {
    Json said = envelope(id);
    said["result"] = result_of(method.get<std::string>(), part(message, "params"));
    return said;
  } catch (const RpcError& error) {
    return error_message(id, error.code, error.message);
  } catch (const std::exception& error) {
    return error_message(id, kInternalError, printable(error.what()));
  }
}

Json McpServer::result_of(const std::string& method, const Json& params) {
  if (method == "initialize") {
    const Json& wanted = part(params, "protocolVersion");
    if (!wanted.is_string()) {
      throw RpcError{kInvalidParams, "initialize needs a protocolVersion"};
    }
    const auto* known =
        std::find(std::begin(kProtocols), std::end(kProtocols), wanted.get<std::string>());
    protocol_ = known == std::end(kProtocols) ? kProtocols[0] : *known;
    return {{"protocolVersion", protocol_},
            {"capabilities", {{"tools", Json::object()}}},
            {"serverInfo", {{"name", "gpuwhy"}, {"version", version_}}},
            {"instructions", kInstructions}};
  }
  if (method == "ping") {
    return Json::object();
  }
  if (method == "tools/list") {
    return {{"tools", McpTools::descriptions()}};
  }
  if (method == "tools/call") {
    const Json& name = part(params, "name");
    if (!name.is_string() || !McpTools::is_tool(name.get<std::string>())) {
      throw RpcError{kInvalidParams, "there is no such tool: " + printable(to_json_line(name))};
    }
    const Json& given = part(params, "arguments");
    const ToolAnswer said =
        tools_.call(name.get<std::string>(), given.is_null() ? Json::object() : given);
    return {{"content", Json::array({{{"type", "text"}, {"text", said.text}}})},
            {"isError", said.is_error}};
  }
  throw RpcError{kMethodNotFound, "there is no method " + printable(method)};
}

}  // namespace gpuwhy
