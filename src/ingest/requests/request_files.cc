// SPDX-License-Identifier: Apache-2.0
//
// Detection and reading of request files: one table of formats, records one by one.
//
// A file is a JSON document, an array of them, or one document per line. Records are parsed one at
// a time, so a damaged line costs only itself, and memory holds the columns and one record. The
// first record decides the format.
#include "ingest/requests/request_files.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/gzip_reader.h"
#include "base/list_of.h"
#include "base/text.h"
#include "base/units.h"
#include "ingest/requests/request_rows.h"

namespace gpuwhy {
namespace {

namespace dom = simdjson::dom;

constexpr std::uint64_t kMostRequestBytes = 2 * kGiB;
constexpr std::size_t kMostIdBytes = 200;

constexpr const RequestFormat* kRequestFormats[] = {
    &kOwnRequests, &kAiperfRequests, &kDynamoRequests, &kBenchRequests, &kTensorRtRequests};

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw Error(ErrorKind::kInput, fmt::format("{}: {}", name, why),
              fmt::format("--requests takes {}: docs/requests.md", request_kinds()));
}

const RequestFormat* format_of(const dom::object& record) {
  for (const RequestFormat* format : kRequestFormats) {
    if (format->fits(record)) {
      return format;
    }
  }
  return nullptr;
}

// Reads one record after another; the first one that fits decides the format.
class RecordReader {
 public:
  RecordReader(const std::string& name, Requests& requests)
      : name_(name), requests_(requests), table_(requests) {}

  void read(const dom::element& value) {
    dom::object record;
    if (value.get(record) != simdjson::SUCCESS) {
      table_.skip("is not an object");
      return;
    }
    if (format_ == nullptr) {
      format_ = format_of(record);
      if (format_ == nullptr) {
        table_.skip("has no keys of a request");
        return;
      }
      requests_.format = format_->name;
      requests_.clock = format_->clock;
      requests_.resolution_ns = format_->resolution_ns;
    }
    format_->add(record, table_);
  }

  void skip_damaged() { table_.skip("is not JSON"); }

  void finish() {
    if (format_ == nullptr) {
      refuse(name_, "no record of requests is recognized");
    }
    if (requests_.size() == 0) {
      refuse(name_, fmt::format("it has no request that can be used; the first record {}",
                                requests_.skipped_reason.empty() ? "is missing"
                                                                 : requests_.skipped_reason));
    }
  }

 private:
  const std::string& name_;
  Requests& requests_;
  RequestTable table_;
  const RequestFormat* format_ = nullptr;
};

// The text of a file, inflated if it is gzip.
std::string whole_text(const std::filesystem::path& path) {
  constexpr std::size_t kChunk = kMiB;
  GzipReader reader(path);
  std::string text;
  for (std::size_t read = 1; read > 0;) {
    const std::size_t size = text.size();
    text.resize(size + kChunk);
    read = reader.read(text.data() + size, kChunk);
    text.resize(size + read);
    if (text.size() > kMostRequestBytes) {
      refuse(path.string(), "it is larger than 2 GiB");
    }
  }
  return text;
}

// One document per line. Lines are padded in a buffer of their own.
void read_lines(std::string_view text, RecordReader& reader) {
  dom::parser parser;
  std::string line;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    const std::string_view one = trim(text.substr(from, end - from));
    from = end + 1;
    if (one.empty()) {
      continue;
    }
    line.assign(one);
    line.append(simdjson::SIMDJSON_PADDING, ' ');
    dom::element value;
    if (parser.parse(line.data(), one.size(), false).get(value) == simdjson::SUCCESS) {
      reader.read(value);
    } else {
      reader.skip_damaged();
    }
  }
}

}  // namespace

