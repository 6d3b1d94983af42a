// SPDX-License-Identifier: Apache-2.0
//
// Detection of stages (prefill, decode) from marks in the recording, most reliable source first.
//
// Library domains (NCCL, cuBLAS, cub, TensorRT) also push ranges, thousands of them, and none is a
// stage: only the domain LLM, the engines' own formats (step_markers.cc) and the rules are looked
// at. Rules of a user's file come before all, since somebody wrote them for this recording. Steps
// of a training loop or of PyTorch's profiler come last: they say least. Where a program marks
// steps but not the loop around them, the steps are the stage `decode`.
//
// A range without an end was open when the recording stopped. It is closed at the end of the
// recording so that its work is not lost, and flagged, so that its length enters no mean.
#include "analysis/stages/stages.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "analysis/stages/step_markers.h"

namespace gpuwhy {
namespace {

constexpr const char* kStageRules = "conf/rules/stages.yaml";

class StageFinder {
 public:
  StageFinder(const Trace& trace, std::int64_t end_ns) : trace_(trace), end_ns_(end_ns) {}

  template <typename Classify>
  bool collect(std::string_view source, Classify classify) {
    for (std::size_t row = 0; row < trace_.ranges.size(); ++row) {
      if (trace_.ranges.kind[row] == RangeKind::kMark) {
        continue;
      }
      const std::optional<std::string_view> stage = classify(
          trace_.strings[trace_.ranges.domain[row]], trace_.strings[trace_.ranges.text[row]]);
      if (stage) {
        add(row, *stage);
      }
    }
    stages_.source = source;
    return !stages_.instances.empty();
  }

  bool add_engine_steps(StepUse use) {
    const EngineSteps found = find_engine_steps(trace_, use);
    for (const auto& [row, marker] : found.steps) {
      StageInstance& instance = add(row, marker.stage);
      instance.tokens = marker.tokens;
      instance.sequences = marker.sequences;
      instance.counts = marker.counts;
      instance.is_process_wide |= marker.grammar->is_process_wide;
      if (marker.grammar->has_slots) {
        instance.marker = static_cast<std::uint32_t>(trace_.ranges.text[row]);
      }
    }
    stages_.source = found.source;
    stages_.engine = found.engine;
    stages_.are_steps = !found.steps.empty();
    return stages_.are_steps;
  }

  const std::string& engine() const { return stages_.engine; }

  void add_whole(std::int64_t start_ns) {
    stages_.source = "no stage marks found: the whole recording is one stage, all";
    StageInstance all;
    all.stage = add_name({RowKind::kUnmarked});
    all.start_ns = start_ns;
    all.end_ns = end_ns_;
    all.is_process_wide = true;
    all.thread = kNone;
    stages_.instances.push_back(all);
  }

  Stages finish() {
    widen_steps();
    nest_steps();
    order_stages();
    stages_.instances.shrink_to_fit();  // they stay until the end
    std::ranges::sort(stages_.instances, {}, [](const StageInstance& one) {
      return std::tuple(one.thread, one.start_ns, -one.end_ns, one.stage);
    });
    return std::move(stages_);
  }

 private:
  std::uint32_t number_of(std::string_view stage) {
    const auto found = std::ranges::find(stages_.names, stage, &RowName::stage);
    if (found != stages_.names.end()) {
      return static_cast<std::uint32_t>(found - stages_.names.begin());
    }
    const RowName name = recorded_stage(stage);
    if (name.stage != stage) {
      const auto renamed = std::ranges::find(stages_.names, name);
      if (renamed != stages_.names.end()) {
        return static_cast<std::uint32_t>(renamed - stages_.names.begin());
      }
      stages_.notes.push_back(renamed_stage(stage));
    }
    return add_name(name);
  }

  std::uint32_t add_name(RowName name) {
    stages_.names.push_back(std::move(name));
    stages_.is_nested.push_back(false);
    return static_cast<std::uint32_t>(stages_.names.size() - 1);
  }

  std::vector<RowName>::iterator find_role(StageRole role) {
    return std::ranges::find_if(stages_.names,
                                [&](const RowName& name) { return role_of(name) == role; });
  }

  StageInstance& add(std::size_t row, std::string_view stage) {
    const Ranges& ranges = trace_.ranges;
    StageInstance instance;
    instance.stage = number_of(stage);
    instance.start_ns = ranges.start_ns[row];
    instance.is_open = ranges.end_ns[row] == kOpenEnd;
    instance.end_ns = instance.is_open ? std::max(end_ns_, instance.start_ns) : ranges.end_ns[row];
    cut_to_window(instance);
    instance.thread = ranges.thread[row];
    instance.is_process_wide = ranges.kind[row] == RangeKind::kStartEnd;
    if (ranges.payload[row] >= 0 && ranges.payload[row] <= kMostTokens) {
      instance.tokens = ranges.payload[row];
    }
    return stages_.instances.emplace_back(instance);
  }

  // A range that a window cuts has no length of its own: it counts as open.
  void cut_to_window(StageInstance& instance) const {
    if (const auto& window = trace_.capture.window) {
      instance.is_open |=
          instance.start_ns < window->start_ns() || instance.end_ns > window->end_ns();
      instance.start_ns = std::max(instance.start_ns, window->start_ns());
      instance.end_ns = std::max(std::min(instance.end_ns, end_ns_), instance.start_ns);
    }
  }

