// SPDX-License-Identifier: Apache-2.0
//
// Lanes of the host, reduced to a size that a page can show.
//
// Two passes over the tables: one counts durations, the other keeps what is long enough, so that
// the memory needed does not grow with the recording. Whatever encloses a kept slice is longer and
// kept too; hence nesting can be computed from the kept ones.
//
// What it gets wrong: ranges that overlap without nesting share the lanes of those that nest.
#include "analysis/timeline/timeline_host.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <tuple>

#include "analysis/names/operator_names.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kMostThreads = 8;
constexpr std::size_t kMostScopeLevels = 8;
constexpr std::size_t kMostCallLevels = 2;  // the runtime calls the driver
constexpr std::size_t kMostNames = 6'000;
constexpr std::size_t kLongestName = 160;

// Number of durations by size, eight classes per power of two.
class SizeCounts {
 public:
  void add(std::int64_t duration_ns) { ++counts_[class_of(duration_ns)]; }
  std::int64_t total() const { return total_of(0); }

  // The least duration of which there are at most `most`; 0 if all of them are.
  std::int64_t least_of(std::int64_t most) const {
    if (total() <= most) {
      return 0;
    }
    std::int64_t sum = 0;
    std::size_t first = counts_.size();
    while (first > 0 && sum + counts_[first - 1] <= most) {
      sum += counts_[--first];
    }
    return least_in(first);
  }

 private:
  static std::size_t class_of(std::int64_t duration_ns) {
    const auto size = static_cast<std::uint64_t>(std::max<std::int64_t>(duration_ns, 0));
    if (size < 8) {
      return static_cast<std::size_t>(size);
    }
    const auto shift = static_cast<unsigned>(std::bit_width(size) - 4);
    return std::size_t{8} * shift + static_cast<std::size_t>(size >> shift);
  }
  static std::int64_t least_in(std::size_t place) {
    if (place < 16) {
      return static_cast<std::int64_t>(place);
    }
    const std::size_t shift = place / 8 - 1;
    return static_cast<std::int64_t>((8 + place % 8) << std::min<std::size_t>(shift, 59));
  }
  std::int64_t total_of(std::size_t from) const {
    std::int64_t sum = 0;
    for (std::size_t i = from; i < counts_.size(); ++i) {
      sum += counts_[i];
    }
    return sum;
  }

  std::array<std::int64_t, 512> counts_{};
};

// What is kept, before it has a lane.
struct KeptSlice {
  std::uint32_t thread = 0;
  bool is_calls = false;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  StringId name{};
  std::uint32_t row = kNone;  // of api_calls
};

// Calls `use(is_calls, thread, start, end, name, row)` for everything of the host with a duration,
// cut at the edges of the capture.
template <typename Use>
void for_each_host_slice(const Trace& trace, std::int64_t start_ns, std::int64_t end_ns, Use use) {
  const auto one = [&](bool is_calls, std::uint32_t thread, std::int64_t from, std::int64_t to,
                       StringId name, std::size_t row) {
    from = std::max(from, start_ns);
    to = std::min(to, end_ns);
    if (thread < trace.threads.size() && from < to) {
      use(is_calls, thread, from, to, name, static_cast<std::uint32_t>(row));
    }
  };
  const ApiCalls& calls = trace.api_calls;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    one(true, calls.thread[i], calls.start_ns[i], calls.end_ns[i], calls.name[i], i);
  }
  const Ranges& ranges = trace.ranges;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.kind[i] != RangeKind::kMark) {
      one(false, ranges.thread[i], ranges.start_ns[i], ranges.end_ns[i], ranges.text[i], kNone);
    }
  }
  const Ops& ops = trace.ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    one(false, ops.thread[i], ops.start_ns[i], ops.end_ns[i], ops.name[i], kNone);
  }
}

