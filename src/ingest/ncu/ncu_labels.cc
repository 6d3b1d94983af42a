// SPDX-License-Identifier: Apache-2.0
//
// Labels of ncu's details page and the metrics they stand for.
//
// They are from the section files contained in reports of 2022.3 to 2025.1. Two labels mean
// different metrics in different places; they are handled first.
#include <algorithm>
#include <iterator>

#include "ingest/ncu/ncu_rows.h"

namespace gpuwhy {
namespace {

struct Label {
  std::string_view label;
  std::string_view metric;
};

constexpr Label kLabels[] = {
    {"# SMs", "launch__sm_count"},
    {"# TPCs", "launch__tpc_count"},
    {"Achieved Active Warps Per SM", "sm__warps_active.avg.per_cycle_active"},
    {"Achieved Occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active"},
    {"Active Warps Per Scheduler", "smsp__warps_active.avg.per_cycle_active"},
    {"Average DRAM Active Cycles", "dram__cycles_active.avg"},
    {"Average L1 Active Cycles", "l1tex__cycles_active.avg"},
    {"Average L2 Active Cycles", "lts__cycles_active.avg"},
    {"Average SM Active Cycles", "sm__cycles_active.avg"},
    {"Average SMSP Active Cycles", "smsp__cycles_active.avg"},
    {"Avg. Active Threads Per Warp", "smsp__thread_inst_executed_per_inst_executed.ratio"},
    {"Avg. Divergent Branches", "smsp__sass_branch_targets_threads_divergent.avg"},
    {"Avg. Executed Instructions Per Scheduler", "smsp__inst_executed.avg"},
    {"Avg. Issued Instructions Per Scheduler", "smsp__inst_issued.avg"},
    {"Avg. Not Predicated Off Threads Per Warp",
     "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"},
    {"Block Limit Barriers", "launch__occupancy_limit_barriers"},
    {"Block Limit Registers", "launch__occupancy_limit_registers"},
    {"Block Limit SM", "launch__occupancy_limit_blocks"},
    {"Block Limit Shared Mem", "launch__occupancy_limit_shared_mem"},
    {"Block Limit Warps", "launch__occupancy_limit_warps"},
    {"Block Size", "launch__block_size"},
    {"Branch Efficiency", "smsp__sass_average_branch_targets_threads_uniform.pct"},
    {"Branch Instructions", "smsp__inst_executed_op_branch.sum"},
    {"Branch Instructions Ratio", "derived__smsp__inst_executed_op_branch_pct"},
    {"Cluster Occupancy", "launch__occupancy_cluster_pct"},
    {"Cluster Scheduling Policy", "launch__cluster_scheduling_policy"},
    {"Cluster Size", "launch__cluster_size"},
    {"Compute (SM) Throughput", "sm__throughput.avg.pct_of_peak_sustained_elapsed"},
    {"Compute (SM) [%]", "sm__throughput.avg.pct_of_peak_sustained_elapsed"},
    {"DRAM Bandwidth", "dram__bytes.sum.per_second"},
    {"DRAM Frequency", "dram__cycles_elapsed.avg.per_second"},
    {"DRAM Throughput", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"Driver Shared Memory Per Block", "launch__shared_mem_per_block_driver"},
    {"Duration", "gpu__time_duration.sum"},
    {"Dynamic Shared Memory Per Block", "launch__shared_mem_per_block_dynamic"},
    {"Elapsed Cycles", "gpc__cycles_elapsed.max"},
    {"Eligible Warps Per Scheduler", "smsp__warps_eligible.avg.per_cycle_active"},
    {"Executed Instructions", "smsp__inst_executed.sum"},
    {"Executed Ipc Active", "sm__inst_executed.avg.per_cycle_active"},
    {"Executed Ipc Elapsed", "sm__inst_executed.avg.per_cycle_elapsed"},
    {"Function Cache Configuration", "launch__func_cache_config"},
    {"Grid Size", "launch__grid_size"},
    {"Issue Slots Busy", "sm__inst_issued.avg.pct_of_peak_sustained_active"},
    {"Issued Instructions", "smsp__inst_issued.sum"},
    {"Issued Ipc Active", "sm__inst_issued.avg.per_cycle_active"},
    {"Issued Warp Per Scheduler", "smsp__issue_active.avg.per_cycle_active"},
    {"L1 Cache Bandwidth (Global/Local)",
     "derived__l1tex__lsu_writeback_bytes_mem_lg.sum.per_second"},
    {"L1/TEX Cache Frequency", "l1tex__cycles_elapsed.avg.per_second"},
    {"L1/TEX Cache Throughput", "l1tex__throughput.avg.pct_of_peak_sustained_active"},
    {"L1/TEX Hit Rate", "l1tex__t_sector_hit_rate.pct"},
    {"L2 Cache Bandwidth", "l1tex__m_xbar2l1tex_read_bytes.sum.per_second"},
    {"L2 Cache Frequency", "lts__cycles_elapsed.avg.per_second"},
    {"L2 Cache Throughput", "lts__throughput.avg.pct_of_peak_sustained_elapsed"},
    {"L2 Compression Ratio", "lts__average_gcomp_output_sector_compression_achieved_rate.ratio"},
    {"L2 Compression Success Rate", "lts__average_gcomp_input_sector_success_rate.pct"},
    {"L2 Hit Rate", "lts__t_sector_hit_rate.pct"},
    {"Max Active Clusters", "launch__cluster_max_active"},
    {"Max Bandwidth", "gpu__compute_memory_request_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"Max Cluster Size", "launch__cluster_max_potential_size"},
    {"Mem Busy", "gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"Mem Pipes Busy", "sm__memory_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"Memory Throughput", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"Memory [%]", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"No Eligible", "smsp__issue_inst0.avg.pct_of_peak_sustained_active"},
    {"One or More Eligible", "smsp__issue_active.avg.pct_of_peak_sustained_active"},
    {"Overall GPU Occupancy", "launch__occupancy_cluster_gpu_pct"},
    {"Predicated-On DADD Thread Instructions Executed Per Cycle",
     "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum.per_cycle_elapsed"},
    {"Predicated-On DFMA Operations Per Cycle",
     "derived__smsp__sass_thread_inst_executed_op_dfma_pred_on_x2"},
    {"Predicated-On DFMA Thread Instructions Executed Per Cycle",
     "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum.per_cycle_elapsed"},
    {"Predicated-On DMUL Thread Instructions Executed Per Cycle",
     "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum.per_cycle_elapsed"},
    {"Predicated-On FADD Thread Instructions Executed Per Cycle",
     "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed"},
    {"Predicated-On FFMA Operations Per Cycle",
     "derived__smsp__sass_thread_inst_executed_op_ffma_pred_on_x2"},
    {"Predicated-On FFMA Thread Instructions Executed Per Cycle",
     "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed"},
    {"Predicated-On FMUL Thread Instructions Executed Per Cycle",
     "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed"},
    {"Predicated-On HADD Thread Instructions Executed Per Cycle",
     "smsp__sass_thread_inst_executed_op_hadd_pred_on.sum.per_cycle_elapsed"},
    {"Predicated-On HFMA Operations Per Cycle",
     "derived__smsp__sass_thread_inst_executed_op_hfma_pred_on_x2"},
    {"Predicated-On HMUL Thread Instructions Executed Per Cycle",
     "smsp__sass_thread_inst_executed_op_hmul_pred_on.sum.per_cycle_elapsed"},
    {"Registers Per Thread", "launch__registers_per_thread"},
    {"SM Active Cycles", "sm__cycles_active.avg"},
    {"SM Busy", "sm__instruction_throughput.avg.pct_of_peak_sustained_active"},
    {"Shared Memory Configuration Size", "launch__shared_mem_config_size"},
    {"Stack Size", "launch__stack_size"},
    {"Static Shared Memory Per Block", "launch__shared_mem_per_block_static"},
    {"Tensor Operations Per Cycle", "derived__smsp__inst_executed_pipe_tensor_x512"},
    {"Theoretical Active Warps per SM", "sm__maximum_warps_avg_per_active_cycle"},
    {"Theoretical DRAM Bytes Accessible", "dram__bytes.sum.peak_sustained"},
    {"Theoretical L1/TEX Cache Bytes Accessible",
     "derived__l1tex__lsu_writeback_bytes_mem_lg.sum.peak_sustained"},
    {"Theoretical L2 Cache Bytes Accessible", "l1tex__m_xbar2l1tex_read_bytes.sum.peak_sustained"},
    {"Theoretical Occupancy", "sm__maximum_warps_per_active_cycle_pct"},
    {"Theoretical Predicated-On DFMA Operations",
     "derived__sm__sass_thread_inst_executed_op_dfma_pred_on_x2"},
    {"Theoretical Predicated-On DFMA Thread Instructions Executed",
     "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained"},
    {"Theoretical Predicated-On FFMA Operations",
     "derived__sm__sass_thread_inst_executed_op_ffma_pred_on_x2"},
    {"Theoretical Predicated-On FFMA Thread Instructions Executed",
     "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained"},
    {"Theoretical Predicated-On HFMA Operations",
     "derived__sm__sass_thread_inst_executed_op_hfma_pred_on_x2"},
    {"Theoretical Tensor Operations", "derived__sm__inst_executed_pipe_tensor_x512"},
    {"Threads", "launch__thread_count"},
    {"Total DRAM Elapsed Cycles", "dram__cycles_elapsed.sum"},
    {"Total L1 Elapsed Cycles", "l1tex__cycles_elapsed.sum"},
    {"Total L2 Elapsed Cycles", "lts__cycles_elapsed.sum"},
    {"Total SM Elapsed Cycles", "sm__cycles_elapsed.sum"},
    {"Total SMSP Elapsed Cycles", "smsp__cycles_elapsed.sum"},
    {"Uses Green Context", "launch__uses_green_context"},
    {"Warp Cycles Per Executed Instruction", "smsp__average_warps_active_per_inst_executed.ratio"},
    {"Warp Cycles Per Issued Instruction", "smsp__average_warp_latency_per_inst_issued.ratio"},
    {"Waves Per SM", "launch__waves_per_multiprocessor"},
};

constexpr bool is_sorted_by_label() {
  return std::ranges::is_sorted(kLabels, {}, &Label::label);
}
static_assert(is_sorted_by_label(), "the search below needs it");

}  // namespace

std::string_view metric_of_label(std::string_view section, std::string_view item,
                                 std::string_view label) {
  if (label == "Memory Throughput" && section == "Memory Workload Analysis") {
    return "dram__bytes.sum.per_second";
  }
  if (label == "SM Frequency") {
    if (item.find("Achieved") != std::string_view::npos) {
      return "smsp__cycles_elapsed.avg.per_second";
    }
    return item.empty() ? "gpc__cycles_elapsed.avg.per_second"
                        : "sm__cycles_elapsed.avg.per_second";
  }
  const auto* at = std::ranges::lower_bound(kLabels, label, {}, &Label::label);
  return at != std::end(kLabels) && at->label == label ? at->metric : "";
}

}  // namespace gpuwhy
