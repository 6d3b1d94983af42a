// SPDX-License-Identifier: Apache-2.0
//
// Names of graph nodes, by three routes.
//
// NVTX: nsys records the creation of each node. The nodes that run are copies, made when the graph
// was instantiated; the chain of originals ends at the node that was captured, whose time and
// thread tell the ranges around it.
//
//   host   |-- layers.3.mlp --|               |-- cudaGraphLaunch --|
//               node 7 made       copy 19 of 7                          GPU  [ kernel, node 19 ]
//
// Annotations: a table from node ids to names. Order: see kernel_alignment.cc.
//
// Only operators and modules count as names that need no better: plain ranges of NVTX, often the
// one around the whole capture, give way to the other routes.
#include "analysis/kernels/graph_names.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analysis/kernels/kernel_alignment.h"
#include "analysis/names/host_scopes.h"
#include "analysis/names/operator_names.h"
#include "analysis/stages/attribution.h"
#include "base/list_of.h"

namespace gpuwhy {
namespace {

constexpr int kMostCopies = 16;  // copies of copies; also ends cycles of a damaged file

// By scope: whether it or one around it is an operator or a module.
std::vector<bool> telling_scopes(const Trace& trace) {
  std::vector<bool> tells(trace.host_scopes.size());
  for (std::size_t i = 0; i < tells.size(); ++i) {
    const HostScope& scope = trace.host_scopes[i];
    tells[i] = scope.kind != ScopeKind::kRange || (scope.parent != kNone && tells[scope.parent]);
  }
  return tells;
}

// By node: whether a better name is not needed.
std::vector<bool> named_nodes(const Trace& trace) {
  const std::vector<bool> tells = telling_scopes(trace);
  std::vector<bool> named(trace.graph_nodes.size());
  for (std::size_t i = 0; i < named.size(); ++i) {
    const std::uint32_t scope = trace.graph_nodes[i].scope;
    named[i] = scope != kNone && tells[scope];
  }
  return named;
}

// The creations of nodes, by process and id.
class Creations {
 public:
  explicit Creations(Trace& trace)
      : trace_(trace), sorted_(std::exchange(trace.node_creations, {})) {
    std::ranges::sort(sorted_, [&](const NodeCreation& a, const NodeCreation& b) {
      // A node may have two rows: the one that tells its original comes first.
      return std::tuple(process_of(a), a.node, a.original == 0, a.time_ns, a.thread) <
             std::tuple(process_of(b), b.node, b.original == 0, b.time_ns, b.thread);
    });
  }

  // Of the captured node that this one is a copy of; null if the recording lacks it.
  const NodeCreation* captured(const GraphNode& node) const {
    const NodeCreation* found = find(node.process, node.id);
    for (int i = 0; i < kMostCopies && found != nullptr && found->original != 0; ++i) {
      found = find(node.process, found->original);
    }
    return found != nullptr && found->original == 0 ? found : nullptr;
  }

 private:
  std::uint16_t process_of(const NodeCreation& creation) const {
    return trace_.threads[creation.thread].process;
  }

  const NodeCreation* find(std::uint16_t process, std::uint64_t id) const {
    const auto found = std::ranges::lower_bound(
        sorted_, std::pair(process, id), {},
        [&](const NodeCreation& row) { return std::pair(process_of(row), row.node); });
    const bool is_there =
        found != sorted_.end() && process_of(*found) == process && found->node == id;
    return is_there ? &*found : nullptr;
  }

