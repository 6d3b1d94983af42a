// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy layers: the passes, layers and parts of the model in a recording.
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "analysis/recovered_steps.h"
#include "base/csv.h"
#include "base/error.h"
#include "base/exit_code.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/recording_options.h"
#include "ingest/ingest.h"
#include "report/metrics.h"
#include "report/sections.h"
#include "session/model_target.h"
#include "session/named_model.h"
#include "session/recording.h"
#include "trace/device_label.h"

namespace gpuwhy {
namespace {

struct LayersOptions {
  std::string file;
  std::string model;
  std::string gpu_name;
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> context;
  std::optional<std::int64_t> prompt_tokens;
  bool is_json = false;
  JsonPages pages;
  bool has_kernels = false;
  RecordingOptions recording;
};

// One line per kernel in a pass, in order of start on each GPU.
std::string kernels_text(const Profile& profile) {
  const Trace& trace = *profile.trace;
  const StructureSummary& summary = *profile.analysis.structure;
  std::string text = "device,pid,start_ns,duration_ns,pass,number,kind,layer,part,kernel_name\n";
  for (const KernelStream& stream : profile.structure.streams) {
    for (std::size_t number = 0; number < stream.passes.size(); ++number) {
      const ModelPass& pass = stream.passes[number];
      for (std::uint32_t i = pass.begin; i < pass.end; ++i) {
        const std::uint32_t row = stream.kernels[i];
        const std::uint32_t part = profile.kernel_parts[row];
        const int layer = pass.layer_at(i);
        const bool is_in_layer = layer >= 0 && layer < pass.num_layers();
        text += fmt::format(
            "{},{},{},{},{},{},{},{},{},{}\n", device_label(trace.devices[stream.device]),
            trace.processes[stream.process].pid, trace.kernels.start_ns[row],
            trace.kernels.end_ns[row] - trace.kernels.start_ns[row], summary.passes[pass.kind].pass,
            number, text_of(pass.work), is_in_layer ? fmt::to_string(layer) : "",
            part == kNone ? "" : csv_cell(summary.parts[part].part),
            csv_cell(trace.strings[trace.kernels.name[row]]));
      }
    }
  }
  return text;
}

int run_layers(const LayersOptions& options, Context& context) {
  check_pages(options.pages, options.is_json);
  ProfileWants wants;
  wants.batch = options.batch;
  if (!options.model.empty()) {
    NamedModel named = named_model(options.model);
    wants.model.emplace();
    wants.model->model_name = named.name;
    wants.model->llm = std::move(named.llm);
    wants.model->batch = options.batch;
    wants.model->context = options.context;
    wants.model->prompt_tokens = options.prompt_tokens;
    if (!options.gpu_name.empty()) {
      wants.model->gpu = chosen_gpu(options.gpu_name);
    }
  }
  wants.gpu_name = options.gpu_name;
  const Profile profile = profile_recording(options.file, options.recording, context.system, wants);
  say_how_read(profile, context.console);
  if (options.has_kernels) {
    context.console.out(profile.analysis.structure ? kernels_text(profile) : "");
    return kExitOk;
  }
  const Metrics metrics = metrics_of(profile.analysis);
  if (options.is_json) {
    context.console.out(paged(metrics_part_text(metrics, "layers", "structure"), options.pages));
    return kExitOk;
  }
  SectionOptions shown;
  shown.is_terminal = true;
  shown.has_all_parts = true;
  context.console.out(
      terminal_text(section_document(metrics, {"model"}, shown), context.console.form()));
  return kExitOk;
}

}  // namespace

Command layers_command() {
  auto options = std::make_shared<LayersOptions>();
  Command command;
  command.name = "layers";
  command.summary = "Print the passes and layers of a model, read from the order of its kernels";
  command.options = {
      required({"FILE", "", recording_kinds(false) + ", or a bundle", &options->file}),
      {"--model", "NAME", "Compare parts with the cost of this model: a name or a config.json",
       &options->model},
      {"--gpu-name", "NAME", "The GPU, where the recording does not name it", &options->gpu_name},
      {"--batch", "B", "Sequences of a decode step, for tokens per second", &options->batch},
      {"--context", "C", "Mean context length of a decode step, for the cost of attention",
       &options->context},
      {"--prompt-tokens", "N", "Prompt length in tokens, for the cost of attention in prefill",
       &options->prompt_tokens},
      {"--kernels", "", "Each kernel with its pass, layer and part, as CSV", &options->has_kernels},
      {"--json", "", "A document with `structure` as in metrics.json", &options->is_json},
  };
  add_page_options(command, options->pages);
  add_recording_options(command, options->recording);
  command.examples =
      "  gpuwhy layers run.sqlite\n"
      "  gpuwhy layers run.sqlite --model llama-3.1-8b\n";
  command.run = [options](Context& context) { return run_layers(*options, context); };
  return command;
}

}  // namespace gpuwhy
