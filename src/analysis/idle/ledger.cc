// SPDX-License-Identifier: Apache-2.0
//
// Time ledger: every nanosecond of a window on one GPU, assigned to exactly one bucket.
//
// Buckets are integers and sum to the window; each window is checked.
//
//   GPU   ..[ compute ]....[ copy ][ compute ]......
//   host  |launch      sync=====|launch             |
//         window                                    window end
//         ^late         ^sync                 ^tail
//
// The work of a GPU is sorted by start and swept once for all windows (analysis/ledger_sweep). An
// interval without work goes to the cause of the GPU's gap there (analysis/gaps), which is judged
// once, for the whole gap: a window that ends inside it inherits the cause.
//
// Windows of stages and steps come from analysis/step_windows. Those of different stages overlap
// where their work does; the overlap is reported.
#include "analysis/idle/ledger.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "analysis/idle/busy_row.h"
#include "analysis/idle/gap_survey.h"
#include "analysis/idle/gaps.h"
#include "analysis/idle/idle_causes.h"
#include "analysis/idle/ledger_sweep.h"
#include "analysis/idle/wait_calls.h"
#include "analysis/kernels/device_work.h"
#include "analysis/stages/warm_up.h"
#include "base/error.h"
#include "results/stage_role.h"
#include "trace/device_label.h"
#include "trace/filter.h"

namespace gpuwhy {

void check_conservation(const Ledger& ledger) {
  if (ledger.sum_ns() != ledger.window_ns) {
    throw Error(ErrorKind::kFailure,
                fmt::format("internal error: the buckets of a window sum to {} ns, its length is "
                            "{} ns",
                            ledger.sum_ns(), ledger.window_ns),
                "please report it, with the recording if it may be shared");
  }
}

namespace {

bool has_lower_device(const LedgerRow& a, const LedgerRow& b) {
  return a.device < b.device;
}

// Part of a GPU's time in which the model works: after start-up and before what follows its last
// work.
struct WorkPhase {
  std::int64_t start_ns = INT64_MAX;
  std::int64_t end_ns = INT64_MIN;

  void cover(std::int64_t from_ns, std::int64_t to_ns) {
    start_ns = std::min(start_ns, from_ns);
    end_ns = std::max(end_ns, to_ns);
  }
};

// Computes the ledgers of all stages, phases and the capture.
class LedgerMaker {
  static constexpr std::int64_t kWarmUpNs =
      1'000'000;                                    // a shorter first use does not count as warm-up
  static constexpr std::int64_t kLeastPause = 100;  // this fraction (1/100) of the phase
  // Numbers of swept windows that are not of a stage.
  static constexpr std::uint32_t kOfCapture = kNone;
  static constexpr std::uint32_t kOfPhases = kNone - 1;

 public:
  explicit LedgerMaker(const LedgerInput& input)
      : input_(input),
        trace_(input.trace),
        stages_(input.stages),
        waits_(input.trace, input.attribution.copies),
        causes_(input.trace, input.stages, input.attribution),
        all_(input.trace, input.attribution, input.is_communication),
        devices_(work_by_device(input.trace, all_)),
        is_marked_(std::ranges::any_of(input.stages.names,
                                       [](const RowName& stage) {
                                         return stage.kind != RowKind::kUnmarked &&
                                                role_of(stage) != StageRole::kWarmUp;
                                       })),
        warm_up_end_ns_(is_marked_ ? INT64_MIN : warm_up_end_ns(input.trace, input.stages)),
        windows_of_(input.trace.devices.size()),
        phases_(input.trace.devices.size()) {
    for (std::uint32_t i = 0; i < input.windows.size(); ++i) {
      windows_of_[input.windows[i].device].push_back(i);
    }
    check_sum();
    find_phases();
  }

  // One GPU after the other. Gaps are reported from the sweep of the capture only, so that each is
  // reported once.
  LedgerResult run() {
    LedgerResult result;
    result.own_ns.resize(input_.windows.size());
    for (std::size_t device = 0; device < devices_.size(); ++device) {
      add_device(static_cast<std::uint16_t>(device), result);
    }
    std::ranges::sort(result.capture, has_lower_device);
    std::ranges::stable_sort(result.phases, has_lower_device);
    add_stages(result);
    add_coverage(result);
    for (std::vector<LedgerRow>* rows : {&result.stages, &result.capture, &result.phases}) {
      name_unrecorded_calls(*rows);
      std::for_each(rows->begin(), rows->end(), set_base);
    }
    return result;
  }