  const Trace& trace_;
  std::vector<NodeCreation> sorted_;
};

// A launch of a known recording, in order.
struct KnownLaunch {
  HostPlace place;
  StringId kernel{};
};

// Launches that were captured; if there are none, those of kernels that ran by themselves.
std::vector<KnownLaunch> known_launches(const Trace& capture) {
  std::vector<KnownLaunch> known;
  for (const CapturedLaunch& launch : capture.captured_launches) {
    known.push_back({{launch.thread, launch.time_ns}, launch.kernel});
  }
  if (known.empty()) {
    const Attribution attribution = attribute(capture, Stages());
    for (std::size_t row = 0; row < capture.kernels.size(); ++row) {
      const std::uint32_t call = attribution.kernels.call[row];
      if (call != kNone && !capture.kernels.is_graph_node(row)) {
        known.push_back({{capture.api_calls.thread[call], capture.api_calls.start_ns[call]},
                         capture.kernels.name[row]});
      }
    }
    std::ranges::stable_sort(known, {}, &KnownLaunch::place);
  }
  known.resize(std::min(known.size(), KnownLaunches::kMost));
  return known;
}

// Where captures begin among the captured launches; empty if nothing was captured.
std::vector<bool> capture_starts(const Trace& capture, const std::vector<KnownLaunch>& known) {
  if (capture.captured_launches.empty()) {
    return {};
  }
  std::vector<HostPlace> begins;
  for (std::size_t row = 0; row < capture.api_calls.size(); ++row) {
    const std::string_view name = capture.strings[capture.api_calls.name[row]];
    if (name.find("BeginCapture") != std::string_view::npos) {
      begins.push_back({capture.api_calls.thread[row], capture.api_calls.start_ns[row]});
    }
  }
  std::ranges::sort(begins);
  std::vector<bool> is_start(known.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const std::size_t before = next;
    while (next < begins.size() && begins[next] <= known[i].place) {
      ++next;
    }
    is_start[i] = i == 0 || next > before;
  }
  return is_start;
}

// Names of another recording as numbers of this one; kNone where this one does not have the name.
class SharedNames {
 public:
  SharedNames(const StringPool& other, const StringPool& own)
      : other_(other), own_(own), numbers_(other.size(), kNone), is_known_(other.size()) {}

  std::uint32_t number(StringId name) {
    const auto i = static_cast<std::size_t>(name);
    if (!is_known_[i]) {
      is_known_[i] = true;
      const auto found = own_.find(other_[name]);
      numbers_[i] = found ? static_cast<std::uint32_t>(*found) : kNone;
    }
    return numbers_[i];
  }

 private:
  const StringPool& other_;
  const StringPool& own_;
  std::vector<std::uint32_t> numbers_;
  std::vector<bool> is_known_;
};

// Kernels of graphs: those of one launch in a row, in the order in which they ran, and the launches
// in the order of their first kernels.
std::vector<std::vector<std::uint32_t>> replays_of(const Trace& trace) {
  const Kernels& kernels = trace.kernels;
  std::vector<std::uint32_t> rows;
  for (std::uint32_t row = 0; row < kernels.size(); ++row) {
    if (kernels.is_graph_node(row) && kernels.correlation[row] != kNone) {
      rows.push_back(row);
    }
  }
  const auto launch_of = [&](std::uint32_t row) {
    return std::pair(kernels.process[row], kernels.correlation[row]);
  };
  std::ranges::sort(rows, {}, [&](std::uint32_t one) {
    return std::tuple(launch_of(one), kernels.start_ns[one], one);
  });
  std::vector<std::vector<std::uint32_t>> replays;
  for (const std::uint32_t row : rows) {
    if (replays.empty() || launch_of(replays.back().front()) != launch_of(row)) {
      replays.emplace_back();
    }
    replays.back().push_back(row);
  }
  std::ranges::sort(replays, {}, [&](const auto& one) {
    return std::tuple(kernels.process[one[0]], kernels.start_ns[one[0]], one[0]);
  });
  return replays;
}

// Kernels without a name and the launch each replays.
struct Pair {
  std::uint32_t kernel = 0;  // row
  std::uint32_t launch = 0;
};

// Gives the kernels nodes with the scopes of their launches. Nodes without ids get theirs here.
std::int64_t take_names(const std::vector<Pair>& pairs, const std::vector<KnownLaunch>& known,
                        const Trace& capture, Trace& trace) {
  std::vector<bool> is_used(known.size());
  for (const Pair& pair : pairs) {
    is_used[pair.launch] = true;
  }
  std::vector<HostPlace> places;
  std::vector<std::uint32_t> place_of(known.size(), kNone);
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (is_used[i]) {
      place_of[i] = static_cast<std::uint32_t>(places.size());
      places.push_back(known[i].place);
    }
  }
  const std::vector<std::uint32_t> scopes = add_scopes_at(places, capture, trace);
  const std::vector<bool> tells = telling_scopes(trace);
  std::unordered_map<std::uint64_t, std::uint32_t> nodes;  // by the node before and the launch
  std::int64_t num_named = 0;
  for (const Pair& pair : pairs) {
    const std::uint32_t scope = scopes[place_of[pair.launch]];
    if (scope == kNone || !tells[scope]) {
      continue;
    }
    std::uint32_t& node = trace.kernels.graph_node[pair.kernel];
    const std::uint64_t key = (static_cast<std::uint64_t>(node) << 32) | pair.launch;
    const auto [entry, is_new] =
        nodes.try_emplace(key, static_cast<std::uint32_t>(trace.graph_nodes.size()));
    if (is_new) {
      GraphNode named = trace.graph_nodes[node];
      named.scope = scope;
      named.route = NameRoute::kOrder;
      trace.graph_nodes.push_back(named);
    }
    node = entry->second;
    ++num_named;
  }
  return num_named;
}

}  // namespace

