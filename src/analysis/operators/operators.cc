// SPDX-License-Identifier: Apache-2.0
//
// Attribution of kernels to framework operators and model layers.
//
// A kernel belongs to the innermost operator that the host was in, on the same thread, when it
// launched the kernel:
//
//   host    |-- aten::linear -----------------|
//              |-- aten::addmm ------------|
//                    launch
//   GPU                        [ gemm ]            counts for aten::addmm
//
// So rows do not overlap, and their sum is part of all kernel time. The rest was launched by code
// that names no operator (a kernel library called from Python, a CUDA graph whose capture is
// unknown). A kernel of a graph whose nodes have names (graph_names.h) belongs to the operator that
// was open when its node was captured, whatever is around the launch of the graph.
//
// Names come from the profiler's own events (PyTorch traces) or from NVTX ranges pushed by PyTorch
// (emit_nvtx, nsys --pytorch) and by the layer hooks of vLLM and SGLang. Calls and operators are
// sorted by time and walked in parallel with a stack, because they nest. Sorting is the most
// expensive part, so only row numbers are sorted.
//
// What it gets wrong: old traces have whole microseconds, so an operator shorter than that may miss
// its own call, which then counts for the operator around it. Layers are recognized by module
// names; a model that names its layers differently has none.
#include "analysis/operators/operators.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/kernels/graph_names.h"
#include "analysis/names/host_scopes.h"
#include "analysis/names/operator_names.h"
#include "analysis/operators/operator_rates.h"

namespace gpuwhy {
namespace {

// The launches of all kernels whose call was recorded, by thread and time of the call.
struct Launches {
  std::vector<std::uint32_t> kernels;

  Launches(const Trace& trace, const Attribution& attribution) {
    const Column<std::uint32_t>& call = attribution.kernels.call;
    for (std::uint32_t row = 0; row < trace.kernels.size(); ++row) {
      if (call[row] != kNone) {
        kernels.push_back(row);
      }
    }
    const auto is_before = [&](std::uint32_t a, std::uint32_t b) {
      const ApiCalls& calls = trace.api_calls;
      return std::tuple(calls.thread[call[a]], calls.start_ns[call[a]], call[a], a) <
             std::tuple(calls.thread[call[b]], calls.start_ns[call[b]], call[b], b);
    };
    if (!std::ranges::is_sorted(kernels, is_before)) {
      std::ranges::sort(kernels, is_before);
    }
  }
};

// Nested host intervals of one table, and lookup of the one around each launch.
template <typename Table>
class Nest {
 public:
  // Only `rows` of the table take part.
  Nest(const Table& table, std::vector<std::uint32_t> rows)
      : table_(table), rows_(std::move(rows)) {
    const auto is_before = [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(table.thread[a], table.start_ns[a], -table.end_ns[a], a) <
             std::tuple(table.thread[b], table.start_ns[b], -table.end_ns[b], b);
    };
    if (!std::ranges::is_sorted(rows_, is_before)) {
      std::ranges::sort(rows_, is_before);
    }
  }

  // The innermost row around each launch, or the outermost; kNone if there is none.
  std::vector<std::uint32_t> around(const Trace& trace, const Attribution& attribution,
                                    const Launches& launches, bool is_outermost) const {
    std::vector<std::uint32_t> found;
    found.reserve(launches.kernels.size());
    std::vector<std::uint32_t> open;
    std::size_t next = 0;
    for (const std::uint32_t kernel : launches.kernels) {
      const std::uint32_t call = attribution.kernels.call[kernel];
      const std::pair at(trace.api_calls.thread[call], trace.api_calls.start_ns[call]);
      for (; next < rows_.size() && place(rows_[next]) <= at; ++next) {
        close(open, place(rows_[next]), true);
        open.push_back(rows_[next]);
      }
      close(open, at, false);
      const auto covers = [&](std::uint32_t row) { return table_.end_ns[row] >= at.second; };
      const auto first =
          is_outermost ? std::ranges::find_if(open, covers) : open.end() - (open.empty() ? 0 : 1);
      found.push_back(first == open.end() ? kNone : *first);
    }
    return found;
  }

 private:
  using Place = std::pair<std::uint32_t, std::int64_t>;  // thread and time

  Place place(std::uint32_t row) const { return {table_.thread[row], table_.start_ns[row]}; }

