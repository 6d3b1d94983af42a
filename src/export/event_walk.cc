// SPDX-License-Identifier: Apache-2.0
//
// Conversion of a recording to viewer events within a size budget.
//
// Rows of a recording are unordered, and viewers want them in order of time, so indexes are sorted,
// eight bytes each. Each part of the picture (stages, a GPU's ledger, the model, a GPU's streams,
// NVTX, API calls) is a separate sequence.
//
// The budget is met without guessing sizes. Parts are written in order of importance, each to its
// end; one that exceeds the budget is cut off the file again and named in the result. Only GPU work
// is cut in time: its bytes are counted by the start of each slice, and the second attempt stops
// where the budget ends. So most recordings are written once, and a recording that is too large is
// partly written two or three times.
//
// What it gets wrong: the part of the GPU work that is kept is the first, not the most informative
// one. A range that never ended is drawn up to the end of the capture.
#include "export/event_walk.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "analysis/profile.h"
#include "base/units.h"
#include "export/picture.h"

namespace gpuwhy {
namespace {

constexpr std::uint64_t kLeastSliceBytes = 24;  // no format needs less per slice

// Below a GPU, after the ledger and the rows of the model.
constexpr std::uint32_t kFirstStreamRank = 4;
constexpr const char* kModelRows[] = {"passes", "layers", "parts"};  // by ModelLevel

// A row of one of the tables. Kernels, copies and graphs of a GPU are sorted together.
struct RowRef {
  std::uint32_t row;
  std::uint32_t table;
};
enum GpuTable : std::uint32_t { kKernelTable, kCopyTable, kGraphTable };

template <typename IsBefore>
void sort_rows(std::vector<RowRef>& rows, IsBefore is_before) {
  if (!std::is_sorted(rows.begin(), rows.end(), is_before)) {  // most recordings are, nearly
    std::sort(rows.begin(), rows.end(), is_before);
  }
}

std::int64_t first_time(const Overlay& overlay) {
  std::int64_t first_ns = std::min<std::int64_t>(0, overlay.analysis().capture.start_ns);
  for (const std::int64_t start_ns : overlay.trace().ranges.start_ns) {
    first_ns = std::min(first_ns, start_ns);
  }
  return first_ns;
}

// One export: walks the tables part by part and stops each part at its limit.
class EventWalk {
 public:
  EventWalk(const Overlay& overlay, EventSink& sink, std::uint64_t budget_bytes)
      : overlay_(overlay),
        trace_(overlay.trace()),
        file_(sink.file()),
        sink_(sink),
        budget_bytes_(budget_bytes),
        limit_bytes_(budget_bytes - std::min(budget_bytes, sink.closing_bytes())),
        start_ns_(overlay.analysis().capture.start_ns),
        end_ns_(start_ns_ + overlay.analysis().capture.duration_ns),
        picture_(sink, static_cast<std::uint32_t>(trace_.devices.size()) + 1, first_time(overlay)) {
    picture_.sizes.start_ns = start_ns_;
    picture_.sizes.bin_ns = std::max<std::int64_t>(0, overlay.analysis().capture.duration_ns) /
                                static_cast<std::int64_t>(SizeHistory::kNumBins) +
                            1;
    for (const StreamInfo& stream : trace_.streams) {
      ++num_contexts_[{stream.process, stream.device, stream.stream}];
    }
  }

  ExportedTrace run() {
    // Stages and ledger are small, and worth more than the last kernels of a long recording.
    part("stages", overlay_.stages().instances.size(), limit_bytes_ / 4, [&] { stages(); });
    part("the ledger's counters", overlay_.analysis().ledger_history.size(),
         file_.size_bytes() + limit_bytes_ / 4, [&] { ledger(); });
    part("passes and layers of the model",
         most_model_slices(overlay_.profile(), ModelLevel::kPasses) +
             most_model_slices(overlay_.profile(), ModelLevel::kLayers),
         file_.size_bytes() + limit_bytes_ / 4, [&] {
           model(ModelLevel::kPasses);
           model(ModelLevel::kLayers);
         });
    gpu_work();
    part("NVTX ranges and marks", trace_.ranges.size(), limit_bytes_, [&] { ranges(); });
    part("parts of the model's layers", most_model_slices(overlay_.profile(), ModelLevel::kParts),
         limit_bytes_, [&] { model(ModelLevel::kParts); });
    const bool has_room = result_.left_out.empty();
    part("API calls of the host", trace_.api_calls.size(), has_room ? limit_bytes_ : 0,
         [&] { api_calls(); });
    file_.set_limit(UINT64_MAX);
    sink_.finish();
    result_.size_bytes = file_.size_bytes();
    return result_;
  }

