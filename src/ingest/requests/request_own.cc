// SPDX-License-Identifier: Apache-2.0
//
// Reader of gpuwhy's own request records: docs/requests.md.
//
//   {"id": "7", "sent_ns": 1790000000000000000, "token_ns": [...], "prompt_tokens": 512, "slot": 0}
//
// All times are epoch nanoseconds. Inter-token times may replace arrivals.
#include "ingest/requests/request_rows.h"

namespace gpuwhy {
namespace {

namespace dom = simdjson::dom;

bool is_own(const dom::object& record) {
  return whole_of(record, "sent_ns").has_value();
}

void add_own(const dom::object& record, RequestTable& table) {
  RequestRow row;
  row.id = text_at(record, "id");
  const auto time = [&](const char* key) { return whole_of(record, key).value_or(kNoTime); };
  row.sent_ns = time("sent_ns");
  row.received_ns = time("received_ns");
  row.scheduled_ns = time("scheduled_ns");
  row.first_token_ns = time("first_token_ns");
  row.done_ns = time("done_ns");
  const auto count = [&](const char* key) {
    return std::max<std::int64_t>(whole_of(record, key).value_or(kNoCount), kNoCount);
  };
  row.prompt_tokens = count("prompt_tokens");
  row.output_tokens = count("output_tokens");
  row.slot = count("slot");
  row.is_on_server_host =
      record["local"].get(row.is_on_server_host) == simdjson::SUCCESS && row.is_on_server_host;
  bool has_failed = false;
  std::string_view why;
  row.is_failed = (record["error"].get(has_failed) == simdjson::SUCCESS && has_failed) ||
                  (record["error"].get(why) == simdjson::SUCCESS && !why.empty());
  if (const auto tokens = array_at(record, "token_ns")) {
    for (const dom::element token : *tokens) {
      row.token_ns.push_back(scaled(token, 1).value_or(kWildTime));
    }
  } else if (const auto gaps = array_at(record, "itl_ns"); gaps && row.first_token_ns != kNoTime) {
    row.token_ns.push_back(row.first_token_ns);
    for (const dom::element gap : *gaps) {
      row.token_ns.push_back(later(row.token_ns.back(), scaled(gap, 1)));
    }
  }
  table.add(std::move(row));
}

}  // namespace

const RequestFormat kOwnRequests = {"gpuwhy's own JSONL", is_own, add_own, RequestClock::kEpoch, 1};

}  // namespace gpuwhy
