// SPDX-License-Identifier: Apache-2.0
//
// One sweep over the time of a GPU for all windows at once.
//
// The GPU's time is a sequence of pieces in which nothing changes: one or more kernels run, or none
// does and the idle time has one cause. Each piece is clipped to every window that is open, and
// added to its ledger. The obvious way, a sweep for each window, looks at all work three times:
// for the capture, its phases, and the steps.
//
//   GPU      [ compute ]....[ copy ][ compute ]......
//   capture |----------------------------------------|
//   phases  |startup|  steady                 |ending|
//   steps           |  0    |   1             |
//
// A piece with work counts for the kind of work that comes first in the order of Bucket. That may
// differ between windows, because what is a step's own work is another stage's for the next. So
// where several kernels run at once each window counts them by kind. Nearly all run alone.
#include "analysis/idle/ledger_sweep.h"

#include <algorithm>
#include <functional>
#include <span>
#include <tuple>
#include <utility>

#include "analysis/idle/ledger.h"

namespace gpuwhy {

void CauseTotals::add(const Gap& gap, std::int64_t time_ns) {
  std::vector<IdleRow>& totals = gap.cause == Bucket::kUnrecorded ? unrecorded_ : in_work_;
  if (totals.size() <= gap.label) {
    totals.resize(gap.label + 1);
  }
  IdleRow& total = totals[gap.label];
  total.bucket = gap.cause;
  if (total.num_gaps == 0 || gap.start_ns < total.first_start_ns) {
    total.first_start_ns = gap.start_ns;
    total.first_gap_ns = time_ns;
  }
  total.last_start_ns =
      total.num_gaps == 0 ? gap.start_ns : std::max(total.last_start_ns, gap.start_ns);
  ++total.num_gaps;
  total.total_ns += time_ns;
  total.in_call_ns += std::min(time_ns, gap.in_call_ns);
  total.longest_ns = std::max(total.longest_ns, time_ns);
}

std::vector<IdleRow> CauseTotals::list(const std::vector<IdleLabel>& labels) const {
  std::vector<IdleRow> causes;
  for (const std::vector<IdleRow>* totals : {&in_work_, &unrecorded_}) {
    for (std::size_t label = 0; label < totals->size(); ++label) {
      if ((*totals)[label].num_gaps > 0) {
        IdleRow& cause = causes.emplace_back((*totals)[label]);
        cause.kind = labels[label].kind;
        cause.call = labels[label].call;
        cause.scope = labels[label].scope;
      }
    }
  }
  std::sort(causes.begin(), causes.end(), [](const IdleRow& a, const IdleRow& b) {
    return std::tie(b.total_ns, a.bucket, a.kind, a.call, a.scope) <
           std::tie(a.total_ns, b.bucket, b.kind, b.call, b.scope);
  });
  return causes;
}

namespace {

// What decides the bucket of a piece of work.
struct WorkKind {
  Bucket kind = Bucket::kCompute;
  std::uint32_t instance = kNone;
  std::uint32_t nested = kNone;
};

// Adds pieces of time to a history, in order: nearly all lie in the bin of the one before.
class HistoryWriter {
 public:
  explicit HistoryWriter(LedgerHistory* history) : history_(history) {}

  void add(Bucket bucket, std::int64_t from_ns, std::int64_t to_ns) {
    if (history_ == nullptr) {
      return;
    }
    if (to_ns <= bin_end_ns_) {
      history_->bins[bin_][static_cast<std::size_t>(bucket)] += to_ns - from_ns;
      return;
    }
    history_->add(bucket, from_ns, to_ns);
    // Unsigned, because times in a hostile file may be further apart than a signed number can say.
    const auto width = static_cast<std::uint64_t>(history_->bin_ns);
    const auto start = static_cast<std::uint64_t>(history_->start_ns);
    bin_ = static_cast<std::size_t>((static_cast<std::uint64_t>(to_ns) - start) / width);
    bin_end_ns_ = bin_ < history_->bins.size()
                      ? static_cast<std::int64_t>(start + (bin_ + 1) * width)
                      : INT64_MIN;
  }

 private:
  LedgerHistory* history_;
  std::size_t bin_ = 0;
  std::int64_t bin_end_ns_ = INT64_MIN;  // of the last bin
};

// Unrecorded time that is this much longer than all work before it is before the window's work:
// an engine copies a few bytes while the step before still runs.
constexpr std::int64_t kLeadRatio = 10;

// A window while the sweep is inside it.
class OpenSpan {
 public:
  explicit OpenSpan(LedgerSpan window) : window_(std::move(window)), history_(window_.history) {
    begin_part(0);
  }

  const LedgerSpan& window() const { return window_; }
  std::int64_t part_start_ns() const { return part_start_ns_; }
  std::int64_t part_end_ns() const { return part_end_ns_; }

