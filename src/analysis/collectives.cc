// SPDX-License-Identifier: Apache-2.0
//
// Identification of collectives, so that the same one is recognized on every rank.
//
// A rank knows only its own launches, so each gets the name of its communicator and its position in
// that communicator's order. Ranks agree because a communicator runs its collectives in one order.
// Recordings do not name communicators: a stream stands for one, because frameworks give each
// process group its own stream, and streams are numbered by their first collective, which is the
// same on ranks that run the same program.
//
// What it gets wrong: groups of different ranks on the same stream number look like one group, and
// if the recording of only one rank begins late, its numbers are shifted. Hours of decoding contain
// millions, so only the first few thousand of each communicator are kept, which are the same on all
// ranks.
#include "analysis/collectives.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "analysis/attribution.h"
#include "analysis/kernels.h"
#include "analysis/stages.h"
#include "trace/device_label.h"

namespace llmprof {
namespace {

constexpr std::string_view kByStreams =
    "streams in the order of their first collective: every rank is taken to be in each";

// Numbers of streams, by device.
class StreamNumbers {
 public:
  std::string name_of(std::uint16_t device, std::uint32_t stream) {
    auto& streams = streams_[device];
    return fmt::format("stream {}", streams.try_emplace(stream, streams.size()).first->second);
  }

 private:
  std::map<std::uint16_t, std::map<std::uint32_t, std::size_t>> streams_;
};

std::vector<std::uint32_t> communication_rows(const Trace& trace, const Rules& rules) {
  const Kernels& kernels = trace.kernels;
  std::unordered_map<StringId, bool> is_communication;
  std::vector<std::uint32_t> rows;
  // The family of a kernel name is looked up once.
  for (std::uint32_t row = 0; row < kernels.size(); ++row) {
    const auto [entry, is_new] = is_communication.try_emplace(kernels.name[row], false);
    if (is_new) {
      entry->second = family_of(rules, trace.strings[kernels.name[row]]) == kCommunication;
    }
    if (entry->second) {
      rows.push_back(row);
    }
  }
  std::sort(rows.begin(), rows.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(kernels.device[a], kernels.start_ns[a], a) <
           std::tuple(kernels.device[b], kernels.start_ns[b], b);
  });
  return rows;
}

}  // namespace

Collectives find_collectives(const Profile& profile) {
  const Trace& trace = *profile.trace;
  const Stages& stages = profile.stages;
  const Kernels& kernels = trace.kernels;
  const std::vector<std::uint32_t> rows = communication_rows(trace, profile.rules);
  Collectives found;
  if (rows.empty()) {
    return found;
  }
  StreamNumbers streams;
  std::map<std::pair<std::uint16_t, std::string>, std::int64_t> sequences;
  for (const std::uint32_t row : rows) {
    const std::uint16_t device = kernels.device[row];
    std::string communicator = streams.name_of(device, kernels.stream[row]);
    // Counted over all launches, also those beyond the limit.
    const std::int64_t sequence = sequences[{device, communicator}]++;
    if (sequence >= kMostLaunches) {
      ++found.num_left_out;
      continue;
    }
    // Times count from the start of the capture.
    const std::uint32_t instance = profile.attribution.kernels.instance[row];
    found.launches.push_back({device_label(trace.devices[device]), std::move(communicator),
                              sequence,
                              instance == kNone ? std::string(kOutsideStages)
                                                : stages.names[stages.instances[instance].stage],
                              std::string(trace.strings[kernels.name[row]]),
                              kernels.start_ns[row] - profile.analysis.capture_start_ns,
                              kernels.end_ns[row] - kernels.start_ns[row]});
  }
  found.communicators_by = kByStreams;
  if (found.num_left_out > 0) {
    found.communicators_by +=
        fmt::format("; the first {} of each, {} left out", kMostLaunches, found.num_left_out);
  }
  return found;
}

}  // namespace llmprof
