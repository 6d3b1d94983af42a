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
    put_number(tables_[kNames].bytes, found->second, 8);
    put_text(tables_[kNames].bytes, text);
    ++tables_[kNames].rows;
  }
  return found->second;
}

std::string summary_id(const StoredSummary& stored) {
  return fmt::format("{:016x}-{:x}", stored.content, version_of(stored));
}

void RowBatch::add(const StoredSummary& stored) {
  const std::uint64_t run_key = key_of(stored.summary.identity.run_id);
  std::array<std::size_t, 5> sizes{};
  std::transform(tables_.begin(), tables_.end(), sizes.begin(),
                 [](const Section& table) { return table.bytes.size(); });
  try {
    add_rows(stored, run_key);
  } catch (const Error&) {
    // Without the rows of half a rank. Names that nobody uses do no harm.
    for (const Table table : {kKernels, kStages, kParts, kRanks}) {
      tables_[table].bytes.resize(sizes[table]);
    }
    throw;
  }
  tables_[kKernels].rows += stored.summary.kernels.size();
  tables_[kStages].rows += stored.summary.stages.size();
  tables_[kParts].rows += stored.summary.parts.size();
  ++tables_[kRanks].rows;
  run_keys_.insert(run_key);
  const std::int64_t day = day_of(stored.summary.identity.started_unix_s);
  first_day_ = summaries_.empty() ? day : std::min(first_day_, day);
  summaries_.push_back(summary_id(stored));
}

void RowBatch::add_rows(const StoredSummary& stored, std::uint64_t run_key) {
  const RankIdentity& identity = stored.summary.identity;
  const auto put_all = [&](Table table, const auto& rows) {
    std::string& out = tables_[table].bytes;
    for (const auto& row : rows) {
      put_place(out, run_key, stored);
      put_facts(out, row, [&](const std::string& text) { return named(text); });
    }
  };
  put_all(kKernels, stored.summary.kernels);
  put_all(kStages, stored.summary.stages);
  put_all(kParts, stored.summary.parts);
  // The row in `ranks` makes the rank visible; it also says how many rows to expect.
  std::string& ranks = tables_[kRanks].bytes;
  put_number(ranks, run_key, 8);
  put_number(ranks, checked(identity.rank, "rank", UINT32_MAX), 4);
  put_number(ranks, checked(identity.attempt, "attempt", UINT32_MAX), 4);
  put_number(ranks, stored.content, 8);
  put_number(ranks, static_cast<std::uint64_t>(day_of(identity.started_unix_s)), 2);
  put_number(ranks, version_of(stored), 8);
  put_text(ranks, identity.run_id);
  put_number(ranks, checked(identity.num_ranks, "num_ranks", UINT32_MAX), 4);
  for (const std::string* text :
       {&identity.node, &identity.gpu, &identity.model, &identity.engine, &identity.engine_version,
        &identity.driver_version, &identity.gpuwhy_version}) {
    put_text(ranks, *text);
  }
  put_number(ranks, checked(identity.started_unix_s, "started_unix_s"), 8);
  put_number(ranks, stored.summary.kernels.size(), 8);
  put_number(ranks, stored.summary.stages.size(), 8);
  put_text(ranks, identity.labels);
  put_number(ranks, stored.summary.parts.size(), 8);
}

std::vector<const RowBatch::Section*> RowBatch::sections() const {
  std::vector<const Section*> sections;
  for (const Section& table : tables_) {
    if (table.rows > 0) {
      sections.push_back(&table);
    }
  }
  return sections;
}

}  // namespace gpuwhy
