// SPDX-License-Identifier: Apache-2.0
//
// History queries: list of runs, top kernels, and trends of stages over days.
//
// Quantiles come from a histogram with eight bins per octave and are rounded up to the bin: up to
// an eighth too long.
#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "fleet/history/history_rows.h"
#include "fleet/history/queries.h"
#include "fleet/history/query_common.h"
#include "results/duration_histogram.h"

namespace gpuwhy {
namespace {

// The duration that `fraction` of the calls do not exceed, rounded up to its bin.
std::int64_t quantile_ns(const WideKernelSums& sums, double fraction) {
  double calls = 0;
  for (const auto& [step, count] : sums.histogram) {
    calls += static_cast<double>(count);
  }
  double seen = 0;
  for (const auto& [step, count] : sums.histogram) {
    seen += static_cast<double>(count);
    if (seen >= calls * fraction) {
      return std::clamp(bin_upper_ns(step), sums.min_ns, sums.max_ns);
    }
  }
  return sums.max_ns;
}

// The rows with the most time, the largest first.
template <typename Row>
std::vector<Row> largest(std::vector<Row> rows, std::size_t most) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.total_ns.value() > b.total_ns.value();
  });
  rows.resize(std::min(rows.size(), most));
  return rows;
}

Json labels_json(const std::string& labels) {
  Json lines = Json::array();
  for (const std::string_view line : split(labels, '\n')) {
    if (!line.empty()) {
      lines.push_back(line);
    }
  }
  return lines;
}

Json day_json(std::int64_t day) {
  return day == 0 ? Json(nullptr) : Json(date_text(day));
}

}  // namespace

std::string date_text(std::int64_t day) {
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(day))};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

Json fleet_status(HistorySource& history, const FleetFilter& filter) {
  const std::vector<KnownRun> runs = chosen_runs(history, filter);
  Json answer = json_document("fleet_status", 1);
  answer["runs"] = Json::array();
  for (const KnownRun& run : runs) {
    answer["runs"].push_back(
        {{"run_id", run.run_id},
         {"attempt", run.attempt},
         {"ranks", run.ranks},
         {"num_ranks", run.num_ranks > 0 ? Json(run.num_ranks) : Json(nullptr)},
         {"is_complete", run.is_complete()},
         {"is_sealed", run.is_sealed},
         {"model", text_or_null(run.model)},
         {"gpu", text_or_null(run.gpu)},
         {"engine", text_or_null(run.engine)},
         {"engine_version", text_or_null(run.engine_version)},
         {"labels", labels_json(run.labels)},
         {"day", day_json(run.day)},
         {"kernel_rows", run.kernel_rows}});
  }
  answer["notes"] = notes_of(history, {});
  return answer;
}

Json fleet_top(HistorySource& history, const FleetFilter& filter) {
  const std::vector<KnownRun> runs = chosen_runs(history, filter);
  const std::uint64_t stage_key = key_of(filter.stage);
  SumTable<WideKernelSums> table;
  WideSum total_ns;
  for (WideKernelSums sums : history.kernel_sums(runs)) {
    if (filter.stage.empty() || sums.stage_key == stage_key) {
      // Stages are merged: the same kernel in two stages is one row.
      sums.stage_key = 0;
      total_ns.add(sums.total_ns);
      table.add(sums);
    }
  }
  const std::vector<WideKernelSums> kernels = largest(table.rows(), filter.top);
  ShownNames names;
  for (const WideKernelSums& kernel : kernels) {
    names.want(kernel.kernel_key);
    names.want(kernel.family_key);
  }
  names.look_up(history);
  Json answer = json_document("fleet_top", 1);
  answer["runs"] = runs.size();
  answer["total_ns"] = wide_json(total_ns);
  answer["kernels"] = Json::array();
  for (const WideKernelSums& kernel : kernels) {
    answer["kernels"].push_back({{"kernel", names[kernel.kernel_key]},
                                 {"family", names[kernel.family_key]},
                                 {"calls", wide_json(kernel.calls)},
                                 {"total_ns", wide_json(kernel.total_ns)},
                                 {"share_fraction", ratio_or_null(kernel.total_ns, total_ns)},
                                 {"mean_ns", mean_of(kernel.total_ns, kernel.calls)},
                                 {"p50_ns", quantile_ns(kernel, 0.5)},
                                 {"p99_ns", quantile_ns(kernel, 0.99)},
                                 {"max_ns", kernel.max_ns}});
  }
  answer["notes"] = notes_of(history, runs);
  return answer;
}

