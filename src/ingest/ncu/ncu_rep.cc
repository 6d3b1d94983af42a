// SPDX-License-Identifier: Apache-2.0
//
// Reader of Nsight Compute reports (.ncu-rep), without ncu.
//
// ncu itself opens only reports of its own version or older.
//
// A report is "NVR\0", a header, then blocks: each has a length, a BlockHeader, and a payload of
// sources and results, each preceded by its length. All of it is protobuf. A generated parser would
// reject half of the releases, as ncu itself does, because a field it considers required is gone.
// Here fields are read by number, unknown ones are skipped, and missing ones are absent.
//
// The file is read twice. Metric names are indexes into a string table that is spread over the
// blocks, so the first pass joins the tables and reads session data, and the second reads the
// results. Values are stored in base units. Sources, most of a report, are skipped.
#include "ingest/ncu/ncu_rep.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "ingest/ingest.h"
#include "ingest/ncu/ncu_result.h"

namespace gpuwhy {
namespace {

using protozero::pbf_reader;

constexpr std::string_view kNcuMagic("NVR\0", 4);

// A result's required fields alone take more. Anything smaller is damage, and millions of them
// would take far more memory than the file.
constexpr std::size_t kSmallestResult = 48;

// Cursor over length-prefixed pieces; never reads past the end.
class Cursor {
 public:
  explicit Cursor(std::string_view rest) : rest_(rest) {}

  bool is_done() const { return rest_.empty(); }

  // Fewer bytes if fewer are left.
  std::string_view take_up_to(std::size_t size) {
    const std::string_view piece = rest_.substr(0, size);
    rest_.remove_prefix(piece.size());
    return piece;
  }

  // A little-endian u32 and that many bytes; nullopt if the file ends first.
  std::optional<std::string_view> take_with_length() {
    const std::string_view length = take_up_to(4);
    std::uint32_t size = 0;
    for (std::size_t i = length.size(); i > 0; --i) {
      size = size << 8 | static_cast<unsigned char>(length[i - 1]);
    }
    if (length.size() < 4 || size > rest_.size()) {
      return std::nullopt;
    }
    return take_up_to(size);
  }

 private:
  std::string_view rest_;
};

pbf_reader message_in(std::string_view bytes) {
  return pbf_reader(bytes.data(), bytes.size());
}

template <typename Body>
bool is_readable(Body&& body) {
  try {
    body();
    return true;
  } catch (const protozero::exception&) {
    return false;
  }
}

// Numbers from a block header: what its payload contains.
struct Block {
  std::uint32_t num_sources = 0;
  std::uint32_t num_results = 0;
  std::uint32_t num_range_results = 0;
  std::uint32_t payload_size = 0;
  std::uint32_t pid = 0;
  StringId process_name{};
};

// One report in memory, whose texts must outlive this object.
class ReportReader {
 public:
  explicit ReportReader(std::string_view report) : results_(names_, counters_) {
    names_.report = report;
  }

  Counters read() {
    // First pass: strings, session, number of results. Second pass: the results.
    std::size_t num_results = 0;
    walk([&](std::string_view header, const Block& block, std::string_view payload) {
      is_readable([&] { read_facts(message_in(header)); });
      each_result(block, payload, [&](std::string_view, bool) { ++num_results; });
    });
    counters_.results.reserve(num_results);
    walk([&](std::string_view, const Block& block, std::string_view payload) {
      each_result(block, payload,
                  [&](std::string_view item, bool is_range) { read_item(item, block, is_range); });
    });
    if (counters_.results.empty() && (is_cut_ || num_damaged_ > 0)) {
      throw Error(ErrorKind::kInput, "the report is damaged: no result in it can be read",
                  "copy it again from where it was written");
    }
    say_damage();
    complete_results(counters_);
    return std::move(counters_);
  }

 private:
  // Calls `visit(header, block, payload)` for each block, up to the end or the point of truncation.
  template <typename Visit>
  void walk(Visit&& visit) {
    Cursor cursor(names_.report);
    cursor.take_up_to(kNcuMagic.size());
    is_cut_ = !cursor.take_with_length();
    while (!is_cut_ && !cursor.is_done()) {
      const auto header = cursor.take_with_length();
      Block block;
      if (!header || !is_readable([&] { read_header(message_in(*header), block); })) {
        is_cut_ = true;
        return;
      }
      const std::string_view payload = cursor.take_up_to(block.payload_size);
      is_cut_ = payload.size() < block.payload_size;
      visit(*header, block, payload);
    }
  }

  // Block header: how many messages follow it and how long they are.
  void read_header(pbf_reader message, Block& block) {
    read_fields(message, whole(1, block.num_sources), whole(2, block.num_results),
                whole(5, block.payload_size), whole(7, block.num_range_results),
                inner(6, [&](pbf_reader process) {
                  read_fields(process, whole(1, block.pid), results_.name(3, block.process_name));
                }));
  }

  // Session data and the string table of one block.
  void read_facts(pbf_reader message) {
    read_fields(message, inner(3, [&](pbf_reader session) { read_session(session); }),
                inner(4, [&](pbf_reader table) {
                  // Only positions are stored: most names of a large table are never used.
                  read_fields(table, text(1, [&](std::string_view entry) {
                                const auto offset = entry.data() - names_.report.data();
                                names_.entries.push_back({static_cast<std::uint32_t>(offset),
                                                          static_cast<std::uint32_t>(entry.size()),
                                                          StringId{}});
                              }));
                }));
  }

