// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gpuwhy {

// Splits a stream of server-sent events into the texts after "data:".
class EventLines {
 public:
  // Bytes may end anywhere. Lines longer than 4 MiB are dropped: no token is that long.
  void add(std::string_view bytes, const std::function<void(std::string_view data)>& on_data);

 private:
  std::string rest_;
};

// What one event of a completion says, in the form of OpenAI's API or of llama.cpp's own.
struct StreamedEvent {
  bool has_token = false;
  std::optional<std::int64_t> prompt_tokens;
  std::optional<std::int64_t> output_tokens;
  std::optional<std::int64_t> slot;  // of the sequence in the engine, where it says so
  std::string error;                 // empty: none
};

// Reads events one after the other.
class StreamReader {
 public:
  StreamReader();
  ~StreamReader();
  StreamReader(const StreamReader&) = delete;
  StreamReader& operator=(const StreamReader&) = delete;

  // Text that is not JSON says nothing, such as "[DONE]".
  StreamedEvent read(std::string_view data);
  // The first name in an answer of /v1/models; empty: none.
  std::string first_model(std::string_view answer);

 private:
  struct Parser;
  Parser* parser_;
};

}  // namespace gpuwhy
