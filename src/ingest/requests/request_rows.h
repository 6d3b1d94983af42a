// SPDX-License-Identifier: Apache-2.0
//
// What the readers of request files share: one row before it is checked, and numbers of JSON.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/simdjson_parser.h"
#include "trace/requests.h"

namespace gpuwhy {

// One request as a file describes it.
struct RequestRow {
  std::string id;
  std::int64_t sent_ns = kNoTime;
  std::int64_t received_ns = kNoTime;
  std::int64_t scheduled_ns = kNoTime;
  std::int64_t first_token_ns = kNoTime;
  std::int64_t done_ns = kNoTime;
  std::int64_t prompt_tokens = kNoCount;
  std::int64_t output_tokens = kNoCount;
  std::int64_t slot = kNoCount;
  bool is_failed = false;
  bool is_on_server_host = false;  // the client
  std::vector<std::int64_t> token_ns;
};

// A time that no row may have: RequestTable::add() refuses the row.
inline constexpr std::int64_t kWildTime = INT64_MAX / 2;

// `gap_ns` after `time_ns`; kWildTime for a missing, negative or absurd gap. Never overflows.
inline std::int64_t later(std::int64_t time_ns, std::optional<std::int64_t> gap_ns) {
  constexpr std::int64_t kMostGapNs = 1'000'000'000'000'000;  // 11 days
  const bool is_usable = gap_ns && *gap_ns >= 0 && *gap_ns <= kMostGapNs && time_ns < kWildTime &&
                         time_ns > -kWildTime;
  return is_usable ? time_ns + *gap_ns : kWildTime;
}

// A format of request files. `fits` looks at the first record of the file, which is an object.
struct RequestFormat {
  const char* name;
  bool (*fits)(const simdjson::dom::object& record);
  // Adds the requests of one record.
  void (*add)(const simdjson::dom::object& record, class RequestTable& table);
  RequestClock clock;
  std::int64_t resolution_ns;
};

// Collects rows. Throws kInput when a limit is passed.
class RequestTable {
 public:
  explicit RequestTable(Requests& requests) : requests_(requests) {}

  // Checks the row: times in order and plausible. One that is not is skipped and counted.
  void add(RequestRow row);
  void skip(const char* reason);
  Requests& requests() { return requests_; }

 private:
  Requests& requests_;
};

// A whole number; nullopt for anything else.
std::optional<std::int64_t> whole_of(const simdjson::dom::object& object, std::string_view key);
// A number times `factor`, rounded to a whole one; nullopt if it is none or beyond all reason.
std::optional<std::int64_t> scaled_of(const simdjson::dom::object& object, std::string_view key,
                                      double factor);
std::optional<std::int64_t> scaled(const simdjson::dom::element& value, double factor);
std::string text_at(const simdjson::dom::object& object, std::string_view key);
std::optional<simdjson::dom::object> object_at(const simdjson::dom::object& object,
                                               std::string_view key);
std::optional<simdjson::dom::array> array_at(const simdjson::dom::object& object,
                                             std::string_view key);

// Each is defined in the file of its format.
extern const RequestFormat kOwnRequests;
extern const RequestFormat kAiperfRequests;
extern const RequestFormat kBenchRequests;
extern const RequestFormat kDynamoRequests;
extern const RequestFormat kTensorRtRequests;

}  // namespace gpuwhy
