// SPDX-License-Identifier: Apache-2.0
//
// A recording as a picture: what ran when, on every GPU. Plain numbers that a writer can pack,
// independent of the trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/idle/ledger.h"
#include "analysis/names/kernel_families.h"
#include "analysis/stages/attribution.h"
#include "analysis/stages/stages.h"
#include "analysis/steps/steps_on_gpu.h"
#include "analysis/structure/layer_map.h"
#include "analysis/timeline/timeline_host.h"
#include "trace/trace.h"

namespace gpuwhy {

enum class TimelineRowKind : std::uint8_t { kStream, kCopies, kIdle };

// One row of the picture.
struct TimelineRow {
  TimelineRowKind kind = TimelineRowKind::kStream;
  std::string device;  // "cuda:0"
  std::string label;   // "stream 7"
};

// Pieces of work, and gaps, by row and then by start.
struct TimelineSlices {
  std::vector<std::uint16_t> row;
  std::vector<std::int64_t> start_ns;  // from the start of the capture
  std::vector<std::int64_t> duration_ns;
  // Index into Timeline::names (kNone: a CUDA graph as a whole), a CopyKind or a cause of gaps, by
  // kind of row.
  std::vector<std::uint32_t> what;
  std::vector<std::uint32_t> stage;  // into Timeline::stages, that launched it; kNone: none
  std::vector<std::uint32_t> call;   // into HostTimeline::slices, that launched it; kNone: none

  std::size_t size() const { return row.size(); }
  void add(std::uint16_t in_row, std::int64_t from_ns, std::int64_t to_ns, std::uint32_t of_what,
           std::uint32_t of_stage, std::uint32_t of_call);
  void append(const TimelineSlices& other);
};

// The time that one family (or CopyKind, or cause of gaps) fills in each column of a row. Exact:
// pieces of work are cut at column edges, in whole nanoseconds.
struct TimelineSeries {
  std::uint16_t row = 0;
  std::uint16_t category = 0;         // into Timeline::families; or a CopyKind, or a cause of gaps
  std::vector<std::int64_t> fill_ns;  // by column; above column_ns where work overlaps itself
};

// The whole capture in one resolution.
struct TimelineLevel {
  std::int64_t column_ns = 1;
  std::size_t num_columns = 0;
  std::vector<TimelineSeries> series;
};

// A time range with all of its slices.
struct CloseUp {
  std::string label;  // "decode_step 12, the slowest"
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

// Causes of gaps: the buckets, and the parts of launch_late by what the CPU did, if that was not
// launching or waiting: "launch_late.host_work".
inline constexpr std::size_t kNumGapCauses = kNumBuckets + kNumIdleKinds;
std::vector<std::string> gap_cause_names();

// A period without work on a GPU.
struct TimelineGap {
  std::int64_t duration_ns = 0;
  std::int64_t start_ns = 0;
  std::uint16_t row = 0;    // the idle row of its GPU
  std::uint16_t cause = 0;  // into gap_cause_names()

