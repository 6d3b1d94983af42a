// SPDX-License-Identifier: Apache-2.0
//
// Compact encoding of a recording for report.html.
//
// Columns of integers are split into byte planes: first the low bytes of all rows, then the next
// ones. Starts are stored as differences. High planes are then nearly all zeros, and gzip leaves
// six bytes per slice where JSON would need two hundred.
//
// The budget is met by dropping, in this order: the host, slices outside the windows, all slices,
// kernels from the end of the table. The page says which.
#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_map>

#include "analysis/timeline/timeline.h"
#include "base/gzip_base64.h"
#include "base/json.h"
#include "report/document/page.h"
#include "report/sections/speed.h"
#include "report/words/glossary.h"
#include "results/results.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kMostKernels = 4'000;
constexpr std::size_t kMostSteps = 50'000;

// gzip level 3 takes a third of the time of level 6 and a tenth more space.
constexpr int kPlanesLevel = 3;

// Times up to 2^48 ns, three days; longer ones are capped.
constexpr int kTimeBytes = 6;

// Arrays of integers as byte planes, and their directory.
class Planes {
 public:
  template <typename Value>
  void add(const char* name, const std::vector<Value>& values, int num_bytes) {
    arrays_.push_back({{"name", name}, {"count", values.size()}, {"bytes", num_bytes}});
    const std::uint64_t most = num_bytes == 8 ? UINT64_MAX : (1ULL << (8 * num_bytes)) - 1;
    const std::size_t begin = bytes_.size();
    bytes_.resize(begin + values.size() * static_cast<std::size_t>(num_bytes));
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint64_t kept = std::min(static_cast<std::uint64_t>(values[i]), most);
      for (std::size_t at = begin + i; kept != 0; at += values.size()) {
        bytes_[at] = static_cast<char>(kept & 0xffU);
        kept >>= 8U;
      }
    }
  }

  const std::string& bytes() const { return bytes_; }
  const Json& arrays() const { return arrays_; }

 private:
  std::string bytes_;
  Json arrays_ = Json::array();
};

const char* row_kind_name(TimelineRowKind kind) {
  switch (kind) {
    case TimelineRowKind::kStream:
      return "stream";
    case TimelineRowKind::kCopies:
      return "copies";
    case TimelineRowKind::kIdle:
      return "idle";
  }
  return "";
}

enum class Detail { kAll, kWindows, kNone };

// Differences of either sign as numbers without one: 0, -1, 1, -2, ...
std::uint64_t folded(std::int64_t difference) {
  return difference < 0 ? 2 * static_cast<std::uint64_t>(-(difference + 1)) + 1
                        : 2 * static_cast<std::uint64_t>(difference);
}

// What the host did, lane by lane, starts as differences. Returns its directory.
Json add_host(const HostTimeline& host, Planes& planes) {
  std::vector<std::int64_t> starts;
  std::vector<std::uint32_t> names;
  Json lanes = Json::array();
  std::size_t at = 0;
  for (std::size_t i = 0; i < host.lanes.size(); ++i) {
    const std::size_t from = at;
    std::int64_t previous = 0;
    for (; at < host.slices.size() && host.slices.lane[at] == i; ++at) {
      starts.push_back(host.slices.start_ns[at] - previous);
      previous = host.slices.start_ns[at];
      names.push_back(host.slices.name[at] == kNone ? 0 : host.slices.name[at] + 1);
    }
    const HostLane& lane = host.lanes[i];
    lanes.push_back({{"kind", lane.is_calls ? "calls" : "scopes"},
                     {"pid", lane.pid},
                     {"tid", lane.tid},
                     {"level", lane.level},
                     {"from", from},
                     {"to", at}});
  }
  planes.add("host_start", starts, kTimeBytes);
  planes.add("host_duration", host.slices.duration_ns, kTimeBytes);
  planes.add("host_name", names, 2);
  return {{"lanes", lanes},
          {"names", host.names},
          {"threads", host.num_threads},
          {"kept_threads", host.num_kept_threads},
          {"slices", host.num_slices},
          {"least_call_ns", host.least_call_ns},
          {"least_scope_ns", host.least_scope_ns}};
}

