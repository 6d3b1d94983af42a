// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy ncu: what a report of Nsight Compute holds, where no ncu is installed or the one there is
// too old to open it.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <regex.h>

#include "analysis/counters/counter_roofline.h"
#include "analysis/names/kernel_names.h"
#include "base/csv.h"
#include "base/error.h"
#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "ingest/ingest.h"
#include "session/reading/named_model.h"

namespace gpuwhy {
namespace {

struct NcuOptions {
  std::string file;
  std::string kernel;
  bool is_each = false;
  OutputForm output;
};

std::string shape_text(const CounterResult& result) {
  if (!result.shape) {
    return result.num_blocks == 0
               ? "n/a"
               : fmt::format("{} x {}", result.num_blocks, result.threads_per_block);
  }
  const LaunchShape& shape = *result.shape;
  return fmt::format("({}, {}, {}) x ({}, {}, {})", shape.grid[0], shape.grid[1], shape.grid[2],
                     shape.block[0], shape.block[1], shape.block[2]);
}

// Judged alone: without a recording nothing is known of the workload's own duration.
Roofline judged(const Counters& counters, const CounterResult& result,
                const std::vector<GpuSpec>& gpus) {
  return roofline(roofline_input(counters, result), roofs_of(counters, result, gpus));
}

Json result_json(const Counters& counters, const CounterResult& result,
                 const std::vector<GpuSpec>& gpus) {
  const StringPool& strings = counters.strings;
  Json row = {{"id", result.id},
              {"kernel_name", name_of(counters, result)},
              {"function_name", text_or_null(strings[result.function_name])},
              {"mangled_name", text_or_null(strings[result.mangled_name])},
              {"is_range", result.is_range},
              {"pid", result.pid},
              {"process", text_or_null(strings[result.process_name])},
              {"device", fmt::format("cuda:{}", result.device)},
              {"device_name", text_or_null(strings[result.device_name])},
              {"compute_capability", text_or_null(strings[result.compute_capability])},
              {"context", result.context},
              {"stream", result.stream},
              {"grid", nullptr},
              {"block", nullptr},
              {"blocks", result.num_blocks == 0 ? Json(nullptr) : Json(result.num_blocks)},
              {"threads_per_block",
               result.threads_per_block == 0 ? Json(nullptr) : Json(result.threads_per_block)},
              {"invocations", result.invocations}};
  if (result.shape) {
    row["grid"] = result.shape->grid;
    row["block"] = result.shape->block;
  }
  const Roofline roof = judged(counters, result, gpus);
  row["bound"] = roof.bound == BoundBy::kUnknown ? Json(nullptr) : Json(bound_name(roof.bound));
  row["bound_reason"] = roof.reason;
  row["nvtx"] = Json::array();
  for (const CounterRange& range : result.ranges) {
    row["nvtx"].push_back({{"domain", strings[range.domain]},
                           {"name", strings[range.name]},
                           {"kind", range.kind == RangeKind::kPushPop ? "push_pop" : "start_end"}});
  }
  // Pairs, not look-ups: a JSON object that checks each new key against all others takes forever.
  Json::object_t metrics;
  metrics.reserve(result.metrics.size());
  for (const CounterMetric& metric : result.metrics) {
    metrics.Container::emplace_back(
        strings[metric.name], metric.is_text() ? Json(strings[metric.text()]) : Json(metric.value));
  }
  row["metrics"] = std::move(metrics);
  row["rules"] = Json::array();
  for (const CounterRule& rule : result.rules) {
    row["rules"].push_back(
        {{"rule", strings[rule.rule]},
         {"section", strings[rule.section]},
         {"message", strings[rule.message]},
         {"estimated_speedup_percent", number_or_null(rule.speedup_percent)},
         {"estimated_speedup_type",
          rule.speedup_percent ? Json(rule.is_global ? "global" : "local") : Json(nullptr)}});
  }
  return row;
}

Json counters_json(const Counters& counters) {
  Json document = json_document("ncu", 1);
  document["format"] = counters.format;
  document["tool_version"] = text_or_null(counters.tool_version);
  document["clock_control"] = text_or_null(counters.clock_control);
  std::vector<StringId> units(counters.strings.size());
  const std::vector<GpuSpec> gpus = known_gpus();
  document["results"] = Json::array();
  for (const CounterResult& result : counters.results) {
    document["results"].push_back(result_json(counters, result, gpus));
    for (const CounterMetric& metric : result.metrics) {
      units[static_cast<std::size_t>(metric.name)] = metric.unit();
    }
  }
  document["units"] = Json::object();
  for (std::size_t name = 0; name < units.size(); ++name) {
    if (units[name] != StringId{}) {
      document["units"].get_ref<Json::object_t&>().Container::emplace_back(
          counters.strings[static_cast<StringId>(name)], counters.strings[units[name]]);
    }
  }
  document["data_quality"] = Json::array();
  for (const Diagnostic& diagnostic : counters.diagnostics) {
    document["data_quality"].push_back({{"kind", diagnostic.kind},
                                        {"count", diagnostic.count},
                                        {"sentence", diagnostic.sentence}});
  }
  return document;
}

std::string counters_csv(const Counters& counters) {
  const StringPool& strings = counters.strings;
  std::string text = "id,kernel_name,grid,block,metric,unit,value\n";
  for (const CounterResult& result : counters.results) {
    const LaunchShape shape = result.shape.value_or(LaunchShape{});
    const std::string launch = fmt::format(
        "{},{},{}x{}x{},{}x{}x{}", result.id, csv_cell(name_of(counters, result)), shape.grid[0],
        shape.grid[1], shape.grid[2], shape.block[0], shape.block[1], shape.block[2]);
    for (const CounterMetric& metric : result.metrics) {
      text += fmt::format(
          "{},{},{},{}\n", launch, csv_cell(strings[metric.name]), csv_cell(strings[metric.unit()]),
          metric.is_text() ? csv_cell(strings[metric.text()]) : fmt::format("{}", metric.value));
    }
  }
  return text;
}

// What a rule of ncu says, in short: without its links and further sentences.
std::string first_sentence(std::string_view message) {
  const std::size_t end = message.find(". ");
  std::string said =
      printable(end == std::string_view::npos ? message : message.substr(0, end + 1));
  // Links are "@url:words:address@".
  for (std::size_t at = said.find("@url:"); at != std::string::npos; at = said.find("@url:")) {
    const std::size_t words = at + 5;
    const std::size_t colon = said.find(':', words);
    const std::size_t close = said.find('@', words);
    if (colon == std::string::npos || close == std::string::npos || colon > close) {
      break;
    }
    said = said.substr(0, at) + said.substr(words, colon - words) + said.substr(close + 1);
  }
  return said;
}

constexpr std::pair<const char*, const char*> kShares[] = {
    {"compute", "sm__throughput.avg.pct_of_peak_sustained_elapsed"},
    {"memory", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"DRAM", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"L2", "lts__throughput.avg.pct_of_peak_sustained_elapsed"},
    {"occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active"}};

std::optional<std::int64_t> duration_ns_of(const Counters& counters, const CounterResult& result) {
  const auto duration = number_of(counters, result, "gpu__time_duration.sum");
  return duration && *duration >= 0 && *duration < 9e15
             ? std::optional(static_cast<std::int64_t>(*duration))
             : std::nullopt;
}

// Launches of one kernel with one shape on one GPU.
struct EqualLaunches {
  const CounterResult* longest = nullptr;
  std::int64_t longest_ns = -1;
  std::int64_t total_ns = 0;
  std::size_t num_launches = 0;
  std::size_t num_timed = 0;
};

// By time, the longest first; each launch by itself if `is_each`.
std::vector<EqualLaunches> groups_of(const Counters& counters, bool is_each) {
  std::map<std::tuple<std::string, std::string, std::uint32_t, std::size_t>, EqualLaunches> groups;
  for (const CounterResult& result : counters.results) {
    EqualLaunches& group =
        groups[{std::string(name_of(counters, result)), shape_text(result),
                static_cast<std::uint32_t>(result.device), is_each ? groups.size() : 0}];
    const auto duration_ns = duration_ns_of(counters, result);
    if (group.longest == nullptr || duration_ns.value_or(-1) > group.longest_ns) {
      group.longest = &result;
      group.longest_ns = duration_ns.value_or(-1);
    }
    group.total_ns += duration_ns.value_or(0);
    group.num_timed += duration_ns ? 1 : 0;
    ++group.num_launches;
  }
  std::vector<EqualLaunches> sorted;
  sorted.reserve(groups.size());
  for (const auto& [key, group] : groups) {
    sorted.push_back(group);
  }
  std::ranges::stable_sort(sorted, std::greater<>(), &EqualLaunches::total_ns);
  return sorted;
}

// Shape and GPU of a launch, why it takes its time, where it was, and what the rules of ncu would
// change.
std::string detail_text(const Counters& counters, const CounterResult& result,
                        const std::vector<GpuSpec>& gpus) {
  const StringPool& strings = counters.strings;
  const std::string gpu = printable(strings[result.device_name]);
  std::vector<std::string> parts = {fmt::format("{} on cuda:{}{}{}", shape_text(result),
                                                result.device, gpu.empty() ? "" : " ", gpu)};
  if (const Roofline roof = judged(counters, result, gpus); roof.bound != BoundBy::kUnknown) {
    parts.push_back(roof.reason);
  }
  for (const CounterRange& range : result.ranges) {
    parts.push_back("in " + printable(strings[range.name]));
  }
  for (const CounterRule& rule : result.rules) {
    if (rule.speedup_percent) {
      std::string said = first_sentence(strings[rule.message]);
      said.resize(said.size() - (said.ends_with('.') ? 1 : 0));
      parts.push_back(fmt::format("{} ({}): estimated speed-up up to {:.1f} % ({}){}{}",
                                  printable(strings[rule.rule]), printable(strings[rule.section]),
                                  *rule.speedup_percent, rule.is_global ? "of the kernel" : "local",
                                  said.empty() ? "" : ": ", said));
    }
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

// A row a group, with the shares of its longest launch.
ReportTable launches_table(const Counters& counters, const std::vector<EqualLaunches>& groups) {
  ReportTable table;
  table.columns = {{"id", "id", CellFormat::kCount},
                   {"time", "total_ns", CellFormat::kDuration},
                   {"launches", "launches", CellFormat::kCount}};
  for (const auto& [label, name] : kShares) {
    table.columns.push_back({label, label, CellFormat::kFraction});
  }
  table.columns.push_back({"bound by", "bound", CellFormat::kText});
  table.columns.push_back({"kernel", "kernel_name", CellFormat::kName});
  const std::vector<GpuSpec> gpus = known_gpus();
  for (const EqualLaunches& group : groups) {
    const CounterResult& longest = *group.longest;
    ReportRow& row = table.rows.emplace_back();
    const auto next = [&]() -> CellValue& {
      const CellFormat unit = table.columns[row.cells.size()].unit;
      return row.cells.emplace_back(ReportValue{{}, unit, ""}).value;
    };
    next() = std::int64_t{longest.id};
    CellValue& time = next();
    if (group.num_timed > 0) {
      time = group.total_ns;
    }
    next() = static_cast<std::int64_t>(group.num_launches);
    for (const auto& [label, name] : kShares) {
      CellValue& share = next();
      if (const auto percent = number_of(counters, longest, name)) {
        share = *percent / 100;
      }
    }
    CellValue& bound_by = next();
    if (const BoundBy bound = judged(counters, longest, gpus).bound; bound != BoundBy::kUnknown) {
      bound_by = std::string(bound_name(bound));
    }
    next() = bare_kernel_name(name_of(counters, longest));
    row.detail = detail_text(counters, longest, gpus);
  }
  return table;
}

Document counters_document(const Counters& counters, bool is_each) {
  Section section;
  section.id = "counters";
  section.title = fmt::format(
      "{} profiled launch{}, {}{}", counters.results.size(),
      counters.results.size() == 1 ? "" : "es", counters.format,
      counters.tool_version.empty() ? "" : " of ncu " + printable(counters.tool_version));
  if (!is_each) {
    section.paragraphs.push_back(
        "one row per kernel and shape: its launches together, and the shares of the longest");
  }
  section.tables.push_back(launches_table(counters, groups_of(counters, is_each)));
  for (const Diagnostic& diagnostic : counters.diagnostics) {
    section.notes.push_back(printable(diagnostic.sentence));
  }
  return {"", {std::move(section)}};
}

// By the C library's matcher: that of C++ takes stack by the character, and names come from
// untrusted.
void keep_kernels(const std::string& expression, Counters& counters) {
  regex_t wanted{};
  const int failure = ::regcomp(&wanted, expression.c_str(), REG_EXTENDED | REG_NOSUB);
  if (failure != 0) {
    std::array<char, 128> reason{};
    ::regerror(failure, &wanted, reason.data(), reason.size());
    throw Error(ErrorKind::kUsage, fmt::format("--kernel '{}' is not a regular expression: {}",
                                               printable(expression), reason.data()));
  }
  std::erase_if(counters.results, [&](const CounterResult& result) {
    const std::string name(name_of(counters, result));
    return ::regexec(&wanted, name.c_str(), 0, nullptr, 0) != 0;
  });
  ::regfree(&wanted);
}

int run_ncu(const NcuOptions& options, Context& context) {
  check_pages(options.output.pages, options.output.is_json());
  Counters counters = load_counters(InputFile(options.file));
  if (!options.kernel.empty()) {
    keep_kernels(options.kernel, counters);
  }
  if (options.output.format == "csv" && !options.output.is_json()) {
    context.console.out(counters_csv(counters));
  } else {
    print_answer(
        options.output, [&] { return counters_document(counters, options.is_each); },
        [&] { return to_json_text(counters_json(counters)); }, context.console);
  }
  return kExitOk;
}

}  // namespace

Command ncu_command() {
  auto options = std::make_shared<NcuOptions>();
  Command command = command_of(
      "ncu", "Print a report of Nsight Compute; plan what to measure with it", options, run_ncu);
  command.options = {
      required(
          {"FILE", "", "A .ncu-rep of any release, or what ncu --csv printed", &options->file}),
      {"--kernel", "RE", "Only kernels whose name matches this regular expression",
       &options->kernel},
      {"--each", "", "Every launch, not only the longest of each kernel and shape",
       &options->is_each},
  };
  add_output_options(command, options->output);
  command.subcommands = {ncu_plan_command()};
  command.examples = "  gpuwhy ncu report.ncu-rep --kernel gemm\n";
  return command;
}

}  // namespace gpuwhy
