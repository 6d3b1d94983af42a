// SPDX-License-Identifier: Apache-2.0
//
// Timeline of each GPU, reduced to a size that a page can show.
//
// A recording may have a hundred million kernels, and a screen has two thousand columns. So the
// whole capture is drawn in levels: columns of equal width, and for each the nanoseconds that every
// family fills. Work is cut at column edges: the obvious way, crediting a kernel to the column it
// starts in, creates patterns that are not there. Small recordings also keep every slice, large
// ones those of a few representative windows.
//
// Rows are the busiest streams of each GPU, its copies, and its gaps with their cause from the
// ledger. What it gets wrong: the work of all other streams shares one row, where pieces may cover
// each other.
#include "analysis/timeline/timeline.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "trace/device_label.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kMostRows = 120;
constexpr std::size_t kMostGaps = 8;  // of a GPU and cause that are listed
constexpr std::size_t kMostListed = 400;
constexpr std::size_t kMostStreams = 6;  // streams of a GPU with separate rows

std::size_t streams_per_device(std::size_t num_devices) {
  const std::size_t left = kMostRows / std::max<std::size_t>(num_devices, 1);
  return std::clamp<std::size_t>(left > 3 ? left - 3 : 1, 1, kMostStreams);
}

// Where the CPU launched too slowly, or waited, the bucket itself is the cause.
std::uint16_t cause_number(const GapCause& cause) {
  const bool is_part = cause.bucket == Bucket::kLaunchLate && cause.kind != IdleKind::kNotHost &&
                       cause.kind != IdleKind::kLaunching && cause.kind != IdleKind::kWaiting;
  return static_cast<std::uint16_t>(is_part ? kNumBuckets + static_cast<std::size_t>(cause.kind)
                                            : static_cast<std::size_t>(cause.bucket));
}

}  // namespace

std::vector<std::string> gap_cause_names() {
  std::vector<std::string> names(kBucketNames.begin(), kBucketNames.end());
  for (const char* kind : kIdleKindNames) {
    names.push_back(
        fmt::format("{}.{}", kBucketNames[static_cast<std::size_t>(Bucket::kLaunchLate)], kind));
  }
  return names;
}

void TimelineSlices::add(std::uint16_t in_row, std::int64_t from_ns, std::int64_t to_ns,
                         std::uint32_t of_what, std::uint32_t of_stage, std::uint32_t of_call) {
  row.push_back(in_row);
  start_ns.push_back(from_ns);
  duration_ns.push_back(to_ns - from_ns);
  what.push_back(of_what);
  stage.push_back(of_stage);
  call.push_back(of_call);
}

void TimelineSlices::append(const TimelineSlices& other) {
  const auto add_all = [](auto& column, const auto& more) {
    column.insert(column.end(), more.begin(), more.end());
  };
  add_all(row, other.row);
  add_all(start_ns, other.start_ns);
  add_all(duration_ns, other.duration_ns);
  add_all(what, other.what);
  add_all(stage, other.stage);
  add_all(call, other.call);
}

TimelineMaker::TimelineMaker(const Trace& trace, const KernelFamilies& families,
                             const Stages& stages, const Attribution& attribution,
                             const std::vector<StepOnGpu>& step_windows, std::int64_t start_ns,
                             std::int64_t end_ns, const TimelineOptions& options)
    : trace_(trace),
      stages_(stages),
      attribution_(attribution),
      start_ns_(start_ns),
      end_ns_(end_ns),
      options_(options) {
  made_.duration_ns = end_ns - start_ns;
  made_.num_work =
      static_cast<std::int64_t>(trace.kernels.size() + trace.copies.size() + trace.graphs.size());
  made_.is_whole = made_.num_work <= options.most_work;
  for (const RowName& name : stages.names) {
    made_.stages.push_back(name.text());
  }
  made_.is_nested = stages.is_nested;
  for (const CloseUp& window :
       telling_windows(trace, stages, attribution, step_windows,
                       made_.is_whole ? options.most_work : options.most_window_work)) {
    host_windows_.push_back({window.start_ns, window.end_ns});
    made_.windows.push_back({window.label, window.start_ns - start_ns, window.end_ns - start_ns});
  }
  lay_rows();
  gaps_.resize(made_.rows.size() * kNumGapCauses);
  name_kernels(families);
  add_levels();
}

