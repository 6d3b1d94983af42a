// SPDX-License-Identifier: Apache-2.0
//
// Derivation of roofline inputs (FLOPs, bytes, occupancy) from Nsight Compute metrics.
//
// A quantity can be counted in several ways, and a report contains what was requested: each
// quantity is a list of metrics, the most direct first.
//
// Tensor work is counted as operations by source type since Ada (sm__ops_path_tensor_src_bf16...);
// before that as instructions, for which ncu's own roofline assumes 512 operations each. On Hopper
// the instruction counters (hmma) do not see wgmma and read 0: a kernel built for sm90 without
// tensor work in them has unknown FLOPs, not zero. The same holds for a kernel named after its
// tensor instructions if no tensor counter was collected.
//
// The table's peak rates are at boost clock. ncu locks lower clocks, so they are scaled to the
// measured clock; fractions then describe the kernel, not the cost of ncu's clocks.
#include "analysis/counters/counter_roofline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

#include "base/text.h"

namespace gpuwhy {
namespace {

// Access to the metrics of one result by name.
class Metrics {
 public:
  Metrics(const Counters& counters, const CounterResult& result)
      : counters_(counters), result_(result) {}

  std::optional<double> first(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      if (const auto value = number_of(counters_, result_, name)) {
        return value;
      }
    }
    return std::nullopt;
  }

  std::optional<double> operator[](std::string_view name) const { return first({name}); }

  std::optional<double> fraction(std::initializer_list<std::string_view> names) const {
    const auto percent = first(names);
    return percent ? std::optional(*percent / 100) : std::nullopt;
  }

  // A device attribute: of the result, or else of the session's device.
  std::optional<double> attribute(std::string_view name) const {
    const std::string whole = "device__attribute_" + std::string(name);
    if (const auto value = number_of(counters_, result_, whole)) {
      return value;
    }
    const auto id = counters_.strings.find(whole);
    for (const CounterDevice& device : counters_.devices) {
      for (const CounterMetric& attribute : device.attributes) {
        if (id && device.id == result_.device && attribute.name == *id && !attribute.is_text()) {
          return attribute.value;
        }
      }
    }
    return std::nullopt;
  }

  std::string_view compute_capability() const {
    return counters_.strings[result_.compute_capability];
  }
  std::string_view device_name() const { return counters_.strings[result_.device_name]; }
  std::string lower_name() const { return to_lower(name_of(counters_, result_)); }

  template <typename Visit>
  void each_number(Visit&& visit) const {
    for (const CounterMetric& metric : result_.metrics) {
      if (!metric.is_text()) {
        visit(counters_.strings[metric.name], metric.value);
      }
    }
  }