// Threads in the order of their lanes: by process, in it those that launch most first.
std::vector<std::uint32_t> kept_threads(const Trace& trace, const Attribution& attribution,
                                        std::int64_t start_ns, std::int64_t end_ns,
                                        HostTimeline& host) {
  std::vector<std::int64_t> launches(trace.threads.size());
  std::vector<std::int64_t> slices(trace.threads.size());
  for (const Origins* origins : {&attribution.kernels, &attribution.copies, &attribution.graphs}) {
    for (const std::uint32_t call : origins->call) {
      if (call != kNone && trace.api_calls.thread[call] < launches.size()) {
        ++launches[trace.api_calls.thread[call]];
      }
    }
  }
  for_each_host_slice(trace, start_ns, end_ns,
                      [&](bool, std::uint32_t thread, std::int64_t, std::int64_t, StringId,
                          std::uint32_t) { ++slices[thread]; });
  std::vector<std::uint32_t> threads;
  for (std::uint32_t i = 0; i < slices.size(); ++i) {
    if (slices[i] > 0) {
      threads.push_back(i);
    }
  }
  const auto pid_of = [&](std::uint32_t thread) {
    return trace.processes[trace.threads[thread].process].pid;
  };
  const auto by_launches = [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(-launches[a], -slices[a], pid_of(a), trace.threads[a].tid, a) <
           std::tuple(-launches[b], -slices[b], pid_of(b), trace.threads[b].tid, b);
  };
  std::ranges::sort(threads, by_launches);
  host.num_threads = static_cast<std::int64_t>(threads.size());
  threads.resize(std::min(threads.size(), kMostThreads));
  host.num_kept_threads = static_cast<std::int64_t>(threads.size());
  std::ranges::stable_sort(threads, {}, [&](std::uint32_t one) {
    return std::tuple(pid_of(one), trace.threads[one].process);
  });
  return threads;
}

std::string host_name(std::string_view name) {
  if (name.size() <= kLongestName) {
    return std::string(name);
  }
  // Bytes of a character stay together.
  std::size_t end = kLongestName;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0U) == 0x80U) {
    --end;
  }
  return std::string(name.substr(0, end)) + "...";
}

// Those of the names that fill most time; the others are left out. Operators count by their names
// alone: PyTorch numbers each of their ranges.
std::vector<std::uint32_t> number_names(const Trace& trace, const std::vector<KeptSlice>& kept,
                                        std::vector<std::string>& names) {
  std::unordered_map<std::string_view, std::int64_t> filled_ns;
  const auto text_of = [&](const KeptSlice& slice) {
    const std::string_view text = trace.strings[slice.name];
    return slice.is_calls ? text : operator_name(text);
  };
  for (const KeptSlice& slice : kept) {
    filled_ns[text_of(slice)] += slice.end_ns - slice.start_ns;
  }
  std::vector<std::pair<std::int64_t, std::string_view>> order;
  order.reserve(filled_ns.size());
  for (const auto& [text, time_ns] : filled_ns) {
    order.emplace_back(-time_ns, text);
  }
  std::ranges::sort(order);
  order.resize(std::min(order.size(), kMostNames));
  std::unordered_map<std::string_view, std::uint32_t> number;
  for (const auto& [time_ns, text] : order) {
    number.emplace(text, static_cast<std::uint32_t>(names.size()));
    names.push_back(host_name(text));
  }
  std::vector<std::uint32_t> numbers;
  numbers.reserve(kept.size());
  for (const KeptSlice& slice : kept) {
    const auto found = number.find(text_of(slice));
    numbers.push_back(found == number.end() ? kNone : found->second);
  }
  return numbers;
}

}  // namespace

