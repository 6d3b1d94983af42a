// SPDX-License-Identifier: Apache-2.0
//
// Forecast of the memory and time of an analysis, from the row counts of a recording.
//
// Memory is proportional to rows: columns stay from loading to the end (trace/trace.h), and
// attribution and ledger add theirs for each piece of GPU work. A single figure per event, the
// obvious way, is off by half as soon as the mix changes, because a kernel costs three times as
// much as a call. So each table has its own: the sum of its columns, plus what the passes were
// measured to add. Tables that were absent in the measurements are assumed to cost what their
// columns do.
//
// Measured as the peak resident set (GNU time's %M) of synthetic recordings of gpuwhy_make_trace
// with 1 and 4 million events, complete and with single tables dropped or doubled, and of PyTorch
// traces with 1.2 and 1.6 million events; x86-64, glibc 2.36, GCC 12.
//
// What it gets wrong. Ranges are charged as stages, the most expensive case (220 bytes; an
// operator's range takes 80): recordings of mostly such ranges need a third of the plan.
// Correlation ids with holes make the index of calls temporarily up to eight times larger. Texts
// are estimated from a sample. Joined counters (--ncu) are not included. Other C libraries retain
// more freed memory. The spare eighth is for those.
#include "analysis/timeline/reading_need.h"

#include <algorithm>

#include "analysis/timeline/timeline.h"
#include "base/units.h"
#include "trace/trace.h"