  // Of the session's settings only the clock control changes figures.
  void read_session(pbf_reader message) {
    read_fields(message, inner(6, [&](pbf_reader device) { read_device(device); }),
                inner(8, [&](pbf_reader tool) { read_version(tool); }),
                inner(10, [&](pbf_reader settings) {
                  read_fields(settings, text(8, [&](std::string_view control) {
                                counters_.clock_control = control;
                              }));
                }));
  }

  void read_version(pbf_reader message) {
    std::string_view provider;
    std::string_view version;
    read_fields(message, text(1, [&](std::string_view found) { provider = found; }),
                text(2, [&](std::string_view found) { version = found; }));
    if (provider.starts_with("Nsight Compute")) {
      counters_.tool_version = version.substr(0, version.find(' '));
    }
  }

  void read_device(pbf_reader message) {
    CounterDevice device;
    read_fields(message, whole(1, device.id), results_.name(2, device.name),
                inner(3, [&](pbf_reader attribute) {
                  if (CounterMetric metric; results_.read_attribute(attribute, metric)) {
                    device.attributes.push_back(metric);
                  }
                }));
    counters_.devices.push_back(std::move(device));
  }

  // A payload contains sources, results and range results, in this order, each with its length.
  template <typename Visit>
  void each_result(const Block& block, std::string_view payload, Visit&& visit) {
    Cursor cursor(payload);
    const std::uint64_t first_result = block.num_sources;
    const std::uint64_t first_range = first_result + block.num_results;
    const std::uint64_t end = first_range + block.num_range_results;
    for (std::uint64_t number = 0; number < end && !cursor.is_done(); ++number) {
      const auto item = cursor.take_with_length();
      if (!item) {
        is_cut_ = true;
        return;
      }
      if (number >= first_result && item->size() >= kSmallestResult) {
        visit(*item, number >= first_range);
      }
    }
  }

  // A damaged result is counted and skipped; the ones after it are still readable.
  void read_item(std::string_view item, const Block& block, bool is_range) {
    CounterResult result;
    result.id = next_id_++;
    result.is_range = is_range;
    result.pid = block.pid;
    result.process_name = block.process_name;
    const bool is_whole = is_readable([&] {
      is_range ? results_.read_range_result(message_in(item), result)
               : results_.read_result(message_in(item), result);
    });
    if (is_whole) {
      counters_.results.push_back(std::move(result));
    } else {
      ++num_damaged_;
    }
  }

  void say(const char* kind, Severity severity, std::int64_t count, std::string sentence) {
    if (count > 0) {
      counters_.diagnostics.push_back({kind, severity, count, std::move(sentence)});
    }
  }

  void say_damage() {
    say("ncu_report_cut", Severity::kDataLoss, is_cut_ ? 1 : 0,
        fmt::format("the ncu report is cut off or damaged after {}",
                    count_of(static_cast<std::int64_t>(counters_.results.size()), "result")));
    say("ncu_result_damaged", Severity::kDataLoss, num_damaged_,
        fmt::format("left out {} of the ncu report", count_of(num_damaged_, "damaged result")));
    say("ncu_metric_without_name", Severity::kWarning, results_.num_nameless(),
        fmt::format("{} of the ncu report without a name in its string table",
                    count_of(results_.num_nameless(), "value")));
    say("ncu_not_a_number", Severity::kInfo, results_.num_not_finite(),
        fmt::format("left out {} of the ncu report: not a number (nan)",
                    count_of(results_.num_not_finite(), "value")));
  }

  Counters counters_;
  MetricNames names_;
  ResultReader results_;
  std::uint32_t next_id_ = 0;
  bool is_cut_ = false;
  std::int64_t num_damaged_ = 0;
};

bool is_ncu_rep(const InputFile& file) {
  const std::filesystem::path extension = file.path().extension();
  return file.head().starts_with(kNcuMagic) || extension == ".ncu-rep" || extension == ".ncu-repz";
}

Counters load_ncu_rep(const InputFile& file) {
  if (file.path().extension() == ".ncu-repz" && !file.head().starts_with(kNcuMagic)) {
    throw Error(ErrorKind::kInput, "a compressed report (.ncu-repz), which gpuwhy does not read",
                "save it uncompressed with the ncu that wrote it: ncu --import FILE.ncu-repz "
                "--export FILE.ncu-rep");
  }
  return parse_ncu_rep(
      read_file(file.path(), UINT32_MAX));  // string tables are kept as 32-bit offsets
}

}  // namespace

Counters parse_ncu_rep(std::string_view report) {
  if (!report.starts_with(kNcuMagic) || report.size() > UINT32_MAX) {
    throw Error(ErrorKind::kInput,
                "not a report of Nsight Compute: it does not begin with NVR, or is too large");
  }
  return ReportReader(report).read();
}

const CounterImporter kNcuReport = {{.name = "ncu report",
                                     .tool = "Nsight Compute",
                                     .tool_id = "ncu",
                                     .kind = "report (.ncu-rep)",
                                     .made_with = "ncu --export FILE PROGRAM"},
                                    is_ncu_rep,
                                    load_ncu_rep};

}  // namespace gpuwhy
