// SPDX-License-Identifier: Apache-2.0
//
// Crash-safe queue of batches on disk, between measurement and acknowledgement.
//
// The bytes that are sent are the bytes on disk, so a retry after a crash repeats an insert
// exactly, which servers recognize. A file is written under another name, synced and renamed, and
// the folder is synced: a name in the folder means that all bytes are there.
//
// A file is a line of JSON that describes the rest, then the rows. Its name has the time and the
// hash of its rows; rows that are already waiting are not added again.
#include "fleet/history/spool.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "fleet/history/clickhouse_schema.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestBatch = 2 * kGiB;
constexpr const char* kExtension = ".batch";
constexpr const char* kTargetFile = "target";
constexpr const char* kFailedFolder = "failed";
constexpr std::uint64_t kLargestTarget = 64 * kKiB;
constexpr std::uint64_t kLargestSentList = 16 * kMiB;  // half a million summaries
constexpr int kBatchVersion = 2;                       // 1: without columns and summaries

void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    ::fsync(descriptor);
    ::close(descriptor);
  }
}

[[noreturn]] void fail(const char* step, const fs::path& path, const std::error_code& failure) {
  throw Error(ErrorKind::kFailure,
              fmt::format("cannot {} {}: {}", step, path.string(), failure.message()));
}

Error damaged_spool(const fs::path& path) {
  return {ErrorKind::kInput, fmt::format("{} is not a complete batch", path.string())};
}

// A file that cannot be read now may be good; one that is too large is not.
std::string readable_batch(const fs::path& path) {
  try {
    return read_file(path, kLargestBatch);
  } catch (const Error& error) {
    std::error_code failure;
    const std::uint64_t size = fs::file_size(path, failure);
    if (!failure && size > kLargestBatch) {
      throw;
    }
    throw Error(ErrorKind::kFailure, error.what(), error.hint());
  }
}

std::string target_text(const SpoolTarget& target) {
  std::vector<std::string> urls = target.urls;
  std::sort(urls.begin(), urls.end());
  return fmt::format("{}\n{}\n", target.database, fmt::join(urls, "\n"));
}