  // A step of a loop holds what any thread of its process launches: autograd runs the backward pass
  // on a thread of its own. Not where several threads mark steps, as one thread per GPU does.
  // Markers of engines say themselves what they cover.
  void widen_steps() {
    if (stages_.are_steps) {
      return;
    }
    const auto step = find_role(StageRole::kStep);
    const auto number = static_cast<std::uint32_t>(step - stages_.names.begin());
    std::map<std::uint16_t, std::set<std::uint32_t>> threads;  // by process
    for (const StageInstance& instance : stages_.instances) {
      if (instance.stage == number && instance.thread != kNone) {
        threads[trace_.threads[instance.thread].process].insert(instance.thread);
      }
    }
    for (StageInstance& instance : stages_.instances) {
      if (instance.stage == number && instance.thread != kNone) {
        instance.is_process_wide |= threads[trace_.threads[instance.thread].process].size() == 1;
      }
    }
  }

  // decode_step lies inside decode where there is one; alone, it is decode.
  void nest_steps() {
    const auto step = find_role(StageRole::kDecodeStep);
    if (step == stages_.names.end()) {
      return;
    }
    const bool has_decode = find_role(StageRole::kDecode) != stages_.names.end();
    if (has_decode) {
      stages_.is_nested[static_cast<std::size_t>(step - stages_.names.begin())] = true;
    } else {
      step->stage = "decode";
      stages_.are_steps = true;
    }
  }

  // By when each was first entered, nested ones last: not by the order of rows.
  void order_stages() {
    std::vector<std::int64_t> first(stages_.names.size(), INT64_MAX);
    for (const StageInstance& instance : stages_.instances) {
      first[instance.stage] = std::min(first[instance.stage], instance.start_ns);
    }
    std::vector<std::uint32_t> order(stages_.names.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](std::uint32_t one) {
      return std::tuple(bool(stages_.is_nested[one]), first[one], stages_.names[one]);
    });
    Stages sorted;
    std::vector<std::uint32_t> number(order.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      number[order[i]] = i;
      sorted.names.push_back(stages_.names[order[i]]);
      sorted.is_nested.push_back(stages_.is_nested[order[i]]);
    }
    for (StageInstance& instance : stages_.instances) {
      instance.stage = number[instance.stage];
    }
    stages_.names = std::move(sorted.names);
    stages_.is_nested = std::move(sorted.is_nested);
  }

  const Trace& trace_;
  std::int64_t end_ns_;
  Stages stages_;
};

}  // namespace

Diagnostic renamed_stage(std::string_view given) {
  return {"stage_renamed", Severity::kInfo, 1,
          fmt::format("the recording names a stage '{}', as rows of gpuwhy's own are called: here "
                      "it is '{}'",
                      given, recorded_stage(given).text())};
}

std::vector<std::uint32_t> number_steps(const Trace& trace, const Stages& stages) {
  const std::int64_t first = trace.capture.window ? trace.capture.window->first_step : 0;
  std::vector<std::uint32_t> numbers(stages.instances.size(), kNone);
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const StageInstance& instance = stages.instances[i];
    if (i == 0 || instance.thread != stages.instances[i - 1].thread) {
      next = static_cast<std::uint32_t>(first);
    }
    if (is_step(stages, instance)) {
      numbers[i] = next++;
    }
  }
  return numbers;
}

Stages find_stages(const Trace& trace, const Rules& rules, std::int64_t start_ns,
                   std::int64_t end_ns) {
  StageFinder finder(trace, end_ns);
  using Stage = std::optional<std::string_view>;
  const auto by_domain = [](std::string_view domain, std::string_view text) -> Stage {
    if (domain != "LLM") {
      return std::nullopt;
    }
    if (text == "prefill" || text == "decode_step" || text == "verify") {
      return text;
    }
    return text == "decode_all" ? Stage("decode") : std::nullopt;
  };
  bool has_user_stage = false;
  const auto by_rule = [&](std::string_view domain, std::string_view text) -> Stage {
    for (std::size_t row = 0; row < rules.stages.size(); ++row) {
      if (fits(rules.stages[row], domain, text)) {
        has_user_stage |= row < rules.num_user_stages;
        return rules.stages[row].stage;
      }
    }
    return std::nullopt;
  };
  if (StageFinder own(trace, end_ns);
      rules.num_user_stages > 0 &&
      own.collect(rules.user_source + " and " + kStageRules, by_rule) && has_user_stage) {
    return own.finish();
  }
  // Steps that name their sequences say more than marks of stages around them.
  if (StageFinder steps(trace, end_ns); trace.strings.find("LLM") &&
                                        steps.add_engine_steps(StepUse::kServing) &&
                                        steps.engine() == kSlotMarkers) {
    return steps.finish();
  }
  const bool has_stages = finder.collect("NVTX domain LLM", by_domain) ||
                          finder.add_engine_steps(StepUse::kServing) ||
                          finder.collect(std::string("rules of ") + kStageRules, by_rule) ||
                          finder.add_engine_steps(StepUse::kFallback);
  if (!has_stages) {
    finder.add_whole(start_ns);
  }
  return finder.finish();
}

}  // namespace gpuwhy