 private:
  struct StageTotals {
    LedgerRow row;
    CauseTotals causes;
  };

  std::string device_name(std::size_t device) const { return device_label(trace_.devices[device]); }

  void add_device(std::uint16_t device, LedgerResult& result) {
    SweptWork work{all_, devices_[device], input_.start_ns, input_.end_ns};
    for (const std::uint32_t i : windows_of_[device]) {
      work.start_ns = std::min(work.start_ns, input_.windows[i].start_ns);
      work.end_ns = std::max(work.end_ns, input_.windows[i].end_ns);
    }
    launcher_ = launcher_of(devices_[device]);
    GapJudge judge(trace_, waits_, all_, devices_[device],
                   is_marked_ ? phases_[device].start_ns : INT64_MAX);
    causes_.begin();
    survey_ = survey_gaps(work, judge, waits_, launcher_, causes_);
    find_longest_unrecorded(device);
    causes_.name(device);
    include_what_follows(device);
    skip_warm_up(device);
    sweep(device, work, judge, result);
  }

  // Fills all ledgers of a GPU: of the capture, its phases, and the windows of stages.
  void sweep(std::uint16_t device, const SweptWork& work, const GapJudge& judge,
             LedgerResult& result) {
    CauseTotals capture_causes;
    std::array<CauseTotals, 3> phase_causes;
    LedgerSpan capture;
    capture.bounds_ns = {input_.start_ns, input_.end_ns};
    capture.causes = {&capture_causes};
    capture.history = &result.history.emplace_back(input_.start_ns, input_.end_ns);
    if (input_.on_gap) {
      capture.on_gap = [this, device](const Gap& gap, std::int64_t from_ns, std::int64_t to_ns) {
        input_.on_gap(device, {gap.cause, causes_.labels()[gap.label].kind}, from_ns, to_ns);
      };
    }
    capture.number = kOfCapture;
    std::vector<LedgerSpan> wholes = {std::move(capture)};
    if (const auto bounds_ns = phase_bounds(device)) {
      LedgerSpan& phases = wholes.emplace_back();
      phases.bounds_ns = *bounds_ns;
      phases.num_parts = 3;
      phases.causes = {&phase_causes[0], &phase_causes[1], &phase_causes[2]};
      phases.number = kOfPhases;
    }
    std::vector<std::uint32_t>& windows = windows_of_[device];
    const auto start_of = [&](std::uint32_t i) { return input_.windows[i].start_ns; };
    std::ranges::sort(windows, {},
                      [&](std::uint32_t one) { return std::pair(start_of(one), one); });
    std::size_t num_wholes = 0;
    std::size_t num_windows = 0;
    const auto next = [&](LedgerSpan& window) {
      const bool has_window = num_windows < windows.size();
      if (num_wholes < wholes.size() &&
          (!has_window || input_.start_ns <= start_of(windows[num_windows]))) {
        window = std::move(wholes[num_wholes++]);
        return true;
      }
      if (has_window) {
        window = swept(windows[num_windows++]);
      }
      return has_window;
    };
    sweep_ledgers(work, judge, causes_, next,
                  [&](const LedgerSpan& window, std::uint32_t part, const Ledger& ledger) {
                    if (window.number == kOfCapture) {
                      add_capture(device, ledger, capture_causes, result);
                    } else if (window.number == kOfPhases) {
                      add_phase(device, window, part, ledger, result);
                    } else {
                      add_part(window.number, part, ledger, result);
                    }
                  });
  }

  void add_capture(std::uint16_t device, Ledger ledger, const CauseTotals& causes,
                   LedgerResult& result) {
    add_waits(input_.start_ns, input_.end_ns, ledger);
    result.capture.push_back({ledger, {RowKind::kRecording}, device_name(device), 1});
    list_causes(result.capture.back(), causes, result);
    // The device executed something, whichever stage it belongs to.
    result.busy_ns.push_back(ledger.busy_ns());
  }

