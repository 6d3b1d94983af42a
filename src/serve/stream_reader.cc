// SPDX-License-Identifier: Apache-2.0
//
// Reader of streamed completions: server-sent events, and the JSON inside them.
#include "serve/stream_reader.h"

#include <simdjson.h>

#include "base/text.h"
#include "base/units.h"

namespace gpuwhy {
namespace {

namespace dom = simdjson::dom;

constexpr std::size_t kLongestLine = 4 * kMiB;

std::optional<std::int64_t> whole_of(const dom::element& from, const char* key) {
  std::int64_t value = 0;
  return from[key].get(value) == simdjson::SUCCESS ? std::optional(value) : std::nullopt;
}

// A choice carries a token unless it only says why the answer ended.
bool is_token(const dom::element& choice) {
  std::string_view text;
  if (choice["text"].get(text) == simdjson::SUCCESS ||
      choice["delta"]["content"].get(text) == simdjson::SUCCESS) {
    const bool is_last = choice["finish_reason"].is_string();
    return !text.empty() || !is_last;
  }
  return false;
}

void read_openai(const dom::element& event, StreamedEvent& found) {
  dom::array choices;
  if (event["choices"].get(choices) == simdjson::SUCCESS) {
    for (const dom::element choice : choices) {
      found.has_token = found.has_token || is_token(choice);
    }
  }
  dom::element usage;
  if (event["usage"].get(usage) == simdjson::SUCCESS && usage.is_object()) {
    found.prompt_tokens = whole_of(usage, "prompt_tokens");
    found.output_tokens = whole_of(usage, "completion_tokens");
  }
}

// llama.cpp's /completion.
void read_llama(const dom::element& event, StreamedEvent& found) {
  bool is_end = false;
  if (event["stop"].get(is_end) != simdjson::SUCCESS) {
    return;
  }
  found.has_token = !is_end;
  found.slot = whole_of(event, "id_slot");
  if (is_end) {
    found.prompt_tokens = whole_of(event, "tokens_evaluated");
    found.output_tokens = whole_of(event, "tokens_predicted");
  }
}

}  // namespace

void EventLines::add(std::string_view bytes,
                     const std::function<void(std::string_view data)>& on_data) {
  rest_ += bytes;
  std::size_t begin = 0;
  for (std::size_t end = rest_.find('\n'); end != std::string::npos;
       begin = end + 1, end = rest_.find('\n', begin)) {
    const std::string_view line = trim(std::string_view(rest_).substr(begin, end - begin));
    if (line.starts_with("data:")) {
      on_data(trim(line.substr(5)));
    } else if (line.starts_with('{')) {
      on_data(line);  // an error is sent as plain JSON
    }
  }
  rest_.erase(0, begin);
  if (rest_.size() > kLongestLine) {
    rest_.clear();
  }
}

struct StreamReader::Parser {
  dom::parser parser;
};

StreamReader::StreamReader() : parser_(new Parser) {}

StreamReader::~StreamReader() {
  delete parser_;
}

StreamedEvent StreamReader::read(std::string_view data) {
  StreamedEvent found;
  dom::element event;
  if (parser_->parser.parse(simdjson::padded_string(data)).get(event) != simdjson::SUCCESS ||
      !event.is_object()) {
    return found;
  }
  dom::element error;
  std::string_view message;
  if (event["error"].get(error) == simdjson::SUCCESS && !error.is_null()) {
    found.error = error["message"].get(message) == simdjson::SUCCESS ||
                          error.get(message) == simdjson::SUCCESS
                      ? std::string(message)
                      : "the server reports an error";
    return found;
  }
  read_openai(event, found);
  read_llama(event, found);
  return found;
}

std::string StreamReader::first_model(std::string_view answer) {
  dom::element models;
  std::string_view name;
  const bool is_found =
      parser_->parser.parse(simdjson::padded_string(answer)).get(models) == simdjson::SUCCESS &&
      models.is_object() && models["data"].at(0)["id"].get(name) == simdjson::SUCCESS;
  return is_found ? std::string(name) : "";
}

}  // namespace gpuwhy