 private:
  void leave_out(const char* what, std::size_t count) {
    result_.left_out.push_back(
        {"export_left_out", Severity::kInfo, static_cast<std::int64_t>(count),
         fmt::format("{} are left out of the trace ({}): they do not fit into {} bytes", what,
                     count, budget_bytes_)});
  }

  // Writes a part completely or not at all.
  template <typename Tell>
  void part(const char* what, std::size_t count, std::uint64_t limit_bytes, Tell tell) {
    const std::uint64_t before = file_.size_bytes();
    if (count == 0) {
      return;
    }
    if (before + count * kLeastSliceBytes > limit_bytes) {
      return leave_out(what, count);
    }
    file_.set_limit(limit_bytes);
    known_parents_.clear();
    picture_.num_slices = 0;
    tell();
    if (file_.size_bytes() > limit_bytes) {
      file_.cut_back(before);
      return leave_out(what, count);
    }
    result_.num_slices += picture_.num_slices;
  }

  std::size_t num_gpu_rows() const {
    return trace_.kernels.size() + trace_.copies.size() + trace_.graphs.size();
  }

  // Returns whether all GPU work fits in the file.
  bool try_gpu_work(bool has_arguments) {
    const std::uint64_t before = file_.size_bytes();
    has_arguments_ = has_arguments;
    file_.set_limit(limit_bytes_);
    picture_.sizes.bytes.fill(0);
    picture_.num_slices = 0;
    devices();
    if (file_.size_bytes() > limit_bytes_) {
      file_.cut_back(before);
      return false;
    }
    return true;
  }

  // Up to three attempts: with arguments, without, and cut at the time where the budget ends.
  void gpu_work() {
    const std::uint64_t before = file_.size_bytes();
    const bool may_fit = before + num_gpu_rows() * kLeastSliceBytes <= limit_bytes_;
    if (!may_fit || !try_gpu_work(true)) {
      leave_out("arguments of GPU work (stage, grid and block, counters)", num_gpu_rows());
      if (!try_gpu_work(false)) {
        until_ns_ = picture_.sizes.end_for(limit_bytes_ - std::min(limit_bytes_, before));
        try_gpu_work(false);
        const auto missing = static_cast<std::int64_t>(num_gpu_rows()) - picture_.num_slices;
        result_.left_out.push_back(
            {"export_cut", Severity::kDataLoss, missing,
             fmt::format("{} of {} kernels, copies and graphs are left out of the trace: those "
                         "that begin later than {} after its start do not fit into {} bytes",
                         missing, num_gpu_rows(), format_duration_ns(until_ns_ - start_ns_),
                         budget_bytes_)});
      }
    }
    result_.num_slices += picture_.num_slices;
  }

  // GPUs have the first track numbers. Declared again in each sequence that uses them.
  std::uint32_t device_track(std::size_t device) {
    const DeviceInfo& info = trace_.devices[device];
    ExportTrack track;
    track.id = static_cast<std::uint32_t>(device) + 1;
    track.kind = TrackKind::kGroup;
    track.name = fmt::format("GPU {}{}{}", info.ordinal, info.name.empty() ? "" : ": ", info.name);
    track.rank = track.id;
    sink_.track(track);
    return track.id;
  }

  std::uint32_t process_track(std::uint32_t process) {
    const auto [at, is_new] = known_parents_.try_emplace({process, kNone}, 0);
    if (is_new) {
      ExportTrack track;
      track.kind = TrackKind::kProcess;
      track.pid = trace_.processes[process].pid;
      track.name = fmt::format("process {}", track.pid);
      track.rank = static_cast<std::uint32_t>(trace_.devices.size()) + 1 + process;
      at->second = picture_.add_track(std::move(track));
    }
    return at->second;
  }

  std::uint32_t thread_track(std::uint32_t thread) {
    const ThreadInfo& info = trace_.threads[thread];
    const auto [at, is_new] = known_parents_.try_emplace({info.process, thread}, 0);
    if (is_new) {
      ExportTrack track;
      track.kind = TrackKind::kThread;
      track.parent = process_track(info.process);
      track.pid = trace_.processes[info.process].pid;
      track.tid = info.tid;
      track.name = fmt::format("thread {}", info.tid);
      at->second = picture_.add_track(std::move(track));
    }
    return at->second;
  }