  // Ends a part. False if it was the last one.
  bool next_part(const OnLedger& on_ledger) {
    check_conservation(ledger_);
    on_ledger(window_, part_, ledger_);
    if (part_ + 1 == window_.num_parts) {
      return false;
    }
    begin_part(part_ + 1);
    return true;
  }

  // The bucket of a piece of work here: work of other instances is other_stage, and work of none is
  // unattributed.
  Bucket kind_of(const WorkKind& work) const {
    if (window_.instance == kNone ||
        (window_.is_nested ? work.nested : work.instance) == window_.instance) {
      return work.kind;
    }
    const bool is_in_none = work.instance == kNone && work.nested == kNone;
    return is_in_none ? Bucket::kUnattributed : Bucket::kOtherStage;
  }

  void add_busy(Bucket bucket, std::int64_t from_ns, std::int64_t to_ns) {
    busy_ns_ += to_ns - from_ns;
    put(bucket, from_ns, to_ns);
  }

  void add_idle(const Gap& gap, std::int64_t from_ns, std::int64_t to_ns) {
    if (gap.is_host) {
      window_.causes[part_]->add(gap, to_ns - from_ns);
      if (busy_ns_ == 0 && gap.cause != Bucket::kSync) {
        ledger_.lead_ns += to_ns - from_ns;
      }
    }
    if (gap.cause == Bucket::kUnrecorded && (to_ns - from_ns) / kLeadRatio <= busy_ns_) {
      ledger_.between_ns += to_ns - from_ns;
    }
    if (window_.on_gap) {
      window_.on_gap(gap, from_ns, to_ns);
    }
    put(gap.cause, from_ns, to_ns);
  }

  // Work that runs at the same time as other work.
  void begin(Bucket kind) { ++num_running_[static_cast<std::size_t>(kind)]; }
  void end(Bucket kind) { --num_running_[static_cast<std::size_t>(kind)]; }
  // The kind that counts while several run.
  Bucket running() const {
    std::size_t kind = 0;
    while (num_running_[kind] == 0) {
      ++kind;
    }
    return static_cast<Bucket>(kind);
  }

 private:
  void begin_part(std::uint32_t part) {
    part_ = part;
    part_start_ns_ = window_.bounds_ns[part];
    part_end_ns_ = window_.bounds_ns[part + 1];
    busy_ns_ = 0;
    ledger_ = {};
    ledger_.window_ns = part_end_ns_ - part_start_ns_;
  }

  void put(Bucket bucket, std::int64_t from_ns, std::int64_t to_ns) {
    ledger_.buckets_ns[static_cast<std::size_t>(bucket)] += to_ns - from_ns;
    history_.add(bucket, from_ns, to_ns);
  }

  LedgerSpan window_;
  HistoryWriter history_;
  std::uint32_t part_ = 0;
  std::int64_t part_start_ns_ = 0;
  std::int64_t part_end_ns_ = 0;
  std::int64_t busy_ns_ = 0;  // in the part so far
  Ledger ledger_;
  std::array<std::uint32_t, kNumBuckets> num_running_{};  // by kind
};

class Sweep {
 public:
  Sweep(const SweptWork& work, const GapJudge& judge, IdleCauses& causes, const NextWindow& next,
        const OnLedger& on_ledger)
      : all_(work.all),
        work_(work.work),
        end_ns_(work.end_ns),
        judge_(judge),
        causes_(causes),
        next_(next),
        on_ledger_(on_ledger),
        reach_ns_(work.start_ns) {
    fetch();
  }

  void run() {
    std::uint32_t previous = kNone;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      const std::uint32_t work = work_[i];
      const std::int64_t start_ns = all_.start_ns(work);
      const std::int64_t end_ns = all_.end_ns(work);
      if (end_ns == start_ns) {
        continue;
      }
      advance(start_ns);
      if (running_.empty()) {
        if (reach_ns_ < start_ns) {
          idle(judge_.judge(previous, work, reach_ns_));
        }
        reach_ns_ = end_ns;
        previous = work;
        if (i + 1 == work_.size() || all_.start_ns(work_[i + 1]) >= end_ns) {
          const WorkKind kind = kind_of(work);
          each_window(start_ns, end_ns,
                      [&](OpenSpan& window, std::int64_t from_ns, std::int64_t to_ns) {
                        window.add_busy(window.kind_of(kind), from_ns, to_ns);
                      });
          continue;
        }
      }
      reach_ns_ = std::max(reach_ns_, end_ns);
      previous = work;
      time_ns_ = start_ns;
      running_.push_back({end_ns, work});
      std::push_heap(running_.begin(), running_.end(), std::greater<>());
      for (OpenSpan& window : open_) {
        window.begin(window.kind_of(kind_of(work)));
      }
    }
    advance(INT64_MAX);
    if (reach_ns_ < end_ns_) {
      idle(judge_.judge_tail(reach_ns_, end_ns_));
    }
    // Windows of no length at the end.
    each_window(INT64_MAX, INT64_MAX, [](OpenSpan&, std::int64_t, std::int64_t) {});
  }