// nullopt if the folder does not say which server its batches are for.
std::optional<SpoolTarget> target_of(const fs::path& folder) {
  try {
    const std::string text = read_file(folder / kTargetFile, kLargestTarget);
    SpoolTarget target;
    for (const std::string_view line : split(text, '\n')) {
      if (target.database.empty()) {
        target.database = line;
      } else if (!line.empty()) {
        target.urls.emplace_back(line);
      }
    }
    return target;
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool is_same_server(const SpoolTarget& a, const SpoolTarget& b) {
  return a.database == b.database &&
         std::any_of(a.urls.begin(), a.urls.end(), [&](const std::string& url) {
           return std::find(b.urls.begin(), b.urls.end(), url) != b.urls.end();
         });
}

std::vector<fs::path> batches_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    if (entry.path().extension() == kExtension) {
      found.push_back(entry.path());
    }
  }
  if (failure) {
    fail("list", folder, failure);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

Spool::Spool(fs::path folder) : folder_(std::move(folder)) {
  std::error_code failure;
  const bool is_new = fs::create_directories(folder_, failure);
  if (failure) {
    fail("make", folder_, failure);
  }
  if (is_new) {
    fs::permissions(folder_, fs::perms::owner_all, failure);
  }
}

std::vector<std::string> Spool::set_target(const SpoolTarget& target, bool looks_around) {
  const std::string text = target_text(target);
  write_file(folder_ / kTargetFile, text, 0600);
  sent_file_ = folder_ / fmt::format("sent-{}", sha256_hex(text).substr(0, 16));
  load_sent();
  std::vector<std::string> others;
  if (!looks_around) {
    return others;
  }
  std::error_code failure;
  const fs::path own = fs::weakly_canonical(folder_, failure);
  for (const auto& entry : fs::directory_iterator(own.parent_path(), failure)) {
    const auto other = target_of(entry.path());
    if (!other || entry.path() == own) {
      continue;
    }
    const std::vector<fs::path> batches = batches_in(entry.path());
    if (!is_same_server(*other, target)) {
      if (!batches.empty()) {
        others.push_back(fmt::format("{} batches for {} wait in {}", batches.size(),
                                     fmt::join(other->urls, ","), entry.path().string()));
      }
      continue;
    }
    for (const fs::path& batch : batches) {
      std::error_code ignored;  // another process may have sent it meanwhile
      fs::rename(batch, folder_ / batch.filename(), ignored);
    }
  }
  sync_folder(folder_);
  return others;
}

// The list is cut to its later half when it has grown too long.
void Spool::load_sent() {
  sent_.clear();
  std::error_code failure;
  if (!fs::exists(sent_file_, failure)) {
    return;
  }
  std::string text;
  try {
    text = read_file(sent_file_, 2 * kLargestSentList);
  } catch (const Error&) {
    return;  // without the list everything is sent again
  }
  if (text.size() > kLargestSentList) {
    text.erase(0, text.find('\n', text.size() - kLargestSentList / 2) + 1);
    write_file(sent_file_, text, 0600);
  }
  for (const std::string_view line : split(text, '\n')) {
    sent_.emplace(line);
  }
}

void Spool::remember_sent(const std::vector<std::string>& summaries) {
  if (sent_file_.empty() || summaries.empty()) {
    return;
  }
  // One write per batch: lines of two processes do not mix. A line that a crash cuts matches
  // nothing.
  const std::string lines = fmt::format("{}\n", fmt::join(summaries, "\n"));
  const int descriptor =
      ::open(sent_file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor >= 0) {
    [[maybe_unused]] const ssize_t written = ::write(descriptor, lines.data(), lines.size());
    ::close(descriptor);
  }
  const std::lock_guard lock(sent_mutex_);
  sent_.insert(summaries.begin(), summaries.end());
}

void Spool::add(const RowBatch& batch) {
  Json sections = Json::array();
  std::string hashes;
  std::uint64_t num_ranks = 0;
  for (const RowBatch::Section* section : batch.sections()) {
    const std::string sha256 = sha256_hex(section->bytes);
    sections.push_back({{"table", section->table},
                        {"columns", column_list(section->table)},
                        {"rows", section->rows},
                        {"bytes", section->bytes.size()},
                        {"sha256", sha256}});
    hashes += sha256;
    num_ranks = section->rows;  // the last section's are the ranks
  }
  const std::string id = sha256_hex(hashes).substr(0, 32);
  // The same rows are already waiting.
  for (const fs::path& path : waiting()) {
    if (path.stem().string().ends_with(id)) {
      return;
    }
  }
  Json head = json_document("batch", kBatchVersion);
  head["num_ranks"] = num_ranks;
  head["run_keys"] = batch.run_keys();
  head["summaries"] = batch.summaries();
  head["first_day"] = batch.first_day();
  head["sections"] = std::move(sections);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto now_us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  FileWriter file(folder_ / fmt::format("{:017}-{}{}", now_us, id, kExtension));
  file.write(to_json_line(head) + "\n");
  for (const RowBatch::Section* section : batch.sections()) {
    file.write(section->bytes);
  }
  file.commit();
  sync_folder(folder_);
}

std::vector<fs::path> Spool::waiting() const {
  return batches_in(folder_);
}

SpooledBatch Spool::load(const fs::path& path) const {
  const std::string bytes = readable_batch(path);
  const std::size_t end = bytes.find('\n');
  if (end == std::string::npos) {
    throw damaged_spool(path);
  }
  const auto count_in = [&](const Json& object, const char* key) {
    const auto count = json_integer(object.at(key));
    if (!count || *count < 0) {
      throw damaged_spool(path);
    }
    return static_cast<std::uint64_t>(*count);
  };
  SpooledBatch batch;
  batch.path = path;
  try {
    const Json head = parse_json(std::string_view(bytes).substr(0, end), path.string());
    batch.num_ranks = count_in(head, "num_ranks");
    for (const Json& key : head.at("run_keys")) {
      if (!key.is_number_unsigned()) {
        throw damaged_spool(path);
      }
      batch.run_keys.push_back(key.get<std::uint64_t>());
    }
    if (head.contains("summaries")) {
      batch.summaries = head.at("summaries").get<std::vector<std::string>>();
      const auto day = json_integer(head.at("first_day"));
      if (!day) {
        throw damaged_spool(path);
      }
      batch.first_day = *day;
    }
    // Every section is verified against its hash, because it will be sent without another look.
    std::size_t at = end + 1;
    for (const Json& entry : head.at("sections")) {
      const std::uint64_t size = count_in(entry, "bytes");
      if (size > bytes.size() - at) {
        throw damaged_spool(path);
      }
      const auto table = entry.at("table").get<std::string>();
      // A batch of an older program has the columns of its time.
      batch.sections.push_back({table,
                                entry.contains("columns") ? entry.at("columns").get<std::string>()
                                                          : column_list(table, 1),
                                count_in(entry, "rows"), entry.at("sha256").get<std::string>(),
                                bytes.substr(at, size)});
      if (sha256_hex(batch.sections.back().bytes) != batch.sections.back().sha256) {
        throw damaged_spool(path);
      }
      at += size;
    }
  } catch (const Json::exception&) {
    throw damaged_spool(path);
  }
  return batch;
}

void Spool::remove(const fs::path& path) {
  std::error_code failure;
  fs::remove(path, failure);
  if (failure) {
    fail("remove", path, failure);
  }
  sync_folder(folder_);
}

// Back under their old names: they are sent in the order in which they were made.
std::size_t Spool::retry_failed() {
  const fs::path aside = folder_ / kFailedFolder;
  std::error_code failure;
  if (!fs::is_directory(aside, failure)) {
    return 0;
  }
  std::size_t num = 0;
  for (const fs::path& batch : batches_in(aside)) {
    fs::rename(batch, folder_ / batch.filename(), failure);
    if (failure) {
      fail("move", batch, failure);
    }
    ++num;
  }
  sync_folder(folder_);
  return num;
}

fs::path Spool::set_aside(const fs::path& path) {
  const fs::path aside = folder_ / kFailedFolder;
  std::error_code failure;
  make_inner_folder(aside);
  fs::rename(path, aside / path.filename(), failure);
  if (failure) {
    fail("put aside", path, failure);
  }
  return aside / path.filename();
}

}  // namespace gpuwhy
