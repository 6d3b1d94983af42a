// SPDX-License-Identifier: Apache-2.0
//
// Restriction of a recording to a window of time: by times, by steps, or trimmed to its marks.
//
// The window is on the GPU's side of the recording: work that begins in it is kept, no
// matter who launched it, so that the GPU is shown as busy as it was. The host runs ahead, so a
// window of steps ends with the last work of the last step, not with its mark.
//
// A call that began before the window and launched work inside it is needed to tell whose work that
// is. It is moved to the start of the window where its stage goes on there; otherwise it stays
// where it is, outside of all stages that are kept.
//
// What it gets wrong: work at the very start that an earlier step launched is charged to the step
// that is running there, if both lie in one loop that is marked, too.
#include "analysis/stages/window.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "analysis/stages/attribution.h"
#include "analysis/stages/capture_summary.h"
#include "base/error.h"
#include "base/parse_number.h"
#include "base/units.h"
#include "trace/filter.h"

namespace gpuwhy {
namespace {

struct Span {
  std::int64_t start_ns = INT64_MAX;
  std::int64_t end_ns = INT64_MIN;

  void cover(std::int64_t start, std::int64_t end) {
    start_ns = std::min(start_ns, start);
    end_ns = std::max(end_ns, end);
  }
  bool is_empty() const { return end_ns < start_ns; }
  bool overlaps(std::int64_t start, std::int64_t end) const {
    return start < end_ns && (start >= start_ns || end > start_ns);
  }
};

class WindowMaker {
 public:
  WindowMaker(const Rules& rules, Trace& trace)
      : trace_(trace),
        extent_(extent_of(trace)),
        stages_(find_stages(trace, rules, extent_.start_ns, extent_.end_ns)),
        attribution_(attribute(trace, stages_)) {
    extent_ = with_marks(extent_, trace, stages_);
  }

  void choose(const WindowOptions& options) {
    if (options.steps) {
      choose_steps(*options.steps);
    } else if (options.is_trimmed) {
      trim();
    } else {
      choose_times(options);
    }
  }

  void apply() {
    KeptRows kept;
    kept.api_calls = overlapping(trace_.api_calls, false);
    kept.ranges = overlapping(trace_.ranges, true);
    kept.ops = overlapping(trace_.ops, false);
    kept.functions = overlapping(trace_.functions, false);
    kept.kernels = beginning(trace_.kernels, attribution_.kernels, kept.api_calls);
    kept.copies = beginning(trace_.copies, attribution_.copies, kept.api_calls);
    kept.graphs = beginning(trace_.graphs, attribution_.graphs, kept.api_calls);
    if (num_kept_ == 0) {
      refuse_empty();
    }
    keep_only(kept, trace_);
    trace_.capture.window = {window_.start_ns - extent_.start_ns,
                             window_.end_ns - extent_.start_ns,
                             why_,
                             extent_.start_ns,
                             is_by_time_,
                             first_step_};
  }

 private:
  void choose_times(const WindowOptions& options) {
    const std::int64_t length_ns = extent_.end_ns - extent_.start_ns;
    const std::int64_t from_ns = options.from ? options.from->count() : 0;
    const std::int64_t to_ns = options.to ? std::min(options.to->count(), length_ns) : length_ns;
    if (from_ns >= length_ns) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("--from {}: the recording lasts {}", format_duration_ns(from_ns),
                              format_duration_ns(length_ns)));
    }
    window_ = {extent_.start_ns + from_ns, extent_.start_ns + to_ns};
    is_by_time_ = true;
    why_ = fmt::format("from {} to {} of {}", format_duration_ns(from_ns),
                       format_duration_ns(to_ns), format_duration_ns(length_ns));
  }

