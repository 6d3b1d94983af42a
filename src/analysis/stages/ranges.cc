// SPDX-License-Identifier: Apache-2.0
//
// Kernels launched by each NVTX range, including nested ranges.
//
// A kernel counts for every push/pop range around its launch, not only for the innermost.
//
// Ranges of one thread and domain nest, because a domain has one stack per thread. So a kernel is
// charged only to the innermost range, and afterwards each range adds its sum to its parent: the
// work does not grow with the depth of the stack, which is large in PyTorch traces. Start/end
// ranges do not nest and are only used for stages.
//
// A kernel of a CUDA graph also counts for the ranges that were open when its node was captured
// (graph_names.h). A name that is open around launches of graphs as well counts for those alone, so
// that no kernel counts twice for it.
//
// PyTorch runs the backward pass on a thread of its own, while the thread that called it waits. A
// launch inside autograd's evaluate_function counts for the ranges of the one other thread of the
// process that has any open then. With several such threads it is not known which of them waits.
// Where the recording has no such functions, kernels of a thread without a range count for none,
// and a diagnostic says how much that is: the thread may be autograd's or any other.
//
// What it gets wrong: ranges that overlap without nesting, which NVTX cannot record but a damaged
// file can contain.
#include "analysis/stages/ranges.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <type_traits>
#include <unordered_map>

#include <fmt/format.h>

#include "analysis/names/operator_names.h"
#include "base/units.h"
#include "trace/interval_index.h"

namespace gpuwhy {
namespace {

void add_sums(const RangeTotal& part, RangeTotal& sum) {
  sum.instances += part.instances;
  sum.host_ns += part.host_ns;
  sum.host_own_ns += part.host_own_ns;
  if (part.longest_ns > sum.longest_ns) {
    sum.longest_ns = part.longest_ns;
    sum.longest_start_ns = part.longest_start_ns;
  }
  sum.kernel_ns += part.kernel_ns;
  sum.kernels += part.kernels;
  sum.captured_ns += part.captured_ns;
}

bool has_more_kernel_time(const RangeTotal& a, const RangeTotal& b) {
  return std::tuple(-a.kernel_ns, a.range) < std::tuple(-b.kernel_ns, b.range);
}

// The ranges of one thread and domain.
struct Stack {
  std::vector<std::uint32_t> rows;
  IntervalIndex timeline;
};

// Kernel time of each range; parents are added at the end.
class RangeSums {
 public:
  RangeSums(const Trace& trace, std::int64_t last_ns)
      : trace_(trace),
        last_ns_(last_ns),
        inner_ns_(trace.ranges.size()),
        kernel_ns_(trace.ranges.size()),
        kernels_(trace.ranges.size()),
        launches_graph_(trace.ranges.size()),
        scope_ns_(trace.host_scopes.size()),
        scope_kernels_(trace.host_scopes.size()) {
    stacks_.resize(trace.threads.size());
    for (std::uint32_t row = 0; row < trace.ranges.size(); ++row) {
      if (trace.ranges.kind[row] == RangeKind::kPushPop) {
        Stack& stack = stacks_[trace.ranges.thread[row]][trace.ranges.domain[row]];
        stack.rows.push_back(row);
        stack.timeline.add(trace.ranges.start_ns[row], end_of(row), row);
      }
    }
    find_autograd();
    stacks_of_.resize(stacks_.size());
    threads_of_.resize(trace.processes.size());
    for (std::uint32_t thread = 0; thread < stacks_.size(); ++thread) {
      if (!stacks_[thread].empty()) {
        threads_of_[trace.threads[thread].process].push_back(thread);
      }
      for (auto& [domain, stack] : stacks_[thread]) {
        stack.timeline.prepare();
        stacks_of_[thread].push_back(&stack);
      }
    }
  }

  void add(std::uint32_t call, std::int64_t duration_ns, bool is_graph) {
    const std::uint32_t thread = trace_.api_calls.thread[call];
    const std::int64_t time_ns = trace_.api_calls.start_ns[call];
    total_ns_ += duration_ns;
    const bool is_claimed = add_to(thread, time_ns, duration_ns, is_graph);
    const auto own = autograd_.find(thread);
    if (own != autograd_.end() && own->second.find(time_ns) != kNone) {
      const std::uint32_t caller = caller_of_backward(thread, time_ns);
      if (caller != kNone) {
        add_to(caller, time_ns, duration_ns, is_graph);
      }
    } else if (!is_claimed && trace_.ops.size() == 0 &&
               caller_of_backward(thread, time_ns) != kNone) {
      unclaimed_ns_ += duration_ns;
    }
  }

  // Kernels of threads that have no range open, while one other thread has, if they are a twentieth
  // of all or more. PyTorch's profiler records operators, and steps there hold all threads.
  std::int64_t unclaimed_ns() const { return unclaimed_ns_ * 20 >= total_ns_ ? unclaimed_ns_ : 0; }