void TimelineMaker::add_work() {
  made_.host = make_host_timeline(trace_, attribution_, host_windows_, start_ns_, end_ns_,
                                  options_.most_host);
  add_table(
      trace_.kernels, attribution_.kernels,
      [&](std::size_t row) { return row_of_stream_[trace_.kernels.stream[row]]; },
      [&](std::size_t row) {
        return name_of_[static_cast<std::size_t>(trace_.kernels.name[row])];
      });
  add_table(
      trace_.graphs, attribution_.graphs,
      [&](std::size_t row) { return row_of_stream_[trace_.graphs.stream[row]]; },
      [](std::size_t) { return kNone; });
  add_table(
      trace_.copies, attribution_.copies,
      [&](std::size_t row) { return copies_row_[trace_.copies.device[row]]; },
      [&](std::size_t row) { return static_cast<std::uint32_t>(trace_.copies.kind[row]); });
  made_.num_kept = static_cast<std::int64_t>(made_.slices.size());
}

// GPUs by ordinal; for each the busiest streams, the others, copies, gaps.
void TimelineMaker::lay_rows() {
  std::vector<std::int64_t> busy_ns(trace_.streams.size());
  for (std::size_t i = 0; i < trace_.kernels.size(); ++i) {
    busy_ns[trace_.kernels.stream[i]] += trace_.kernels.end_ns[i] - trace_.kernels.start_ns[i];
  }
  for (std::size_t i = 0; i < trace_.graphs.size(); ++i) {
    busy_ns[trace_.graphs.stream[i]] += trace_.graphs.end_ns[i] - trace_.graphs.start_ns[i];
  }
  std::vector<std::size_t> devices(trace_.devices.size());
  std::iota(devices.begin(), devices.end(), std::size_t{0});
  std::ranges::stable_sort(devices, {},
                           [&](std::size_t one) { return trace_.devices[one].ordinal; });
  row_of_stream_.resize(trace_.streams.size());
  copies_row_.resize(devices.size());
  idle_row_.resize(devices.size());
  const std::size_t most = streams_per_device(devices.size());
  for (const std::size_t device : devices) {
    const std::string name = device_label(trace_.devices[device]);
    const auto add_row = [&](TimelineRowKind kind, std::string label) {
      made_.rows.push_back({kind, name, std::move(label)});
      return static_cast<std::uint16_t>(made_.rows.size() - 1);
    };
    std::vector<std::size_t> streams;
    std::set<std::uint16_t> processes;
    for (std::size_t i = 0; i < trace_.streams.size(); ++i) {
      if (trace_.streams[i].device == device && busy_ns[i] > 0) {
        streams.push_back(i);
        processes.insert(trace_.streams[i].process);
      }
    }
    std::ranges::stable_sort(streams,
                             [&](std::size_t a, std::size_t b) { return busy_ns[a] > busy_ns[b]; });
    std::uint16_t row = 0;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      const StreamInfo& stream = trace_.streams[streams[i]];
      if (i < most) {
        row = add_row(TimelineRowKind::kStream,
                      processes.size() < 2 ? fmt::format("stream {}", stream.stream)
                                           : fmt::format("stream {} of {}", stream.stream,
                                                         trace_.processes[stream.process].pid));
      } else if (i == most) {
        row = add_row(TimelineRowKind::kStream,
                      fmt::format("{} more streams", streams.size() - most));
      }
      row_of_stream_[streams[i]] = row;
    }
    copies_row_[device] = add_row(TimelineRowKind::kCopies, "copies");
    idle_row_[device] = add_row(TimelineRowKind::kIdle, "idle");
  }
}