  // Streams of several processes or contexts may share a number.
  std::string stream_name(const StreamInfo& stream) const {
    std::string name = fmt::format("stream {}", stream.stream);
    if (trace_.processes.size() > 1) {
      name += fmt::format(" of process {}", trace_.processes[stream.process].pid);
    }
    if (num_contexts_.at({stream.process, stream.device, stream.stream}) > 1) {
      name += fmt::format(", context {}", stream.context);
    }
    return name;
  }

  void devices() {
    for (std::size_t device = 0; device < trace_.devices.size(); ++device) {
      const std::vector<RowRef> order = gpu_order(device);
      if (order.empty()) {
        continue;
      }
      // The bytes of the device's tracks count as written at the start of the recording.
      const std::uint64_t before = file_.size_bytes();
      picture_.begin_sequence();
      const std::uint32_t parent = device_track(device);
      picture_.sizes.add(start_ns_, file_.size_bytes() - before);
      // Tracks of streams are made when their first work is written: empty streams have none.
      std::vector<std::uint32_t> by_stream(trace_.streams.size(), kNone);
      for (const RowRef& ref : order) {
        if (ref.table == kKernelTable) {
          overlay_.kernel_arguments(ref.row, arguments_);
          tell_work(trace_.kernels, ref.row, overlay_.kernel_name(ref.row),
                    overlay_.family(ref.row), parent, by_stream);
        } else if (ref.table == kCopyTable) {
          overlay_.copy_arguments(ref.row, arguments_);
          tell_work(trace_.copies, ref.row, overlay_.copy_name(trace_.copies.kind[ref.row]),
                    overlay_.copy_category(), parent, by_stream);
        } else {
          overlay_.graph_arguments(ref.row, arguments_);
          tell_work(trace_.graphs, ref.row, overlay_.graph_name(), overlay_.graph_family(), parent,
                    by_stream);
        }
      }
      picture_.end_all();
    }
  }

  // Tracks are created at the first slice of a stream, so that empty streams are not shown.
  template <typename Table>
  void tell_work(const Table& table, std::uint32_t row, TextId name, TextId category,
                 std::uint32_t parent, std::vector<std::uint32_t>& by_stream) {
    const std::uint32_t stream = table.stream[row];
    if (by_stream[stream] == kNone) {
      by_stream[stream] = picture_.add_row(false, parent, kFirstStreamRank + stream,
                                           stream_name(trace_.streams[stream]));
    }
    ExportSlice slice;
    slice.name = name;
    slice.category = category;
    if (has_arguments_) {
      slice.arguments = arguments_;
    }
    picture_.add(by_stream[stream], slice, table.start_ns[row], table.end_ns[row]);
  }

  // The work of a GPU that starts before the cut, sorted by start. Of those that start together the
  // shorter comes first, so that zero-length work stays in its lane.
  std::vector<RowRef> gpu_order(std::size_t device) const {
    std::vector<RowRef> order;
    const auto start_ns = [&](const RowRef& ref) {
      return ref.table == kKernelTable ? trace_.kernels.start_ns[ref.row]
             : ref.table == kCopyTable ? trace_.copies.start_ns[ref.row]
                                       : trace_.graphs.start_ns[ref.row];
    };
    const auto key = [&](const RowRef& ref) {
      const auto of = [&](const auto& table) {
        return std::tuple(table.start_ns[ref.row], table.end_ns[ref.row], ref.table,
                          table.stream[ref.row], table.correlation[ref.row]);
      };
      return ref.table == kKernelTable ? of(trace_.kernels)
             : ref.table == kCopyTable ? of(trace_.copies)
                                       : of(trace_.graphs);
    };
    const auto is_before = [&](const RowRef& a, const RowRef& b) {
      const std::int64_t a_ns = start_ns(a);
      const std::int64_t b_ns = start_ns(b);
      return a_ns != b_ns ? a_ns < b_ns : key(a) < key(b);
    };
    // Tables are mostly sorted, and merged in one pass.
    const auto add = [&](const auto& table, std::uint32_t number) {
      const auto before = static_cast<std::ptrdiff_t>(order.size());
      for (std::uint32_t row = 0; row < table.size(); ++row) {
        if (table.device[row] == device && table.start_ns[row] < until_ns_) {
          order.push_back({row, number});
        }
      }
      const auto middle = order.begin() + before;
      if (!std::is_sorted(middle, order.end(), is_before)) {
        std::sort(middle, order.end(), is_before);
      }
      std::inplace_merge(order.begin(), middle, order.end(), is_before);
    };
    add(trace_.kernels, kKernelTable);
    add(trace_.copies, kCopyTable);
    add(trace_.graphs, kGraphTable);
    return order;
  }

