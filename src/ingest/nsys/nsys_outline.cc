// SPDX-License-Identifier: Apache-2.0
//
// Row counts of an nsys SQLite export without a full scan.
//
// Counting rows would read the whole file, up to 50 GB. But nsys numbers the rows of a table from 1
// and never deletes any, so the largest row id is their number, and only the last path of a b-tree
// is read.
//
// What it gets wrong: a table from which rows were deleted counts as many as it once had. Ids are
// limited by the file size, so a manipulated file cannot claim more. Texts are estimated from a
// sample; if NVTX ranges have distinct texts only after the sample, the estimate is too low.
#include "ingest/nsys/nsys_outline.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.h"
#include "ingest/ingest.h"
#include "ingest/nsys/nsys_keys.h"
#include "ingest/small_tables.h"
#include "ingest/sqlite/sqlite_file.h"

namespace gpuwhy {
namespace {

constexpr std::uint64_t kLeastRowBytes = 8;  // of a record with a start and an end
constexpr std::uint64_t kSampledRows = 4096;

std::uint64_t number_from(const SqliteFile& file, const std::string& sql) {
  std::int64_t number = 0;
  file.query(sql, [&](const auto& row) { number = row[0].as_integer(); });
  return static_cast<std::uint64_t>(std::max<std::int64_t>(number, 0));
}

std::uint64_t largest_rowid(const SqliteFile& file, const char* table) {
  if (!file.has_table(table)) {
    return 0;
  }
  try {
    return number_from(file, fmt::format("SELECT max(rowid) FROM {}", table));
  } catch (const Error&) {  // WITHOUT ROWID, as nsys never writes it
    return number_from(file, fmt::format("SELECT count(1) FROM {}", table));
  }
}

struct TextSample {
  std::uint64_t num_rows = 0;
  std::uint64_t num_distinct = 0;
  std::uint64_t mean_bytes = 0;
};

TextSample sample_texts(const SqliteFile& file, const char* table, const char* column) {
  TextSample sample;
  const std::vector<std::string> columns = file.columns_of(table);
  if (std::find(columns.begin(), columns.end(), column) == columns.end()) {
    return sample;
  }
  // A prefix is enough to tell texts apart.
  constexpr std::size_t kPrefix = 256;
  std::unordered_set<std::string> distinct;
  std::uint64_t num_texts = 0;
  std::uint64_t num_bytes = 0;
  file.query(fmt::format("SELECT {} FROM {} LIMIT {}", column, table, kSampledRows),
             [&](const auto& row) {
               ++sample.num_rows;
               if (row[0].kind == SqlValue::Kind::kText) {
                 ++num_texts;
                 num_bytes += row[0].text.size();
                 distinct.emplace(row[0].text.substr(0, kPrefix));
               }
             });
  sample.num_distinct = distinct.size();
  sample.mean_bytes = num_bytes / std::max<std::uint64_t>(num_texts, 1);
  return sample;
}

void add_texts(std::uint64_t count, std::uint64_t mean_bytes, TraceOutline& outline) {
  const std::uint64_t most = outline.file_bytes / (mean_bytes + kLeastRowBytes);
  outline.num_texts += std::min(count, most);
  outline.text_bytes += std::min(count, most) * mean_bytes;
}

void count_texts(const SqliteFile& file, TraceOutline& outline) {
  const std::uint64_t last_id = largest_rowid(file, "StringIds");
  const auto most_ids = static_cast<std::int64_t>(outline.file_bytes / kLeastRowBytes);
  outline.name_ids = std::min(last_id, static_cast<std::uint64_t>(NameMap::most_dense(most_ids)));
  const TextSample names = sample_texts(file, "StringIds", "value");
  add_texts(names.num_rows < kSampledRows ? names.num_rows : last_id, names.mean_bytes, outline);
  const TextSample texts = sample_texts(file, "NVTX_EVENTS", "text");
  const std::uint64_t scale = outline.num_ranges / std::max<std::uint64_t>(texts.num_rows, 1) + 1;
  add_texts(texts.num_distinct * scale, texts.mean_bytes, outline);
}

}  // namespace

TraceOutline outline_nsys_sqlite(const InputFile& input) {
  const SqliteFile& file = *input.sqlite();
  TraceOutline outline;
  outline.file_bytes = file.bytes().size();
  // The last row id is found without reading the table. A damaged file may claim any, so the file's
  // size bounds it.
  const auto rows = [&](const char* table) {
    return std::min(largest_rowid(file, table), outline.file_bytes / kLeastRowBytes);
  };
  outline.num_kernels = rows("CUPTI_ACTIVITY_KIND_KERNEL");
  outline.num_copies = rows("CUPTI_ACTIVITY_KIND_MEMCPY") + rows("CUPTI_ACTIVITY_KIND_MEMSET");
  outline.num_graphs = rows("CUPTI_ACTIVITY_KIND_GRAPH_TRACE");
  outline.num_calls = rows("CUPTI_ACTIVITY_KIND_RUNTIME");
  outline.num_ranges = rows("NVTX_EVENTS");
  count_texts(file, outline);
  for (const char* table : {"TARGET_INFO_CUDA_GPU", "TARGET_INFO_GPU"}) {
    if (file.has_table(table)) {
      outline.num_devices = std::clamp<std::uint64_t>(
          number_from(file, fmt::format("SELECT count(1) FROM {}", table)), 1, kMostDevices);
      break;
    }
  }
  // Rows may name more GPUs than the machine is said to have.
  const std::vector<std::string> columns = file.columns_of("CUPTI_ACTIVITY_KIND_KERNEL");
  if (std::find(columns.begin(), columns.end(), "deviceId") != columns.end()) {
    const std::uint64_t seen =
        number_from(file, fmt::format("SELECT count(DISTINCT deviceId) FROM (SELECT deviceId FROM "
                                      "CUPTI_ACTIVITY_KIND_KERNEL LIMIT {})",
                                      kSampledRows));
    require_16_bits(0, seen);
    outline.num_devices = std::max(outline.num_devices, seen);
  }
  outline.source = "the last row id of each table";
  file.release();
  return outline;
}

}  // namespace gpuwhy