// Slices row by row, starts as differences. Returns the start of each row.
std::vector<std::size_t> add_slices(const Timeline& timeline, Detail detail, bool has_host,
                                    Planes& planes) {
  const TimelineSlices& slices = timeline.slices;
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> durations;
  std::vector<std::uint32_t> whats;
  std::vector<std::uint32_t> stages;
  std::vector<std::uint64_t> calls;  // differences: a stream runs in the order of launches
  std::vector<std::size_t> begins(timeline.rows.size() + 1);
  const auto is_kept = [&](std::size_t i) {
    return detail == Detail::kAll ||
           (detail == Detail::kWindows &&
            std::any_of(timeline.windows.begin(), timeline.windows.end(),
                        [&](const CloseUp& window) {
                          return slices.start_ns[i] < window.end_ns &&
                                 slices.start_ns[i] + slices.duration_ns[i] > window.start_ns;
                        }));
  };
  std::size_t at = 0;
  for (std::size_t row = 0; row < timeline.rows.size(); ++row) {
    begins[row] = starts.size();
    std::int64_t previous = 0;
    std::int64_t previous_call = 0;
    for (; at < slices.size() && slices.row[at] == row; ++at) {
      if (is_kept(at)) {
        starts.push_back(slices.start_ns[at] - previous);
        previous = slices.start_ns[at];
        durations.push_back(slices.duration_ns[at]);
        whats.push_back(slices.what[at] == kNone ? 0 : slices.what[at] + 1);
        stages.push_back(slices.stage[at] == kNone ? 0 : slices.stage[at] + 1);
        const std::int64_t call =
            slices.call[at] == kNone ? 0 : static_cast<std::int64_t>(slices.call[at]) + 1;
        calls.push_back(folded(call - previous_call));
        previous_call = call;
      }
    }
  }
  begins.back() = starts.size();
  planes.add("slice_start", starts, kTimeBytes);
  planes.add("slice_duration", durations, kTimeBytes);
  planes.add("slice_what", whats, 3);
  planes.add("slice_stage", stages, 2);
  if (has_host) {
    planes.add("slice_call", calls, 4);
  }
  return begins;
}

Json add_levels(const Timeline& timeline, Planes& planes) {
  Json levels = Json::array();
  for (const TimelineLevel& level : timeline.levels) {
    Json series = Json::array();
    std::vector<std::uint32_t> fills;
    for (const TimelineSeries& one : level.series) {
      series.push_back({one.row, one.category});
      // Fills as fractions of 16 bits: finer than a pixel, and small after compression.
      for (const std::int64_t fill_ns : one.fill_ns) {
        const double filled = static_cast<double>(fill_ns) / static_cast<double>(level.column_ns);
        fills.push_back(
            static_cast<std::uint32_t>(std::lround(std::clamp(filled, 0.0, 1.0) * 65535)));
      }
    }
    planes.add("level", fills, 2);
    levels.push_back(
        {{"column_ns", level.column_ns}, {"columns", level.num_columns}, {"series", series}});
  }
  return levels;
}

// Returns how many are omitted.
std::size_t add_instances(const Timeline& timeline, Planes& planes) {
  const std::size_t count = std::min(timeline.instances.size(), kMostSteps);
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> durations;
  std::vector<std::uint32_t> stages;
  std::vector<std::uint32_t> flags;
  std::vector<std::int64_t> tokens;
  std::vector<std::uint32_t> numbers;
  std::int64_t previous = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const TimelineStage& one = timeline.instances[i];
    const std::int64_t start_ns = std::max<std::int64_t>(one.start_ns, 0);
    starts.push_back(start_ns - previous);
    previous = start_ns;
    durations.push_back(std::max<std::int64_t>(one.duration_ns, 0));
    stages.push_back(one.stage);
    flags.push_back((one.is_open ? 1U : 0U) | (one.is_step ? 2U : 0U));
    tokens.push_back(std::max<std::int64_t>(one.tokens.value_or(-1) + 1, 0));
    numbers.push_back(one.is_step ? one.number : 0);
  }
  planes.add("instance_start", starts, kTimeBytes);
  planes.add("instance_duration", durations, kTimeBytes);
  planes.add("instance_stage", stages, 2);
  planes.add("instance_flags", flags, 1);
  planes.add("instance_tokens", tokens, 4);
  planes.add("instance_number", numbers, 4);
  return timeline.instances.size() - count;
}