 private:
  struct Running {
    std::int64_t end_ns;
    std::uint32_t work;
    bool operator>(const Running& other) const { return end_ns > other.end_ns; }
  };

  void fetch() {
    waiting_ = {};
    has_waiting_ = next_(waiting_);
  }

  WorkKind kind_of(std::uint32_t work) const {
    return {all_.kind(work), all_.instance(work), all_.nested(work)};
  }

  // Calls visit(window, from_ns, to_ns) for the part of a piece of time that lies in each window.
  // Pieces come in order; windows open and close here.
  template <typename Visit>
  void each_window(std::int64_t start_ns, std::int64_t end_ns, Visit visit) {
    if (end_ns < change_ns_) {
      for (OpenSpan& window : open_) {
        visit(window, start_ns, end_ns);
      }
      return;
    }
    cut_at_windows(start_ns, end_ns, visit);
    change_ns_ = has_waiting_ ? waiting_.bounds_ns[0] : INT64_MAX;
    for (const OpenSpan& window : open_) {
      change_ns_ = std::min(change_ns_, window.part_end_ns());
    }
  }

  template <typename Visit>
  [[gnu::noinline]] void cut_at_windows(std::int64_t start_ns, std::int64_t end_ns, Visit visit) {
    while (has_waiting_ && waiting_.bounds_ns[0] < end_ns) {
      open_.emplace_back(std::move(waiting_));
      for (const Running& one : running_) {
        open_.back().begin(open_.back().kind_of(kind_of(one.work)));
      }
      fetch();
    }
    for (std::size_t i = 0; i < open_.size();) {
      OpenSpan& window = open_[i];
      bool is_open = true;
      while (is_open) {
        const std::int64_t from_ns = std::max(start_ns, window.part_start_ns());
        const std::int64_t to_ns = std::min(end_ns, window.part_end_ns());
        if (from_ns < to_ns) {
          visit(window, from_ns, to_ns);
        }
        if (window.part_end_ns() > end_ns) {
          break;
        }
        is_open = window.next_part(on_ledger_);
      }
      if (is_open) {
        ++i;
      } else {
        if (i + 1 < open_.size()) {
          open_[i] = std::move(open_.back());
        }
        open_.pop_back();
      }
    }
  }

  // Counts the time up to `until_ns` for the running work; stops when nothing runs.
  void advance(std::int64_t until_ns) {
    while (!running_.empty()) {
      const Running next = running_.front();
      const std::int64_t end_ns = std::min(next.end_ns, until_ns);
      if (time_ns_ < end_ns) {
        each_window(time_ns_, end_ns,
                    [&](OpenSpan& window, std::int64_t from_ns, std::int64_t to_ns) {
                      window.add_busy(window.running(), from_ns, to_ns);
                    });
        time_ns_ = end_ns;
      }
      if (next.end_ns > until_ns) {
        return;
      }
      std::pop_heap(running_.begin(), running_.end(), std::greater<>());
      running_.pop_back();
      for (OpenSpan& window : open_) {
        window.end(window.kind_of(kind_of(next.work)));
      }
    }
  }

  // Counts idle time for its causes.
  void idle(std::span<Gap> parts) {
    for (Gap& gap : parts) {
      causes_.set_label(gap);
      each_window(gap.start_ns, gap.end_ns,
                  [&](OpenSpan& window, std::int64_t from_ns, std::int64_t to_ns) {
                    window.add_idle(gap, from_ns, to_ns);
                  });
    }
  }

  const AllWork& all_;
  const DeviceWork& work_;
  std::int64_t end_ns_;
  GapJudge judge_;
  IdleCauses& causes_;
  const NextWindow& next_;
  const OnLedger& on_ledger_;
  LedgerSpan waiting_;  // begins next
  bool has_waiting_ = false;
  std::vector<OpenSpan> open_;
  std::vector<Running> running_;  // a heap by end; empty while one piece of work runs alone
  std::int64_t reach_ns_;         // busy or counted until then
  std::int64_t time_ns_ = 0;      // counted up to here, while several run
  // Before this no window begins, and no part of an open one ends.
  std::int64_t change_ns_ = INT64_MIN;
};

}  // namespace

void sweep_ledgers(const SweptWork& work, const GapJudge& judge, IdleCauses& causes,
                   const NextWindow& next, const OnLedger& on_ledger) {
  Sweep(work, judge, causes, next, on_ledger).run();
}

}  // namespace gpuwhy
