// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy model: what a model must cost and how fast a GPU could run it, with no run at all.
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands/model_document.h"
#include "cli/json_output.h"
#include "session/reading/named_model.h"

namespace gpuwhy {
namespace {

struct ModelOptions {
  std::string config;
  std::string gpu;
  std::int64_t prefill_tokens = 2048;
  std::int64_t decode_context = 4096;
  std::int64_t batch = 1;
  Placement placement;
  std::string kv_dtype;
  std::string image;
  OutputForm output;
  bool why = false;
};

void set_kv_width(const std::string& dtype, Llm& llm) {
  if (dtype.empty()) {
    return;
  }
  const auto width = width_of(dtype);
  if (!width) {
    throw Error(ErrorKind::kUsage, fmt::format("--kv-dtype '{}' is not known", printable(dtype)),
                "as bf16 or fp8");
  }
  llm.kv_width = *width;
}

void find_bounds(const ModelOptions& options, ModelAnswer& answer) {
  if (options.gpu.empty()) {
    return;
  }
  answer.is_gpu_asked = true;
  answer.gpu = named_gpu(options.gpu);
  if (answer.gpu.gpu) {
    answer.prefill_bound = bound_of(answer.llm, answer.prefill, *answer.gpu.gpu);
    answer.decode_bound = bound_of(answer.llm, answer.decode, *answer.gpu.gpu);
    answer.prefill_links =
        link_time(answer.llm, options.prefill_tokens, options.placement, *answer.gpu.gpu);
    answer.decode_links = link_time(answer.llm, options.batch, options.placement, *answer.gpu.gpu);
  }
}

ModelAnswer answer_of(const ModelOptions& options) {
  ModelAnswer answer;
  NamedModel named = named_model(options.config);
  set_kv_width(options.kv_dtype, named.llm);
  answer.name = named.name;
  answer.params = params_of(named.llm);
  answer.placement = options.placement;
  answer.memory = memory_need(named.llm, options.placement, options.decode_context);
  answer.llm = shard_of(named.llm, options.placement.tensor);
  answer.prefill_work = prefill_work(options.prefill_tokens);
  answer.decode_work = decode_work(options.decode_context, options.batch);
  answer.prefill = cost_of(answer.llm, answer.prefill_work);
  answer.decode = cost_of(answer.llm, answer.decode_work);
  LlmWork eager = answer.prefill_work;
  eager.is_full_square = true;
  answer.prefill_executed_flops = cost_of(answer.llm, eager).total_flops();
  LlmWork absorbed = answer.decode_work;
  absorbed.is_mla_absorbed = true;
  answer.decode_executed_flops = cost_of(answer.llm, absorbed).total_flops();
  if (!options.image.empty()) {
    if (!answer.llm.vision) {
      throw Error(ErrorKind::kUsage, fmt::format("{} takes no images", printable(answer.name)));
    }
    answer.image = image_cost(*answer.llm.vision, image_of(options.image));
  }
  find_bounds(options, answer);
  answer.is_why_asked = options.why;
  if (options.why) {
    answer.conventions = compare_conventions(named.llm, answer.prefill_work.new_tokens,
                                             answer.decode_work.cached_tokens + 1);
  }
  return answer;
}

std::vector<std::string> gpu_names() {
  std::vector<std::string> names;
  for (const GpuSpec& gpu : known_gpus()) {
    names.push_back(gpu.name);
  }
  return names;
}

int run_model(const ModelOptions& options, Context& context) {
  check_pages(options.output.pages, options.output.is_json());
  const ModelAnswer answer = answer_of(options);
  print_answer(
      options.output, [&] { return model_document(answer); },
      [&] { return to_json_text(model_json(answer)); }, context.console);
  return kExitOk;
}

}  // namespace

Command model_command() {
  auto options = std::make_shared<ModelOptions>();
  Command command =
      command_of("model", "Compute a model's minimum cost, and how fast a GPU could run it",
                 options, run_model);
  command.options = {
      required(
          {"CONFIG",
           "",
           "config.json, checkpoint directory, .gguf, .safetensors, or a name of: gpuwhy list models",
           &options->config,
           {},
           model_names}),
      {"--gpu-name",
       "NAME",
       "GPU as the driver spells it, as in: gpuwhy list gpus, or a YAML file with its row",
       &options->gpu,
       {},
       gpu_names},
      {"--prefill", "N", "Tokens of the prompt, one sequence", &options->prefill_tokens},
      {"--context", "C", "Context length of a decode step, its own token included",
       &options->decode_context},
      {"--batch", "B", "Sequences of a decode step", &options->batch},
      {"--tp", "N", "Cost of one of N GPUs, tensor parallel", &options->placement.tensor},
      {"--pp", "N", "Memory with layers in N pipeline stages", &options->placement.pipeline},
      {"--ep", "N", "Memory with experts divided among N GPUs", &options->placement.expert},
      {"--kv-dtype", "TYPE", "Width of the KV cache, as fp8 (that of the model)",
       &options->kv_dtype},
      {"--image", "WxH", "Cost of an image of this size in pixels", &options->image},
      {"--why", "", "Explain why other tools' numbers differ in this case", &options->why},
  };
  add_output_options(command, options->output);
  command.examples =
      "  gpuwhy model llama_3_1_8b --gpu-name H100-SXM5-80GB --batch 64\n"
      "  gpuwhy model ~/models/Qwen3-8B --gpu-name 'NVIDIA L4' --why\n";
  return command;
}

}  // namespace gpuwhy