  // Drops intervals that have ended. For a call an interval includes its last nanosecond, because
  // old traces round; for the next interval it does not, unless both began there.
  void close(std::vector<std::uint32_t>& open, const Place& at, bool is_interval) const {
    while (!open.empty()) {
      const std::uint32_t row = open.back();
      const bool is_here = table_.thread[row] == at.first;
      const bool ends_now = table_.end_ns[row] == at.second && table_.start_ns[row] < at.second;
      if (is_here && table_.end_ns[row] >= at.second && !(is_interval && ends_now)) {
        return;
      }
      open.pop_back();
    }
  }

  const Table& table_;
  std::vector<std::uint32_t> rows_;
};

// Rows of a table of host intervals that are operators or modules.
struct Sources {
  std::vector<std::uint32_t> operators;
  std::vector<std::uint32_t> modules;

  bool is_empty() const { return operators.empty() && modules.empty(); }
};

Sources sources_of(const Ops& ops) {
  Sources sources;
  for (std::uint32_t row = 0; row < ops.size(); ++row) {
    (ops.kind[row] == OpKind::kOperator ? sources.operators : sources.modules).push_back(row);
  }
  return sources;
}

// Each distinct NVTX text is parsed only once.
Sources sources_of(const Trace& trace) {
  enum : std::uint8_t { kUnknown, kNothing, kOperator, kModule };
  Sources sources;
  std::vector<std::uint8_t> kinds(trace.ranges.size() == 0 ? 0 : trace.strings.size());
  for (std::uint32_t row = 0; row < trace.ranges.size(); ++row) {
    std::uint8_t& kind = kinds[static_cast<std::size_t>(trace.ranges.text[row])];
    if (kind == kUnknown) {
      const std::string_view text = trace.strings[trace.ranges.text[row]];
      kind = !module_path(text).empty() ? kModule : is_operator_text(text) ? kOperator : kNothing;
    }
    if (kind != kNothing && trace.ranges.kind[row] == RangeKind::kPushPop) {
      (kind == kOperator ? sources.operators : sources.modules).push_back(row);
    }
  }
  return sources;
}

// Sums by name and stage.
class Rows {
 public:
  explicit Rows(const Stages& stages) : stages_(stages) {}

  // `call` is equal for kernels that one call of the operator launched.
  void add(std::uint32_t name, std::uint32_t stage, std::uint64_t call, std::int64_t duration_ns) {
    Sum& sum = sums_[(static_cast<std::uint64_t>(name) << 32) | stage];
    sum.total_ns += duration_ns;
    ++sum.num_kernels;
    sum.calls += std::exchange(sum.last_call, call) != call ? 1 : 0;
  }

  std::vector<OperatorRow> records(const std::vector<std::string>& names) const {
    std::vector<OperatorRow> records;
    for (const auto& [key, sum] : sums_) {
      OperatorRow& record = records.emplace_back();
      const auto stage = static_cast<std::uint32_t>(key & UINT32_MAX);
      record.name = names[key >> 32];
      record.stage = stages_.name_of(stage);
      record.total_ns = sum.total_ns;
      record.calls = sum.calls;
      record.num_kernels = sum.num_kernels;
    }
    std::ranges::sort(records, {}, [](const OperatorRow& one) {
      return std::tuple(-one.total_ns, one.name, one.stage);
    });
    return records;
  }

 private:
  struct Sum {
    std::int64_t total_ns = 0;
    std::int64_t num_kernels = 0;
    std::int64_t calls = 0;
    std::uint64_t last_call = UINT64_MAX;
  };
  const Stages& stages_;
  std::unordered_map<std::uint64_t, Sum> sums_;
};

// Numbers names, and caches the number of each text in the pool.
class Names {
 public:
  explicit Names(const StringPool& pool) : pool_(pool), number_of_text_(pool.size(), kNone) {}

  template <typename Normalise>
  std::uint32_t number(StringId text, Normalise normalise) {
    std::uint32_t& number = number_of_text_[static_cast<std::size_t>(text)];
    if (number == kNone) {
      const auto [entry, is_new] = numbers_.try_emplace(std::string(normalise(pool_[text])),
                                                        static_cast<std::uint32_t>(names.size()));
      if (is_new) {
        names.push_back(entry->first);
      }
      number = entry->second;
    }
    return number;
  }

  std::vector<std::string> names;

