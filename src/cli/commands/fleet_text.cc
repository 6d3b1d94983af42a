// SPDX-License-Identifier: Apache-2.0
//
// Answers about a fleet as tables. Names come last in a row: they are long, and the last column is
// what a narrow terminal cuts.
#include "cli/commands/fleet_text.h"

#include <cmath>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/console.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kLongestName = 200;

std::string name_text(const Json& value) {
  return value.is_string() ? shortened(printable(value.get<std::string>()), kLongestName) : "n/a";
}

std::string count_text(const Json& value) {
  if (value.is_null()) {
    return "n/a";
  }
  return value.is_number_float() ? fmt::format("{:.4g}", value.get<double>())
                                 : fmt::format("{}", value.get<std::int64_t>());
}

// Hours of a fleet are more nanoseconds than an integer has.
std::string time_text(const Json& value) {
  if (value.is_null()) {
    return "n/a";
  }
  const auto duration_ns = value.get<double>();
  return duration_ns < 9e18 ? format_duration_ns(std::llround(duration_ns))
                            : fmt::format("{:.3g} h", duration_ns / 3.6e12);
}

std::string fraction_text(const Json& value) {
  return value.is_null() ? "n/a" : format_fraction(value.get<double>());
}

std::string status_text(const Json& answer, std::size_t width) {
  Table table{{"day", "ranks", "sealed", "version", "model", "gpu", "run"}, {}};
  for (const Json& run : answer["runs"]) {
    const std::string expected = run["num_ranks"].is_null() ? "?" : count_text(run["num_ranks"]);
    table.rows.push_back(
        {name_text(run["day"]), fmt::format("{} of {}", count_text(run["ranks"]), expected),
         run["is_sealed"].get<bool>() ? "yes" : "no", name_text(run["engine_version"]),
         name_text(run["model"]), name_text(run["gpu"]), name_text(run["run_id"])});
  }
  return table.rows.empty() ? "no runs\n" : table_text(table, width);
}

std::string top_text(const Json& answer, std::size_t width) {
  Table table{{"time", "share", "calls", "mean", "p50", "p99", "family", "kernel"}, {}};
  for (const Json& kernel : answer["kernels"]) {
    table.rows.push_back({time_text(kernel["total_ns"]), fraction_text(kernel["share_fraction"]),
                          count_text(kernel["calls"]), time_text(kernel["mean_ns"]),
                          time_text(kernel["p50_ns"]), time_text(kernel["p99_ns"]),
                          name_text(kernel["family"]), name_text(kernel["kernel"])});
  }
  return fmt::format("{} of kernels in {} runs\n", time_text(answer["total_ns"]),
                     count_text(answer["runs"])) +
         (table.rows.empty() ? "" : table_text(table, width));
}

std::string layers_text(const Json& answer, std::size_t width) {
  Table table{{"time", "share", "per pass", "launches", "ranks", "pass", "block", "part"}, {}};
  for (const Json& part : answer["parts"]) {
    table.rows.push_back({time_text(part["total_ns"]), fraction_text(part["share_fraction"]),
                          time_text(part["pass_mean_ns"]), count_text(part["launches"]),
                          count_text(part["ranks"]), name_text(part["pass"]),
                          name_text(part["block"]), name_text(part["part"])});
  }
  return fmt::format("{} of kernels in layers of {} runs\n", time_text(answer["total_ns"]),
                     count_text(answer["runs"])) +
         (table.rows.empty() ? "no layers were recognized\n" : table_text(table, width));
}

std::string stragglers_text(const Json& answer, std::size_t width) {
  Table table{{"rank", "slower", "compute", "median", "stage", "node"}, {}};
  for (const Json& one : answer["stragglers"]) {
    table.rows.push_back({count_text(one["rank"]), "+" + fraction_text(one["slower_fraction"]),
                          time_text(one["compute_ns"]), time_text(one["median_ns"]),
                          name_text(one["stage"]), name_text(one["node"])});
  }
  const std::string head =
      fmt::format("run {}, {} ranks\n", name_text(answer["run_id"]), count_text(answer["ranks"]));
  if (answer["num_measured"].get<std::int64_t>() == 0) {
    return head + "no rank has kernels to compare\n";
  }
  return head +
         (table.rows.empty() ? "no rank is slow against the median\n" : table_text(table, width));
}

std::string regressions_text(const Json& answer, std::size_t width) {
  Table table{{"slower", "before", "after", "added", "stage", "kernel"}, {}};
  for (const Json& one : answer["kernels"]) {
    table.rows.push_back({"+" + fraction_text(one["slower_fraction"]),
                          time_text(one["base_mean_ns"]), time_text(one["candidate_mean_ns"]),
                          time_text(one["added_ns"]), name_text(one["stage"]),
                          name_text(one["kernel"])});
  }
  const std::string head =
      fmt::format("{} ({} runs) to {} ({} runs): {} kernels compared, {} new, {} gone\n",
                  name_text(answer["base"]["label"]), count_text(answer["base"]["runs"]),
                  name_text(answer["candidate"]["label"]), count_text(answer["candidate"]["runs"]),
                  count_text(answer["num_compared"]), count_text(answer["num_new"]),
                  count_text(answer["num_gone"]));
  return head + (table.rows.empty() ? "no kernel is slower a call\n" : table_text(table, width));
}

std::string trend_text(const Json& answer, std::size_t width) {
  Table table{{"day", "version", "runs", "MFU", "MBU", "mean", "tokens/s", "stage", "model", "gpu"},
              {}};
  for (const Json& one : answer["stages"]) {
    const std::string tokens = one["tokens_per_s"].is_null()
                                   ? "n/a"
                                   : fmt::format("{:.4g}", one["tokens_per_s"].get<double>());
    table.rows.push_back({name_text(one["day"]), name_text(one["engine_version"]),
                          count_text(one["runs"]), fraction_text(one["mfu_fraction"]),
                          fraction_text(one["mbu_fraction"]), time_text(one["mean_ns"]), tokens,
                          name_text(one["stage"]), name_text(one["model"]), name_text(one["gpu"])});
  }
  return table.rows.empty() ? "no runs\n" : table_text(table, width);
}

}  // namespace

std::string fleet_text(const Json& answer, std::size_t width) {
  const std::string schema = answer["schema"].get<std::string>();
  if (schema == "gpuwhy.fleet_status") {
    return status_text(answer, width);
  }
  if (schema == "gpuwhy.fleet_layers") {
    return layers_text(answer, width);
  }
  if (schema == "gpuwhy.fleet_top") {
    return top_text(answer, width);
  }
  if (schema == "gpuwhy.fleet_stragglers") {
    return stragglers_text(answer, width);
  }
  return schema == "gpuwhy.fleet_regressions" ? regressions_text(answer, width)
                                              : trend_text(answer, width);
}

}  // namespace gpuwhy