  auto operator<=>(const TimelineGap&) const = default;
};

// One instance of a stage.
struct TimelineStage {
  std::uint32_t stage = 0;  // into Timeline::stages
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  bool is_open = false;
  bool is_step = false;
  std::optional<std::int64_t> tokens;
  std::uint32_t number = 0;  // of a step: number_steps()
};

// Everything a page needs to draw the recording.
struct Timeline {
  std::int64_t duration_ns = 0;  // of the capture; 0: there is no timeline
  std::vector<std::string> stages;
  std::vector<bool> is_nested;           // by stage
  std::vector<TimelineStage> instances;  // by start
  std::vector<std::string> names;        // of kernels, whole
  std::vector<std::string> families;
  std::vector<TimelineRow> rows;
  std::vector<TimelineLevel> levels;  // coarse to fine, each over the whole capture
  std::vector<CloseUp> windows;
  std::vector<TimelineGap> longest_gaps;  // of each GPU and cause, the longest first
  std::vector<LayerMap> layer_maps;       // of the model, where one was recovered
  TimelineSlices slices;
  HostTimeline host;
  bool is_whole = false;      // every slice of the capture is there, not those of the windows alone
  std::int64_t num_work = 0;  // kernels, copies and graphs of the recording
  std::int64_t num_kept = 0;  // of them, in `slices`
};

// Size limits of a timeline.
struct TimelineOptions {
  std::int64_t most_work = 80'000;         // up to this many, every slice is kept
  std::int64_t most_window_work = 30'000;  // else this many, in windows
  std::int64_t most_host = 30'000;         // calls, and ranges and operators, of the CPU
  std::int64_t num_coarse = 2'048;         // columns
  std::int64_t num_fine = 8'192;           // where not every slice is kept; fewer with many rows
};

// Built around the ledger, which alone knows the causes of gaps:
//   TimelineMaker maker(...);  make_ledgers(..., maker.gap_sink());  maker.add_work();
//   maker.finish()
// Gaps and work may be added at the same time, by two threads.
class TimelineMaker {
 public:
  TimelineMaker(const Trace& trace, const KernelFamilies& families, const Stages& stages,
                const Attribution& attribution, const std::vector<StepOnGpu>& step_windows,
                std::int64_t start_ns, std::int64_t end_ns, const TimelineOptions& options = {});

  GapSink gap_sink();
  // The work of all GPUs, and what the host did.
  void add_work();
  Timeline finish();

 private:
  void lay_rows();
  void add_levels();
  void name_kernels(const KernelFamilies& families);
  template <typename Table, typename RowOf, typename WhatOf>
  void add_table(const Table& table, const Origins& origins, RowOf row_of, WhatOf what_of);
  bool is_shown(std::int64_t start_ns, std::int64_t end_ns) const;

  // One level while it is filled: full columns are recorded only by the first and last one, so that
  // the cost does not depend on the length of a piece.
  struct Filling {
    std::vector<std::int64_t> partial_ns;  // by column
    std::vector<std::int64_t> whole;       // change of the number of pieces that fill a column
  };

  // Adds pieces of time to the levels. Nearly all lie in the column of the one before.
  class Filler {
   public:
    explicit Filler(TimelineMaker& maker) : maker_(maker), columns_(maker.made_.levels.size()) {}

    void add(std::uint16_t row, std::uint32_t category, std::int64_t from_ns, std::int64_t to_ns);

   private:
    struct Column {
      std::int64_t start_ns = 0;
      std::int64_t end_ns = 0;
      std::size_t number = 0;
    };

    TimelineMaker& maker_;
    std::vector<Column> columns_;  // by level: of the piece before
  };

  const Trace& trace_;
  const Stages& stages_;
  const Attribution& attribution_;
  std::int64_t start_ns_ = 0;
  std::int64_t end_ns_ = 0;
  TimelineOptions options_;
  Timeline made_;
  std::vector<std::uint16_t> row_of_stream_;  // by Trace::streams
  std::vector<std::uint16_t> copies_row_;     // by device
  std::vector<std::uint16_t> idle_row_;       // by device
  std::vector<std::uint32_t> name_of_;        // StringId -> Timeline::names
  std::vector<std::uint32_t> family_of_;      // Timeline::names -> Timeline::families
  std::uint32_t num_categories_ = 0;
  std::vector<KeptTime> host_windows_;
  TimelineSlices gap_slices_;
  std::vector<std::vector<TimelineGap>> gaps_;  // by row x cause: heaps, the shortest on top
  std::vector<std::vector<Filling>> fillings_;  // by level, then row x category
};

// Time ranges worth a closer look, most informative first: a prefill, the slowest steps, the median
// one and its neighbours; the middle of the recording if there are no steps. Together they contain
// at most `most_work` pieces of work. Times are those of the trace.
std::vector<CloseUp> telling_windows(const Trace& trace, const Stages& stages,
                                     const Attribution& attribution,
                                     const std::vector<StepOnGpu>& step_windows,
                                     std::int64_t most_work);

}  // namespace gpuwhy
