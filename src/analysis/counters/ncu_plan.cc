// SPDX-License-Identifier: Apache-2.0
//
// Selection of the launches to measure with ncu, and the commands that measure them.
//
// ncu replays a launch once per pass and saves its memory in between, so measuring everything takes
// hours, and measuring "the first ten" catches autotuning. The recording knows better: launches are
// grouped by kernel, shape and stage, the groups with the most time are selected, and one typical
// launch of each is measured: not in the first instance of its stage (warm-up), and within a
// quarter of the group's median. Communication is excluded: a replayed all-reduce waits for ranks
// that are not replayed. Where the model was recovered, each of its parts comes before a second
// shape of another part: prompts of thirty lengths are thirty groups of the same product.
//
// Recent releases of ncu count each signature separately: one command measures everything, unless
// two stages have equal launches. Older ones count all launches of the named kernels together, so
// the plan finds the shortest range of launches that contains one of each group, with one command
// per stage; everything in between is measured too and included in the forecast.
//
// The forecast is rough: the number of passes is an estimate, and saved bytes are not in a
// recording. A kernel can write at most what the memory accepts in its time, so saving and
// restoring counts as twice its duration per pass, plus a fixed cost. Expect it to be within a
// factor of three.
#include "analysis/counters/ncu_plan.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "analysis/stages/attribution.h"
#include "analysis/stages/stages.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

// Flushing caches, setting clocks, collecting: 10 to 30 ms per pass in ncu's own logs.
constexpr double kPassOverheadSeconds = 0.02;
// ncu instruments every module that the program loads at start.
constexpr double kStartOverhead = 1.5;
// A launch represents its group if its duration is this near to the group's median.
constexpr double kNearMedian = 1.25;

// Launches that ranks enter together: they hang if one of them is replayed.
constexpr std::string_view kCollectiveWords[] = {
    "nccl", "nvshmem", "cross_device_reduce", "all_reduce", "allreduce", "multimem", "cooperative"};

using SignatureKey = std::tuple<std::string, std::string, LaunchShape>;  // name, stage, shape
using PartKey = std::tuple<std::string, std::string, std::string>;       // stage, pass, part

// A signature in numbers of the trace; the stage is kNone outside of all stages.
struct Signature {
  StringId name{};
  std::uint32_t stage = kNone;
  std::uint32_t shape = 0;

  auto operator<=>(const Signature&) const = default;
};

// One launch of a planned kernel, in host order.
struct Launch {
  std::uint32_t row = 0;
  std::uint32_t signature = 0;  // into Planner::signatures_
  bool is_warm_up = false;
};

