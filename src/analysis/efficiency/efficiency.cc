// SPDX-License-Identifier: Apache-2.0
//
// MFU, MBU and speed-of-light ratios of steps, relative to the model's minimum cost.
//
// Three ratios, because each alone misleads: MFU (ideal compute time over time), MBU (ideal memory
// time over time), and SOL, the larger of the two, the only one that can reach one. All ideal times
// come from the model's minimum cost, never from counters, so a kernel that computes more than
// necessary gains nothing. Each ratio is given for two times: wall time, which users wait for, and
// GPU busy time, which separates slow kernels from a slow host.
//
// What it gets wrong: without marks of several processes, all GPUs with kernels are assumed to
// share one model. Experts are an expectation, and the MBU of a batch may exceed one if routing is
// skewed (then the range is given). The vision tower counts only if its image is given.
#include "analysis/efficiency/efficiency.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "analysis/efficiency/step_fit.h"
#include "analysis/efficiency/token_counts.h"
#include "base/cut_name.h"
#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "model/lower_bound.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

// Reference values for tuned decode kernels: 60..85 % of bandwidth at batch 1; below 20 % the GPU
// is not the limit. Published speeds of llama.cpp, gpt-fast and vLLM are in this range.
constexpr double kNearBound = 0.60;
constexpr double kFarFromBound = 0.20;
constexpr double kHalf = 0.5;
// The first of a loop's tokens may come from prefill: a few percent are not a contradiction.
constexpr double kTokenSlack = 0.05;

// The two times over which a stage is judged.
struct Clocks {
  std::int64_t wall_ns = 0;
  std::optional<std::int64_t> busy_ns;
};

// Replicas of the model whose steps are in a stage.
std::int64_t count_replicas(const Analysis& analysis, const RowName& stage) {
  std::set<std::uint32_t> groups;
  for (const StageStep& step : analysis.stage_steps) {
    if (analysis.stages[step.stage].stage == stage) {
      groups.insert(step.group);
    }
  }
  return std::max<std::int64_t>(static_cast<std::int64_t>(groups.size()), 1);
}

// The ledger windows of a stage without unrecorded time, on one GPU of each replica. Without GPU
// work, or with ranges that never ended, the host's own durations are used.
Clocks clocks_of(const Analysis& analysis, const StageRow& stage) {
  Clocks clocks{stage.total_ns, std::nullopt};
  std::int64_t window_ns = 0;
  std::int64_t busy_ns = 0;
  std::int64_t num_devices = 0;
  for (const LedgerRow& row : analysis.ledgers) {
    if (row.stage == stage.stage) {
      // Time without recorded GPU activity does not measure the model.
      window_ns += row.window_ns - row.unrecorded_before_ns();
      busy_ns += row.busy_ns();
      ++num_devices;
    }
  }
  if (num_devices > 0 && stage.num_open == 0) {
    const std::int64_t num_replicas = count_replicas(analysis, stage.stage);
    clocks.wall_ns = window_ns / num_devices * num_replicas;
    clocks.busy_ns = busy_ns / num_devices * num_replicas;
  }
  return clocks;
}

// GPUs that share one copy of the model: those of a group of ranks, else all that ran kernels.
std::int64_t count_gpus(const Analysis& analysis) {
  const auto& groups = analysis.rank_groups;
  if (groups && !groups->empty() && !groups->front().devices.empty()) {
    return static_cast<std::int64_t>(groups->front().devices.size());
  }
  const auto count = std::count_if(analysis.devices.begin(), analysis.devices.end(),
                                   [](const DeviceRow& device) { return device.num_kernels > 0; });
  return std::max<std::int64_t>(count, 1);
}

TwoClocks ratios(const std::optional<double>& ideal_s, const Clocks& clocks) {
  TwoClocks both;
  if (ideal_s && clocks.wall_ns > 0) {
    both.wall_fraction = *ideal_s * 1e9 / static_cast<double>(clocks.wall_ns);
  }
  if (ideal_s && clocks.busy_ns.value_or(0) > 0) {
    both.busy_fraction = *ideal_s * 1e9 / static_cast<double>(*clocks.busy_ns);
  }
  return both;
}