// Layers against passes. Durations are in units of a five-hundredth of the median: finer than a
// colour, and small after compression.
Json add_layer_maps(const Timeline& timeline, Planes& planes) {
  Json maps = Json::array();
  for (const LayerMap& map : timeline.layer_maps) {
    std::vector<std::int64_t> numbers;
    std::vector<std::int64_t> starts;
    std::vector<std::int64_t> lengths;
    std::vector<std::uint8_t> blocks;
    Json kinds = Json::array();
    std::int64_t most_ns = 0;
    for (const LayerBlock& block : map.blocks) {
      kinds.push_back({{"block", block.name}, {"median_ns", block.median_ns}});
      most_ns = std::max(most_ns, block.median_ns);
    }
    const std::int64_t unit_ns = std::max<std::int64_t>(1, most_ns / 500);
    std::int64_t last_start = 0;
    std::int64_t last_number = 0;
    for (const LayerColumn& column : map.columns) {
      numbers.push_back(column.number - last_number);
      starts.push_back(column.start_ns - last_start);
      last_number = column.number;
      last_start = column.start_ns;
      for (const std::int64_t length_ns : column.layers_ns) {
        lengths.push_back((length_ns + unit_ns / 2) / unit_ns);
      }
      blocks.insert(blocks.end(), column.blocks.begin(), column.blocks.end());
    }
    planes.add("map_number", numbers, 4);
    planes.add("map_start", starts, kTimeBytes);
    planes.add("map_length", lengths, 3);
    planes.add("map_block", blocks, 1);
    maps.push_back({{"pass", map.pass},
                    {"device", map.device},
                    {"layers", map.num_layers},
                    {"passes", map.num_passes},
                    {"unit_ns", unit_ns},
                    {"blocks", kinds}});
  }
  return maps;
}

// For each kernel name the first row of the table that has it, or null.
Json kernel_rows(const Timeline& timeline, std::span<const KernelRow> kernels) {
  std::unordered_map<std::string_view, std::size_t> first;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    first.try_emplace(kernels[i].kernel_name, i);
  }
  Json rows = Json::array();
  for (const std::string& name : timeline.names) {
    const auto found = first.find(name);
    rows.push_back(found == first.end() ? Json(nullptr) : Json(found->second));
  }
  return rows;
}