  // The window of a stage or step, in two parts, because copies before the first kernel are not
  // part of the GPU window.
  LedgerSpan swept(std::uint32_t i) {
    const StepOnGpu& window = input_.windows[i];
    const std::uint32_t stage = stages_.instances[window.instance].stage;
    StageTotals& sum = by_stage_[{stage, window.device}];
    ++sum.row.num_instances;
    add_waits(window.start_ns, window.end_ns, sum.row);
    LedgerSpan swept;
    swept.bounds_ns = {window.start_ns,
                       std::clamp(window.gpu_start_ns, window.start_ns, window.end_ns),
                       window.end_ns};
    swept.num_parts = 2;
    swept.instance = window.instance;
    swept.is_nested = stages_.is_nested[stage];
    swept.number = i;
    swept.causes = {&sum.causes, &sum.causes};
    return swept;
  }

  void add_part(std::uint32_t i, std::uint32_t part, const Ledger& ledger, LedgerResult& result) {
    const StepOnGpu& window = input_.windows[i];
    by_stage_[{stages_.instances[window.instance].stage, window.device}].row.add(ledger);
    if (part == 1) {
      result.own_ns[i] = ledger.busy_ns();
    }
  }

  void list_causes(const LedgerRow& row, const CauseTotals& totals, LedgerResult& result) const {
    std::vector<IdleRow>& causes = result.causes[{row.stage, row.device}];
    causes = totals.list(causes_.labels());
    for (IdleRow& cause : causes) {
      cause.stage = row.stage;
      cause.device = row.device;
    }
  }

  // One ledger per stage and GPU: stages in order, each by device.
  void add_stages(LedgerResult& result) {
    for (auto& [key, totals] : by_stage_) {
      totals.row.stage = stages_.names[key.first];
      totals.row.device = device_name(key.second);
      list_causes(totals.row, totals.causes, result);
    }
    for (std::uint32_t stage = 0; stage < stages_.names.size(); ++stage) {
      const auto first = static_cast<std::ptrdiff_t>(result.stages.size());
      for (std::size_t device = 0; device < devices_.size(); ++device) {
        const auto row = by_stage_.find({stage, static_cast<std::uint16_t>(device)});
        if (row != by_stage_.end()) {
          result.stages.push_back(std::move(row->second.row));
        }
      }
      std::sort(result.stages.begin() + first, result.stages.end(), has_lower_device);
    }
  }

  // Where the model works on each GPU: its steps and stages if they are marked, else from the first
  // kernel of the model to the last. Capturing graphs and warming up is start-up.
  void find_phases() {
    if (is_marked_) {
      for (const StepOnGpu& window : input_.windows) {
        const StageRole role = role_of(stages_.names[stages_.instances[window.instance].stage]);
        if (role != StageRole::kGraphCapture && role != StageRole::kWarmUp) {
          phases_[window.device].cover(window.start_ns, window.end_ns);
        }
      }
      return;
    }
    if (input_.is_model.empty()) {
      return;
    }
    for (std::size_t row = 0; row < trace_.kernels.size(); ++row) {
      // A kernel of zero length would leave the boundary inside a gap.
      if (input_.is_model[static_cast<std::size_t>(trace_.kernels.name[row])] &&
          trace_.kernels.start_ns[row] < trace_.kernels.end_ns[row]) {
        phases_[trace_.kernels.device[row]].cover(trace_.kernels.start_ns[row],
                                                  trace_.kernels.end_ns[row]);
      }
    }
    for (std::size_t row = 0; row < trace_.graphs.size(); ++row) {
      if (trace_.graphs.start_ns[row] < trace_.graphs.end_ns[row]) {
        phases_[trace_.graphs.device[row]].cover(trace_.graphs.start_ns[row],
                                                 trace_.graphs.end_ns[row]);
      }
    }
  }

  // Work that follows the model's last kernel without a pause is still the model's: results that
  // are copied back.
  void include_what_follows(std::uint16_t device) {
    WorkPhase& phase = phases_[device];
    if (is_marked_ || phase.start_ns >= phase.end_ns) {
      return;
    }
    for (const std::uint32_t work : devices_[device]) {
      if (all_.start_ns(work) - phase.end_ns > (phase.end_ns - phase.start_ns) / kLeastPause) {
        return;
      }
      phase.end_ns = std::max(phase.end_ns, all_.end_ns(work));
    }
  }