std::string verdict_of(const StageEfficiency& row, const Clocks& clocks) {
  const double sol = row.sol.wall_fraction.value_or(0);
  if (sol > 1) {
    return "faster than possible";
  }
  if (sol >= kNearBound) {
    return row.side + "-bound";
  }
  const bool is_idle = !clocks.busy_ns || static_cast<double>(*clocks.busy_ns) <
                                              kHalf * static_cast<double>(clocks.wall_ns);
  if (is_idle) {
    return sol < kFarFromBound ? "GPU mostly idle" : "GPU mostly idle, then " + row.side + "-bound";
  }
  return sol < kFarFromBound ? "kernels far from the GPU's limits"
                             : "kernels short of the bound of " + row.side;
}

// Computes the rows of the result, one stage at a time.
class Judge {
 public:
  Judge(const Analysis& analysis, const EfficiencySetup& setup, Efficiency& result)
      : analysis_(analysis), setup_(setup), result_(result) {}

  // Adds the row of one stage. A stage whose work is not known keeps its times and says why it has
  // no ratios.
  void add_stage(const StageRow& stage, const StageWork& work) {
    StageEfficiency row;
    row.stage = stage.stage;
    const Clocks clocks = clocks_of(analysis_, stage);
    row.wall_ns = clocks.wall_ns;
    row.busy_ns = clocks.busy_ns;
    if (!setup_.llm.no_cost_reason.empty()) {
      row.reason = setup_.llm.no_cost_reason;
      result_.stages.push_back(row);
      return;
    }
    if (work.passes.empty() || !work.reason.empty()) {
      row.reason = work.reason.empty() ? "no instance of it ended" : work.reason;
      result_.stages.push_back(row);
      return;
    }
    // `cost` is what the model needs, `executed` what usual kernels compute for it.
    LlmCost cost;
    LlmCost executed;
    with_context(fmt::format("while counting what stage {} costs", stage.stage.text()),
                 [&] { add_costs(work, cost, executed, row); });
    if (std::string reason = contradiction(stage, row); !reason.empty()) {
      row = {};
      row.stage = stage.stage;
      row.wall_ns = clocks.wall_ns;
      row.busy_ns = clocks.busy_ns;
      row.reason = std::move(reason);
    } else if (setup_.gpu.gpu) {
      add_ratios(cost, executed, clocks, row);
    } else {
      row.reason = setup_.gpu.reason;
    }
    result_.stages.push_back(row);
  }

  // What holds for all rows.
  void add_notes() {
    if (is_bounded_) {
      result_.notes.emplace_back(
          "layers that attend to a window are counted as full windows: the marks give sums over the "
          "requests, not which of them exceed it");
    }
  }

 private:
  // Why the user's number of tokens cannot be right; empty: nothing speaks against it. Of a dense
  // model on one GPU, the last matrix of an MLP is the only one of its size and runs once per layer
  // with a row per token. Kernels of CUDA graphs are left out: engines pad their batches.
  std::string contradiction(const StageRow& stage, const StageEfficiency& row) const {
    const Llm& llm = setup_.llm;
    const bool is_given = setup_.batch || (role_of(stage.stage) == StageRole::kPrefill
                                               ? setup_.prompt_tokens.has_value()
                                               : setup_.new_tokens.has_value());
    const bool is_plain = !llm.moe && !llm.vision && llm.mtp_layers == 0 &&
                          llm.dense_ff != llm.hidden && llm.dense_ff != llm.heads * llm.head_dim &&
                          std::ranges::all_of(llm.layers, &LlmLayer::has_feed_forward);
    if (!is_given || !is_plain || !analysis_.operators || analysis_.devices.size() != 1 ||
        stage.num_graph_kernels > 0 || stage.num_open > 0 || row.passes == 0 ||
        llm.layers.empty()) {
      return "";
    }
    // A step lies in its loop, which is what launches are counted of.
    const bool is_step = role_of(stage.stage) == StageRole::kDecodeStep;
    const auto num_layers = static_cast<std::int64_t>(llm.layers.size());
    for (const ProductRows& product : analysis_.operators->rates.rows) {
      if (!(is_step ? role_of(product.stage) == StageRole::kDecode
                    : product.stage == stage.stage) ||
          product.num_inputs != llm.dense_ff || product.num_outputs != llm.hidden ||
          product.calls % num_layers != 0 || product.rows % num_layers != 0) {
        continue;
      }
      const auto tokens = static_cast<double>(row.tokens);
      const double measured = static_cast<double>(product.rows) / static_cast<double>(num_layers);
      if (std::abs(measured - tokens) <= kTokenSlack * tokens) {
        return "";
      }
      const std::int64_t passes = product.calls / num_layers;
      const double rows = measured / static_cast<double>(passes);
      const double given = tokens / static_cast<double>(row.passes);
      return std::abs(rows - given) > kTokenSlack * given
                 ? fmt::format(
                       "the recording's matrix products have {:.6g} rows per step, tokens "
                       "given: {:.6g}",
                       rows, given)
                 : fmt::format("the recording's matrix products show {}, {} given",
                               count_of(passes, "step"), row.passes);
    }
    return "";
  }