  // Rows of the host, sorted by start, the longest first, so that nested ones follow.
  template <typename Times>
  static std::vector<RowRef> host_order(std::size_t count, Times times) {
    std::vector<RowRef> order(count);
    for (std::uint32_t row = 0; row < count; ++row) {
      order[row] = {row, 0};
    }
    sort_rows(order, [&](const RowRef& a, const RowRef& b) {
      const auto [a_start, a_end] = times(a.row);
      const auto [b_start, b_end] = times(b.row);
      return std::tuple(a_start, b_end, a.row) < std::tuple(b_start, a_end, b.row);
    });
    return order;
  }

  // Shares of each bin's time, 0..100. Buckets that a GPU never has get no track.
  void ledger() {
    for (std::size_t device = 0; device < overlay_.analysis().ledger_history.size(); ++device) {
      const LedgerHistory& history = overlay_.analysis().ledger_history[device];
      picture_.begin_sequence();
      ExportTrack track;
      track.parent = device_track(device);
      track.kind = TrackKind::kCounter;
      track.unit = "%";
      std::array<std::uint32_t, kNumBuckets> tracks{};
      for (std::size_t bucket = 0; bucket < kNumBuckets; ++bucket) {
        if (std::any_of(history.bins.begin(), history.bins.end(),
                        [&](const auto& bin) { return bin[bucket] > 0; })) {
          track.name = fmt::format("ledger: {}", kBucketNames[bucket]);
          tracks[bucket] = picture_.add_track(track);
        }
      }
      for (std::size_t bin = 0; bin < history.bins.size(); ++bin) {
        tell_bin(history, bin, tracks);
      }
      for (const std::uint32_t counter : tracks) {
        if (counter != 0) {
          sink_.counter(counter, picture_.shown(end_ns_), 0);
        }
      }
    }
  }

  // Writes only changes: a counter keeps its value.
  void tell_bin(const LedgerHistory& history, std::size_t bin,
                const std::array<std::uint32_t, kNumBuckets>& tracks) {
    const std::int64_t from_ns = history.start_ns + static_cast<std::int64_t>(bin) * history.bin_ns;
    const std::int64_t width_ns = std::min(history.bin_ns, end_ns_ - from_ns);
    for (std::size_t bucket = 0; bucket < kNumBuckets; ++bucket) {
      const bool is_change = bin == 0 || width_ns < history.bin_ns ||
                             history.bins[bin][bucket] != history.bins[bin - 1][bucket];
      if (tracks[bucket] != 0 && is_change) {
        sink_.counter(tracks[bucket], picture_.shown(from_ns),
                      100 * fraction_of(history.bins[bin][bucket], width_ns));
      }
    }
  }

  // The model of each GPU and process where one was recovered.
  void model(ModelLevel level) {
    const auto number = static_cast<std::uint32_t>(level);
    for (const KernelStream& stream : overlay_.profile().structure.streams) {
      if (stream.passes.empty()) {
        continue;
      }
      picture_.begin_sequence();
      std::string name = kModelRows[number];
      if (trace_.processes.size() > 1) {
        name += fmt::format(" of process {}", trace_.processes[stream.process].pid);
      }
      const std::uint32_t row =
          picture_.add_row(false, device_track(stream.device), number + 1, std::move(name));
      for_each_model_slice(overlay_.profile(), stream, level, [&](const ModelSlice& one) {
        ExportSlice slice;
        slice.name = overlay_.model_name(stream, one, level);
        slice.category = overlay_.model_category();
        overlay_.model_arguments(one, level, arguments_);
        slice.arguments = arguments_;
        picture_.add(row, slice, one.start_ns, one.end_ns);
      });
      picture_.end_all();
    }
  }