  // The ranges around the capture of a kernel's node.
  void add_captured(const GraphNode& node, std::int64_t duration_ns) {
    if (node.route == NameRoute::kNvtx) {
      scope_ns_[node.scope] += duration_ns;
      ++scope_kernels_[node.scope];
    }
  }

  std::vector<RangeTotal> totals() {
    // Kernels were counted for the innermost range only; outer ranges include them.
    for (auto& domains : stacks_) {
      for (auto& [domain, stack] : domains) {
        pass_on(stack.rows);
      }
    }
    // Ranges of one domain and text are one row; start/end ranges may overlap and are not counted.
    std::map<Name, RangeTotal> by_name;
    for (std::uint32_t row = 0; row < trace_.ranges.size(); ++row) {
      if (trace_.ranges.kind[row] != RangeKind::kPushPop) {
        continue;
      }
      RangeTotal& total = by_name[{trace_.ranges.domain[row], trace_.ranges.text[row]}];
      ++total.instances;
      if (trace_.ranges.end_ns[row] != kOpenEnd) {
        const std::int64_t length_ns = trace_.ranges.end_ns[row] - trace_.ranges.start_ns[row];
        total.host_ns += length_ns;
        total.host_own_ns += std::max<std::int64_t>(0, length_ns - inner_ns_[row]);
        if (length_ns > total.longest_ns) {
          total.longest_ns = length_ns;
          total.longest_start_ns = trace_.ranges.start_ns[row];
        }
      }
      total.kernel_ns += kernel_ns_[row];
      total.kernels += kernels_[row];
    }
    add_scopes(by_name);
    // PyTorch numbers the range of each call: "aten::mm, op_id = 318133" is one of many aten::mm.
    std::map<std::pair<std::string_view, std::string_view>, RangeTotal> by_text;
    for (const auto& [name, total] : by_name) {
      const std::string_view text = trace_.strings[name.second];
      RangeTotal& sum = by_text[{trace_.strings[name.first],
                                 is_operator_text(text) ? operator_name(text) : text}];
      add_sums(total, sum);
    }
    std::vector<RangeTotal> totals;
    totals.reserve(by_text.size());
    for (auto& [name, total] : by_text) {
      total.text = name.second;
      total.range = name.first.empty() ? total.text : fmt::format("{}:{}", name.first, total.text);
      totals.push_back(std::move(total));
    }
    std::ranges::sort(totals, has_more_kernel_time);
    return totals;
  }

 private:
  using Name = std::pair<StringId, StringId>;  // domain and text

  bool add_to(std::uint32_t thread, std::int64_t time_ns, std::int64_t duration_ns, bool is_graph) {
    bool is_found = false;
    for (Stack* stack : stacks_of_[thread]) {
      const std::uint32_t row = stack->timeline.find(time_ns);
      if (row != kNone) {
        kernel_ns_[row] += duration_ns;
        ++kernels_[row];
        launches_graph_[row] = launches_graph_[row] || is_graph;
        is_found = true;
      }
    }
    return is_found;
  }

  // When each thread ran functions of the backward pass.
  void find_autograd() {
    for (std::uint32_t row = 0; row < trace_.ops.size(); ++row) {
      if (trace_.strings[trace_.ops.name[row]].starts_with("autograd::engine::evaluate_function")) {
        autograd_[trace_.ops.thread[row]].add(trace_.ops.start_ns[row], trace_.ops.end_ns[row],
                                              row);
      }
    }
    for (auto& [thread, times] : autograd_) {
      times.prepare();
    }
  }

  // The one other thread of the process that has a range open; kNone: there are none, or several.
  std::uint32_t caller_of_backward(std::uint32_t thread, std::int64_t time_ns) {
    std::uint32_t caller = kNone;
    for (const std::uint32_t other : threads_of_[trace_.threads[thread].process]) {
      const bool is_open =
          other != thread && std::ranges::any_of(stacks_of_[other], [&](Stack* stack) {
            return stack->timeline.find(time_ns) != kNone;
          });
      // Another thread of autograd waits for nobody.
      const auto backward = autograd_.find(other);
      if (!is_open || (backward != autograd_.end() && backward->second.find(time_ns) != kNone)) {
        continue;
      }
      if (caller != kNone) {
        return kNone;
      }
      caller = other;
    }
    return caller;
  }

  // Adds what was captured in each name, except where the name is open around launches of graphs.
  void add_scopes(std::map<Name, RangeTotal>& by_name) {
    std::set<Name> around_launches;
    for (std::uint32_t row = 0; row < trace_.ranges.size(); ++row) {
      if (launches_graph_[row]) {
        around_launches.emplace(trace_.ranges.domain[row], trace_.ranges.text[row]);
      }
    }
    // Parents come before the scopes inside them.
    for (std::size_t i = scope_ns_.size(); i-- > 0;) {
      const HostScope& scope = trace_.host_scopes[i];
      const Name name(scope.domain, scope.name);
      if (scope_kernels_[i] == 0) {
        continue;
      }
      if (!around_launches.contains(name)) {
        RangeTotal& total = by_name[name];
        total.kernel_ns += scope_ns_[i];
        total.captured_ns += scope_ns_[i];
        total.kernels += scope_kernels_[i];
      }
      if (scope.parent != kNone) {
        scope_ns_[scope.parent] += scope_ns_[i];
        scope_kernels_[scope.parent] += scope_kernels_[i];
      }
    }
  }

