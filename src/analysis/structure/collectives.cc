// SPDX-License-Identifier: Apache-2.0
//
// Identification of collectives, so that the same one is recognized on every rank.
//
// A rank knows only its own launches, so each gets the name of its communicator and its position in
// that communicator's order. Ranks agree because a communicator runs its collectives in one order.
// PyTorch's profiler names the process group of each kernel, and its members: together they are the
// communicator. Where a recording does not, a stream stands for one, because frameworks give each
// process group its own stream, and streams are numbered by their first collective, which is the
// same on ranks that run the same program.
//
// Sends and receives have no position: the n-th of one rank is not the n-th of another. They are
// counted by group, but not matched.
//
// What it gets wrong: of streams, groups of different ranks on the same stream number look like one
// group, and if the recording of only one rank begins late, its numbers are shifted. Hours of
// decoding contain millions, so only the first few thousand of each communicator are kept, which
// are the same on all ranks.
#include "analysis/structure/collectives.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/stages/capture_summary.h"
#include "base/list_of.h"
#include "base/text.h"
#include "trace/device_label.h"

namespace gpuwhy {
namespace {

constexpr std::string_view kByStreams =
    "streams in the order of their first collective: every rank is taken to be in each";
constexpr std::string_view kByGroups = "process groups as the recording names them";

// The launches of one communicator on one GPU so far.
struct Communicator {
  std::string name;
  std::int64_t num_launches = 0;
};

// Communicators by GPU and name. A stream is one where the recording names no group: numbered by
// GPU, in the order of the first collective.
class Communicators {
 public:
  explicit Communicators(const Trace& trace)
      : of_stream_(trace.streams.size()), num_streams_(trace.devices.size()) {}

  Communicator& named(std::uint16_t device, const std::string& name) {
    Communicator& found = by_name_[{device, name}];
    found.name = name;
    return found;
  }

  Communicator& of_stream(std::uint16_t device, std::uint32_t stream) {
    if (of_stream_[stream] == nullptr) {
      of_stream_[stream] = &named(device, fmt::format("stream {}", num_streams_[device]++));
    }
    return *of_stream_[stream];
  }