 private:
  const StringPool& pool_;
  std::vector<std::uint32_t> number_of_text_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

std::vector<LayerTotal> in_model_order(
    const std::map<std::pair<std::string, std::int64_t>, LayerTotal>& layers,
    const std::map<std::string, std::size_t>& order) {
  std::vector<std::tuple<std::size_t, std::int64_t, LayerTotal>> sorted;
  for (const auto& [key, total] : layers) {
    sorted.emplace_back(order.at(key.first), key.second, total);
    std::get<2>(sorted.back()).layer = order.size() == 1
                                           ? std::to_string(key.second)
                                           : fmt::format("{}.{}", key.first, key.second);
  }
  std::ranges::sort(sorted, {},
                    [](const auto& one) { return std::pair(std::get<0>(one), std::get<1>(one)); });
  std::vector<LayerTotal> totals;
  totals.reserve(sorted.size());
  for (auto& [stack, index, total] : sorted) {
    totals.push_back(std::move(total));
  }
  return totals;
}

// Operators and layers from one kind of table.
template <typename Table>
class Summary {
 public:
  Summary(const Trace& trace, const Stages& stages, const Attribution& attribution,
          const Table& table, const Column<StringId>& texts)
      : trace_(trace),
        stages_(stages),
        attribution_(attribution),
        launches_(trace, attribution),
        table_(table),
        texts_(texts),
        scopes_(trace) {}

  // Sums kernel time by the innermost operator or module around each launch.
  void add_rows(std::vector<std::uint32_t> rows, bool are_modules, Operators& operators) const {
    const std::vector<std::uint32_t> found =
        Nest(table_, std::move(rows)).around(trace_, attribution_, launches_, false);
    Names names(trace_.strings);
    Rows sums(stages_);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::uint32_t kernel = launches_.kernels[i];
      const Source source = source_of(kernel, are_modules ? scopes_.module : scopes_.op, found[i]);
      if (!source.is_known) {
        continue;
      }
      const std::uint32_t name = names.number(source.text, [&](std::string_view text) {
        return are_modules ? over_layers(path_of_module(text)) : std::string(operator_name(text));
      });
      // Each name is split by stage, so that prefill and decode stay apart.
      const std::uint32_t instance = attribution_.kernels.instance[kernel];
      sums.add(name, instance == kNone ? kNone : stages_.instances[instance].stage, source.call,
               duration_of(kernel));
      operators.covered_ns += duration_of(kernel);
    }
    operators.rows = sums.records(names.names);
    if constexpr (std::is_same_v<Table, Ops>) {
      if (!are_modules) {
        operators.rates = operator_rates(trace_, stages_.names, launched_by(found));
      }
    }
  }

  // Sums kernel time by transformer layer: the outermost module around the launch whose path names
  // one.
  void add_layers(const std::vector<std::uint32_t>& modules, Operators& operators) const {
    std::vector<std::uint32_t> rows;
    for (const std::uint32_t row : modules) {
      if (layer_of(path_of_module(trace_.strings[texts_[row]]))) {
        rows.push_back(row);
      }
    }
    const std::vector<std::uint32_t> found =
        Nest(table_, std::move(rows)).around(trace_, attribution_, launches_, true);
    std::map<std::pair<std::string, std::int64_t>, LayerTotal> layers;
    std::map<std::string, std::size_t> order;  // of the stacks of layers, as they are first run
    std::uint64_t last = UINT64_MAX;
    LayerTotal* total = nullptr;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Source source = source_of(launches_.kernels[i], scopes_.layer, found[i]);
      if (!source.is_known) {
        continue;
      }
      // Launches are in order of time within a thread: another range is a further call of its
      // layer.
      if (source.call != last) {
        const auto layer = layer_of(path_of_module(trace_.strings[source.text]));
        order.try_emplace(std::string(layer->stack), order.size());
        total = &layers[{std::string(layer->stack), layer->index}];
        ++total->calls;
        last = source.call;
      }
      total->total_ns += duration_of(launches_.kernels[i]);
    }
    operators.layers = in_model_order(layers, order);
  }

 private:
  // What names a kernel.
  struct Source {
    bool is_known = false;
    StringId text{};
    std::uint64_t call = 0;
  };

