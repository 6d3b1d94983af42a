// SPDX-License-Identifier: Apache-2.0
//
// Options of all commands that read a recording, and of the price of a GPU.
#include "cli/recording_options.h"

#include <fmt/format.h>

#include "analysis/profile.h"
#include "base/error.h"
#include "base/text.h"
#include "session/reading/recording.h"

namespace gpuwhy {

Option rules_option(std::string& target) {
  return shared(OptionGroup::kRecording,
                {"--rules", "FILE",
                 "Your own rules for stages and kernel families; they come first", &target});
}

void add_mark_options(Command& command, RecordingOptions& target) {
  command.add(
      OptionGroup::kRecording,
      {{"--mark", "STAGE=NAME",
        "Ranges of this name are this stage; NAME* for a prefix; may be repeated", &target.marks},
       {"--step", "NAME", "Each range of this name is one step; may be repeated",
        &target.step_names},
       rules_option(target.rules),
       {"--annotations", "FILE", "Names of CUDA graph nodes: PyTorch's kernel_annotations_*.json",
        &target.graph_names.annotations},
       {"--capture-trace", "FILE",
        "Recording of a graph's capture, or of the program without graphs; may be repeated",
        &target.graph_names.capture_traces}});
}

void add_part_options(Command& command, RecordingOptions& target) {
  command.add(OptionGroup::kRecording,
              {{"--steps", "A..B", "Only these steps, counted from 0; B may be left out",
                &target.window.steps},
               {"--trim", "", "Drop what is before the first and after the last mark, or kernel",
                &target.window.is_trimmed}});
}

void add_request_options(Command& command, RecordingOptions& target) {
  command.add(
      OptionGroup::kRecording,
      {{"--requests", "FILE",
        "Join requests to steps: a client's record of them (docs/requests.md)", &target.requests},
       {"--slo", "LIMITS", "Goodput: requests within these, as ttft=500ms,itl=50ms",
        &target.service_limits}});
}

void add_model_options(Command& command, ModelChoice& target, RecordingOptions& recording) {
  EfficiencySetup& setup = target.setup;
  command.add(
      OptionGroup::kModel,
      {{"--model",
        "MODEL",
        "Compute MFU and MBU for this model: a name of gpuwhy list models, or a path",
        &target.model,
        {},
        model_names},
       {"--gpu-name", "NAME",
        "The GPU if the recording does not name it; with --model, also another one to compare with",
        &target.gpu_name},
       {"--prompt-tokens", "N", "Prompt length in tokens, if no mark says", &setup.prompt_tokens},
       {"--new-tokens", "N", "Tokens generated in a decode loop, if no mark says",
        &setup.new_tokens},
       {"--batch", "B", "Batch size, if no mark says", &setup.batch},
       {"--context", "C", "Mean context length of a decode step in tokens, if no mark says",
        &setup.context},
       {"--tp", "N",
        "Tensor-parallel ranks that share one copy of the model, if the recordings do not show it",
        &recording.parallelism.tensor},
       {"--pp", "N", "Pipeline stages that share it", &recording.parallelism.pipeline},
       {"--dp", "N", "Replicas of the model in the recordings", &recording.parallelism.data},
       {"--image", "WxH", "Size of the image in the prompt, in pixels", &target.image}});
}

void check_model_options(const ModelChoice& choice) {
  const EfficiencySetup& setup = choice.setup;
  const std::pair<const char*, bool> given[] = {
      {"--prompt-tokens", setup.prompt_tokens.has_value()},
      {"--new-tokens", setup.new_tokens.has_value()},
      {"--context", setup.context.has_value()},
      {"--image", !choice.image.empty()}};
  for (const auto& [option, is_given] : given) {
    if (is_given && choice.model.empty()) {
      throw Error(ErrorKind::kUsage, fmt::format("{} requires --model", option),
                  "add --model NAME (gpuwhy list models) or --model PATH");
    }
  }
}

void add_recording_options(Command& command, RecordingOptions& target) {
  command.add(OptionGroup::kRecording,
              {{"--gpu", "N", "Only this GPU, as CUDA numbers it", &target.filter.device},
               {"--pid", "N", "Only this process", &target.filter.pid},
               {"--from", "TIME", "Only from this time after the start, as 2s or 150ms",
                &target.window.from},
               {"--to", "TIME", "Only up to this time after the start", &target.window.to}});
  add_part_options(command, target);
  add_mark_options(command, target);
  command.add(OptionGroup::kRecording,
              {at_most(1024, {"--threads", "N", "Threads that read the file", &target.num_threads}),
               {"--memory-limit", "BYTES",
                "Memory limit, as 4GiB; makes the timeline coarser to fit, or fails",
                &target.memory_limit_bytes}});
}

std::optional<GpuPrice> gpu_price_of(const std::string& text) {
  std::optional<GpuPrice> price = parse_gpu_price(text);
  if (!price && !text.empty()) {
    throw Error(ErrorKind::kUsage, fmt::format("--gpu-hour-price {}: not a price", printable(text)),
                "give a number above 0, and the currency after it if you like: 2.50, '2.50 EUR'");
  }
  return price;
}

void say_how_read(const Profile& profile, Console& console) {
  for (const Diagnostic& note : profile.rules.notes) {
    console.err(fmt::format("gpuwhy: {}\n", note.sentence));
  }
  if (const auto& window = profile.analysis.capture.window) {
    console.err(fmt::format("gpuwhy: a part of the recording: {}\n", window->why));
  }
}

}  // namespace gpuwhy
