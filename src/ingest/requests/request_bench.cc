// SPDX-License-Identifier: Apache-2.0
//
// Reader of the results of vLLM's and SGLang's benchmark clients.
//
//   {"start_times": [...], "ttfts": [...], "itls": [[...], ...], "input_lens": [...], ...}
//
// Both take their times from time.perf_counter() (vllm/benchmarks/lib/endpoint_request_func.py,
// sglang/bench_serving.py), in seconds: a monotonic clock whose zero no file tells. SGLang's
// results have no start times (benchmark/serving.py of 2026-10 measures them and leaves them out of
// result_details), so its requests have lengths but no place in the recording. An entry of a failed
// request is there with a time to first token of 0.
//
// SGLang divides the time of a chunk by its tokens, so tokens of one chunk are evenly spaced.
#include "ingest/requests/request_rows.h"

namespace gpuwhy {
namespace {

namespace dom = simdjson::dom;

constexpr double kSecond = 1e9;

bool is_bench(const dom::object& record) {
  return array_at(record, "ttfts") && array_at(record, "itls");
}

// Items of a list in order. at() walks from the start, which would be quadratic.
class Items {
 public:
  explicit Items(const std::optional<dom::array>& list) {
    if (list) {
      for (const dom::element value : *list) {
        values_.push_back(value);
      }
    }
  }
  std::size_t size() const { return values_.size(); }
  std::optional<std::int64_t> number(std::size_t row, double factor) const {
    return row < values_.size() ? scaled(values_[row], factor) : std::nullopt;
  }
  std::optional<dom::array> list(std::size_t row) const {
    dom::array found;
    return row < values_.size() && values_[row].get(found) == simdjson::SUCCESS
               ? std::optional(found)
               : std::nullopt;
  }
  std::string text(std::size_t row) const {
    std::string_view found;
    return row < values_.size() && values_[row].get(found) == simdjson::SUCCESS ? std::string(found)
                                                                                : "";
  }

 private:
  std::vector<dom::element> values_;
};

void add_bench(const dom::object& record, RequestTable& table) {
  const Items starts(array_at(record, "start_times"));
  const Items ttfts(array_at(record, "ttfts"));
  const Items itls(array_at(record, "itls"));
  const Items inputs(array_at(record, "input_lens"));
  const Items outputs(array_at(record, "output_lens"));
  const Items errors(array_at(record, "errors"));
  const bool has_starts = starts.size() > 0;
  if (!has_starts) {
    table.requests().clock = RequestClock::kUntimed;
  }
  for (std::size_t i = 0; i < ttfts.size(); ++i) {
    RequestRow row;
    row.id = std::to_string(i);
    row.sent_ns = has_starts ? starts.number(i, kSecond).value_or(kNoTime) : 0;
    row.prompt_tokens = inputs.number(i, 1).value_or(kNoCount);
    row.output_tokens = outputs.number(i, 1).value_or(kNoCount);
    const std::int64_t ttft_ns = ttfts.number(i, kSecond).value_or(0);
    row.is_failed = ttft_ns <= 0 || !errors.text(i).empty();
    if (!row.is_failed && row.sent_ns != kNoTime) {
      row.first_token_ns = later(row.sent_ns, ttft_ns);
      row.token_ns.push_back(row.first_token_ns);
      if (const auto gaps = itls.list(i)) {
        for (const dom::element gap : *gaps) {
          row.token_ns.push_back(later(row.token_ns.back(), scaled(gap, kSecond)));
        }
      }
      row.done_ns = row.token_ns.back();
    }
    table.add(std::move(row));
  }
}

}  // namespace

const RequestFormat kBenchRequests = {"result of vllm bench serve or SGLang's bench_serving",
                                      is_bench, add_bench, RequestClock::kMonotonic, 1};

}  // namespace gpuwhy