  // What the program calls warm-up is start-up, and so is a first pass that loads its code. Marks
  // say themselves where a step begins.
  void skip_warm_up(std::uint16_t device) {
    if (!is_marked_ && phases_[device].start_ns < phases_[device].end_ns) {
      skip_named_warm_up(device);
      skip_first_uses(device);
    }
  }

  // Ranges that are called warm-up in every step, as those of a pipeline, leave too little.
  void skip_named_warm_up(std::uint16_t device) {
    const auto [first, last] = work_of_phase(device);
    auto next = first;
    for (auto work = first; warm_up_end_ns_ != INT64_MIN && work != last; ++work) {
      const std::uint32_t call = all_.call(*work);
      const std::int64_t issued_ns =
          call == kNone ? all_.start_ns(*work) : trace_.api_calls.start_ns[call];
      next = issued_ns < warm_up_end_ns_ ? work + 1 : next;
    }
    if (next != first && (last - next) * 4 >= last - first) {
      begin_at(next, last, device);
    }
  }

  // The model works steadily after its last first use that leaves half of its kernels to come.
  void skip_first_uses(std::uint16_t device) {
    const std::vector<Gap>& gaps = causes_.asked();
    const auto [first, last] = work_of_phase(device);
    for (auto gap = gaps.rbegin(); gap != gaps.rend() && gap->end_ns > phases_[device].start_ns;
         ++gap) {
      const bool is_first_use = causes_.labels()[gap->label].kind == IdleKind::kFirstUse;
      if (!is_first_use || gap->end_ns - gap->start_ns < kWarmUpNs) {
        continue;
      }
      const auto next = first_from(device, gap->end_ns);
      if ((last - next) * 2 >= last - first && begin_at(next, last, device)) {
        return;
      }
    }
  }

  // The first work of a GPU that starts at a time or later.
  DeviceWork::const_iterator first_from(std::uint16_t device, std::int64_t time_ns) const {
    const DeviceWork& work = devices_[device];
    return std::ranges::lower_bound(work, time_ns, {},
                                    [&](std::uint32_t one) { return all_.start_ns(one); });
  }

  std::pair<DeviceWork::const_iterator, DeviceWork::const_iterator> work_of_phase(
      std::uint16_t device) const {
    return {first_from(device, phases_[device].start_ns),
            first_from(device, phases_[device].end_ns)};
  }

  // Work of zero length would leave the boundary inside a gap. False if there is no other.
  bool begin_at(DeviceWork::const_iterator next, DeviceWork::const_iterator last,
                std::uint16_t device) {
    next = std::find_if(next, last,
                        [&](std::uint32_t one) { return all_.start_ns(one) < all_.end_ns(one); });
    if (next != last) {
      phases_[device].start_ns = all_.start_ns(*next);
    }
    return next != last;
  }

  void name_main_call(std::int64_t start_ns, std::int64_t end_ns, LedgerRow& row) const {
    std::map<StringId, std::int64_t> by_name;
    const ApiCalls& calls = trace_.api_calls;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::int64_t from_ns = std::max(start_ns, calls.start_ns[i]);
      const std::int64_t to_ns = std::min(end_ns, calls.end_ns[i]);
      if (from_ns < to_ns) {
        by_name[calls.name[i]] += to_ns - from_ns;
      }
    }
    for (const auto& [id, time_ns] : by_name) {
      const std::string_view name = trace_.strings[id];
      // Threads add up, so a third of the time in calls may be more than all of it.
      if (time_ns * 3 >= end_ns - start_ns &&
          (time_ns > row.main_call_ns || (time_ns == row.main_call_ns && name < row.main_call))) {
        row.main_call = std::string(name);
        row.main_call_ns = time_ns;
      }
    }
  }

  // The call in which the host was while the GPU worked on something that was not recorded.
  void find_longest_unrecorded(std::uint16_t device) {
    constexpr std::int64_t kLeastPart = 20;  // 1/20 of the capture: less is not worth a finding
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    for (const UnrecordedGap& gap : survey_.unrecorded) {
      if (gap.end_ns - gap.start_ns > end_ns - start_ns) {
        start_ns = gap.start_ns;
        end_ns = gap.end_ns;
      }
    }
    if (end_ns - start_ns <= (input_.end_ns - input_.start_ns) / kLeastPart) {
      return;
    }
    LedgerRow named;
    name_main_call(start_ns, end_ns, named);
    if (!named.main_call.empty()) {
      longest_unrecorded_[device_name(device)] = {
          named.main_call, std::min(named.main_call_ns, end_ns - start_ns), end_ns - start_ns};
    }
  }

