// SPDX-License-Identifier: Apache-2.0
//
// Host phases of a step: what the engine does on the CPU around and inside it.
//
// Phases nest (a scheduler's run_batch holds the forward pass), so their times do not add up to a
// step. A range of a name inside another of the same name counts twice.
#include "analysis/idle/host_phases.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/analysis.h"
#include "analysis/stages/step_markers.h"

namespace gpuwhy {
namespace {

// One name, or several by a pattern of step_markers.cc.
struct PhaseRow {
  const char* engine;
  const char* pattern;
  bool is_plain_word = false;  // counts only beside steps of the engine
};

constexpr PhaseRow kPhases[] = {
    // vllm/v1, 0.26.1rc0, with VLLM_NVTX_SCOPES_FOR_PROFILING or VLLM_CUSTOM_SCOPES_FOR_PROFILING
    {"vLLM", "gpu_model_runner: *"},
    {"vLLM", "schedule: *"},
    {"vLLM", "llm_engine step: *"},
    // srt/utils/nvtx_utils.py, srt/speculative/spec_utils.py, 2026-08-23
    {"SGLang", "scheduler.recv_requests"},
    {"SGLang", "scheduler.process_input_requests"},
    {"SGLang", "scheduler.get_next_batch_to_run"},
    {"SGLang", "scheduler.run_batch"},
    {"SGLang", "scheduler.process_batch_result"},
    {"SGLang", "draft", true},
    {"SGLang", "draft_extend", true},
    // _torch/pyexecutor/py_executor.py, to 2026-10
    {"TensorRT-LLM", "_schedule", true},
    {"TensorRT-LLM", "_fetch_new_requests", true},
    {"TensorRT-LLM", "_fetch_and_activate_new_requests", true},
    {"TensorRT-LLM", "broadcast_requests", true},
    {"TensorRT-LLM", "_prepare_inputs", true},
    {"TensorRT-LLM", "_prepare_tp_inputs", true},
    {"TensorRT-LLM", "_sample_async", true},
    {"TensorRT-LLM", "_process_requests", true},
    {"TensorRT-LLM", "_update_requests", true},
    {"TensorRT-LLM", "_handle_responses", true},
    {"TensorRT-LLM", "_write_finish_reasons", true},
    {"TensorRT-LLM", "prepare_resources", true},
    // megatron/core/inference, 0.20.0
    {"Megatron", "forward_pass", true},
    {"Megatron", "async_sched_forward_pass", true},
    {"Megatron", "sampling", true},
    {"Megatron", "bookkeeping", true},
    {"Megatron", "detokenization", true},
    {"Megatron", "coordinator_streaming", true},
    {"Megatron", "coordinator_communication", true},
    {"Megatron", "drain_zmq_socket", true},
    {"Megatron", "add_request", true},
    {"Megatron", "mtp-spec-decoding/*", true},
    // PyTorch, and what training loops write around it
    {"PyTorch", "## forward ##"},
    {"PyTorch", "## backward ##"},
    {"PyTorch", "## optimizer ##"},
    {"PyTorch", "## zero_grad ##"},
    {"PyTorch", "## load_batch ##"},
    {"PyTorch", "## data_load ##"},
    {"PyTorch", "Optimizer.step#*"},
    {"PyTorch", "Optimizer.zero_grad#*"},
    {"PyTorch", "FSDP::*"},
    {"PyTorch", "DistributedDataParallel.forward"},
    {"PyTorch", "enumerate(DataLoader)#*"},
};

constexpr std::size_t kMostPhases = 50;

const PhaseRow* row_of(std::string_view text, const std::string& engine) {
  const auto* row = std::ranges::find_if(kPhases, [&](const PhaseRow& one) {
    return (!one.is_plain_word || one.engine == engine) && fits_pattern(one.pattern, text);
  });
  return row == std::end(kPhases) ? nullptr : row;
}

// Whether these ranges are the steps themselves.
bool is_step_of(const std::string& engine, std::string_view text) {
  const auto marker = read_step_marker("", text);
  return marker && marker->grammar->engine == engine;
}

// "FSDP::pre_forward (encoder.block.18), op_id = 315494" is one of many FSDP::pre_forward.
std::string phase_name(std::string_view text) {
  text = text.substr(0, text.find(", op_id = "));
  if (text.starts_with("FSDP::")) {
    text = text.substr(0, text.find(" ("));
  }
  return std::string(text);
}

}  // namespace

std::vector<HostPhase> find_host_phases(const std::vector<RangeTotal>& ranges,
                                        const std::string& engine) {
  std::map<std::string, HostPhase> by_name;
  for (const RangeTotal& range : ranges) {
    const PhaseRow* row = row_of(range.text, engine);
    if (row != nullptr && !is_step_of(engine, range.text)) {
      const std::string name = phase_name(range.text);
      HostPhase& phase = by_name[name];
      phase.phase = name;
      phase.engine = row->engine;
      phase.count += range.instances;
      phase.host_ns += range.host_ns;
      phase.kernels += range.kernels;
      phase.kernel_ns += range.kernel_ns;
    }
  }
  std::vector<HostPhase> phases;
  phases.reserve(by_name.size());
  for (auto& [name, phase] : by_name) {
    phases.push_back(std::move(phase));
  }
  std::ranges::sort(phases, {}, [](const HostPhase& one) {
    return std::tuple(-one.host_ns, one.phase, -one.kernel_ns);
  });
  phases.resize(std::min(phases.size(), kMostPhases));
  return phases;
}

}  // namespace gpuwhy