void name_nodes_by_nvtx(Trace& trace) {
  if (trace.node_creations.empty()) {
    return;
  }
  const Creations creations(trace);
  std::vector<std::pair<HostPlace, std::uint32_t>> nodes;
  for (std::uint32_t i = kUnnumberedNode + 1; i < trace.graph_nodes.size(); ++i) {
    if (const NodeCreation* captured = creations.captured(trace.graph_nodes[i])) {
      nodes.emplace_back(HostPlace{captured->thread, captured->time_ns}, i);
    }
  }
  std::ranges::sort(nodes);
  std::vector<HostPlace> places;
  places.reserve(nodes.size());
  for (const auto& [place, node] : nodes) {
    places.push_back(place);
  }
  const std::vector<std::uint32_t> scopes = add_scopes_at(places, trace, trace);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    GraphNode& node = trace.graph_nodes[nodes[i].second];
    node.scope = scopes[i];
    node.route = scopes[i] == kNone ? NameRoute::kUnnamed : NameRoute::kNvtx;
  }
}

void name_nodes_by_annotations(const GraphAnnotations& annotations, Trace& trace) {
  const std::vector<bool> is_named = named_nodes(trace);
  std::unordered_map<std::string_view, std::uint32_t> scopes;
  for (std::size_t i = 0; i < is_named.size(); ++i) {
    GraphNode& node = trace.graph_nodes[i];
    const auto found = annotations.find(node.id);
    if (is_named[i] || node.id == 0 || found == annotations.end()) {
      continue;
    }
    const auto [entry, is_new] =
        scopes.try_emplace(found->second, static_cast<std::uint32_t>(trace.host_scopes.size()));
    if (is_new) {
      // The path of a module stands for both: its layer, and an operator of all layers.
      HostScope scope;
      if (layer_of(found->second)) {
        scope.name = trace.strings.intern(found->second);
        scope.kind = ScopeKind::kModule;
        trace.host_scopes.push_back(scope);
        scope.parent = entry->second++;
      }
      scope.name = trace.strings.intern(over_layers(found->second));
      scope.kind = ScopeKind::kOperator;
      trace.host_scopes.push_back(scope);
    }
    node.scope = entry->second;
    node.route = NameRoute::kAnnotations;
  }
}

AlignedKernels name_nodes_by_order(const Trace& capture, Trace& trace) {
  AlignedKernels result;
  const std::vector<KnownLaunch> known = known_launches(capture);
  result.num_known = std::ssize(known);
  SharedNames names(capture.strings, trace.strings);
  auto known_kernels = list_of<std::uint32_t>(
      known, [&](const KnownLaunch& launch) { return names.number(launch.kernel); });
  KnownLaunches aligner(std::move(known_kernels), capture_starts(capture, known));
  const std::vector<bool> is_named = named_nodes(trace);
  std::vector<Pair> pairs;
  std::vector<std::uint32_t> replay;
  for (const std::vector<std::uint32_t>& rows : replays_of(trace)) {
    replay.clear();
    for (const std::uint32_t row : rows) {
      replay.push_back(static_cast<std::uint32_t>(trace.kernels.name[row]));
    }
    const std::vector<std::uint32_t> places = aligner.align(replay);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (places[i] != kNone && !is_named[trace.kernels.graph_node[rows[i]]]) {
        pairs.push_back({rows[i], places[i]});
      }
    }
  }
  result.is_exhausted = aligner.is_exhausted();
  result.num_aligned = take_names(pairs, known, capture, trace);
  return result;
}

bool has_unnamed_nodes(const Trace& trace) {
  const std::vector<bool> is_named = named_nodes(trace);
  return std::ranges::any_of(trace.kernels.graph_node, [&](std::uint32_t node) {
    return node != kNoNode && !is_named[node];
  });
}

GraphNames count_graph_names(const Trace& trace) {
  GraphNames names;
  for (const std::uint32_t node : trace.kernels.graph_node) {
    if (node == kNoNode) {
      continue;
    }
    ++names.num_kernels;
    const NameRoute route = trace.graph_nodes[node].route;
    names.by_nvtx += route == NameRoute::kNvtx ? 1 : 0;
    names.by_annotations += route == NameRoute::kAnnotations ? 1 : 0;
    names.by_order += route == NameRoute::kOrder ? 1 : 0;
  }
  return names;
}

}  // namespace gpuwhy