  void name_unrecorded_calls(std::vector<LedgerRow>& rows) const {
    for (LedgerRow& row : rows) {
      const auto found = longest_unrecorded_.find(row.device);
      if (found != longest_unrecorded_.end() &&
          row[Bucket::kUnrecorded] >= found->second.gap_ns / 2 &&
          row[Bucket::kUnrecorded] / 2 <= found->second.gap_ns) {
        row.unrecorded_call = found->second.call;
        row.unrecorded_call_ns = found->second.call_ns;
      }
    }
  }

  // The thread that launched most work of the GPU; the first one of several.
  std::uint32_t launcher_of(const DeviceWork& device) const {
    std::vector<std::size_t> launches(trace_.threads.size());
    for (const std::uint32_t work : device) {
      if (const std::uint32_t call = all_.call(work); call != kNone) {
        ++launches[trace_.api_calls.thread[call]];
      }
    }
    const auto most = std::max_element(launches.begin(), launches.end());
    return most == launches.end() || *most == 0
               ? kNone
               : static_cast<std::uint32_t>(most - launches.begin());
  }

  void add_waits(std::int64_t start_ns, std::int64_t end_ns, Ledger& ledger) const {
    ledger.host_wait_ns += host_wait_ns(start_ns, end_ns);
    if (start_ns < survey_.late_until_ns) {
      ledger.early_wait_ns += host_wait_ns(start_ns, std::min(end_ns, survey_.late_until_ns));
    }
  }

  // Waits for work that was not recorded are left out, as that time is.
  std::int64_t host_wait_ns(std::int64_t start_ns, std::int64_t end_ns) const {
    return launcher_ == kNone ? 0
                              : waits_.waited_ns(launcher_, start_ns, end_ns) -
                                    (unrecorded_waits_ns(end_ns) - unrecorded_waits_ns(start_ns));
  }

  // Time in unrecorded gaps up to some time, as far as the launching thread waited in them.
  std::int64_t unrecorded_waits_ns(std::int64_t time_ns) const {
    const auto after =
        std::ranges::upper_bound(survey_.unrecorded, time_ns, {}, &UnrecordedGap::start_ns);
    if (after == survey_.unrecorded.begin()) {
      return 0;
    }
    const UnrecordedGap& last = *std::prev(after);
    return last.before_ns +
           waits_.waited_ns(launcher_, last.start_ns, std::min(time_ns, last.end_ns));
  }

  // The capture in up to three parts that sum to it. A part that is too short is not worth a row:
  // it has no length. nullopt if one part is all.
  std::optional<std::array<std::int64_t, 4>> phase_bounds(std::uint16_t device) const {
    constexpr std::int64_t kLeastPart = 20;  // a phase is at least this fraction (1/20)
    const std::int64_t start_ns = input_.start_ns;
    const std::int64_t end_ns = input_.end_ns;
    const WorkPhase& work = phases_[device];
    if (work.start_ns >= work.end_ns) {
      return std::nullopt;
    }
    const auto is_worth_it = [&](std::int64_t part_ns, std::int64_t whole_ns) {
      return part_ns > 0 && part_ns >= whole_ns / kLeastPart;
    };
    const bool has_startup = is_worth_it(work.start_ns - start_ns, end_ns - start_ns);
    // What follows is compared with the work: after a long start-up, a tail as long as the work
    // would count as work.
    const bool has_ending = is_worth_it(end_ns - work.end_ns, work.end_ns - work.start_ns);
    if (!has_startup && !has_ending) {
      return std::nullopt;
    }
    return std::array{start_ns, has_startup ? work.start_ns : start_ns,
                      has_ending ? work.end_ns : end_ns, end_ns};
  }

