// SPDX-License-Identifier: Apache-2.0
//
// Readers of request records of AIPerf, Dynamo and TensorRT-LLM.
//
// AIPerf's profile_export.jsonl has epoch nanoseconds and, with streaming, times between chunks.
// Dynamo's request traces have milliseconds of the frontend: their times are the server's, and have
// no tokens. TensorRT-LLM's perf metrics have seconds of a steady clock, and the server's side
// only. Versions read: AIPerf 0.13, dynamo.request.trace.v1, TensorRT-LLM 2026-10.
#include "ingest/requests/request_rows.h"

namespace gpuwhy {
namespace {

namespace dom = simdjson::dom;

constexpr double kNsOfMs = 1e6;
constexpr double kNsOfSecond = 1e9;
constexpr std::int64_t kMillisecondNs = 1'000'000;
constexpr const char* kDynamoSchema = "dynamo.request.trace.v1";

// Factor from the unit of an AIPerf metric to nanoseconds; 0 if it is not a time.
double ns_of_unit(std::string_view unit) {
  const std::pair<std::string_view, double> units[] = {
      {"ns", 1}, {"us", 1e3}, {"ms", kNsOfMs}, {"sec", kNsOfSecond}, {"s", kNsOfSecond}};
  for (const auto& [name, factor] : units) {
    if (name == unit) {
      return factor;
    }
  }
  return 0;
}

// A metric as AIPerf writes it: {"value": 255.9, "unit": "ms"}.
struct AiperfMetric {
  dom::element value;
  double factor = 1;
};

std::optional<AiperfMetric> aiperf_metric(const dom::object& metrics, std::string_view key,
                                          bool is_time) {
  const auto metric = object_at(metrics, key);
  AiperfMetric found;
  if (!metric || (*metric)["value"].get(found.value) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  found.factor = is_time ? ns_of_unit(text_at(*metric, "unit")) : 1;
  return found.factor > 0 ? std::optional(found) : std::nullopt;
}

bool is_aiperf(const dom::object& record) {
  const auto metadata = object_at(record, "metadata");
  return metadata && whole_of(*metadata, "request_start_ns");
}

void add_aiperf(const dom::object& record, RequestTable& table) {
  const auto metadata = object_at(record, "metadata");
  if (!metadata) {
    table.skip("has no metadata");
    return;
  }
  if (const std::string phase = text_at(*metadata, "benchmark_phase");
      !phase.empty() && phase != "profiling") {
    table.skip("is of the warm-up");
    return;
  }
  RequestRow row;
  row.id = text_at(*metadata, "x_request_id");
  row.sent_ns = whole_of(*metadata, "request_start_ns").value_or(kNoTime);
  row.done_ns = whole_of(*metadata, "request_end_ns").value_or(kNoTime);
  bool was_cancelled = false;
  const bool is_cancelled =
      (*metadata)["was_cancelled"].get(was_cancelled) == simdjson::SUCCESS && was_cancelled;
  row.is_failed = is_cancelled || object_at(record, "error").has_value();
  const dom::object metrics = object_at(record, "metrics").value_or(dom::object());
  const bool has_metrics = object_at(record, "metrics").has_value();
  const auto whole = [&](const char* key) {
    const auto metric = has_metrics ? aiperf_metric(metrics, key, false) : std::nullopt;
    return metric ? scaled(metric->value, 1).value_or(kNoCount) : kNoCount;
  };
  row.prompt_tokens = whole("input_sequence_length");
  row.output_tokens = whole("output_sequence_length");
  const auto ttft =
      has_metrics ? aiperf_metric(metrics, "time_to_first_token", true) : std::nullopt;
  if (ttft && row.sent_ns != kNoTime) {
    row.first_token_ns = later(row.sent_ns, scaled(ttft->value, ttft->factor));
    row.token_ns.push_back(row.first_token_ns);
    const auto gaps = aiperf_metric(metrics, "inter_chunk_latency", true);
    dom::array list;
    if (gaps && gaps->value.get(list) == simdjson::SUCCESS) {
      for (const dom::element gap : list) {
        row.token_ns.push_back(later(row.token_ns.back(), scaled(gap, gaps->factor)));
      }
    }
    row.done_ns = std::max(row.done_ns, row.token_ns.back());
  }
  table.add(std::move(row));
}

// Newer records are wrapped: {"timestamp": ..., "event": {...}}.
dom::object dynamo_record(const dom::object& record) {
  return object_at(record, "event").value_or(record);
}

bool is_dynamo(const dom::object& record) {
  return text_at(dynamo_record(record), "schema") == kDynamoSchema;
}

void add_dynamo(const dom::object& wrapped, RequestTable& table) {
  const dom::object record = dynamo_record(wrapped);
  const auto request = object_at(record, "request");
  if (text_at(record, "event_type") != "request_end" || !request) {
    table.skip("does not end a request");
    return;
  }
  RequestRow row;
  row.id = text_at(*request, "x_request_id");
  row.id = row.id.empty() ? text_at(*request, "request_id") : row.id;
  row.sent_ns = scaled_of(*request, "request_received_ms", kNsOfMs).value_or(kNoTime);
  row.received_ns = row.sent_ns;
  row.prompt_tokens = whole_of(*request, "input_tokens").value_or(kNoCount);
  if (const auto replay = object_at(*request, "replay"); replay && row.prompt_tokens < 0) {
    row.prompt_tokens = whole_of(*replay, "input_length").value_or(kNoCount);
  }
  row.output_tokens = whole_of(*request, "output_tokens").value_or(kNoCount);
  if (const auto ttft = scaled_of(*request, "ttft_ms", kNsOfMs); ttft && row.sent_ns != kNoTime) {
    row.first_token_ns = later(row.sent_ns, ttft);
  }
  if (const auto total = scaled_of(*request, "total_time_ms", kNsOfMs);
      total && row.sent_ns != kNoTime) {
    row.done_ns = later(row.sent_ns, total);
  } else {
    row.done_ns = scaled_of(record, "event_time_unix_ms", kNsOfMs).value_or(kNoTime);
  }
  table.add(std::move(row));
}

// The metrics of a TensorRT-LLM record: under perf_metrics, or the record itself.
std::optional<dom::object> tensorrt_times(const dom::object& record) {
  return object_at(object_at(record, "perf_metrics").value_or(record), "timing_metrics");
}

bool is_tensorrt(const dom::object& record) {
  const auto times = tensorrt_times(record);
  return times && scaled_of(*times, "arrival_time", kNsOfSecond).has_value();
}

void add_tensorrt(const dom::object& record, RequestTable& table) {
  const auto times = tensorrt_times(record);
  if (!times) {
    table.skip("has no timing metrics");
    return;
  }
  const auto time = [&](const char* key) {
    const std::int64_t ns = scaled_of(*times, key, kNsOfSecond).value_or(0);
    return ns > 0 ? ns : kNoTime;
  };
  RequestRow row;
  row.id = text_at(record, "request_id");
  row.received_ns = time("arrival_time");
  row.sent_ns = time("server_arrival_time");
  row.sent_ns = row.sent_ns == kNoTime ? row.received_ns : row.sent_ns;
  row.scheduled_ns = time("first_scheduled_time");
  row.first_token_ns = time("server_first_token_time");
  row.first_token_ns =
      row.first_token_ns == kNoTime ? time("first_token_time") : row.first_token_ns;
  row.done_ns = time("last_token_time");
  row.done_ns = row.done_ns == kNoTime ? kNoTime : std::max(row.done_ns, row.first_token_ns);
  table.add(std::move(row));
}

}  // namespace

const RequestFormat kAiperfRequests = {"AIPerf's profile_export.jsonl", is_aiperf, add_aiperf,
                                       RequestClock::kEpoch, 1};
const RequestFormat kDynamoRequests = {"Dynamo's request trace", is_dynamo, add_dynamo,
                                       RequestClock::kEpoch, kMillisecondNs};
const RequestFormat kTensorRtRequests = {"TensorRT-LLM's perf metrics", is_tensorrt, add_tensorrt,
                                         RequestClock::kMonotonic, 1};

}  // namespace gpuwhy