  std::int64_t end_of(std::uint32_t row) const {
    const std::int64_t end = trace_.ranges.end_ns[row];
    return end == kOpenEnd ? std::max(last_ns_, trace_.ranges.start_ns[row]) : end;
  }

  // Adds the sums of inner ranges to their parents, innermost first.
  void pass_on(std::vector<std::uint32_t>& rows) {
    std::ranges::sort(rows, {}, [&](std::uint32_t one) {
      return std::tuple(trace_.ranges.start_ns[one], -end_of(one), one);
    });
    std::vector<std::uint32_t> open;
    const auto close = [&] {
      const std::uint32_t inner = open.back();
      open.pop_back();
      if (!open.empty()) {
        inner_ns_[open.back()] += end_of(inner) - trace_.ranges.start_ns[inner];
        kernel_ns_[open.back()] += kernel_ns_[inner];
        kernels_[open.back()] += kernels_[inner];
        launches_graph_[open.back()] = launches_graph_[open.back()] || launches_graph_[inner];
      }
    };
    for (const std::uint32_t row : rows) {
      while (!open.empty() && end_of(open.back()) <= trace_.ranges.start_ns[row]) {
        close();
      }
      open.push_back(row);
    }
    while (!open.empty()) {
      close();
    }
  }

  const Trace& trace_;
  std::int64_t last_ns_;
  std::int64_t unclaimed_ns_ = 0;
  std::int64_t total_ns_ = 0;
  std::vector<std::int64_t> inner_ns_;   // of the ranges directly inside, by row of the ranges
  std::vector<std::int64_t> kernel_ns_;  // by row of the ranges
  std::vector<std::int64_t> kernels_;
  std::vector<bool> launches_graph_;
  std::vector<std::int64_t> scope_ns_;  // by host scope
  std::vector<std::int64_t> scope_kernels_;
  std::map<std::uint32_t, IntervalIndex> autograd_;     // by thread
  std::vector<std::map<StringId, Stack>> stacks_;       // by thread, then domain
  std::vector<std::vector<Stack*>> stacks_of_;          // the same, to walk through for each kernel
  std::vector<std::vector<std::uint32_t>> threads_of_;  // by process: those with ranges
};

}  // namespace

std::vector<RangeTotal> fold_numbered(const std::vector<RangeTotal>& ranges) {
  std::map<std::string, std::vector<std::size_t>> by_shape;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const std::string& name = ranges[i].range;
    // Longer ones are cut, and different ones would be one.
    constexpr std::size_t kLongest = 200;
    by_shape[name.size() > kLongest ? name : without_numbers(name)].push_back(i);
  }
  std::vector<RangeTotal> folded;
  for (const auto& [shape, rows] : by_shape) {
    RangeTotal& sum = folded.emplace_back(ranges[rows.front()]);
    for (std::size_t i = 1; i < rows.size(); ++i) {
      add_sums(ranges[rows[i]], sum);
    }
    if (rows.size() > 1) {
      sum.range = fmt::format("{} ({} names)", shape, rows.size());
    }
  }
  std::ranges::sort(folded, has_more_kernel_time);
  return folded;
}

std::vector<RangeTotal> summarise_ranges(const Trace& trace, const Attribution& attribution,
                                         Diagnostics* diagnostics) {
  std::int64_t last_ns = INT64_MIN;
  for (const std::int64_t end : trace.api_calls.end_ns) {
    last_ns = std::max(last_ns, end);
  }
  RangeSums sums(trace, last_ns);
  const auto add = [&]<typename Table>(const Table& table, const Origins& origins) {
    for (std::size_t row = 0; row < table.size(); ++row) {
      const std::int64_t duration_ns = table.end_ns[row] - table.start_ns[row];
      bool is_graph = true;
      if constexpr (std::is_same_v<Table, Kernels>) {
        is_graph = table.is_graph_node(row);
        sums.add_captured(trace.graph_nodes[table.graph_node[row]], duration_ns);
      }
      if (origins.call[row] != kNone) {
        sums.add(origins.call[row], duration_ns, is_graph);
      }
    }
  };
  add(trace.kernels, attribution.kernels);
  add(trace.graphs, attribution.graphs);  // recorded as a whole
  if (diagnostics != nullptr && sums.unclaimed_ns() > 0) {
    diagnostics->push_back(
        {"ranges_of_other_thread", Severity::kInfo, 1,
         fmt::format(
             "{} of kernels were launched by a thread without a range while another thread had "
             "one open, and count for no range or stage: PyTorch runs the backward pass on such "
             "a thread (nsys --pytorch=autograd-nvtx records which kernels are its own)",
             format_duration_ns(sums.unclaimed_ns()))});
  }
  return sums.totals();
}

}  // namespace gpuwhy