std::string request_kinds() {
  const auto names = list_of<std::string>(kRequestFormats, &RequestFormat::name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Requests parse_requests(std::string_view text, const std::string& name) {
  Requests requests;
  requests.path = name;
  RecordReader reader(name, requests);
  dom::parser parser;
  dom::element whole;
  // A whole first line with more after it: one document per line. Else one document, on one line
  // or on many.
  const std::size_t line = std::min(text.find('\n'), text.size());
  const bool has_lines =
      !trim(text.substr(line)).empty() &&
      parser.parse(simdjson::padded_string(text.substr(0, line))).error() == simdjson::SUCCESS;
  if (!has_lines && parser.parse(simdjson::padded_string(text)).get(whole) == simdjson::SUCCESS) {
    dom::array records;
    if (whole.get(records) == simdjson::SUCCESS) {
      for (const dom::element record : records) {
        reader.read(record);
      }
    } else {
      reader.read(whole);
    }
  } else {
    read_lines(text, reader);
  }
  reader.finish();
  return requests;
}

void RequestTable::skip(const char* reason) {
  if (++requests_.num_skipped == 1) {
    requests_.skipped_reason = reason;
  }
}

void RequestTable::add(RequestRow row) {
  constexpr std::int64_t kMostTimeNs = INT64_MAX / 4;  // sums of two never overflow
  Requests& all = requests_;
  if (all.clock != RequestClock::kUntimed && row.sent_ns == kNoTime) {
    skip("has no time at which it was sent");
    return;
  }
  const auto is_wild = [](std::int64_t time) {
    return time != kNoTime && (time > kMostTimeNs || time < -kMostTimeNs);
  };
  if (is_wild(row.sent_ns) || is_wild(row.received_ns) || is_wild(row.scheduled_ns) ||
      is_wild(row.first_token_ns) || is_wild(row.done_ns) ||
      std::ranges::any_of(row.token_ns, is_wild)) {
    skip("has a time beyond all reason");
    return;
  }
  if (!row.token_ns.empty() && row.first_token_ns == kNoTime) {
    row.first_token_ns = row.token_ns.front();
  }
  const bool is_ordered = std::is_sorted(row.token_ns.begin(), row.token_ns.end()) &&
                          (row.token_ns.empty() || row.token_ns.front() == row.first_token_ns) &&
                          (row.first_token_ns == kNoTime || row.first_token_ns >= row.sent_ns) &&
                          (row.done_ns == kNoTime || row.first_token_ns == kNoTime ||
                           row.done_ns >= row.first_token_ns);
  if (!is_ordered) {
    skip("has times that are not in order: sent, first token, tokens, done");
    return;
  }
  if (all.size() >= kMostRequests || all.token_ns.size() + row.token_ns.size() > kMostTokenTimes) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: more than {} requests or {} tokens", all.path, kMostRequests,
                            kMostTokenTimes),
                "give the part of the file that the recording covers");
  }
  // A single record of another machine, or of an unknown one, makes the clock of all unknown.
  all.is_on_server_host = row.is_on_server_host && (all.size() == 0 || all.is_on_server_host);
  row.id.resize(std::min(row.id.size(), kMostIdBytes));
  all.id.push_back(row.id.empty() ? fmt::format("#{}", all.size()) : printable(row.id));
  all.sent_ns.push_back(row.sent_ns);
  all.received_ns.push_back(row.received_ns);
  all.scheduled_ns.push_back(row.scheduled_ns);
  all.first_token_ns.push_back(row.first_token_ns);
  all.done_ns.push_back(row.done_ns);
  all.prompt_tokens.push_back(row.prompt_tokens);
  all.output_tokens.push_back(row.output_tokens);
  all.slot.push_back(row.slot);
  all.is_failed.push_back(row.is_failed ? 1 : 0);
  all.token_ns.insert(all.token_ns.end(), row.token_ns.begin(), row.token_ns.end());
  all.token_begin.push_back(all.token_ns.size());
}

Requests load_requests(const std::filesystem::path& path) {
  return parse_requests(whole_text(path), path.string());
}

std::optional<std::int64_t> whole_of(const dom::object& object, std::string_view key) {
  std::int64_t value = 0;
  return object[key].get(value) == simdjson::SUCCESS ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> scaled(const dom::element& value, double factor) {
  std::int64_t whole = 0;
  double number = 0;
  constexpr double kMost = 2e18;
  if (value.get(whole) == simdjson::SUCCESS && factor == 1) {
    return whole;
  }
  if (value.get(number) != simdjson::SUCCESS || !(std::abs(number * factor) < kMost)) {
    return std::nullopt;
  }
  return std::llround(number * factor);
}

std::optional<std::int64_t> scaled_of(const dom::object& object, std::string_view key,
                                      double factor) {
  dom::element value;
  return object[key].get(value) == simdjson::SUCCESS ? scaled(value, factor) : std::nullopt;
}

std::string text_at(const dom::object& object, std::string_view key) {
  std::string_view text;
  std::int64_t number = 0;
  if (object[key].get(text) == simdjson::SUCCESS) {
    return std::string(text);
  }
  return object[key].get(number) == simdjson::SUCCESS ? std::to_string(number) : "";
}

std::optional<dom::object> object_at(const dom::object& object, std::string_view key) {
  dom::object found;
  return object[key].get(found) == simdjson::SUCCESS ? std::optional(found) : std::nullopt;
}

std::optional<dom::array> array_at(const dom::object& object, std::string_view key) {
  dom::array found;
  return object[key].get(found) == simdjson::SUCCESS ? std::optional(found) : std::nullopt;
}

}  // namespace gpuwhy