  // The scope of a kernel's graph node, as `scopes` has it, else the row around its launch.
  Source source_of(std::uint32_t kernel, const std::vector<std::uint32_t>& scopes,
                   std::uint32_t row) const {
    const std::uint32_t inner = trace_.graph_nodes[trace_.kernels.graph_node[kernel]].scope;
    const std::uint32_t scope = inner == kNone ? kNone : scopes[inner];
    if (scope != kNone) {
      // Each launch of the graph is a call of all that is in it.
      const std::uint64_t launch = attribution_.kernels.call[kernel];
      return {true, trace_.host_scopes[scope].name, (launch << 32) | scope};
    }
    return row == kNone ? Source{} : Source{true, texts_[row], row};
  }

  // The operators around launches that were not of CUDA graphs.
  std::vector<OpKernel> launched_by(const std::vector<std::uint32_t>& ops) const {
    std::vector<OpKernel> launched;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const std::uint32_t kernel = launches_.kernels[i];
      if (ops[i] != kNone && trace_.ops.inputs[ops[i]] != StringId{} &&
          !trace_.kernels.is_graph_node(kernel)) {
        const std::uint32_t instance = attribution_.kernels.instance[kernel];
        launched.push_back(
            {ops[i], kernel, instance == kNone ? kNone : stages_.instances[instance].stage});
      }
    }
    return launched;
  }

  std::int64_t duration_of(std::uint32_t kernel) const {
    return trace_.kernels.end_ns[kernel] - trace_.kernels.start_ns[kernel];
  }

  const Trace& trace_;
  const Stages& stages_;
  const Attribution& attribution_;
  Launches launches_;
  const Table& table_;
  const Column<StringId>& texts_;
  ScopeNames scopes_;
};

// "PyTorch's profiler, in CUDA graphs of the capture trace".
std::string source_words(const Trace& trace, bool is_profiler, const Sources& sources) {
  std::vector<std::string_view> of_graphs;
  const GraphNames names = count_graph_names(trace);
  if (names.by_nvtx > 0) {
    of_graphs.push_back("NVTX ranges at capture");
  }
  if (names.by_annotations > 0) {
    of_graphs.push_back("annotations");
  }
  if (names.by_order > 0) {
    of_graphs.push_back("the capture trace");
  }
  std::string in_graphs = fmt::format("{}", fmt::join(of_graphs, " and "));
  if (sources.is_empty()) {
    return in_graphs;
  }
  return fmt::format("{}{}{}", is_profiler ? "PyTorch's profiler" : "NVTX ranges",
                     in_graphs.empty() ? "" : ", in CUDA graphs of ", in_graphs);
}

}  // namespace

void finish_operators(bool are_of_gpu, Operators& operators) {
  operators.time_of = are_of_gpu ? OperatorTime::kKernels : OperatorTime::kHost;
  for (OperatorRow& row : operators.rows) {
    row.share_fraction = fraction_of(row.total_ns, operators.whole_ns);
  }
}

std::optional<Operators> summarise_operators(const Trace& trace, const Stages& stages,
                                             const Attribution& attribution,
                                             std::int64_t whole_ns) {
  if (trace.kernels.size() == 0) {
    return std::nullopt;
  }
  const bool is_profiler = trace.ops.size() > 0;
  Sources sources = is_profiler ? sources_of(trace.ops) : sources_of(trace);
  const auto has_scope = [&](ScopeKind kind) {
    return std::ranges::any_of(trace.host_scopes,
                               [&](const HostScope& scope) { return scope.kind == kind; });
  };
  const bool has_operators = !sources.operators.empty() || has_scope(ScopeKind::kOperator);
  if (!has_operators && sources.modules.empty() && !has_scope(ScopeKind::kModule)) {
    return std::nullopt;
  }
  Operators operators;
  operators.whole_ns = whole_ns;
  operators.source = fmt::format("{} of {}", has_operators ? "operators" : "modules",
                                 source_words(trace, is_profiler, sources));
  const auto fill = [&](const auto& table, const Column<StringId>& texts) {
    const Summary summary(trace, stages, attribution, table, texts);
    summary.add_layers(sources.modules, operators);
    summary.add_rows(std::move(has_operators ? sources.operators : sources.modules), !has_operators,
                     operators);
  };
  if (is_profiler) {
    fill(trace.ops, trace.ops.name);
  } else {
    fill(trace.ranges, trace.ranges.text);
  }
  finish_operators(true, operators);
  return operators;
}

}  // namespace gpuwhy