  void stages() {
    const auto& instances = overlay_.stages().instances;
    picture_.begin_sequence();
    ExportTrack track;
    track.kind = TrackKind::kGroup;
    track.name = "Stages";
    const std::uint32_t group = picture_.add_track(track);
    // One row of stages per process: instances of different processes overlap.
    std::map<std::uint32_t, std::uint32_t> by_process;
    const auto end_of = [](const StageInstance& instance) {
      return std::max(instance.start_ns, instance.end_ns);
    };
    for (const RowRef& ref : host_order(instances.size(), [&](std::uint32_t i) {
           return std::pair(instances[i].start_ns, end_of(instances[i]));
         })) {
      const StageInstance& instance = instances[ref.row];
      ExportSlice slice;
      slice.name = overlay_.stage_name(instance.stage);
      slice.category = overlay_.stage_category();
      overlay_.stage_arguments(instance, arguments_);
      slice.arguments = arguments_;
      const bool is_known = instance.thread < trace_.threads.size();
      const std::uint32_t process = is_known ? trace_.threads[instance.thread].process : kNone;
      const auto [at, is_new] = by_process.try_emplace(process, 0);
      if (is_new) {
        at->second = picture_.add_row(
            true, group, 0,
            is_known ? fmt::format("stages of process {}", trace_.processes[process].pid)
                     : "stages of the recording");
      }
      picture_.add(at->second, slice, instance.start_ns, end_of(instance));
    }
    picture_.end_all();
  }

  void ranges() {
    const Ranges& table = trace_.ranges;
    picture_.begin_sequence();
    std::map<std::pair<std::uint32_t, bool>, std::uint32_t> by_thread;
    const auto end_of = [&](std::uint32_t row) {
      const std::int64_t start_ns = table.start_ns[row];
      return table.kind[row] == RangeKind::kMark ? start_ns
             : table.end_ns[row] == kOpenEnd     ? std::max(start_ns, end_ns_)
                                                 : std::max(start_ns, table.end_ns[row]);
    };
    for (const RowRef& ref : host_order(table.size(), [&](std::uint32_t row) {
           return std::pair(table.start_ns[row], end_of(row));
         })) {
      ExportSlice slice;
      slice.is_mark = table.kind[ref.row] == RangeKind::kMark;
      slice.name = overlay_.texts().of_recorded(table.text[ref.row]);
      slice.category = overlay_.nvtx_category();
      overlay_.range_arguments(ref.row, arguments_);
      slice.arguments = arguments_;
      // Start/end ranges may cross each other, so they get a separate row.
      const bool is_pushed = table.kind[ref.row] != RangeKind::kStartEnd;
      const auto [at, is_new] = by_thread.try_emplace({table.thread[ref.row], is_pushed}, 0);
      if (is_new) {
        at->second = picture_.add_row(true, thread_track(table.thread[ref.row]), is_pushed ? 1 : 2,
                                      is_pushed ? "NVTX" : "NVTX start/end");
      }
      picture_.add(at->second, slice, table.start_ns[ref.row], end_of(ref.row));
    }
    picture_.end_all();
  }

  void api_calls() {
    const ApiCalls& table = trace_.api_calls;
    picture_.begin_sequence();
    std::vector<std::uint32_t> by_thread(trace_.threads.size(), kNone);
    for (const RowRef& ref : host_order(table.size(), [&](std::uint32_t row) {
           return std::pair(table.start_ns[row], table.end_ns[row]);
         })) {
      std::uint32_t& row = by_thread[table.thread[ref.row]];
      if (row == kNone) {
        row = picture_.add_row(true, thread_track(table.thread[ref.row]), 3, "CUDA API");
      }
      ExportSlice slice;
      slice.name = overlay_.texts().of_recorded(table.name[ref.row]);
      slice.category = overlay_.api_category();
      picture_.add(row, slice, table.start_ns[ref.row], table.end_ns[ref.row]);
    }
    picture_.end_all();
  }

  const Overlay& overlay_;
  const Trace& trace_;
  FileWriter& file_;
  EventSink& sink_;
  std::uint64_t budget_bytes_;  // as asked for
  std::uint64_t limit_bytes_;   // without the closing bytes
  std::int64_t start_ns_;
  std::int64_t end_ns_;
  std::int64_t until_ns_ = INT64_MAX;  // GPU work that starts later is omitted
  bool has_arguments_ = true;
  ExportedTrace result_;
  Picture picture_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known_parents_;
  std::map<std::tuple<std::uint16_t, std::uint16_t, std::uint32_t>, int> num_contexts_;
  Overlay::Arguments arguments_;
};

}  // namespace

ExportedTrace tell_recording(const Overlay& overlay, EventSink& sink, std::uint64_t budget_bytes) {
  return EventWalk(overlay, sink, budget_bytes).run();
}

}  // namespace gpuwhy