 private:
  const Counters& counters_;
  const CounterResult& result_;
};

std::optional<double> product(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b ? std::optional(*a * *b) : std::nullopt;
}

std::optional<double> sum(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

std::optional<double> duration_s(const Metrics& metrics) {
  const auto duration_ns = metrics["gpu__time_duration.sum"];
  return duration_ns ? std::optional(*duration_ns / 1e9) : std::nullopt;
}

// Operations by dtype, from sm__ops_path_tensor_src_<type>_dst_<type>[_sparsity_<on|off>].sum. The
// values by sparsity are parts of the total and count only if the total is missing.
std::map<std::string, double> tensor_operations(const Metrics& metrics) {
  constexpr std::string_view kPrefix = "sm__ops_path_tensor_src_";
  std::map<std::string, double> whole;
  std::map<std::string, double> parts;
  metrics.each_number([&](std::string_view name, double value) {
    if (!name.starts_with(kPrefix) || !name.ends_with(".sum")) {
      return;
    }
    const std::string_view rest = name.substr(kPrefix.size());
    const std::string dtype(rest.substr(0, rest.find("_dst_")));
    (rest.find("_sparsity_") == std::string_view::npos ? whole : parts)[dtype] += value;
  });
  whole.merge(parts);
  return whole;
}

// Additions, multiplications and fused ones (two operations each) of one letter: h, f or d.
std::optional<double> thread_operations(const Metrics& metrics, char letter) {
  const auto metric = [&](const char* op, const char* rollup) {
    return metrics[std::string("smsp__sass_thread_inst_executed_op_") + letter + op + "_pred_on" +
                   rollup];
  };
  for (const char* rollup : {".sum", ".sum.per_cycle_elapsed"}) {
    const auto add = metric("add", rollup);
    const auto mul = metric("mul", rollup);
    const auto fma = metric("fma", rollup);
    if (!add || !mul || !fma) {
      continue;
    }
    const double operations = *add + *mul + 2 * *fma;
    if (rollup == std::string_view(".sum")) {
      return operations;
    }
    return product(product(operations, metrics.first({"smsp__cycles_elapsed.avg.per_second",
                                                      "sm__cycles_elapsed.avg.per_second"})),
                   duration_s(metrics));
  }
  return std::nullopt;
}

bool is_named(const std::string& name, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

void find_flops(const Metrics& metrics, RooflineInput& input) {
  std::map<std::string, double> by_dtype = tensor_operations(metrics);
  const bool has_operations = !by_dtype.empty();
  const auto tensor_per_cycle = metrics["derived__smsp__inst_executed_pipe_tensor_x512"];
  if (!has_operations && tensor_per_cycle) {
    const auto operations =
        product(product(tensor_per_cycle, metrics["smsp__cycles_elapsed.avg.per_second"]),
                duration_s(metrics));
    if (operations) {
      by_dtype["fp16/bf16"] = *operations;
    }
  }
  double tensor = 0;
  for (const auto& [dtype, operations] : by_dtype) {
    tensor = std::max(tensor, operations);
  }
  // Known blind spots: no FLOPs rather than wrong ones.
  const std::string name = metrics.lower_name();
  if (tensor == 0 && !has_operations && metrics.compute_capability().starts_with("9.") &&
      is_named(name, {"sm90", "wgmma", "gmma", "hopper"})) {
    input.flops_reason = "Hopper's wgmma is not in the hmma counters, which read 0";
    return;
  }
  if (by_dtype.empty() && is_named(name, {"tensorop", "wmma", "hmma", "mma", "_s16816", "xmma"})) {
    input.flops_reason = "its tensor work was not counted";
    return;
  }
  for (const auto& [dtype, letter] : {std::pair("fp16", 'h'), {"fp32", 'f'}, {"fp64", 'd'}}) {
    if (const auto operations = thread_operations(metrics, letter)) {
      by_dtype[dtype] += *operations;
    }
  }
  // The dtype with the most operations represents the kernel.
  for (const auto& [dtype, operations] : by_dtype) {
    if (!input.flops || operations > *input.flops) {
      input.flops = operations;
      input.dtype = dtype;
    }
  }
  if (!input.flops) {
    input.flops_reason = "no metric that counts operations was collected";
  } else if (*input.flops == 0) {
    input.dtype = "";
  }
}

// FP32 lanes per SM (CUDA C Programming Guide, arithmetic instructions by compute capability).
std::optional<double> fp32_lanes(std::string_view compute_capability) {
  static constexpr std::pair<std::string_view, double> kLanes[] = {
      {"7.0", 64},  {"7.2", 64},  {"7.5", 64},   {"8.0", 64},   {"8.6", 128},  {"8.7", 128},
      {"8.9", 128}, {"9.0", 128}, {"10.0", 128}, {"10.3", 128}, {"11.0", 128}, {"12.0", 128}};
  for (const auto& [known, lanes] : kLanes) {
    if (known == compute_capability) {
      return lanes;
    }
  }
  return std::nullopt;
}

std::optional<double> num_sms(const Metrics& metrics) {
  if (const auto count = metrics.attribute("multiprocessor_count")) {
    return count;
  }
  if (const auto count = metrics["launch__sm_count"]) {
    return count;
  }
  const auto peak = metrics["sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained"];
  const auto lanes = fp32_lanes(metrics.compute_capability());
  return peak && lanes ? std::optional(std::round(*peak / *lanes)) : std::nullopt;
}

// By name or, without one, by properties that only one row of the table has.
std::optional<GpuSpec> gpu_of(const Metrics& metrics, const std::vector<GpuSpec>& table) {
  constexpr double kMostSms = 100'000;
  const auto counted = num_sms(metrics);
  const std::int64_t sms =
      counted && *counted > 0 && *counted < kMostSms ? static_cast<std::int64_t>(*counted) : 0;
  if (!metrics.device_name().empty()) {
    return find_gpu(table, std::string(metrics.device_name()), {.sms = sms}).gpu;
  }
  const auto is_it = [&](const GpuSpec& gpu) {
    return gpu.compute_capability == metrics.compute_capability() && gpu.sms == sms;
  };
  const auto found = std::find_if(table.begin(), table.end(), is_it);
  const bool is_the_only_one =
      found != table.end() && std::none_of(std::next(found), table.end(), is_it);
  return is_the_only_one ? std::optional(*found) : std::nullopt;
}

// Both clock edges carry data, for GDDR and HBM alike.
std::optional<double> memory_from_attributes(const Metrics& metrics) {
  const auto clock_khz = metrics.attribute("max_mem_frequency_khz");
  const auto width = metrics.attribute("global_memory_bus_width");
  return clock_khz && width && *clock_khz > 0 && *width > 0
             ? std::optional(*clock_khz * 1e3 * 2 * *width / 8)
             : std::nullopt;
}

// How far below boost clock the counters were measured.
double clock_fraction(const std::optional<double>& clock_hz,
                      const std::optional<double>& boost_hz) {
  return clock_hz && boost_hz && *boost_hz > 0 ? std::min(*clock_hz / *boost_hz, 1.0) : 1.0;
}

// L1's share refers to its active cycles, even if the metric's name says elapsed: too favourable
// for a kernel whose SMs idle. ncu's share of all memory pipes refers to the whole time and
// includes L1, so it is an upper limit for L1. Without it nothing is known about L1.
std::optional<double> l1_fraction(const Metrics& metrics) {
  const auto of_active = metrics.fraction({"l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
                                           "l1tex__throughput.avg.pct_of_peak_sustained_active"});
  const auto all_memory =
      metrics.fraction({"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"});
  return of_active && all_memory ? std::optional(std::min(*of_active, *all_memory)) : std::nullopt;
}

// Bytes directly if they were counted, else the rate times the duration.
void find_traffic(const Metrics& metrics, RooflineInput& input) {
  input.dram_bytes = metrics["dram__bytes.sum"];
  if (!input.dram_bytes) {
    input.dram_bytes = sum(metrics["dram__bytes_read.sum"], metrics["dram__bytes_write.sum"]);
  }
  if (!input.dram_bytes) {
    input.dram_bytes = product(metrics["dram__bytes.sum.per_second"], duration_s(metrics));
  }
  input.l2_bytes = metrics.first({"lts__t_bytes.sum"});
  if (!input.l2_bytes) {
    input.l2_bytes =
        product(metrics["l1tex__m_xbar2l1tex_read_bytes.sum.per_second"], duration_s(metrics));
  }
  input.l1_bytes = metrics.first({"l1tex__t_bytes.sum"});
  if (!input.l1_bytes) {
    input.l1_bytes = product(metrics["derived__l1tex__lsu_writeback_bytes_mem_lg.sum.per_second"],
                             duration_s(metrics));
  }
}

// Counted, or blocks relative to what the SMs hold at once.
void find_waves(const Metrics& metrics, std::int64_t num_blocks, RooflineInput& input) {
  input.waves = metrics["launch__waves_per_multiprocessor"];
  if (!input.waves && num_blocks > 0) {
    std::optional<double> blocks_per_sm;
    for (const char* limit : {"blocks", "registers", "shared_mem", "warps", "barriers"}) {
      const auto value = metrics[std::string("launch__occupancy_limit_") + limit];
      blocks_per_sm = value && (!blocks_per_sm || *value < *blocks_per_sm) ? value : blocks_per_sm;
    }
    const auto capacity = product(blocks_per_sm, num_sms(metrics));
    if (capacity && *capacity > 0) {
      input.waves = static_cast<double>(num_blocks) / *capacity;
    }
  }
}

// Shares of the cycles of resident warps, by what they waited for. Averages per issued instruction
// are ncu's warp states; without them samples of the program counter, which have no overhead.
void find_stalls(const Metrics& metrics, RooflineInput& input) {
  struct Source {
    std::string_view prefix;
    std::string_view suffix;
  };
  constexpr Source kSources[] = {
      {"smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"},
      {"smsp__pcsamp_warps_issue_stalled_", ""},
  };
  constexpr std::size_t kMostStalls = 5;
  for (const Source& source : kSources) {
    const std::string_view prefix = source.prefix;
    const std::string_view suffix = source.suffix;
    double whole = 0;
    std::vector<StallReason> found;
    metrics.each_number([&](std::string_view name, double value) {
      if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.ends_with("_not_issued") ||
          !(value >= 0)) {
        return;
      }
      name.remove_prefix(prefix.size());
      name.remove_suffix(suffix.size());
      whole += value;
      // A selected warp issues; it does not wait.
      if (name != "selected") {
        found.push_back({std::string(name), value});
      }
    });
    if (whole > 0) {
      std::sort(found.begin(), found.end(), [](const StallReason& a, const StallReason& b) {
        return a.fraction != b.fraction ? a.fraction > b.fraction : a.name < b.name;
      });
      for (StallReason& stall : found) {
        stall.fraction /= whole;
      }
      found.resize(std::min(found.size(), kMostStalls));
      input.stalls = std::move(found);
      return;
    }
  }
}

}  // namespace

std::optional<double> sm_clock_hz(const Counters& counters, const CounterResult& result) {
  return Metrics(counters, result)
      .first({"smsp__cycles_elapsed.avg.per_second", "sm__cycles_elapsed.avg.per_second",
              "gpc__cycles_elapsed.avg.per_second"});
}

RooflineInput roofline_input(const Counters& counters, const CounterResult& result) {
  const Metrics metrics(counters, result);
  RooflineInput input;
  input.duration_ns = metrics["gpu__time_duration.sum"];
  find_traffic(metrics, input);
  input.sm_fraction = metrics.fraction({"sm__throughput.avg.pct_of_peak_sustained_elapsed"});
  // The DRAM metric has two names; the first one that was collected counts.
  input.dram_fraction = metrics.fraction({"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
                                          "dram__throughput.avg.pct_of_peak_sustained_elapsed"});
  input.l2_fraction = metrics.fraction({"lts__throughput.avg.pct_of_peak_sustained_elapsed"});
  input.l1_fraction = l1_fraction(metrics);
  input.no_eligible_fraction =
      metrics.fraction({"smsp__issue_inst0.avg.pct_of_peak_sustained_active"});
  // Without the counter, the share of cycles that issued nothing follows from the issue rate.
  if (!input.no_eligible_fraction) {
    if (const auto issued = metrics["smsp__issue_active.avg.per_cycle_active"]) {
      input.no_eligible_fraction = 1 - *issued;
    }
  }
  input.theoretical_occupancy_fraction =
      metrics.fraction({"sm__maximum_warps_per_active_cycle_pct"});
  input.achieved_occupancy_fraction =
      metrics.fraction({"sm__warps_active.avg.pct_of_peak_sustained_active"});
  find_waves(metrics, result.num_blocks, input);
  find_stalls(metrics, input);
  find_flops(metrics, input);
  return input;
}

GpuRoofs roofs_of(const Counters& counters, const CounterResult& result,
                  const std::vector<GpuSpec>& table) {
  const Metrics metrics(counters, result);
  GpuRoofs roofs;
  roofs.name = metrics.device_name();
  const std::optional<GpuSpec> gpu = gpu_of(metrics, table);
  const auto lanes = fp32_lanes(metrics.compute_capability());
  const auto clock_hz = sm_clock_hz(counters, result);
  std::optional<double> boost_hz = product(metrics.attribute("max_gpu_frequency_khz"), 1e3);
  if (const auto fp32 = gpu ? gpu->flops_per_s("fp32") : std::nullopt; !boost_hz && fp32 && lanes) {
    boost_hz = *fp32 / (static_cast<double>(gpu->sms) * *lanes * 2);
  }
  const double scale = clock_fraction(clock_hz, boost_hz);
  roofs.boost_clock_hz = boost_hz;

  roofs.memory_bytes_per_s = memory_from_attributes(metrics);
  if (!roofs.memory_bytes_per_s) {
    roofs.memory_bytes_per_s = product(metrics["dram__bytes.sum.peak_sustained"],
                                       metrics["dram__cycles_elapsed.avg.per_second"]);
  }
  auto fp32_per_cycle =
      product(metrics["sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained"], 2.0);
  if (!fp32_per_cycle) {
    fp32_per_cycle = product(product(num_sms(metrics), lanes), 2.0);
  }
  const auto clock = clock_hz ? clock_hz : boost_hz;
  if (fp32_per_cycle && clock) {
    roofs.flops_per_s["fp32"] = *fp32_per_cycle * *clock;
  }
  roofs.source = roofs.memory_bytes_per_s || !roofs.flops_per_s.empty() ? "the report" : "";
  if (gpu) {
    for (const auto& [dtype, tflops] : gpu->dense_tflops) {
      roofs.flops_per_s.try_emplace(dtype, tflops * 1e12 * scale);
    }
    if (!roofs.memory_bytes_per_s) {
      roofs.memory_bytes_per_s = gpu->bytes_per_s();
    }
    roofs.name = gpu->name;
    roofs.source += std::string(roofs.source.empty() ? "" : ", then ") + "conf/hardware/gpus.yaml";
  }
  return roofs;
}

}  // namespace gpuwhy
