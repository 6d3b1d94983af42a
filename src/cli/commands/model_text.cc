// SPDX-License-Identifier: Apache-2.0
//
// A model's costs for a reader: the ledger by part, then the bound with every denominator beside
// it. A bound whose peak, bandwidth or source is not shown cannot be argued with.
#include "cli/commands/model_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/console.h"

namespace gpuwhy {
namespace {

// 8,030,261,248
std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

// 930128855040 as "930.1 G"; --json has every digit.
std::string scaled(std::int64_t value) {
  static constexpr const char* kPrefixes[] = {"", " k", " M", " G", " T", " P", " E"};
  constexpr double kStep = 1000;
  auto shown = static_cast<double>(value);
  std::size_t i = 0;
  while (i + 1 < std::size(kPrefixes) && std::abs(shown) >= kStep - 0.05) {
    shown /= kStep;
    ++i;
  }
  return fmt::format("{:.4g}{}", shown, kPrefixes[i]);
}

// Each line of its own, continued under its values.
std::string wrapped_lines(std::string_view lines, std::size_t width) {
  constexpr std::size_t kIndent = 11;
  std::string text;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    text += wrapped(lines.substr(0, end), width, kIndent) + "\n";
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return text;
}

std::string milliseconds(double seconds) {
  return fmt::format("{:.4g} ms", seconds * 1e3);
}

std::string ledger_text(const ModelAnswer& answer, std::size_t width) {
  Table table;
  table.headings = {"part", "prefill FLOP", "prefill bytes", "decode FLOP", "decode bytes"};
  const auto add = [&](const std::string& name, std::int64_t a, std::int64_t b, std::int64_t c,
                       std::int64_t d) {
    const auto cell = [](std::int64_t value) { return value == 0 ? "-" : scaled(value); };
    if (a != 0 || b != 0 || c != 0 || d != 0) {
      table.rows.push_back({name, cell(a), cell(b), cell(c), cell(d)});
    }
  };
  for (std::size_t i = 0; i < kNumLlmParts; ++i) {
    add(kLlmPartNames[i], answer.prefill.flops.counts[i].value(),
        answer.prefill.weight_bytes.counts[i].value(), answer.decode.flops.counts[i].value(),
        answer.decode.weight_bytes.counts[i].value());
  }
  add("kv read", 0, answer.prefill.kv_read_bytes.value(), 0, answer.decode.kv_read_bytes.value());
  add("kv write", 0, answer.prefill.kv_write_bytes.value(), 0,
      answer.decode.kv_write_bytes.value());
  add("state read", 0, answer.prefill.state_read_bytes.value(), 0,
      answer.decode.state_read_bytes.value());
  add("state write", 0, answer.prefill.state_write_bytes.value(), 0,
      answer.decode.state_write_bytes.value());
  add("total", answer.prefill.total_flops(), answer.prefill.total_bytes(),
      answer.decode.total_flops(), answer.decode.total_bytes());
  return table_text(table, width);
}

std::string bound_line(const char* what, const CostBound& bound) {
  if (!bound.compute_s) {
    return fmt::format("  {:<8} at least {} (memory); compute n/a ({})\n", what,
                       milliseconds(bound.memory_s), bound.reason);
  }
  return fmt::format("  {:<8} at least {}: {}-bound (compute {}, memory {}; part by part {})\n",
                     what, milliseconds(bound.seconds()),
                     bound.is_compute_bound() ? "compute" : "memory",
                     milliseconds(*bound.compute_s), milliseconds(bound.memory_s),
                     milliseconds(*bound.per_part_s));
}

std::string peaks_text(const Llm& llm, const GpuSpec& gpu) {
  std::string text;
  for (const std::string& dtype : {llm.matmul_dtype, llm.attention_dtype}) {
    const auto peak = gpu.flops_per_s(dtype);
    const std::string shown =
        peak ? fmt::format("{:g} TFLOP/s dense {}", *peak / 1e12, dtype) : "no peak for " + dtype;
    if (text.find(shown) == std::string::npos) {
      text += (text.empty() ? "" : ", ") + shown;
    }
  }
  return text;
}

// Whether weights and sequences fit, and what links carry.
std::string placement_text(const ModelAnswer& answer, const GpuSpec& gpu) {
  const auto usable = usable_bytes(gpu);
  const std::int64_t context = answer.decode_work.cached_tokens + 1;
  std::string text;
  if (!usable) {
    text = "  memory   n/a (the table has no memory size of it)\n";
  } else if (const std::int64_t most = answer.memory.sequences_in(*usable); most > 0) {
    text = fmt::format(
        "  memory   fits: {} sequence{} of {} tokens beside the weights, in {:.0f} % of it\n",
        grouped(most), most == 1 ? "" : "s", context, 100 * kUsedMemoryFraction);
  } else {
    text =
        fmt::format("  memory   does not fit: {:.0f} % of it are {}\n", 100 * kUsedMemoryFraction,
                    format_bytes(static_cast<std::uint64_t>(*usable)));
  }
  const LinkTime& links = *answer.decode_links;
  if (answer.placement.tensor > 1) {
    text += links.seconds
                ? fmt::format(
                      "  links    at least {} a prefill, {} a decode step: {} all-reduces, not "
                      "in the bound above\n",
                      milliseconds(*answer.prefill_links->seconds), milliseconds(*links.seconds),
                      links.all_reduces)
                : fmt::format("  links    n/a ({})\n", links.reason);
  }
  if (answer.placement.expert > 1) {
    text += "  experts  n/a (what an all-to-all sends depends on the routing)\n";
  }
  return text;
}

std::string gpu_text(const ModelAnswer& answer) {
  if (!answer.is_gpu_asked) {
    return "\nThe bound in time needs --gpu-name NAME (gpuwhy list gpus).\n";
  }
  if (!answer.gpu.gpu) {
    return fmt::format("\nbound: n/a ({})\n", answer.gpu.reason);
  }
  const GpuSpec& gpu = *answer.gpu.gpu;
  std::string text =
      fmt::format("\n{}: {}, {:g} GB/s\n  source: {} (confidence {})\n", gpu.name,
                  peaks_text(answer.llm, gpu), gpu.bytes_per_s() / 1e9, gpu.source, gpu.confidence);
  text += gpu.note.empty() ? "" : fmt::format("  note: {}\n", gpu.note);
  text += bound_line("prefill", *answer.prefill_bound);
  text += bound_line("decode", *answer.decode_bound);
  text +=
      fmt::format("  {:<8} {:.1f} tokens/s at the bound\n", "",
                  static_cast<double>(answer.decode_work.batch) / answer.decode_bound->seconds());
  if (const auto batch = crossover_batch(answer.llm, gpu)) {
    text += fmt::format("  linear layers turn compute-bound at about {:.0f} tokens a pass{}\n",
                        *batch, answer.llm.moe ? " and expert" : "");
  }
  text += placement_text(answer, gpu);
  return text;
}

std::string conventions_text(const ModelAnswer& answer, std::size_t width) {
  if (answer.conventions.empty()) {
    return answer.is_why_asked ? "\nOther tools' formulas do not cover layers like these.\n" : "";
  }
  Table table;
  table.headings = {"quantity", "convention", "theirs", "difference", "because"};
  for (const ConventionRow& row : answer.conventions) {
    table.rows.push_back({row.quantity, row.tool, fmt::format("{:.4g}", row.theirs),
                          fmt::format("{:+.1f} %", 100 * row.difference_fraction()), row.because});
  }
  return "\nYour number differs from theirs because (one sequence)\n" + table_text(table, width);
}

std::string head_text(const ModelAnswer& answer) {
  const Llm& llm = answer.llm;
  const LlmParams& params = answer.params;
  std::string text = fmt::format("{}: {}, {} layers, weights {}, products in {}\n",
                                 printable(answer.name), printable(llm.family), llm.layers.size(),
                                 printable(llm.weight_dtype), llm.matmul_dtype);
  text += fmt::format("  parameters  {} in total; a token uses {}, {} of them multiplied\n",
                      grouped(params.total), grouped(params.active), grouped(params.active_matmul));
  text += fmt::format("  KV cache    {} bytes per token\n", grouped(kv_bytes_per_token(llm)));
  text +=
      fmt::format("  memory      {} of weights{}, {} per sequence of {} tokens\n",
                  format_bytes(static_cast<std::uint64_t>(answer.memory.weight_bytes)),
                  answer.placement.num_gpus() > 1 || answer.placement.expert > 1 ? " per GPU" : "",
                  format_bytes(static_cast<std::uint64_t>(answer.memory.sequence.sum())),
                  answer.decode_work.cached_tokens + 1);
  if (answer.placement.tensor > 1) {
    text += fmt::format("  costs are those of one of {} GPUs (tensor parallel)\n",
                        answer.placement.tensor);
  }
  for (const std::string& note : llm.notes) {
    text += fmt::format("  note: {}\n", printable(note));
  }
  return text;
}

Json parts_json(const PartCounts& counts) {
  Json parts = Json::object();
  for (std::size_t i = 0; i < kNumLlmParts; ++i) {
    parts[kLlmPartNames[i]] = counts.counts[i].value();
  }
  return parts;
}

Json cost_json(const LlmCost& cost, std::int64_t executed_flops) {
  return {{"flops", cost.total_flops()},
          {"bytes", cost.total_bytes()},
          {"executed_flops", executed_flops},
          {"least_bytes", cost.least_bytes()},
          {"most_bytes", cost.most_bytes()},
          {"kv_read_bytes", cost.kv_read_bytes.value()},
          {"kv_write_bytes", cost.kv_write_bytes.value()},
          {"state_read_bytes", cost.state_read_bytes.value()},
          {"state_write_bytes", cost.state_write_bytes.value()},
          {"flops_by_part", parts_json(cost.flops)},
          {"weight_bytes_by_part", parts_json(cost.weight_bytes)}};
}

Json gpu_json(const GpuMatch& match) {
  if (!match.gpu) {
    return nullptr;
  }
  Json peaks = Json::object();
  for (const auto& [dtype, tflops] : match.gpu->dense_tflops) {
    peaks[dtype] = tflops;
  }
  return {{"name", match.gpu->name},
          {"bytes_per_s", match.gpu->bytes_per_s()},
          {"dense_tflops", peaks},
          {"source", match.gpu->source},
          {"confidence", match.gpu->confidence},
          {"note", match.gpu->note}};
}

void add_bound(const char* what, const std::optional<CostBound>& bound, Json& json) {
  const auto key = [&](const char* name) { return fmt::format("{}_{}", what, name); };
  const auto ms = [](const std::optional<double>& seconds) {
    return seconds ? Json(*seconds * 1e3) : Json(nullptr);
  };
  json[key("ms")] = bound ? Json(bound->seconds() * 1e3) : Json(nullptr);
  json[key("side")] = !bound || !bound->compute_s
                          ? Json(nullptr)
                          : Json(bound->is_compute_bound() ? "compute" : "memory");
  json[key("compute_ms")] = bound ? ms(bound->compute_s) : Json(nullptr);
  json[key("memory_ms")] = bound ? ms(bound->memory_s) : Json(nullptr);
  json[key("per_part_ms")] = bound ? ms(bound->per_part_s) : Json(nullptr);
}

Json memory_json(const ModelAnswer& answer) {
  Json usable_json = nullptr;
  Json most_json = nullptr;
  if (answer.gpu.gpu) {
    if (const auto usable = usable_bytes(*answer.gpu.gpu)) {
      usable_json = *usable;
      most_json = answer.memory.sequences_in(*usable);
    }
  }
  return {{"weight_bytes", answer.memory.weight_bytes},
          {"sequence_kv_bytes", answer.memory.sequence.kv.value()},
          {"sequence_state_bytes", answer.memory.sequence.state.value()},
          {"context", answer.decode_work.cached_tokens + 1},
          {"usable_bytes", usable_json},
          {"most_sequences", most_json}};
}

Json links_json(const std::optional<LinkTime>& links) {
  if (!links) {
    return nullptr;
  }
  return {{"all_reduces", links->all_reduces},
          {"all_reduce_bytes", links->bytes},
          {"ms", links->seconds ? Json(*links->seconds * 1e3) : Json(nullptr)},
          {"reason", links->reason}};
}

Json bound_json(const ModelAnswer& answer) {
  Json json = Json::object();
  add_bound("prefill", answer.prefill_bound, json);
  add_bound("decode", answer.decode_bound, json);
  std::string reason = answer.is_gpu_asked ? answer.gpu.reason : "needs --gpu-name NAME";
  if (answer.decode_bound) {
    reason = answer.decode_bound->reason;
  }
  json["reason"] = reason;
  return json;
}

}  // namespace

std::string model_text(const ModelAnswer& answer, std::size_t width) {
  std::string text = wrapped_lines(head_text(answer), width);
  text += wrapped(
      fmt::format(
          "\nLeast that must be computed and moved: prefill of {} tokens, and a decode step "
          "of {} sequence{} at a context of {}",
          answer.prefill_work.new_tokens, answer.decode_work.batch,
          answer.decode_work.batch == 1 ? "" : "s", answer.decode_work.cached_tokens + 1),
      width, 2);
  text += "\n";
  text += ledger_text(answer, width);
  std::string notes;
  if (answer.llm.moe && answer.decode.least_bytes() != answer.decode.most_bytes()) {
    notes += fmt::format(
        "  decode bytes lie between {} (all take the same experts) and {} (none shared); the "
        "total above expects uniform routing\n",
        scaled(answer.decode.least_bytes()), scaled(answer.decode.most_bytes()));
  }
  if (answer.decode_executed_flops != answer.decode.total_flops()) {
    notes += fmt::format("  kernels on compressed keys execute {} FLOP a decode step\n",
                         scaled(answer.decode_executed_flops));
  }
  if (answer.image) {
    notes += fmt::format("  an image is {} tokens: {} FLOP in the tower, {} in the projector\n",
                         answer.image->tokens, scaled(answer.image->tower_flops),
                         scaled(answer.image->projector_flops));
  }
  return text + wrapped_lines(notes + gpu_text(answer), width) + conventions_text(answer, width);
}

std::string model_json(const ModelAnswer& answer) {
  const Llm& llm = answer.llm;
  Json json = json_document("model", 1);
  json["model"] = {{"name", answer.name},
                   {"family", llm.family},
                   {"layers", llm.layers.size()},
                   {"weight_dtype", llm.weight_dtype},
                   {"matmul_dtype", llm.matmul_dtype},
                   {"attention_dtype", llm.attention_dtype},
                   {"kv_bytes_per_token", kv_bytes_per_token(llm)},
                   {"tensor_parallel", answer.placement.tensor},
                   {"pipeline_parallel", answer.placement.pipeline},
                   {"expert_parallel", answer.placement.expert},
                   {"notes", llm.notes}};
  json["params"] = {{"total", answer.params.total},
                    {"active", answer.params.active},
                    {"active_matmul", answer.params.active_matmul},
                    {"text", answer.params.text},
                    {"by_part", parts_json(answer.params.parts)}};
  json["prefill"] = cost_json(answer.prefill, answer.prefill_executed_flops);
  json["prefill"]["tokens"] = answer.prefill_work.new_tokens;
  json["decode"] = cost_json(answer.decode, answer.decode_executed_flops);
  json["decode"]["context"] = answer.decode_work.cached_tokens + 1;
  json["decode"]["batch"] = answer.decode_work.batch;
  if (answer.image) {
    json["image"] = {{"tokens", answer.image->tokens},
                     {"tower_flops", answer.image->tower_flops},
                     {"projector_flops", answer.image->projector_flops}};
  }
  json["params"]["mtp"] = answer.params.mtp;
  json["memory"] = memory_json(answer);
  json["prefill"]["links"] = links_json(answer.prefill_links);
  json["decode"]["links"] = links_json(answer.decode_links);
  json["gpu"] = gpu_json(answer.gpu);
  json["bound"] = bound_json(answer);
  for (const ConventionRow& row : answer.conventions) {
    json["why"].push_back({{"quantity", row.quantity},
                           {"convention", row.tool},
                           {"theirs", row.theirs},
                           {"ours", row.ours},
                           {"difference_fraction", row.difference_fraction()},
                           {"because", row.because}});
  }
  return to_json_text(json);
}

}  // namespace gpuwhy