void TimelineMaker::name_kernels(const KernelFamilies& families) {
  name_of_.assign(trace_.strings.size(), kNone);
  for (const StringId name : families.names()) {
    name_of_[static_cast<std::size_t>(name)] = static_cast<std::uint32_t>(made_.names.size());
    made_.names.emplace_back(trace_.strings[name]);
    const std::string& family = families[name];
    const auto found = std::find(made_.families.begin(), made_.families.end(), family);
    family_of_.push_back(static_cast<std::uint32_t>(found - made_.families.begin()));
    if (found == made_.families.end()) {
      made_.families.push_back(family);
    }
  }
  // A graph recorded as a whole has a separate family; the kinds of copies are the largest numbers.
  constexpr std::uint32_t kCopyKinds = 256;
  num_categories_ = std::max(static_cast<std::uint32_t>(made_.families.size()) + 1, kCopyKinds);
}

void TimelineMaker::add_levels() {
  // Limit on the values of the fine level, over all rows: more would not fit into a page.
  constexpr std::int64_t kMostFine = 200'000;
  const auto rows = static_cast<std::int64_t>(std::max<std::size_t>(made_.rows.size(), 1));
  std::vector<std::int64_t> sizes = {std::min(options_.num_coarse, kMostFine / rows)};
  if (!made_.is_whole && std::min(options_.num_fine, kMostFine / rows) > sizes[0]) {
    sizes.push_back(std::min(options_.num_fine, kMostFine / rows));
  }
  for (const std::int64_t size : sizes) {
    TimelineLevel& level = made_.levels.emplace_back();
    level.column_ns = std::max<std::int64_t>(1, (made_.duration_ns + size - 1) / size);
    level.num_columns =
        static_cast<std::size_t>((made_.duration_ns + level.column_ns - 1) / level.column_ns);
    fillings_.emplace_back(made_.rows.size() * num_categories_);
  }
}

template <typename Table, typename RowOf, typename WhatOf>
void TimelineMaker::add_table(const Table& table, const Origins& origins, RowOf row_of,
                              WhatOf what_of) {
  Filler filler(*this);
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::int64_t from_ns = std::max<std::int64_t>(table.start_ns[i] - start_ns_, 0);
    const std::int64_t to_ns = std::min(table.end_ns[i] - start_ns_, made_.duration_ns);
    if (from_ns >= to_ns) {
      continue;
    }
    const std::uint16_t row = row_of(i);
    const std::uint32_t what = what_of(i);
    std::uint32_t category = what;
    if (made_.rows[row].kind == TimelineRowKind::kStream) {
      category =
          what == kNone ? static_cast<std::uint32_t>(made_.families.size()) : family_of_[what];
    }
    filler.add(row, category, from_ns, to_ns);
    if (is_shown(from_ns, to_ns)) {
      const std::uint32_t instance =
          origins.instance[i] != kNone ? origins.instance[i] : origins.nested[i];
      const auto call = made_.host.slice_of_call.find(origins.call[i]);
      made_.slices.add(row, from_ns, to_ns, what,
                       instance == kNone ? kNone : stages_.instances[instance].stage,
                       call == made_.host.slice_of_call.end() ? kNone : call->second);
    }
  }
}

bool TimelineMaker::is_shown(std::int64_t start_ns, std::int64_t end_ns) const {
  return made_.is_whole || std::ranges::any_of(made_.windows, [&](const CloseUp& window) {
           return start_ns < window.end_ns && end_ns > window.start_ns;
         });
}

void TimelineMaker::Filler::add(std::uint16_t row, std::uint32_t category, std::int64_t from_ns,
                                std::int64_t to_ns) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const TimelineLevel& level = maker_.made_.levels[i];
    Filling& filling = maker_.fillings_[i][row * maker_.num_categories_ + category];
    if (filling.partial_ns.empty()) {
      filling.partial_ns.resize(level.num_columns);
      filling.whole.resize(level.num_columns + 1);
    }
    Column& column = columns_[i];
    if (from_ns >= column.start_ns && to_ns <= column.end_ns) {
      filling.partial_ns[column.number] += to_ns - from_ns;
      continue;
    }
    // A piece that spans many columns touches only its first and last one.
    const std::int64_t first = from_ns / level.column_ns;
    const std::int64_t last = (to_ns - 1) / level.column_ns;
    if (first == last) {
      filling.partial_ns[static_cast<std::size_t>(first)] += to_ns - from_ns;
    } else {
      filling.partial_ns[static_cast<std::size_t>(first)] +=
          (first + 1) * level.column_ns - from_ns;
      filling.partial_ns[static_cast<std::size_t>(last)] += to_ns - last * level.column_ns;
      ++filling.whole[static_cast<std::size_t>(first + 1)];
      --filling.whole[static_cast<std::size_t>(last)];
    }
    column = {last * level.column_ns, (last + 1) * level.column_ns, static_cast<std::size_t>(last)};
  }
}

