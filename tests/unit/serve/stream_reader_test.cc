// SPDX-License-Identifier: Apache-2.0
#include "serve/stream_reader.h"

#include "testing.h"

namespace gpuwhy {
namespace {

std::vector<std::string> data_of(const std::vector<std::string>& pieces) {
  EventLines lines;
  std::vector<std::string> found;
  for (const std::string& piece : pieces) {
    lines.add(piece, [&](std::string_view data) { found.emplace_back(data); });
  }
  return found;
}

TEST(EventLines, PiecesMayEndAnywhere) {
  EXPECT_THAT(data_of({"da", "ta: {\"a\":1}", "\n\n: comment\ndata:[DONE]\r\n", "data: rest"}),
              ElementsAre("{\"a\":1}", "[DONE]"));
}

TEST(EventLines, AnErrorIsPlainJson) {
  EXPECT_THAT(data_of({"{\"error\":\"full\"}\n"}), ElementsAre("{\"error\":\"full\"}"));
}

TEST(EventLines, ALineWithoutEndIsDropped) {
  const std::string piece(3 << 20, 'x');
  EXPECT_THAT(data_of({piece, piece, "\ndata: 1\n"}), ElementsAre("1"));
}

TEST(StreamReader, OpenAiTextAndUsage) {
  StreamReader reader;
  EXPECT_TRUE(reader.read(R"({"choices":[{"text":"a","finish_reason":null}]})").has_token);
  EXPECT_TRUE(reader.read(R"({"choices":[{"delta":{"content":"a"}}]})").has_token);
  EXPECT_FALSE(reader.read(R"({"choices":[{"delta":{"role":"assistant"}}]})").has_token);
  EXPECT_FALSE(reader.read(R"({"choices":[{"text":"","finish_reason":"length"}]})").has_token);
  const StreamedEvent usage =
      reader.read(R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}})");
  EXPECT_FALSE(usage.has_token);
  EXPECT_EQ(usage.prompt_tokens, 7);
  EXPECT_EQ(usage.output_tokens, 3);
}

TEST(StreamReader, LlamaSaysItsSlot) {
  StreamReader reader;
  const StreamedEvent token = reader.read(R"({"content":"","stop":false,"id_slot":2})");
  EXPECT_TRUE(token.has_token);
  EXPECT_EQ(token.slot, 2);
  const StreamedEvent end = reader.read(
      R"({"content":"","stop":true,"id_slot":2,"tokens_evaluated":9,"tokens_predicted":4})");
  EXPECT_FALSE(end.has_token);
  EXPECT_EQ(end.prompt_tokens, 9);
  EXPECT_EQ(end.output_tokens, 4);
}

TEST(StreamReader, ErrorsAndNonsense) {
  StreamReader reader;
  EXPECT_EQ(reader.read(R"({"error":{"message":"no room"}})").error, "no room");
  EXPECT_EQ(reader.read(R"({"error":"no room"})").error, "no room");
  for (const char* text : {"", "[DONE]", "{", "null", "[1]", R"({"choices":3,"stop":"x"})"}) {
    const StreamedEvent event = reader.read(text);
    EXPECT_FALSE(event.has_token) << text;
    EXPECT_THAT(event.error, IsEmpty()) << text;
  }
}

TEST(StreamReader, FirstModel) {
  StreamReader reader;
  EXPECT_EQ(reader.first_model(R"({"data":[{"id":"a"},{"id":"b"}]})"), "a");
  EXPECT_EQ(reader.first_model(R"({"data":[]})"), "");
  EXPECT_EQ(reader.first_model("<html>"), "");
}

}  // namespace
}  // namespace gpuwhy