 private:
  std::map<std::pair<std::uint16_t, std::string>, Communicator> by_name_;
  std::vector<Communicator*> of_stream_;  // by Trace::streams, into by_name_
  std::vector<std::size_t> num_streams_;  // by device
};

std::vector<std::uint32_t> communication_rows(const Trace& trace, const Rules& rules) {
  const Kernels& kernels = trace.kernels;
  const std::vector<bool> is_communication = communication_kernels(trace, {trace, rules});
  std::vector<std::uint32_t> rows;
  for (std::uint32_t row = 0; row < kernels.size(); ++row) {
    if (is_communication[static_cast<std::size_t>(kernels.name[row])]) {
      rows.push_back(row);
    }
  }
  const auto order = [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(kernels.device[a], kernels.start_ns[a], a) <
           std::tuple(kernels.device[b], kernels.start_ns[b], b);
  };
  if (!std::ranges::is_sorted(rows, order)) {
    std::ranges::sort(rows, order);
  }
  return rows;
}

// What the recording tells of a kernel's collective; nullptr: nothing.
const CollectiveKernel* recorded_collective(const Trace& trace, std::uint32_t row) {
  const CollectiveKernel wanted{trace.kernels.process[row], trace.kernels.correlation[row], 0, {}};
  const auto found =
      std::lower_bound(trace.collective_kernels.begin(), trace.collective_kernels.end(), wanted);
  return found != trace.collective_kernels.end() && found->process == wanted.process &&
                 found->correlation == wanted.correlation
             ? &*found
             : nullptr;
}

// One name per operation: PyTorch writes "allreduce", "_allgather_base", "all_to_allv".
std::string operation_of(std::string_view recorded) {
  std::string plain;
  for (const char c : recorded) {
    if (c != '_') {
      plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"alltoall", "all_to_all"},
      {"allreduce", "all_reduce"},
      {"allgather", "all_gather"},
      {"reducescatter", "reduce_scatter"},
      {"broadcast", "broadcast"},
      {"barrier", "barrier"},
      {"send", "send"},
      {"recv", "recv"}};
  for (const auto& [word, name] : kNames) {
    if (plain.find(word) != std::string::npos) {
      return name;
    }
  }
  return printable(recorded.substr(0, 64));
}

bool is_point_to_point(std::string_view operation) {
  return operation == "send" || operation == "recv";
}

// Empty if the recording tells neither the name nor the members.
std::string communicator_of(const ProcessGroup& group) {
  std::vector<std::string> words;
  if (!group.name.empty()) {
    words.push_back("group " + printable(group.name));
  }
  if (!group.ranks.empty()) {
    words.push_back("ranks " + ranks_text(group.ranks));
  } else if (!words.empty() && group.size > 0) {
    words.push_back(fmt::format("{} ranks", group.size));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

// A layer of a pass, numbered through all layers of its GPU.
struct LayerPlace {
  bool is_backward = false;
  std::int64_t layer = 0;
};

// Layers of whole passes, by GPU, and the layer of each communication kernel in one.
struct CommunicationLayers {
  std::unordered_map<std::uint32_t, LayerPlace> places;  // by kernel row
  std::map<std::uint16_t, std::pair<std::int64_t, std::int64_t>>
      num_by_device;  // forward, backward
};

CommunicationLayers layers_of(const Structure& structure, const std::vector<std::uint32_t>& rows) {
  const std::set<std::uint32_t> wanted(rows.begin(), rows.end());
  CommunicationLayers found;
  for (const KernelStream& stream : structure.streams) {
    auto& [num_forward, num_backward] = found.num_by_device[stream.device];
    for (const ModelPass& pass : stream.passes) {
      if (!pass.is_whole) {
        continue;
      }
      const bool is_backward = structure.kinds[pass.kind].is_backward;
      std::int64_t& num = is_backward ? num_backward : num_forward;
      for (std::uint32_t i = pass.layers.front(); i < pass.layers.back(); ++i) {
        if (wanted.contains(stream.kernels[i])) {
          found.places[stream.kernels[i]] = {is_backward, num + pass.layer_at(i)};
        }
      }
      num += pass.num_layers();
    }
  }
  return found;
}

// Sums of the operations of each group.
class GroupUses {
 public:
  explicit GroupUses(CommunicationLayers layers) : layers_(std::move(layers)) {}

  void add(std::uint16_t device, const std::string& label, const std::string& communicator,
           const std::string& operation, const ProcessGroup& group, std::uint32_t row,
           std::int64_t duration_ns) {
    Use& use = uses_[{device, communicator, operation}];
    if (use.sum.calls++ == 0) {
      use.sum.device = label;
      use.sum.communicator = communicator;
      use.sum.operation = operation;
      use.sum.description = printable(group.description);
      use.sum.ranks = ranks_text(group.ranks);
      use.sum.size =
          group.ranks.empty() ? group.size : static_cast<std::int64_t>(group.ranks.size());
      std::tie(use.sum.forward_layers, use.sum.backward_layers) = layers_.num_by_device[device];
    }
    use.sum.total_ns += duration_ns;
    const auto place = layers_.places.find(row);
    if (place == layers_.places.end()) {
      return;
    }
    if (place->second.is_backward) {
      ++use.sum.backward_calls;
    } else {
      ++use.sum.forward_calls;
      use.forward.insert(place->second.layer);
    }
  }

  std::vector<GroupRow> finish() {
    std::vector<GroupRow> groups;
    for (auto& [key, use] : uses_) {
      use.sum.forward_layers_with = static_cast<std::int64_t>(use.forward.size());
      groups.push_back(std::move(use.sum));
    }
    return groups;
  }

 private:
  struct Use {
    GroupRow sum;
    std::set<std::int64_t> forward;  // layers with a call
  };
  CommunicationLayers layers_;
  std::map<std::tuple<std::uint16_t, std::string, std::string>, Use> uses_;
};

}  // namespace

Collectives find_collectives(const Trace& trace, const Rules& rules, const Stages& stages,
                             const Attribution& attribution, const Structure& structure,
                             std::int64_t start_ns) {
  const Kernels& kernels = trace.kernels;
  const std::vector<std::uint32_t> rows = communication_rows(trace, rules);
  Collectives found;
  if (rows.empty()) {
    return found;
  }
  Communicators communicators(trace);
  std::vector<std::string> names;  // of groups
  for (const ProcessGroup& group : trace.process_groups) {
    names.push_back(communicator_of(group));
  }
  const auto labels = list_of<std::string>(trace.devices, device_label);
  GroupUses uses(trace.collective_kernels.empty() ? CommunicationLayers{}
                                                  : layers_of(structure, rows));
  bool has_groups = false;
  bool has_streams = false;
  for (const std::uint32_t row : rows) {
    const std::uint16_t device = kernels.device[row];
    const std::int64_t duration_ns = kernels.end_ns[row] - kernels.start_ns[row];
    const CollectiveKernel* recorded = recorded_collective(trace, row);
    const bool is_named = recorded != nullptr && !names[recorded->group].empty();
    if (is_named) {
      const std::string operation = operation_of(trace.strings[recorded->collective]);
      uses.add(device, labels[device], names[recorded->group], operation,
               trace.process_groups[recorded->group], row, duration_ns);
      if (is_point_to_point(operation)) {
        continue;
      }
    }
    (is_named ? has_groups : has_streams) = true;
    Communicator& communicator = is_named ? communicators.named(device, names[recorded->group])
                                          : communicators.of_stream(device, kernels.stream[row]);
    // Counted over all launches, also those beyond the limit.
    const std::int64_t sequence = communicator.num_launches++;
    if (sequence >= kMostLaunches) {
      ++found.num_left_out;
      continue;
    }
    const std::uint32_t instance = attribution.kernels.instance[row];
    found.launches.push_back(
        {communicator.name, sequence,
         stages.name_of(instance == kNone ? kNone : stages.instances[instance].stage).text(),
         std::string(trace.strings[kernels.name[row]]), kernels.start_ns[row] - start_ns,
         duration_ns, labels[device]});
  }
  found.groups = uses.finish();
  found.communicators_by =
      fmt::format("{}{}{}", has_groups ? kByGroups : "",
                  has_groups && has_streams ? "; others: " : "", has_streams ? kByStreams : "");
  if (found.num_left_out > 0) {
    found.communicators_by +=
        fmt::format("; the first {} of each, {} left out", kMostLaunches, found.num_left_out);
  }
  return found;
}

}  // namespace gpuwhy
