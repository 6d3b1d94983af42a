// SPDX-License-Identifier: Apache-2.0
#include "ingest/requests/request_files.h"

#include "base/error.h"
#include "testing.h"

namespace gpuwhy {
namespace {

std::vector<std::int64_t> tokens(const Requests& requests, std::size_t row) {
  const auto span = requests.tokens_of(row);
  return {span.begin(), span.end()};
}

TEST(RequestFiles, OwnRecords) {
  const Requests read = parse_requests(
      R"({"id": "a", "sent_ns": 100, "received_ns": 110, "token_ns": [200, 230], "done_ns": 230,)"
      R"( "prompt_tokens": 5, "output_tokens": 2, "slot": 3})"
      "\n\n"
      R"({"id": 7, "sent_ns": 50, "first_token_ns": 60, "itl_ns": [4, 6], "error": "timeout"})",
      "requests.jsonl");
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read.clock, RequestClock::kEpoch);
  EXPECT_THAT(read.id, ElementsAre("a", "7"));
  EXPECT_THAT(read.sent_ns, ElementsAre(100, 50));
  EXPECT_THAT(read.received_ns, ElementsAre(110, kNoTime));
  EXPECT_THAT(read.first_token_ns, ElementsAre(200, 60));
  EXPECT_THAT(read.slot, ElementsAre(3, kNoCount));
  EXPECT_THAT(read.is_failed, ElementsAre(0, 1));
  EXPECT_THAT(tokens(read, 0), ElementsAre(200, 230));
  EXPECT_THAT(tokens(read, 1), ElementsAre(60, 64, 70));
}

TEST(RequestFiles, ClientIsOnTheServersMachineIfAllRecordsSaySo) {
  const std::string local = R"({"sent_ns": 100, "token_ns": [200], "local": true})";
  const std::string silent = R"({"sent_ns": 100, "token_ns": [200]})";
  const std::string wrong = R"({"sent_ns": 100, "token_ns": [200], "local": "yes"})";
  EXPECT_TRUE(parse_requests(local + "\n" + local, "r").is_on_server_host);
  EXPECT_FALSE(parse_requests(local + "\n" + silent, "r").is_on_server_host);
  EXPECT_FALSE(parse_requests(silent + "\n" + local, "r").is_on_server_host);
  EXPECT_FALSE(parse_requests(wrong + "\n" + wrong, "r").is_on_server_host);
}

TEST(RequestFiles, VllmHasAMonotonicClockAndSglangNone) {
  const char* text =
      R"({"start_times": [1.5, 2.0], "ttfts": [0.25, 0.0], "itls": [[0.01, 0.02], []],)"
      R"( "input_lens": [5, 6], "output_lens": [3, 0], "errors": ["", "refused"]})";
  const Requests vllm = parse_requests(text, "vllm.json");
  EXPECT_EQ(vllm.clock, RequestClock::kMonotonic);
  EXPECT_THAT(vllm.sent_ns, ElementsAre(1'500'000'000, 2'000'000'000));
  EXPECT_THAT(tokens(vllm, 0), ElementsAre(1'750'000'000, 1'760'000'000, 1'780'000'000));
  EXPECT_THAT(vllm.is_failed, ElementsAre(0, 1));
  const Requests sglang =
      parse_requests(R"({"backend": "sglang", "ttfts": [0.5], "itls": [[0.1]], "input_lens": [9]})"
                     "\n",
                     "sglang.jsonl");
  EXPECT_EQ(sglang.clock, RequestClock::kUntimed);
  EXPECT_THAT(tokens(sglang, 0), ElementsAre(500'000'000, 600'000'000));
}

TEST(RequestFiles, Aiperf) {
  const Requests read = parse_requests(
      R"({"metadata": {"x_request_id": "u", "request_start_ns": 1000000000,)"
      R"( "request_end_ns": 1012000000, "benchmark_phase": "profiling"}, "metrics":)"
      R"( {"input_sequence_length": {"value": 550, "unit": "tokens"},)"
      R"( "time_to_first_token": {"value": 5.5, "unit": "ms"},)"
      R"( "inter_chunk_latency": {"value": [2, 4.5], "unit": "ms"}}, "error": null})"
      "\n"
      R"({"metadata": {"request_start_ns": 1, "benchmark_phase": "warmup"}, "metrics": {}})",
      "profile_export.jsonl");
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read.num_skipped, 1);
  EXPECT_EQ(read.prompt_tokens[0], 550);
  EXPECT_THAT(tokens(read, 0), ElementsAre(1'005'500'000, 1'007'500'000, 1'012'000'000));
}

TEST(RequestFiles, ServersSayLess) {
  const Requests dynamo = parse_requests(
      R"({"schema": "dynamo.request.trace.v1", "event_type": "request_end", "request":)"
      R"( {"request_id": "d", "request_received_ms": 1000, "output_tokens": 16, "ttft_ms": 2.5,)"
      R"( "total_time_ms": 9, "replay": {"input_length": 128}}})"
      "\n"
      R"({"schema": "dynamo.request.trace.v1", "event_type": "tool_end", "tool": {}})",
      "trace.jsonl");
  ASSERT_EQ(dynamo.size(), 1U);
  EXPECT_EQ(dynamo.prompt_tokens[0], 128);
  EXPECT_EQ(dynamo.first_token_ns[0], 1'002'500'000);
  EXPECT_EQ(dynamo.done_ns[0], 1'009'000'000);
  EXPECT_GT(dynamo.resolution_ns, 1);
  const Requests tensorrt = parse_requests(
      R"([{"request_id": 4, "perf_metrics": {"timing_metrics": {"arrival_time": 1.5,)"
      R"( "first_scheduled_time": 1.75, "first_token_time": 2, "last_token_time": 3}}}])",
      "perf.json");
  EXPECT_EQ(tensorrt.clock, RequestClock::kMonotonic);
  EXPECT_EQ(tensorrt.scheduled_ns[0], 1'750'000'000);
  EXPECT_EQ(tensorrt.done_ns[0], 3'000'000'000);
}

TEST(RequestFiles, RecordsThatCannotBeUsedAreCounted) {
  const Requests read = parse_requests(
      "{\"sent_ns\": 5}\n"
      "{\"sent_ns\": 9, \"token_ns\": [12, 11]}\n"  // not in order
      "{\"sent_ns\": 9, \"token_ns\": [3]}\n"       // before it was sent
      "{\"sent_ns\": 9223372036854775807}\n"        // beyond all reason
      "{\"sent_ns\": 1, \"first_token_ns\": 2, \"itl_ns\": [9000000000000000000, 9]}\n"
      "{\"sent_ns\": \"x\"}\n"
      "[1, 2]\n{\"sent_ns\": \n",
      "requests.jsonl");
  EXPECT_EQ(read.size(), 1U);
  EXPECT_EQ(read.num_skipped, 7);
  EXPECT_THAT(read.skipped_reason, HasSubstr("not in order"));
}

TEST(RequestFiles, OtherFilesAreRefused) {
  for (const char* text :
       {"", "{}", "[]", "3", "x", R"({"traceEvents": []})", R"({"sent_ns": null})",
        R"({"ttfts": [], "itls": []})", R"({"ttfts": 1, "itls": 2})", "{\"a\": 1}\n{"}) {
    expect_error([&] { parse_requests(text, "f.json"); }, ErrorKind::kInput, HasSubstr("f.json"),
                 HasSubstr("docs/requests.md"));
  }
}

// Every beginning of a file, and every one with a byte changed, is read or refused.
TEST(RequestFiles, DamagedFilesAreReadOrRefused) {
  const std::string text =
      R"({"start_times": [1.5], "ttfts": [0.25], "itls": [[1e300, -5]], "input_lens": [5]})";
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const char byte : {'9', ' ', '[', '}', '\0', '"'}) {
      std::string changed = text;
      changed[i] = byte;
      for (const std::string& one : {changed, text.substr(0, i)}) {
        try {
          parse_requests(one, "f.json");
        } catch (const Error&) {
          continue;
        }
      }
    }
  }
}

}  // namespace
}  // namespace gpuwhy