GapSink TimelineMaker::gap_sink() {
  return [this, filler = Filler(*this)](std::size_t device, GapCause gap, std::int64_t start_ns,
                                        std::int64_t end_ns) mutable {
    const std::uint16_t cause = cause_number(gap);
    const std::uint16_t row = idle_row_[device];
    const std::int64_t from_ns = std::max<std::int64_t>(start_ns - start_ns_, 0);
    const std::int64_t to_ns = std::min(end_ns - start_ns_, made_.duration_ns);
    if (from_ns < to_ns) {
      filler.add(row, cause, from_ns, to_ns);
      if (is_shown(from_ns, to_ns)) {
        gap_slices_.add(row, from_ns, to_ns, cause, kNone, kNone);
      }
    }
    // A heap whose top is the shortest of the longest gaps.
    std::vector<TimelineGap>& longest = gaps_[row * kNumGapCauses + cause];
    if (longest.size() == kMostGaps && end_ns - start_ns <= longest.front().duration_ns) {
      return;
    }
    longest.push_back({end_ns - start_ns, start_ns - start_ns_, row, cause});
    std::push_heap(longest.begin(), longest.end(), std::greater<>());
    if (longest.size() > kMostGaps) {
      std::pop_heap(longest.begin(), longest.end(), std::greater<>());
      longest.pop_back();
    }
  };
}

Timeline TimelineMaker::finish() {
  for (std::size_t i = 0; i < fillings_.size(); ++i) {
    TimelineLevel& level = made_.levels[i];
    for (std::size_t cell = 0; cell < fillings_[i].size(); ++cell) {
      Filling& filling = fillings_[i][cell];
      if (filling.partial_ns.empty()) {
        continue;
      }
      // Turns the changes at column edges into counts.
      std::int64_t num_whole = 0;
      for (std::size_t column = 0; column < level.num_columns; ++column) {
        num_whole += filling.whole[column];
        filling.partial_ns[column] += num_whole * level.column_ns;
      }
      level.series.push_back({static_cast<std::uint16_t>(cell / num_categories_),
                              static_cast<std::uint16_t>(cell % num_categories_),
                              std::move(filling.partial_ns)});
    }
  }
  for (const std::vector<TimelineGap>& gaps : gaps_) {
    made_.longest_gaps.insert(made_.longest_gaps.end(), gaps.begin(), gaps.end());
  }
  std::ranges::sort(made_.longest_gaps, std::greater<>());
  made_.longest_gaps.resize(std::min(made_.longest_gaps.size(), kMostListed));
  TimelineSlices& slices = made_.slices;
  slices.append(gap_slices_);
  std::vector<std::uint32_t> order(slices.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&](std::uint32_t one) {
    return std::tuple(slices.row[one], slices.start_ns[one], -slices.duration_ns[one],
                      slices.what[one], one);
  });
  const auto reorder = [&](auto& column) {
    auto sorted = column;
    for (std::size_t i = 0; i < order.size(); ++i) {
      sorted[i] = column[order[i]];
    }
    column = std::move(sorted);
  };
  reorder(slices.row);
  reorder(slices.start_ns);
  reorder(slices.duration_ns);
  reorder(slices.what);
  reorder(slices.stage);
  reorder(slices.call);
  const std::vector<std::uint32_t> numbers = number_steps(trace_, stages_);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const StageInstance& instance = stages_.instances[i];
    made_.instances.push_back({instance.stage, instance.start_ns - start_ns_,
                               instance.end_ns - instance.start_ns, instance.is_open,
                               is_step(stages_, instance), instance.tokens, numbers[i]});
  }
  std::ranges::stable_sort(made_.instances, {}, [](const TimelineStage& one) {
    return std::pair(one.start_ns, -one.duration_ns);
  });
  return std::move(made_);
}

}  // namespace gpuwhy
