// SPDX-License-Identifier: Apache-2.0
//
// Conversion of summaries to RowBinary rows for ClickHouse.
//
// Columns of facts are in the order of their descriptions, others in that of
// fleet/history/clickhouse_schema.cc; a test on a real server reads
// back what was written.
//
// RowBinary instead of text: no escaping, so a name may contain any bytes, and half the server
// time. A row cannot represent an error, so numbers are checked before they are encoded.
#include "fleet/history/history_rows.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"
#include "fleet/summary/varint.h"

namespace gpuwhy {
namespace {

std::uint64_t checked(std::int64_t value, const char* what, std::int64_t largest = INT64_MAX) {
  if (value < 0 || value > largest) {
    throw Error(ErrorKind::kInput, fmt::format("{} cannot be {}", what, value));
  }
  return static_cast<std::uint64_t>(value);
}

// The columns with which every row of a rank begins.
void put_place(std::string& out, std::uint64_t run_key, const StoredSummary& stored) {
  const RankIdentity& identity = stored.summary.identity;
  put_number(out, run_key, 8);
  put_number(out, checked(identity.rank, "rank", UINT32_MAX), 4);
  put_number(out, stored.content, 8);
  put_number(out, static_cast<std::uint64_t>(day_of(identity.started_unix_s)), 2);
}

// The columns of a row of facts, in the order of the table: RowBinary has no names. `named` is the
// key of a text.
template <typename Row, typename Named>
void put_facts(std::string& out, const Row& row, const Named& named) {
  describe(&row, [&](const char* key, auto member, const Field& field) {
    if ((field.forms & kFormServer) == 0) {
      return;
    }
    const auto& value = row.*member;
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (kIsText<Value>) {
      put_number(out, named(value), 8);
    } else if constexpr (std::is_same_v<Value, std::int64_t>) {
      put_number(out, checked(value, key), 8);
    } else if constexpr (std::is_same_v<Value, BucketTimes>) {
      put_varint(out, value.size());
      for (const std::int64_t time_ns : value) {
        put_number(out, checked(time_ns, "a bucket"), 8);
      }
    } else {
      put_varint(out, value.size());
      for (const auto& [step, count] : value) {
        put_number(out, checked(step, "a histogram's step", UINT16_MAX), 2);
      }
      put_varint(out, value.size());
      for (const auto& [step, count] : value) {
        put_number(out, checked(count, "a histogram's count"), 8);
      }
    }
  });
}

}  // namespace

std::uint64_t key_of(std::string_view text) {
  const std::string digest = sha256_bytes(text);
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    key = key << 8 | static_cast<unsigned char>(digest[i]);
  }
  return key;
}

std::int64_t day_of(std::int64_t unix_s) {
  const std::int64_t day = unix_s / 86400;
  return unix_s < 0 || day > UINT16_MAX ? 0 : day;
}

std::uint64_t version_of(const StoredSummary& stored) {
  constexpr int kTimeBits = 44;  // milliseconds until the year 2527
  const std::int64_t last = (std::int64_t{1} << kTimeBits) - 1;
  const std::uint64_t attempt = checked(stored.summary.identity.attempt, "attempt", (1 << 20) - 1);
  return attempt << kTimeBits |
         static_cast<std::uint64_t>(std::clamp<std::int64_t>(stored.modified_ms, 0, last));
}

std::uint64_t RowBatch::named(const std::string& text) {
  const auto [found, is_new] = keys_.try_emplace(text, 0);
  if (is_new) {
    found->second = key_of(text);
    put_number(names_, found->second, 8);
    put_text(names_, text);
  }
  return found->second;
}

std::string summary_id(const StoredSummary& stored) {
  return fmt::format("{:016x}-{:x}", stored.content, version_of(stored));
}

void RowBatch::add(const StoredSummary& stored) {
  const std::uint64_t run_key = key_of(stored.summary.identity.run_id);
  const std::size_t kernel_bytes = kernels_.size();
  const std::size_t stage_bytes = stages_.size();
  const std::size_t part_bytes = parts_.size();
  const std::size_t rank_bytes = ranks_.size();
  try {
    add_rows(stored, run_key);
  } catch (const Error&) {
    // Without the rows of half a rank. Names that nobody uses do no harm.
    kernels_.resize(kernel_bytes);
    stages_.resize(stage_bytes);
    parts_.resize(part_bytes);
    ranks_.resize(rank_bytes);
    throw;
  }
  num_kernels_ += stored.summary.kernels.size();
  num_stages_ += stored.summary.stages.size();
  num_parts_ += stored.summary.parts.size();
  ++num_ranks_;
  run_keys_.insert(run_key);
  const std::int64_t day = day_of(stored.summary.identity.started_unix_s);
  first_day_ = summaries_.empty() ? day : std::min(first_day_, day);
  summaries_.push_back(summary_id(stored));
}

void RowBatch::add_rows(const StoredSummary& stored, std::uint64_t run_key) {
  const RankIdentity& identity = stored.summary.identity;
  const auto put_all = [&](std::string& out, const auto& rows) {
    for (const auto& row : rows) {
      put_place(out, run_key, stored);
      put_facts(out, row, [&](const std::string& text) { return named(text); });
    }
  };
  put_all(kernels_, stored.summary.kernels);
  put_all(stages_, stored.summary.stages);
  put_all(parts_, stored.summary.parts);
  // The row in `ranks` makes the rank visible; it also says how many rows to expect.
  put_number(ranks_, run_key, 8);
  put_number(ranks_, checked(identity.rank, "rank", UINT32_MAX), 4);
  put_number(ranks_, checked(identity.attempt, "attempt", UINT32_MAX), 4);
  put_number(ranks_, stored.content, 8);
  put_number(ranks_, static_cast<std::uint64_t>(day_of(identity.started_unix_s)), 2);
  put_number(ranks_, version_of(stored), 8);
  put_text(ranks_, identity.run_id);
  put_number(ranks_, checked(identity.num_ranks, "num_ranks", UINT32_MAX), 4);
  for (const std::string* text :
       {&identity.node, &identity.gpu, &identity.model, &identity.engine, &identity.engine_version,
        &identity.driver_version, &identity.gpuwhy_version}) {
    put_text(ranks_, *text);
  }
  put_number(ranks_, checked(identity.started_unix_s, "started_unix_s"), 8);
  put_number(ranks_, stored.summary.kernels.size(), 8);
  put_number(ranks_, stored.summary.stages.size(), 8);
  put_text(ranks_, identity.labels);
  put_number(ranks_, stored.summary.parts.size(), 8);
}

std::uint64_t RowBatch::size_bytes() const {
  return names_.size() + kernels_.size() + stages_.size() + parts_.size() + ranks_.size();
}

std::vector<RowBatch::Section> RowBatch::sections() const {
  std::vector<Section> sections;
  for (const Section& section :
       {Section{"names", keys_.size(), &names_}, Section{"kernels", num_kernels_, &kernels_},
        Section{"stages", num_stages_, &stages_}, Section{"parts", num_parts_, &parts_},
        Section{"ranks", num_ranks_, &ranks_}}) {
    if (section.rows > 0) {
      sections.push_back(section);
    }
  }
  return sections;
}

}  // namespace gpuwhy