  // Steps are counted by thread: in a recording of several ranks, each has its own.
  void choose_steps(const StepSpan& asked) {
    const std::vector<std::uint32_t> numbers = number_steps(trace_, stages_);
    is_chosen_.resize(stages_.instances.size());
    std::int64_t num_steps = 0;
    for (std::uint32_t i = 0; i < stages_.instances.size(); ++i) {
      if (numbers[i] == kNone) {
        continue;
      }
      const StageInstance& step = stages_.instances[i];
      Span& own = by_thread_[step.thread];  // a thread whose steps are all left out keeps none
      num_steps = std::max<std::int64_t>(num_steps, numbers[i] + 1);
      if (numbers[i] >= asked.first && numbers[i] <= asked.last) {
        is_chosen_[i] = true;
        own.cover(step.start_ns, step.end_ns);
        window_.cover(step.start_ns, step.end_ns);
      }
    }
    if (by_thread_.empty()) {
      throw Error(
          ErrorKind::kUsage, "--steps: the recording marks no steps",
          "say which ranges are steps, as --step 'ProfilerStep#*' (gpuwhy table ranges FILE "
          "lists them), or use --from and --to");
    }
    if (window_.is_empty()) {
      const std::string end = asked.last == INT64_MAX ? "" : fmt::format("{}", asked.last);
      throw Error(
          ErrorKind::kUsage,
          fmt::format("--steps {}: the recording has {} steps",
                      asked.last == asked.first ? end : fmt::format("{}..{}", asked.first, end),
                      num_steps),
          "they are counted from 0");
    }
    first_step_ = asked.first;
    cover_work([&](std::uint32_t instance) { return is_chosen_[instance]; });
    why_ = fmt::format("steps {}..{} of {}", asked.first, std::min(asked.last, num_steps - 1),
                       num_steps);
  }

  void trim() {
    if (stages_.are_marked()) {
      for (const StageInstance& instance : stages_.instances) {
        window_.cover(instance.start_ns, instance.end_ns);
      }
      cover_work([](std::uint32_t) { return true; });
      why_ = "trimmed to the first and the last mark";
      return;
    }
    const auto cover = [&](const auto& table) {
      for (std::size_t row = 0; row < table.size(); ++row) {
        window_.cover(table.start_ns[row], std::max(table.end_ns[row], table.start_ns[row] + 1));
      }
    };
    cover(trace_.kernels);
    cover(trace_.graphs);
    if (window_.is_empty()) {
      throw Error(ErrorKind::kUsage, "--trim: the recording has neither marks nor kernels");
    }
    why_ = "trimmed to the first and the last kernel";
  }

  // Extends the window by the work of the chosen instances.
  template <typename IsChosen>
  void cover_work(IsChosen is_chosen) {
    const auto cover = [&](const auto& table, const Origins& origins) {
      for (std::size_t row = 0; row < table.size(); ++row) {
        for (const std::uint32_t instance : {origins.instance[row], origins.nested[row]}) {
          if (instance != kNone && is_chosen(instance)) {
            window_.cover(window_.start_ns, table.end_ns[row]);
          }
        }
      }
    };
    cover(trace_.kernels, attribution_.kernels);
    cover(trace_.copies, attribution_.copies);
    cover(trace_.graphs, attribution_.graphs);
  }

  template <typename Table>
  std::vector<bool> overlapping(const Table& table, bool is_by_thread) const {
    std::vector<bool> kept(table.size());
    for (std::size_t row = 0; row < table.size(); ++row) {
      const auto own = is_by_thread ? by_thread_.find(table.thread[row]) : by_thread_.end();
      const Span& span = own == by_thread_.end() ? window_ : own->second;
      kept[row] = span.overlaps(table.start_ns[row], table.end_ns[row]);
    }
    return kept;
  }