  void add_phase(std::uint16_t device, const LedgerSpan& phases, std::uint32_t part, Ledger ledger,
                 LedgerResult& result) const {
    static constexpr std::array kKinds = {RowKind::kStartup, RowKind::kSteady, RowKind::kEnding};
    const std::int64_t start_ns = phases.bounds_ns[part];
    const std::int64_t end_ns = phases.bounds_ns[part + 1];
    if (start_ns >= end_ns) {
      return;
    }
    add_waits(start_ns, end_ns, ledger);
    LedgerRow& row =
        result.phases.emplace_back(LedgerRow{ledger, {kKinds[part]}, device_name(device), 1});
    list_causes(row, *phases.causes[part], result);
    row.start_ns = start_ns;
    row.end_ns = end_ns;
    if (row.stage.kind != RowKind::kSteady) {
      name_main_call(start_ns, end_ns, row);
    }
  }

  // Windows of many threads overlap, so nothing else limits their sum.
  void check_sum() const {
    double sum_ns = 0;
    for (const StepOnGpu& window : input_.windows) {
      sum_ns += static_cast<double>(window.end_ns - window.start_ns);
    }
    require_sum_fits(sum_ns, "stages");
  }

  // How the windows of stages (except nested ones) cover the capture. On one GPU windows overlap
  // where the work of two stages does; marks without GPU work cover the capture too.
  void add_coverage(LedgerResult& result) const {
    using Span = std::pair<std::int64_t, std::int64_t>;
    std::vector<Span> all;
    std::vector<std::vector<Span>> by_device(devices_.size());
    std::vector<bool> has_work(stages_.instances.size());
    const auto clipped = [&](std::int64_t from_ns, std::int64_t to_ns) {
      return Span(std::max(input_.start_ns, from_ns), std::min(input_.end_ns, to_ns));
    };
    for (const StepOnGpu& window : input_.windows) {
      has_work[window.instance] = true;
      if (!stages_.is_nested[stages_.instances[window.instance].stage]) {
        by_device[window.device].push_back(clipped(window.start_ns, window.end_ns));
        all.push_back(by_device[window.device].back());
      }
    }
    for (std::size_t i = 0; i < stages_.instances.size(); ++i) {
      const StageInstance& instance = stages_.instances[i];
      if (!has_work[i] && !stages_.is_nested[instance.stage]) {
        all.push_back(clipped(instance.start_ns, instance.end_ns));
      }
    }
    for (std::vector<Span>& spans : by_device) {
      std::int64_t sum_ns = 0;
      for (const auto& [from_ns, to_ns] : spans) {
        sum_ns += std::max<std::int64_t>(0, to_ns - from_ns);
      }
      result.overlap_ns += sum_ns - covered_ns(spans);
    }
    result.outside_ns = (input_.end_ns - input_.start_ns) - covered_ns(all);
  }

  // Length of the union of spans.
  static std::int64_t covered_ns(std::vector<std::pair<std::int64_t, std::int64_t>>& spans) {
    std::ranges::sort(spans);
    std::int64_t covered = 0;
    std::int64_t reach = INT64_MIN;
    for (const auto& [from_ns, to_ns] : spans) {
      covered += std::max<std::int64_t>(0, to_ns - std::max(from_ns, reach));
      reach = std::max(reach, to_ns);
    }
    return covered;
  }

  const LedgerInput& input_;
  const Trace& trace_;
  const Stages& stages_;
  WaitCalls waits_;
  IdleCauses causes_;
  AllWork all_;
  std::vector<DeviceWork> devices_;
  bool is_marked_;               // a stage other than the warm-up is
  std::int64_t warm_up_end_ns_;  // where nothing else is marked; INT64_MIN: nor is it
  std::vector<std::vector<std::uint32_t>> windows_of_;  // by device, into LedgerInput::windows
  std::vector<WorkPhase> phases_;  // by device; of length 0 where nothing is known
  std::map<std::pair<std::uint32_t, std::uint16_t>, StageTotals> by_stage_;  // (stage, device)
  struct UnrecordedCall {
    std::string call;
    std::int64_t call_ns = 0;
    std::int64_t gap_ns = 0;
  };
  std::map<std::string, UnrecordedCall> longest_unrecorded_;  // by device
  GapSurvey survey_;                                          // of the GPU at hand
  std::uint32_t launcher_ = kNone;  // the thread that launches most work of the GPU at hand
};

}  // namespace

LedgerResult make_ledgers(const LedgerInput& input) {
  return LedgerMaker(input).run();
}

}  // namespace gpuwhy