  void add_costs(const StageWork& work, LlmCost& cost, LlmCost& executed, StageEfficiency& row) {
    double contexts = 0;
    for (const RecordedPasses& passes : work.passes) {
      if (passes.counts) {
        contexts += add_step(*passes.counts, cost, executed, row);
        continue;
      }
      const bool is_decode = passes.work.kind == LlmWork::Kind::kDecode;
      cost.add(cost_of(setup_.llm, passes.work));
      // What usual kernels execute: full squares in prefill, absorbed MLA in decode.
      LlmWork real = passes.work;
      real.is_full_square = !is_decode;
      real.is_mla_absorbed = is_decode;
      executed.add(cost_of(setup_.llm, real));
      const std::int64_t num_passes = is_decode ? passes.work.new_tokens : 1;
      row.passes += num_passes;
      row.tokens += passes.work.batch * passes.work.new_tokens;
      contexts +=
          static_cast<double>(num_passes) * (static_cast<double>(passes.work.cached_tokens) +
                                             static_cast<double>(passes.work.new_tokens + 1) / 2);
    }
    if (role_of(row.stage) == StageRole::kPrefill && setup_.image) {
      add_images(static_cast<std::int64_t>(work.passes.size()), cost);
      add_images(static_cast<std::int64_t>(work.passes.size()), executed);
    }
    const bool has_context =
        role_of(row.stage) != StageRole::kPrefill && role_of(row.stage) != StageRole::kMixed;
    row.mean_context = has_context ? contexts / static_cast<double>(row.passes) : 0;
    row.flops = cost.total_flops();
    row.executed_flops = executed.total_flops();
    row.bytes = cost.total_bytes();
    row.least_bytes = setup_.llm.moe ? cost.least_bytes() : cost.total_bytes();
  }

  // Adds one step whose marker tells the sums over its requests. Returns the mean context of those
  // in generation.
  double add_step(const StepCounts& counts, LlmCost& cost, LlmCost& executed,
                  StageEfficiency& row) {
    cost.add(cost_of(setup_.llm, counts));
    executed.add(cost_of(setup_.llm, counts, CostOf::kExecuted));
    is_bounded_ = is_bounded_ || !is_exact(setup_.llm, counts);
    const PhaseCounts& generation = counts.generation;
    row.passes += 1;
    row.tokens += *counts.context.queries + *generation.queries;
    return static_cast<double>(*generation.keys) /
           static_cast<double>(std::max<std::int64_t>(generation.requests, 1));
  }

  void add_images(std::int64_t num_images, LlmCost& cost) const {
    cost.flops[LlmPart::kVision] += Count(num_images) * setup_.image->tower_flops;
    cost.flops[LlmPart::kProjector] += Count(num_images) * setup_.image->projector_flops;
  }