  // Work that begins in the window. Its calls are kept, and moved where their stage goes on.
  template <typename Table>
  std::vector<bool> beginning(const Table& table, const Origins& origins,
                              std::vector<bool>& kept_calls) {
    ApiCalls& calls = trace_.api_calls;
    std::vector<bool> kept(table.size());
    for (std::size_t row = 0; row < table.size(); ++row) {
      kept[row] = table.start_ns[row] >= window_.start_ns &&
                  (table.start_ns[row] < window_.end_ns || window_.end_ns >= extent_.end_ns);
      const std::uint32_t instance = origins.instance[row];
      if (is_of_later_step(instance) || is_of_later_step(origins.nested[row])) {
        kept[row] = false;  // without its mark it would pass for work of the last step
      }
      if (!kept[row]) {
        continue;
      }
      ++num_kept_;
      const std::uint32_t call = origins.call[row];
      if (call == kNone) {
        continue;
      }
      kept_calls[call] = true;
      if (calls.start_ns[call] < window_.start_ns && instance != kNone &&
          stages_.instances[instance].end_ns > window_.start_ns) {
        calls.start_ns[call] = window_.start_ns;
        calls.end_ns[call] = std::max(calls.end_ns[call], window_.start_ns);
      }
    }
    return kept;
  }

  bool is_of_later_step(std::uint32_t instance) const {
    if (is_chosen_.empty() || instance == kNone || is_chosen_[instance]) {
      return false;
    }
    const StageInstance& step = stages_.instances[instance];
    const auto own = by_thread_.find(step.thread);
    return is_step(stages_, step) && own != by_thread_.end() && step.start_ns >= own->second.end_ns;
  }

  [[noreturn]] void refuse_empty() const {
    Span work;
    const auto cover = [&](const auto& table) {
      for (std::size_t row = 0; row < table.size(); ++row) {
        work.cover(table.start_ns[row], table.end_ns[row]);
      }
    };
    cover(trace_.kernels);
    cover(trace_.copies);
    cover(trace_.graphs);
    throw Error(ErrorKind::kUsage, fmt::format("no GPU work begins in the window ({})", why_),
                work.is_empty()
                    ? "the recording has none at all"
                    : fmt::format("it begins {} after the start of the capture and ends after {}",
                                  format_duration_ns(work.start_ns - extent_.start_ns),
                                  format_duration_ns(work.end_ns - extent_.start_ns)));
  }

  Trace& trace_;
  Extent extent_;
  Stages stages_;
  Attribution attribution_;
  Span window_;
  std::vector<bool> is_chosen_;              // by instance; empty unless steps were asked for
  std::map<std::uint32_t, Span> by_thread_;  // of threads that mark steps: their chosen ones
  std::string why_;
  bool is_by_time_ = false;
  std::int64_t first_step_ = 0;
  std::size_t num_kept_ = 0;
};

}  // namespace

std::optional<StepSpan> parse_steps(std::string_view text) {
  const std::size_t dots = text.find("..");
  const std::string_view end = dots == std::string_view::npos ? text : text.substr(dots + 2);
  const auto first = parse_whole(text.substr(0, dots));
  const auto last = end.empty() ? std::optional(INT64_MAX) : parse_whole(end);
  return first && last && *first >= 0 && *last >= *first ? std::optional(StepSpan{*first, *last})
                                                         : std::nullopt;
}

void check_window(const WindowOptions& options) {
  const int ways =
      (options.from || options.to ? 1 : 0) + (options.steps ? 1 : 0) + (options.is_trimmed ? 1 : 0);
  if (ways > 1) {
    throw Error(ErrorKind::kUsage, "a window is given by --from and --to, by --steps, or by --trim",
                "choose one of them");
  }
  if (options.from && options.to && *options.from >= *options.to) {
    throw Error(ErrorKind::kUsage, fmt::format("--from {} is not before --to {}",
                                               format_duration_ns(options.from->count()),
                                               format_duration_ns(options.to->count())));
  }
}

void apply_window(const WindowOptions& options, const Rules& rules, Trace& trace) {
  WindowMaker maker(rules, trace);
  maker.choose(options);
  maker.apply();
}

}  // namespace gpuwhy