bool is_collective(const LaunchGroup& group) {
  const std::string name = to_lower(group.kernel_name);
  return group.family == kCommunication ||
         std::any_of(std::begin(kCollectiveWords), std::end(kCollectiveWords),
                     [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

// Identity of a kernel: overloads share a demangled name, and recordings may lack the mangled one.
const std::string& identity_of(const LaunchGroup& group) {
  return group.mangled_name.empty() ? group.kernel_name : group.mangled_name;
}

// Merges equal groups of all GPUs and processes; keeps the order by time.
std::vector<LaunchGroup> merged(const std::vector<LaunchGroup>& groups, std::uint16_t process) {
  std::map<SignatureKey, LaunchGroup> by_signature;
  for (const LaunchGroup& group : groups) {
    LaunchGroup& sum = by_signature[{identity_of(group), group.stage.text(), group.shape}];
    const bool is_better = sum.calls == 0 || (group.process == process && sum.process != process);
    const std::int64_t calls = sum.calls + group.calls;
    const std::int64_t total_ns = sum.total_ns + group.total_ns;
    if (is_better) {
      sum = group;  // median, device and process of the one that will be measured
    }
    sum.calls = calls;
    sum.total_ns = total_ns;
  }
  std::vector<LaunchGroup> result;
  result.reserve(by_signature.size());
  for (auto& [key, group] : by_signature) {
    result.push_back(std::move(group));
  }
  std::sort(result.begin(), result.end(), [](const LaunchGroup& a, const LaunchGroup& b) {
    return std::tie(b.total_ns, a.kernel_name, a.mangled_name, a.stage, a.shape) <
           std::tie(a.total_ns, b.kernel_name, b.mangled_name, b.stage, b.shape);
  });
  return result;
}

std::uint16_t busiest_process(const std::vector<LaunchGroup>& groups) {
  std::map<std::uint16_t, std::int64_t> time_ns;
  for (const LaunchGroup& group : groups) {
    time_ns[group.process] += group.total_ns;
  }
  const auto busiest =
      std::max_element(time_ns.begin(), time_ns.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return busiest == time_ns.end() ? 0 : busiest->first;
}

// One plan: chooses groups, then drops the smallest ones until the forecast fits the budget.
class Planner {
 public:
  Planner(const Trace& trace, const Stages& stages, const Attribution& attribution,
          const std::vector<std::uint32_t>& kernel_parts, const Analysis& analysis,
          const PlanOptions& options)
      : trace_(trace),
        stages_(stages),
        attribution_(attribution),
        options_(options),
        process_(busiest_process(analysis.launch_groups)) {
    plan_.budget_s = options.budget_s;
    plan_.kernel_ns = analysis.capture.kernel_ns;
    find_first_instances();
    choose(merged(analysis.launch_groups, process_), part_times(kernel_parts, analysis));
  }

  NcuPlan run() {
    order_launches();
    // Drop the least valuable kernel until the forecast fits. One kernel always remains: an empty
    // plan would be no use, and the forecast says what it costs.
    while (true) {
      make_commands();
      if (plan_.forecast_s <= options_.budget_s || plan_.kernels.size() <= 1) {
        break;
      }
      exclude(plan_.kernels.back().group, "budget");
      plan_.kernels.pop_back();
    }
    for (const PlannedKernel& kernel : plan_.kernels) {
      plan_.covered_ns += kernel.group.total_ns;
    }
    std::stable_sort(plan_.excluded.begin(), plan_.excluded.end(),
                     [](const ExcludedKernel& a, const ExcludedKernel& b) {
                       return a.group.total_ns > b.group.total_ns;
                     });
    return std::move(plan_);
  }

 private:
  void exclude(const LaunchGroup& group, const char* reason) {
    plan_.excluded.push_back({group, reason});
  }

  // The first instance of each stage in the measured process, if there are others: kernels are
  // compiled, tuned and loaded there.
  void find_first_instances() {
    std::vector<std::int64_t> first(stages_.names.size(), INT64_MAX);
    std::vector<std::int64_t> count(stages_.names.size(), 0);
    first_instance_.assign(stages_.names.size(), kNone);
    for (std::uint32_t i = 0; i < stages_.instances.size(); ++i) {
      const StageInstance& instance = stages_.instances[i];
      if (instance.thread != kNone && trace_.threads[instance.thread].process != process_) {
        continue;
      }
      ++count[instance.stage];
      if (instance.start_ns < first[instance.stage]) {
        first[instance.stage] = instance.start_ns;
        first_instance_[instance.stage] = i;
      }
    }
    for (std::size_t stage = 0; stage < count.size(); ++stage) {
      if (count[stage] < 2) {
        first_instance_[stage] = kNone;
      }
    }
  }

  bool is_warm_up(std::uint32_t row) const {
    const std::uint32_t instance = attribution_.kernels.instance[row];
    const std::uint32_t nested = attribution_.kernels.nested[row];
    const auto is_first = [&](std::uint32_t i) {
      return i != kNone && first_instance_[stages_.instances[i].stage] == i;
    };
    return is_first(instance) || is_first(nested);
  }

  // Like identity_of() for a group.
  StringId identity_of_row(std::uint32_t row) const {
    const StringId mangled = trace_.kernels.mangled_name[row];
    return mangled == StringId{} ? trace_.kernels.name[row] : mangled;
  }

  Signature signature_of(std::uint32_t row) const {
    const std::uint32_t instance = attribution_.kernels.instance[row];
    return {identity_of_row(row), instance == kNone ? kNone : stages_.instances[instance].stage,
            trace_.kernels.shape[row]};
  }

  SignatureKey key_of(const Signature& signature) const {
    return {std::string(trace_.strings[signature.name]), stages_.name_of(signature.stage).text(),
            trace_.shapes[signature.shape]};
  }

  static SignatureKey key_of(const LaunchGroup& group) {
    return {identity_of(group), group.stage.text(), group.shape};
  }

  // Time of each signature in the parts of the model. Empty if no model was recovered.
  using PartTimes = std::map<SignatureKey, std::map<PartKey, std::int64_t>>;

  static PartKey key_of(const LayerPartRow& part, const std::string& stage) {
    const std::string block(part.block());
    const bool is_only_kind = block == "prologue" || block == "layer" || block == "epilogue";
    return {stage, part.pass, is_only_kind ? part.part : fmt::format("{} ({})", part.part, block)};
  }

  PartTimes part_times(const std::vector<std::uint32_t>& kernel_parts,
                       const Analysis& analysis) const {
    const Kernels& kernels = trace_.kernels;
    std::map<std::pair<Signature, std::uint32_t>, std::int64_t> sums_ns;
    for (std::uint32_t row = 0; row < kernel_parts.size(); ++row) {
      const std::uint32_t part = kernel_parts[row];
      if (part != kNone && kernels.process[row] == process_) {
        sums_ns[{signature_of(row), part}] += kernels.end_ns[row] - kernels.start_ns[row];
      }
    }
    PartTimes times;
    for (const auto& [key, sum_ns] : sums_ns) {
      const SignatureKey signature = key_of(key.first);
      const LayerPartRow& part = analysis.structure->parts[key.second];
      times[signature][key_of(part, std::get<1>(signature))] += sum_ns;
    }
    return times;
  }

  // Every exclusion is recorded with its reason, so that the report can show what is not covered.
  void choose(const std::vector<LaunchGroup>& groups, const PartTimes& parts) {
    const std::set<SignatureKey> steady = steady_signatures();
    std::vector<PlannedKernel> candidates;
    for (const LaunchGroup& group : groups) {
      if (is_collective(group)) {
        exclude(group, "communication");
      } else if (group.stage.kind == RowKind::kOutside) {
        exclude(group, "outside_stages");
      } else if (group.process != process_) {
        exclude(group, "other_process");
      } else if (!steady.contains(key_of(group))) {
        exclude(group, "warm_up");
      } else {
        candidates.push_back({group, 0});
      }
    }
    const std::vector<bool> is_chosen = first_of_parts(candidates, parts);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (is_chosen[i]) {
        plan_.kernels.push_back(std::move(candidates[i]));
      } else {
        exclude(candidates[i].group, "beyond_top_n");
      }
    }
  }

  // Which of the candidates, sorted by time, to measure: those with the most time of each part of
  // the model, then the others. Names the parts of each.
  std::vector<bool> first_of_parts(std::vector<PlannedKernel>& candidates,
                                   const PartTimes& parts) const {
    std::map<PartKey, std::pair<std::int64_t, std::size_t>> largest;  // time, candidate
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const auto found = parts.find(key_of(candidates[i].group));
      if (found == parts.end()) {
        continue;
      }
      std::vector<std::pair<std::int64_t, std::string>> names;
      for (const auto& [part, time_ns] : found->second) {
        auto& [most_ns, candidate] = largest.try_emplace(part, -1, 0).first->second;
        if (time_ns > most_ns) {
          most_ns = time_ns;
          candidate = i;
        }
        names.emplace_back(-time_ns, std::get<2>(part));
      }
      std::sort(names.begin(), names.end());
      for (const auto& [time_ns, part] : names) {
        std::vector<std::string>& own = candidates[i].parts;
        if (std::find(own.begin(), own.end(), part) == own.end()) {
          own.push_back(part);
        }
      }
    }
    std::vector<bool> is_first(candidates.size());
    for (const auto& [part, one] : largest) {
      is_first[one.second] = true;
    }
    std::vector<bool> is_chosen(candidates.size());
    std::size_t num_chosen = 0;
    for (const bool wants_first : {true, false}) {
      for (std::size_t i = 0; i < candidates.size() && num_chosen < options_.top_n; ++i) {
        if (is_first[i] == wants_first) {
          is_chosen[i] = true;
          ++num_chosen;
        }
      }
    }
    return is_chosen;
  }

  // Signatures with a launch outside the warm-up.
  std::set<SignatureKey> steady_signatures() const {
    std::set<Signature> seen;
    for (std::uint32_t row = 0; row < trace_.kernels.size(); ++row) {
      if (trace_.kernels.process[row] == process_ && !is_warm_up(row)) {
        seen.insert(signature_of(row));
      }
    }
    std::set<SignatureKey> steady;
    for (const Signature& signature : seen) {
      steady.insert(key_of(signature));
    }
    return steady;
  }

  // Launches of the planned kernels, in any shape and stage, in host order.
  void order_launches() {
    const Kernels& kernels = trace_.kernels;
    std::set<std::string_view> names;
    for (const PlannedKernel& kernel : plan_.kernels) {
      names.insert(identity_of(kernel.group));
    }
    std::unordered_map<StringId, bool> is_wanted;
    std::map<Signature, std::uint32_t> numbers;
    for (std::uint32_t row = 0; row < kernels.size(); ++row) {
      if (kernels.process[row] != process_) {
        continue;
      }
      const auto [wanted, is_new] = is_wanted.try_emplace(identity_of_row(row));
      if (is_new) {
        wanted->second = names.contains(trace_.strings[wanted->first]);
      }
      if (wanted->second) {
        const auto [number, is_new_signature] =
            numbers.try_emplace(signature_of(row), static_cast<std::uint32_t>(signatures_.size()));
        if (is_new_signature) {
          signatures_.push_back(number->first);
        }
        launches_.push_back({row, number->second, is_warm_up(row)});
      }
    }
    std::sort(launches_.begin(), launches_.end(), [&](const Launch& a, const Launch& b) {
      return std::tie(kernels.correlation[a.row], kernels.start_ns[a.row]) <
             std::tie(kernels.correlation[b.row], kernels.start_ns[b.row]);
    });
  }

  // Whether no kernel has equal launches in two of the planned stages: ncu distinguishes kernels
  // and shapes, but not stages, and would measure only the first of them.
  bool are_stages_apart() const {
    std::set<std::string_view> names;
    std::set<std::string_view> stages;
    for (const PlannedKernel& kernel : plan_.kernels) {
      names.insert(identity_of(kernel.group));
      stages.insert(kernel.group.stage.text());
    }
    std::map<std::pair<StringId, std::uint32_t>, std::uint32_t> stage_of;
    return std::all_of(signatures_.begin(), signatures_.end(), [&](const Signature& signature) {
      if (signature.stage == kNone || !stages.contains(stages_.names[signature.stage].text()) ||
          !names.contains(trace_.strings[signature.name])) {
        return true;
      }
      const auto [known, is_new] =
          stage_of.try_emplace({signature.name, signature.shape}, signature.stage);
      return known->second == signature.stage;
    });
  }

  void make_commands() {
    plan_.commands.clear();
    plan_.forecast_s = 0;
    if (plan_.kernels.empty()) {
      return;
    }
    // One command suffices if ncu can filter by launch configuration and no planned stages share
    // equal launches; every further command runs the whole application again.
    if (options_.has_per_launch_config && (!options_.is_gated || are_stages_apart())) {
      std::vector<std::size_t> all(plan_.kernels.size());
      for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = i;
      }
      add_command(all);
      return;
    }
    std::map<std::string, std::vector<std::size_t>> by_stage;
    for (std::size_t i = 0; i < plan_.kernels.size(); ++i) {
      by_stage[plan_.kernels[i].group.stage.text()].push_back(i);
    }
    for (const auto& [stage, members] : by_stage) {
      add_command(members);
    }
  }

  void add_command(const std::vector<std::size_t>& members) {
    PlannedCommand command;
    std::set<std::string> names;
    std::set<std::string> stages;
    // Mangled names are exact, but one filter takes only one kind: all kernels have one, or none is
    // used.
    command.is_mangled = true;
    for (const std::size_t i : members) {
      command.is_mangled = command.is_mangled && !plan_.kernels[i].group.mangled_name.empty();
    }
    for (const std::size_t i : members) {
      PlannedKernel& kernel = plan_.kernels[i];
      kernel.command = plan_.commands.size();
      names.insert(command.is_mangled ? kernel.group.mangled_name : kernel.group.kernel_name);
      stages.insert(kernel.group.stage.text());
    }
    command.names.assign(names.begin(), names.end());
    if (options_.is_gated) {
      command.stages.assign(stages.begin(), stages.end());
    }
    command.is_per_launch_config = options_.has_per_launch_config;
    const Scope scope = scope_of(members);
    command.is_per_launch_config ? count_signatures(scope, command) : find_stretch(scope, command);
    plan_.forecast_s += command.forecast_s;
    plan_.commands.push_back(std::move(command));
  }

  // What one command counts.
  struct Scope {
    std::vector<std::int64_t> medians_ns;  // of its groups
    std::vector<std::int32_t> group;       // by signature; -1: none of its groups
    std::vector<bool> is_counted;          // by signature: its name and, if gated, its stage
  };

  // The part of the recorded launches that a command over these kernels would count. `group` is -1
  // for a launch that the command replays without being asked for it: same name, another shape.
  Scope scope_of(const std::vector<std::size_t>& members) const {
    std::map<SignatureKey, std::int32_t> group_of;
    std::set<std::string> names;
    std::set<std::string> stages;
    Scope scope;
    for (const std::size_t member : members) {
      const LaunchGroup& group = plan_.kernels[member].group;
      group_of[key_of(group)] = static_cast<std::int32_t>(scope.medians_ns.size());
      scope.medians_ns.push_back(group.median_ns);
      names.insert(identity_of(group));
      stages.insert(group.stage.text());
    }
    for (const Signature& signature : signatures_) {
      const SignatureKey key = key_of(signature);
      const auto found = group_of.find(key);
      scope.group.push_back(found == group_of.end() ? -1 : found->second);
      scope.is_counted.push_back(names.contains(std::get<0>(key)) &&
                                 (!options_.is_gated || stages.contains(std::get<1>(key))));
    }
    return scope;
  }

  std::vector<Launch> launches_in(const Scope& scope) const {
    std::vector<Launch> launches;
    std::copy_if(launches_.begin(), launches_.end(), std::back_inserter(launches),
                 [&](const Launch& launch) { return scope.is_counted[launch.signature]; });
    return launches;
  }

  std::int64_t duration_of(const Launch& launch) const {
    return trace_.kernels.end_ns[launch.row] - trace_.kernels.start_ns[launch.row];
  }

  double cost_s(std::int64_t duration_ns) const {
    return options_.passes * (3 * static_cast<double>(duration_ns) / 1e9 + kPassOverheadSeconds);
  }

  double start_s() const { return options_.program_s * kStartOverhead; }

  // One of each kernel, grid and block, after the warm-up if every group still has one there.
  void count_signatures(const Scope& scope, PlannedCommand& command) const {
    std::map<std::pair<StringId, std::uint32_t>, std::int64_t> measured_ns;  // by name and shape
    std::vector<std::int64_t> warm_up(scope.medians_ns.size());
    std::vector<std::int64_t> calls(scope.medians_ns.size());
    for (const Launch& launch : launches_in(scope)) {
      const Signature& signature = signatures_[launch.signature];
      measured_ns.try_emplace({signature.name, signature.shape}, duration_of(launch));
      if (scope.group[launch.signature] >= 0) {
        const auto group = static_cast<std::size_t>(scope.group[launch.signature]);
        ++calls[group];
        warm_up[group] += launch.is_warm_up ? 1 : 0;
      }
    }
    command.launch_skip = std::min(*std::max_element(warm_up.begin(), warm_up.end()),
                                   *std::min_element(calls.begin(), calls.end()) - 1);
    command.launch_count = 1;
    command.expected_launches = static_cast<std::int64_t>(measured_ns.size());
    command.forecast_s = start_s();
    for (const auto& [signature, duration_ns] : measured_ns) {
      command.forecast_s += cost_s(duration_ns);
    }
  }

  // The launches that represent their group: steady ones near its median; if there are none, any
  // steady one; if there are none either, any.
  std::vector<bool> representatives(const Scope& scope, const std::vector<Launch>& launches) const {
    std::vector<int> rank(launches.size());
    std::vector<int> best(scope.medians_ns.size());
    for (std::size_t i = 0; i < launches.size(); ++i) {
      const std::int32_t group = scope.group[launches[i].signature];
      if (group < 0) {
        continue;
      }
      const auto median = static_cast<double>(scope.medians_ns[static_cast<std::size_t>(group)]);
      const auto duration = static_cast<double>(duration_of(launches[i]));
      const bool is_near = duration <= median * kNearMedian && duration * kNearMedian >= median;
      rank[i] = launches[i].is_warm_up ? 1 : (is_near ? 3 : 2);
      int& best_rank = best[static_cast<std::size_t>(group)];
      best_rank = std::max(best_rank, rank[i]);
    }
    std::vector<bool> is_good(launches.size());
    for (std::size_t i = 0; i < launches.size(); ++i) {
      const std::int32_t group = scope.group[launches[i].signature];
      is_good[i] = group >= 0 && rank[i] == best[static_cast<std::size_t>(group)];
    }
    return is_good;
  }

  // The shortest range of launches with a representative of every group; of equal ones the one
  // nearest to the middle, where a program without marks is neither warming up nor ending.
  void find_stretch(const Scope& scope, PlannedCommand& command) const {
    const std::vector<Launch> launches = launches_in(scope);
    const std::vector<bool> is_good = representatives(scope, launches);
    std::vector<std::int64_t> inside(scope.medians_ns.size());
    const auto count_of = [&](std::size_t i) -> std::int64_t& {
      return inside[static_cast<std::size_t>(scope.group[launches[i].signature])];
    };
    std::size_t covered = 0;
    std::size_t best_start = 0;
    std::size_t best_end = launches.size();
    for (std::size_t start = 0, end = 0; end < launches.size(); ++end) {
      covered += is_good[end] && count_of(end)++ == 0 ? 1 : 0;
      for (; covered == inside.size(); ++start) {
        const auto off_middle = [&](std::size_t from, std::size_t to) {
          return std::abs(static_cast<std::int64_t>(from + to) -
                          static_cast<std::int64_t>(launches.size()));
        };
        const std::size_t length = end + 1 - start;
        const std::size_t best_length = best_end - best_start;
        if (length < best_length ||
            (length == best_length &&
             off_middle(start, end + 1) < off_middle(best_start, best_end))) {
          best_start = start;
          best_end = end + 1;
        }
        covered -= is_good[start] && --count_of(start) == 0 ? 1 : 0;
      }
    }
    command.launch_skip = static_cast<std::int64_t>(best_start);
    command.launch_count = static_cast<std::int64_t>(best_end - best_start);
    command.expected_launches = command.launch_count;
    command.forecast_s = start_s();
    for (std::size_t i = best_start; i < best_end; ++i) {
      command.forecast_s += cost_s(duration_of(launches[i]));
    }
  }

  const Trace& trace_;
  const Stages& stages_;
  const Attribution& attribution_;
  const PlanOptions& options_;
  std::uint16_t process_;
  std::vector<std::uint32_t> first_instance_;  // by stage; kNone: no warm-up
  std::vector<Signature> signatures_;
  std::vector<Launch> launches_;
  NcuPlan plan_;
};

}  // namespace

NcuPlan plan_ncu(const Trace& trace, const Stages& stages, const Attribution& attribution,
                 const std::vector<std::uint32_t>& kernel_parts, const Analysis& analysis,
                 const PlanOptions& options) {
  return Planner(trace, stages, attribution, kernel_parts, analysis, options).run();
}

}  // namespace gpuwhy