namespace gpuwhy {
namespace {

// The program, its rules and tables, and a small report: 14.5 MB and 18.6 MB.
constexpr std::uint64_t kProgramBytes = 20 * kMiB;
// Of the mapped file (SqliteFile::kMostMapped), or of a window on a text with what is parsed of it.
constexpr std::uint64_t kWindowBytes = 16 * kMiB;

// Columns of ranges, beyond those of the table: domain ids until their names are known.
constexpr std::uint64_t kDomainIdBytes = 8;
// A text in the pool and its entry in the table of texts; ids of an export have two lists.
constexpr std::uint64_t kTextOverhead = 120;
constexpr std::uint64_t kNameIdBytes = 8;

// Passes, which run side by side. A kernel takes 12 bytes to know its launch, 4 in the ledger and
// up to 28 where the model's structure is recovered. The rest is to spare: columns end with a huge
// page that is up to a quarter empty.
constexpr std::uint64_t kGpuWorkPasses = 80;
constexpr std::uint64_t kCallPasses = 4;     // a place in the index by correlation
constexpr std::uint64_t kStagePasses = 180;  // 214 measured of a stage with its columns
constexpr std::uint64_t kStageWritten = 60;  // more where it is drawn and written
constexpr std::uint64_t kOpPasses = 25;      // 46 measured with its columns

// Writing trace.pftrace: launches are looked up again, and each host row is in a list by time.
constexpr std::uint64_t kGpuWorkWritten = 20;
constexpr std::uint64_t kCallWritten = 16;

// A picture: columns of each family of each row, in two numbers while it is filled.
constexpr std::uint64_t kCellBytes = 16;
constexpr std::uint64_t kSeriesPerDevice = 60;  // seven rows of eight families, copies, causes
constexpr std::uint64_t kRowsPerDevice = 9;
constexpr std::uint64_t kMostFineCells =
    200'000;                               // of one family, as analysis/timeline/timeline.cc has it
constexpr std::uint64_t kSliceBytes = 60;  // in its columns, and once more while sorted

// One core of the machine above: 1.2 s for 3.66 million events read and analysed; 2 s more to write
// as many slices of 50 bytes.
constexpr std::int64_t kEventNs = 350;
constexpr std::int64_t kSliceNs = 550;
constexpr std::uint64_t kSliceFileBytes = 51;
constexpr std::int64_t kProgramNs = 50 * kNsPerMs;
// report.html keeps below 2 MB (report/document/page.h), the files beside it took 0.3 MB;
// metrics.json grows with the number of distinct kernels, which is not known here.
constexpr std::uint64_t kReportBytes = 3 * kMiB;

std::uint64_t with_spare(std::uint64_t bytes) {
  return bytes + bytes / 8;
}

std::uint64_t column_bytes(const TraceOutline& outline) {
  return row_bytes<Kernels>() * outline.num_kernels + row_bytes<Copies>() * outline.num_copies +
         row_bytes<GraphLaunches>() * outline.num_graphs +
         row_bytes<ApiCalls>() * outline.num_calls +
         (row_bytes<Ranges>() + kDomainIdBytes) * outline.num_ranges +
         row_bytes<Ops>() * outline.num_ops + kTextOverhead * outline.num_texts +
         outline.text_bytes + kNameIdBytes * outline.name_ids;
}

std::uint64_t picture_bytes(const TraceOutline& outline, const TimelineOptions& options) {
  const std::uint64_t devices = std::max<std::uint64_t>(outline.num_devices, 1);
  const std::uint64_t most = kMostFineCells / (kRowsPerDevice * devices) + 1;
  const std::uint64_t columns = std::min(static_cast<std::uint64_t>(options.num_coarse), most) +
                                std::min(static_cast<std::uint64_t>(options.num_fine), most);
  const std::uint64_t work = outline.num_kernels + outline.num_copies + outline.num_graphs;
  const auto slices = static_cast<std::uint64_t>(options.most_work);
  // Calls, and ranges and operators; as many again of both together in the windows.
  const std::uint64_t host = std::min(outline.num_calls + outline.num_ranges + outline.num_ops,
                                      3 * static_cast<std::uint64_t>(options.most_host));
  return kSeriesPerDevice * devices * columns * kCellBytes +
         (std::min(work, slices) + host) * kSliceBytes;
}

// Above the program and the columns.
std::uint64_t analysis_bytes(const TraceOutline& outline, const PlannedOutput& output) {
  const std::uint64_t work = outline.num_kernels + outline.num_copies + outline.num_graphs;
  const bool is_written = output.has_picture || output.has_trace;
  const std::uint64_t stages =
      (kStagePasses + (is_written ? kStageWritten : 0)) * outline.num_ranges;
  const std::uint64_t passes =
      kGpuWorkPasses * work + kCallPasses * outline.num_calls + kOpPasses * outline.num_ops;
  const std::uint64_t written =
      output.has_trace ? kGpuWorkWritten * work + kCallWritten * outline.num_calls : 0;
  return std::max(passes, written) + stages;
}

}  // namespace

ReadingNeed reading_need(const TraceOutline& outline, const PlannedOutput& output) {
  ReadingNeed plan;
  const std::uint64_t columns = column_bytes(outline);
  const std::uint64_t window = std::min(kWindowBytes, outline.file_bytes);
  plan.window_bytes = window;
  plan.load_bytes = kProgramBytes + with_spare(columns) + window;
  const auto peak = [&](const TimelineOptions& picture) {
    const std::uint64_t drawn = output.has_picture ? picture_bytes(outline, picture) : 0;
    return std::max(plan.load_bytes,
                    kProgramBytes + with_spare(columns + analysis_bytes(outline, output) + drawn));
  };
  plan.peak_bytes = peak(TimelineOptions{});
  plan.coarse_peak_bytes = peak(coarse_picture());
  const std::uint64_t events = outline.num_events();
  plan.duration_ns = kProgramNs + kEventNs * static_cast<std::int64_t>(events);
  if (output.has_picture) {
    plan.report_bytes = kReportBytes;
  }
  if (output.has_trace) {
    plan.trace_bytes = std::min(kSliceFileBytes * events, output.trace_budget);
    plan.duration_ns += kSliceNs * static_cast<std::int64_t>(plan.trace_bytes / kSliceFileBytes);
  }
  return plan;
}

unsigned files_at_once(const ReadingNeed& plan, const PlannedReading& reading) {
  const std::uint64_t most = std::min<std::uint64_t>(std::max(1U, reading.num_threads),
                                                     std::max<std::size_t>(1, reading.num_files));
  if (!reading.limit_bytes || plan.window_bytes == 0) {
    return static_cast<unsigned>(most);
  }
  const std::uint64_t left = *reading.limit_bytes - std::min(*reading.limit_bytes, plan.load_bytes);
  return static_cast<unsigned>(std::min(most, 1 + left / plan.window_bytes));
}

ReadingNeed with_files_at_once(ReadingNeed plan, unsigned num_files) {
  plan.load_bytes += (std::max(1U, num_files) - 1) * plan.window_bytes;
  plan.peak_bytes = std::max(plan.peak_bytes, plan.load_bytes);
  plan.coarse_peak_bytes = std::max(plan.coarse_peak_bytes, plan.load_bytes);
  return plan;
}

// Kernels and calls, half and half: what an eager program records.
std::uint64_t events_that_fit(std::uint64_t memory_bytes) {
  TraceOutline pair;
  pair.num_kernels = 1'000'000;
  pair.num_calls = 1'000'000;
  const std::uint64_t fixed = reading_need({}, {}).peak_bytes;
  const std::uint64_t two_million = reading_need(pair, {}).peak_bytes - fixed;
  const double pairs = static_cast<double>(memory_bytes - std::min(fixed, memory_bytes)) /
                       static_cast<double>(two_million);
  return static_cast<std::uint64_t>(pairs * 2e6);
}

TimelineOptions coarse_picture() {
  TimelineOptions options;
  options.most_work = 10'000;
  options.most_window_work = 5'000;
  options.most_host = 5'000;
  options.num_coarse = 512;
  options.num_fine = 0;
  return options;
}

}  // namespace gpuwhy