Json timeline_json(const Timeline& timeline, Detail detail, bool has_host,
                   std::span<const KernelRow> kernels, Planes& planes) {
  const std::vector<std::size_t> begins = add_slices(timeline, detail, has_host, planes);
  Json rows = Json::array();
  for (std::size_t i = 0; i < timeline.rows.size(); ++i) {
    rows.push_back({{"kind", row_kind_name(timeline.rows[i].kind)},
                    {"device", timeline.rows[i].device},
                    {"label", timeline.rows[i].label},
                    {"from", begins[i]},
                    {"to", begins[i + 1]}});
  }
  Json stages = Json::array();
  for (std::size_t i = 0; i < timeline.stages.size(); ++i) {
    stages.push_back({{"stage", timeline.stages[i]}, {"nested", bool{timeline.is_nested[i]}}});
  }
  Json windows = Json::array();
  for (const CloseUp& window : timeline.windows) {
    windows.push_back(
        {{"label", window.label}, {"start", window.start_ns}, {"end", window.end_ns}});
  }
  const std::vector<std::string> causes = gap_cause_names();
  Json gaps = Json::array();
  for (const TimelineGap& gap : timeline.longest_gaps) {
    gaps.push_back({{"row", gap.row},
                    {"start", gap.start_ns},
                    {"duration", gap.duration_ns},
                    {"cause", causes[gap.cause]}});
  }
  Json json = {{"duration_ns", timeline.duration_ns},
               {"rows", rows},
               {"stages", stages},
               {"windows", windows},
               {"gaps", gaps},
               {"detail", detail == Detail::kAll       ? "all"
                          : detail == Detail::kWindows ? "windows"
                                                       : "none"},
               {"num_work", timeline.num_work},
               {"families", timeline.families},
               {"kernel_rows", kernel_rows(timeline, kernels)},
               {"causes", causes}};
  json["host"] = has_host ? add_host(timeline.host, planes) : Json(nullptr);
  json["levels"] = add_levels(timeline, planes);
  json["layer_maps"] = add_layer_maps(timeline, planes);
  json["instances_left_out"] = add_instances(timeline, planes);
  json["arrays"] = planes.arrays();
  return json;
}

// Ids and titles of all rules, so that the page can say which found nothing. The one that speaks
// where no other does is not among them.
Json rules_json() {
  Json rules = Json::array();
  for (const FindingInfo& info : std::span(kFindingInfo).first(kNumFindings)) {
    if (info.id != FindingId::kLargestPart) {
      rules.push_back({{"id", info.word}, {"title", info.problem}});
    }
  }
  return rules;
}

// The time of a step and its rate, as the summary has them.
Json step_json(const Results& metrics) {
  const auto time = headline_time(metrics);
  return !time ? Json(nullptr)
               : Json{{"label", time->label},
                      {"time_ns", time->step.time_ns},
                      {"key", time->step.key},
                      {"note", time->note},
                      {"tokens_per_s", number_or_null(time->tokens_per_s)},
                      {"rate_note", time->rate_note}};
}

}  // namespace

PageData page_data(const Results& metrics, const Json& json, const Timeline& timeline,
                   std::size_t budget_bytes) {
  Json document = {{"metrics", json},
                   {"timeline", nullptr},
                   {"kernels_left_out", 0},
                   {"rules", rules_json()},
                   {"step", step_json(metrics)}};
  const std::size_t num_kernels = metrics.kernels.size();
  std::size_t kept = std::min(num_kernels, kMostKernels);
  PageData data;
  Detail detail = timeline.is_whole ? Detail::kAll : Detail::kWindows;
  bool has_host = timeline.host.slices.size() > 0;
  // Reduces the detail until the data fit.
  for (;;) {
    if (kept < num_kernels) {
      Json& kernels = document["metrics"]["kernels"];
      kernels.erase(kernels.begin() + static_cast<std::ptrdiff_t>(kept), kernels.end());
      document["kernels_left_out"] = num_kernels - kept;
    }
    Planes planes;
    if (timeline.duration_ns > 0) {
      document["timeline"] =
          timeline_json(timeline, detail, has_host, std::span(metrics.kernels).first(kept), planes);
      data.planes = base64(gzipped(planes.bytes(), kPlanesLevel));
    }
    data.json = base64(gzipped(to_json_line(document)));
    const bool fits = data.json.size() + data.planes.size() <= budget_bytes;
    if (fits || (detail == Detail::kNone && kept == 0 && !has_host)) {
      return data;
    }
    if (has_host) {
      has_host = false;
      continue;
    }
    // Whichever of the two takes more than half.
    if (data.planes.size() * 2 > budget_bytes && detail != Detail::kNone) {
      detail = detail == Detail::kAll ? Detail::kWindows : Detail::kNone;
    } else if (kept > 0) {
      kept /= 2;
    } else {
      detail = Detail::kNone;
    }
  }
}

}  // namespace gpuwhy