HostTimeline make_host_timeline(const Trace& trace, const Attribution& attribution,
                                const std::vector<KeptTime>& windows, std::int64_t start_ns,
                                std::int64_t end_ns, std::int64_t most_slices) {
  HostTimeline host;
  const std::vector<std::uint32_t> threads =
      kept_threads(trace, attribution, start_ns, end_ns, host);
  std::vector<std::uint32_t> place(trace.threads.size(), kNone);
  for (std::uint32_t i = 0; i < threads.size(); ++i) {
    place[threads[i]] = i;
  }
  const auto is_in_window = [&](std::int64_t from, std::int64_t to) {
    return std::ranges::any_of(windows, [&](const KeptTime& window) {
      return from < window.end_ns && to > window.start_ns;
    });
  };
  // [is_calls]
  std::array<SizeCounts, 2> everywhere;
  std::array<SizeCounts, 2> within;
  for_each_host_slice(trace, start_ns, end_ns,
                      [&](bool is_calls, std::uint32_t thread, std::int64_t from, std::int64_t to,
                          StringId, std::uint32_t) {
                        if (place[thread] == kNone) {
                          return;
                        }
                        everywhere[is_calls ? 1 : 0].add(to - from);
                        if (is_in_window(from, to)) {
                          within[is_calls ? 1 : 0].add(to - from);
                        }
                      });
  std::array<std::int64_t, 2> least_ns{};
  std::array<std::int64_t, 2> least_within_ns{};
  for (std::size_t i = 0; i < 2; ++i) {
    host.num_slices += everywhere[i].total();
    least_ns[i] = everywhere[i].least_of(most_slices);
    least_within_ns[i] = within[i].least_of(most_slices / 2);
  }
  host.least_scope_ns = least_ns[0];
  host.least_call_ns = least_ns[1];

  std::vector<KeptSlice> kept;
  for_each_host_slice(
      trace, start_ns, end_ns,
      [&](bool is_calls, std::uint32_t thread, std::int64_t from, std::int64_t to, StringId name,
          std::uint32_t row) {
        const std::size_t kind = is_calls ? 1 : 0;
        if (place[thread] != kNone &&
            (to - from >= least_ns[kind] ||
             (to - from >= least_within_ns[kind] && is_in_window(from, to)))) {
          kept.push_back({place[thread], is_calls, from - start_ns, to - start_ns, name, row});
        }
      });
  std::ranges::sort(kept, [&](const KeptSlice& a, const KeptSlice& b) {
    const auto key = [](const KeptSlice& one) {
      return std::tuple(one.thread, one.is_calls, one.start_ns, -one.end_ns);
    };
    return key(a) != key(b) ? key(a) < key(b)
                            : std::tuple(trace.strings[a.name], a.row) <
                                  std::tuple(trace.strings[b.name], b.row);
  });

  // The first lane that is free; what is nested deeper than the last lane is left out.
  std::vector<std::uint16_t> lane_of(kept.size(), UINT16_MAX);
  for (std::size_t begin = 0; begin < kept.size();) {
    const KeptSlice& first = kept[begin];
    std::vector<std::int64_t> free_at_ns;
    const std::size_t most = first.is_calls ? kMostCallLevels : kMostScopeLevels;
    const std::size_t base = host.lanes.size();
    std::size_t i = begin;
    for (; i < kept.size() && kept[i].thread == first.thread && kept[i].is_calls == first.is_calls;
         ++i) {
      std::size_t level = 0;
      while (level < free_at_ns.size() && free_at_ns[level] > kept[i].start_ns) {
        ++level;
      }
      if (level >= most) {
        continue;
      }
      if (level == free_at_ns.size()) {
        const ThreadInfo& thread = trace.threads[threads[first.thread]];
        free_at_ns.push_back(0);
        host.lanes.push_back({first.is_calls, trace.processes[thread.process].pid, thread.tid,
                              static_cast<std::uint32_t>(level)});
      }
      free_at_ns[level] = kept[i].end_ns;
      lane_of[i] = static_cast<std::uint16_t>(base + level);
    }
    begin = i;
  }
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < kept.size(); ++i) {
    if (lane_of[i] != UINT16_MAX) {
      order.push_back(i);
    }
  }
  std::ranges::stable_sort(
      order, [&](std::uint32_t a, std::uint32_t b) { return lane_of[a] < lane_of[b]; });
  const std::vector<std::uint32_t> numbers = number_names(trace, kept, host.names);
  for (const std::uint32_t i : order) {
    if (kept[i].row != kNone) {
      host.slice_of_call.emplace(kept[i].row, static_cast<std::uint32_t>(host.slices.size()));
    }
    host.slices.lane.push_back(lane_of[i]);
    host.slices.start_ns.push_back(kept[i].start_ns);
    host.slices.duration_ns.push_back(kept[i].end_ns - kept[i].start_ns);
    host.slices.name.push_back(numbers[i]);
  }
  return host;
}

}  // namespace gpuwhy