  void add_ratios(const LlmCost& cost, const LlmCost& executed, const Clocks& clocks,
                  StageEfficiency& row) {
    const GpuSpec& gpu = *setup_.gpu.gpu;
    const auto shared = static_cast<double>(result_.num_gpus);
    const CostBound bound = bound_of(setup_.llm, cost, gpu);
    const CostBound real = bound_of(setup_.llm, executed, gpu);
    const auto part = [&](const std::optional<double>& seconds) {
      return seconds ? std::optional(*seconds / shared) : std::nullopt;
    };
    row.reason = bound.reason;
    row.mfu = ratios(part(bound.compute_s), clocks);
    row.hfu = ratios(part(real.compute_s), clocks);
    row.mbu = ratios(bound.memory_s / shared, clocks);
    row.sol = ratios(bound.seconds() / shared, clocks);
    row.bound_ns = bound.seconds() / shared * 1e9;
    row.side = bound.is_compute_bound() ? "compute" : "memory";
    row.verdict = verdict_of(row, clocks);
    check_ratios(row);
  }

  // A ratio above one is a bug or a wrong input, and must not be rounded away.
  void check_ratios(const StageEfficiency& row) {
    if (role_of(row.stage) == StageRole::kDecodeStep) {
      return;  // decode says the same
    }
    const double mfu = row.mfu.wall_fraction.value_or(0);
    const double mbu = row.mbu.wall_fraction.value_or(0);
    if (mfu > 1) {
      result_.errors.push_back(fmt::format(
          "{}: MFU is {}, which cannot be: check the model ({}), its token counts ({} tokens in {}), "
          "the GPU ({}) and the dtype ({})",
          row.stage.text(), format_fraction(mfu), setup_.model_name, row.tokens,
          count_of(row.passes, "pass"), result_.gpu, result_.dtype));
    }
    const double least =
        mbu * static_cast<double>(row.least_bytes) / static_cast<double>(row.bytes);
    if (mbu > 1 && least <= 1) {
      result_.notes.push_back(fmt::format(
          "{}: MBU of {} expects uniform routing; with every token on the same experts it is {}: "
          "the routing was skewed",
          row.stage.text(), format_fraction(mbu), format_fraction(least)));
    } else if (mbu > 1) {
      result_.errors.push_back(
          fmt::format("{}: MBU is {}, which cannot be: check the model and how its weights are "
                      "stored ({}), its "
                      "token counts ({} tokens in {}) and the GPU's bandwidth ({})",
                      row.stage.text(), format_fraction(mbu), setup_.llm.weight_dtype, row.tokens,
                      count_of(row.passes, "pass"), result_.gpu));
    }
  }

  const Analysis& analysis_;
  const EfficiencySetup& setup_;
  Efficiency& result_;
  bool is_bounded_ = false;  // a cost is the most that the sums of a marker allow
};

// Of one kind of length: where steps have periods, one without is not compared with them.
std::vector<StepSample> samples_of(const StageWork& decode) {
  const bool has_periods = std::ranges::any_of(decode.passes, &RecordedPasses::is_period);
  std::vector<StepSample> samples;
  for (const RecordedPasses& passes : decode.passes) {
    if (has_periods && !passes.is_period) {
      continue;
    }
    if (passes.counts) {
      samples.push_back({passes.start_ns, passes.duration_ns,
                         static_cast<double>(*passes.counts->generation.queries),
                         static_cast<double>(*passes.counts->generation.keys), passes.number});
    } else if (passes.work.new_tokens == 1) {
      const auto batch = static_cast<double>(passes.work.batch);
      samples.push_back({passes.start_ns, passes.duration_ns, batch,
                         batch * static_cast<double>(passes.work.cached_tokens + 1),
                         passes.number});
    }
  }
  return samples;
}

void describe_gpu(const EfficiencySetup& setup, Efficiency& result) {
  result.dtype = setup.llm.matmul_dtype;
  if (!setup.llm.no_cost_reason.empty()) {
    result.reason = setup.llm.no_cost_reason;
    return;
  }
  if (!setup.gpu.gpu) {
    result.reason = setup.gpu.reason;
    return;
  }
  result.gpu = setup.gpu.gpu->name;
  result.flops_per_s = setup.gpu.gpu->flops_per_s(result.dtype);
  result.bytes_per_s = setup.gpu.gpu->bytes_per_s();
}

}  // namespace