// Passes of different ranks are added: the mean per pass is over all of them.
Json fleet_layers(HistorySource& history, const FleetFilter& filter) {
  const std::vector<KnownRun> runs = chosen_runs(history, filter);
  std::vector<WidePartSums> parts = history.part_sums(runs);
  WideSum total_ns;
  for (const WidePartSums& part : parts) {
    total_ns.add(part.total_ns);
  }
  parts = largest(std::move(parts), filter.top);
  ShownNames names;
  for (const WidePartSums& part : parts) {
    names.want(part.pass_key);
    names.want(part.block_key);
    names.want(part.part_key);
  }
  names.look_up(history);
  Json answer = json_document("fleet_layers", 1);
  answer["runs"] = runs.size();
  answer["total_ns"] = wide_json(total_ns);
  answer["parts"] = Json::array();
  for (const WidePartSums& part : parts) {
    answer["parts"].push_back({{"pass", names[part.pass_key]},
                               {"block", names[part.block_key]},
                               {"part", names[part.part_key]},
                               {"ranks", wide_json(part.ranks)},
                               {"passes", wide_json(part.passes)},
                               {"launches", wide_json(part.launches)},
                               {"total_ns", wide_json(part.total_ns)},
                               {"share_fraction", ratio_or_null(part.total_ns, total_ns)},
                               {"pass_mean_ns", mean_of(part.total_ns, part.passes)}});
  }
  answer["notes"] = notes_of(history, runs);
  return answer;
}

Json fleet_trend(HistorySource& history, const FleetFilter& filter) {
  const std::vector<KnownRun> runs = chosen_runs(history, filter);
  std::map<std::uint64_t, const KnownRun*> by_key;
  for (const KnownRun& run : runs) {
    by_key[run.run_key] = &run;
  }
  const std::vector<WideStageSums> sums = history.stage_sums(runs);
  ShownNames names;
  for (const WideStageSums& sum : sums) {
    names.want(sum.stage_key);
  }
  names.look_up(history);
  // Sums over all runs of one day, model, GPU, version and stage.
  struct Line {
    WideStageSums sums;
    std::int64_t runs = 0;
  };
  std::map<std::tuple<std::int64_t, std::string, std::string, std::string, std::string>, Line>
      lines;
  for (const WideStageSums& sum : sums) {
    const auto known = by_key.find(sum.run_key);
    if (known == by_key.end()) {
      throw Error(ErrorKind::kInput, "the server answered with a run that was not asked for");
    }
    const KnownRun& run = *known->second;
    const std::string stage = names[sum.stage_key];
    if (!filter.stage.empty() && stage != filter.stage) {
      continue;
    }
    Line& line = lines[{run.day, run.model, run.gpu, run.engine_version, stage}];
    ++line.runs;
    line.sums.add(sum);
  }
  Json answer = json_document("fleet_trend", 1);
  answer["stages"] = Json::array();
  for (const auto& [key, line] : lines) {
    const auto& [day, model, gpu, version, stage] = key;
    const WideStageSums& sum = line.sums;
    const double seconds = sum.total_ns.value() / 1e9;
    answer["stages"].push_back(
        {{"day", day_json(day)},
         {"model", text_or_null(model)},
         {"gpu", text_or_null(gpu)},
         {"engine_version", text_or_null(version)},
         {"stage", stage},
         {"runs", line.runs},
         {"instances", wide_json(sum.instances)},
         {"mean_ns", mean_of(sum.total_ns, sum.instances)},
         {"tokens_per_s", seconds > 0 && sum.tokens.value() > 0 ? Json(sum.tokens.value() / seconds)
                                                                : Json(nullptr)},
         {"mfu_fraction", ratio_or_null(sum.model_flops, sum.peak_flops)},
         {"mbu_fraction", ratio_or_null(sum.model_bytes, sum.peak_bytes)}});
  }
  answer["notes"] = notes_of(history, runs);
  return answer;
}

}  // namespace gpuwhy