Efficiency efficiency_of(const Analysis& analysis, const EfficiencySetup& given) {
  EfficiencySetup setup = given;
  Efficiency result;
  result.model = setup.model_name;
  result.num_gpus = setup.num_gpus.value_or(count_gpus(analysis));
  const std::int64_t num_ranks = analysis.capture.world_size.value_or(1);
  const auto num_files = static_cast<std::int64_t>(analysis.capture.files.size());
  // Without the number of GPUs per copy of the model no denominator is known.
  if (!setup.num_gpus && num_ranks > std::max(result.num_gpus, num_files)) {
    setup.gpu = {std::nullopt,
                 fmt::format("the recording holds {} of a job's {} ranks, and not how they share "
                             "the model: --tp N says how many GPUs hold one copy of it",
                             result.num_gpus, num_ranks),
                 {}};
  }
  result.notes = setup.llm.notes;
  result.notes.insert(result.notes.end(), setup.gpu.notes.begin(), setup.gpu.notes.end());
  describe_gpu(setup, result);
  if (setup.llm.vision && !setup.image) {
    result.notes.emplace_back("the vision tower is not counted: give --image if prefill runs it");
  }
  const RecordedWork work = recorded_work(analysis, setup);
  Judge judge(analysis, setup, result);
  for (const StageRow& stage : analysis.stages) {
    const StageRole role = role_of(stage.stage);
    if (role == StageRole::kPrefill) {
      judge.add_stage(stage, work.prefill);
    } else if (is_decode(stage.stage)) {
      judge.add_stage(stage, work.decode);
    } else if (role == StageRole::kMixed) {
      judge.add_stage(stage, work.mixed);
    } else if (role == StageRole::kVerify) {
      judge.add_stage(stage, work.verify);
    }
  }
  judge.add_notes();
  if (result.stages.empty()) {
    result.reason += result.reason.empty() ? "" : "; ";
    result.reason +=
        "the recording has no stage prefill, decode, mixed or verify: see docs/marking.md";
  }
  result.fit = fit_steps(samples_of(work.decode), result.fit_reason);
  return result;
}

// A loop over experts runs plain products, so that a mixture is missed only where an engine ran,
// which has kernels of its own for it.
std::string model_mismatch(const Analysis& analysis, const Llm& llm) {
  constexpr double kLeastShare = 0.05;  // of the kernel time
  constexpr std::int64_t kFewKernels = 100;
  std::int64_t moe_ns = 0;
  std::int64_t num_kernels = 0;
  const KernelRow* largest = nullptr;
  for (const KernelRow& kernel : analysis.kernels) {  // by total time
    num_kernels += kernel.calls;
    if (kernel.family == "moe") {
      moe_ns += kernel.total_ns;
      largest = largest == nullptr ? &kernel : largest;
    }
  }
  const double share = fraction_of(moe_ns, analysis.capture.kernel_ns);
  if (!llm.moe && share >= kLeastShare) {
    return fmt::format(
        "the recording is of another model: {} of its kernel time is kernels of a mixture of experts "
        "({}), and the model that was named has no experts",
        format_fraction(share), printable_name(largest->short_name));
  }
  // Marks of training loops are not of an engine that serves models.
  const std::string engine = to_lower(analysis.engine);
  const bool is_engine = (engine.starts_with("vllm") || engine.starts_with("sglang") ||
                          engine.starts_with("tensorrt-llm")) &&
                         analysis.capture.opaque_graph_ns == 0;
  if (llm.moe && moe_ns == 0 && is_engine && num_kernels >= kFewKernels) {
    return fmt::format(
        "the recording is of another model: {} ran no kernel of a mixture of experts, and the model "
        "that was named is one",
        printable(analysis.engine));
  }
  return "";
}

std::string gpu_name_of(const Analysis& analysis) {
  for (const DeviceRow& device : analysis.devices) {
    if (device.num_kernels > 0) {
      return device.name;
    }
  }
  return analysis.devices.empty() ? "" : analysis.devices.front().name;
}

GpuAttributes gpu_attributes_of(const Analysis& analysis) {
  for (const DeviceRow& device : analysis.devices) {
    if (device.num_kernels > 0) {
      return {device.num_sms, device.memory_bytes, device.memory_bytes_per_s};
    }
  }
  return {};
}

}  // namespace gpuwhy
