// SPDX-License-Identifier: Apache-2.0
//
// A model's costs for a reader: the ledger by part, then the bound with every denominator beside
// it. A bound whose peak, bandwidth or source is not shown cannot be argued with.
#include "cli/commands/model_document.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "report/document/section_parts.h"
#include "session/reading/memory_fit.h"

namespace gpuwhy {
namespace {

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

Section new_section(const char* id, std::string title) {
  Section section;
  section.id = id;
  section.title = std::move(title);
  return section;
}

ReportValue words(std::string text) {
  return {std::move(text), CellFormat::kText, ""};
}

ReportValue time_of(const std::optional<double>& seconds) {
  constexpr double kNanoseconds = 1e9;
  return {seconds ? CellValue(*seconds * kNanoseconds) : CellValue(), CellFormat::kDuration, ""};
}

std::string flops_text(std::int64_t flops) {
  return shown({flops, CellFormat::kFlops, ""});
}

// FLOP and bytes of each part; parts that cost nothing are left out.
ReportTable cost_table(const Json& json) {
  ReportTable table;
  table.columns = {{"part", "part", CellFormat::kText},
                   {"prefill FLOP", "prefill_flops", CellFormat::kFlops},
                   {"prefill bytes", "prefill_bytes", CellFormat::kBytes},
                   {"decode FLOP", "decode_flops", CellFormat::kFlops},
                   {"decode bytes", "decode_bytes", CellFormat::kBytes}};
  const auto add = [&](const char* name, const std::string& flops, const std::string& bytes) {
    ReportRow row;
    row.cells.push_back(words(name));
    for (const auto& key :
         {"prefill." + flops, "prefill." + bytes, "decode." + flops, "decode." + bytes}) {
      row.cells.push_back({integer_of(json, key), table.columns[row.cells.size()].unit, key});
    }
    if (std::ranges::any_of(
            row.cells, [](const ReportValue& cell) { return cell.number().value_or(0) > 0; })) {
      table.rows.push_back(std::move(row));
    }
  };
  for (const char* part : kLlmPartNames) {
    add(part, fmt::format("flops_by_part.{}", part), fmt::format("weight_bytes_by_part.{}", part));
  }
  add("kv read", "", "kv_read_bytes");
  add("kv write", "", "kv_write_bytes");
  add("state read", "", "state_read_bytes");
  add("state write", "", "state_write_bytes");
  add("total", "flops", "bytes");
  return table;
}

Section model_section(const ModelAnswer& answer) {
  const Llm& llm = answer.llm;
  Section section = new_section("model", printable(answer.name));
  section.paragraphs = {fmt::format("{}, {} layers, weights {}, products in {}",
                                    printable(llm.family), llm.layers.size(),
                                    printable(llm.weight_dtype), llm.matmul_dtype)};
  const auto count = [](std::int64_t number) {
    return words(with_commas(static_cast<std::uint64_t>(number)));
  };
  const auto bytes = [](std::int64_t number) {
    return ReportValue{number, CellFormat::kBytes, ""};
  };
  const bool is_shared = answer.placement.num_gpus() > 1 || answer.placement.expert > 1;
  section.facts = {
      {"parameters", count(answer.params.total), ""},
      {"that a token uses", count(answer.params.active), ""},
      {"of them multiplied", count(answer.params.active_matmul), ""},
      {"KV cache of a token", bytes(kv_bytes_per_token(llm)), ""},
      {is_shared ? "weights per GPU" : "weights", bytes(answer.memory.weight_bytes), ""},
      {fmt::format("a sequence of {} tokens", answer.decode_work.cached_tokens + 1),
       bytes(answer.memory.sequence.sum()), ""}};
  if (answer.placement.tensor > 1) {
    section.notes.push_back(fmt::format("costs are those of one of {} GPUs (tensor parallel)",
                                        answer.placement.tensor));
  }
  for (const std::string& note : llm.notes) {
    section.notes.push_back("note: " + printable(note));
  }
  return section;
}

Section cost_section(const ModelAnswer& answer) {
  Section section = new_section("cost", "Least that must be computed and moved");
  section.paragraphs = {
      fmt::format("prefill of {} tokens, and a decode step of {} at a context of {}",
                  answer.prefill_work.new_tokens, count_of(answer.decode_work.batch, "sequence"),
                  answer.decode_work.cached_tokens + 1)};
  section.tables = {cost_table(model_json(answer))};
  if (answer.llm.moe && answer.decode.least_bytes() != answer.decode.most_bytes()) {
    section.notes.push_back(fmt::format(
        "decode bytes lie between {} (all take the same experts) and {} (none shared); the total "
        "above expects uniform routing",
        format_bytes(static_cast<std::uint64_t>(answer.decode.least_bytes())),
        format_bytes(static_cast<std::uint64_t>(answer.decode.most_bytes()))));
  }
  if (answer.decode_executed_flops != answer.decode.total_flops()) {
    section.notes.push_back(fmt::format("kernels on compressed keys execute {} FLOP a decode step",
                                        flops_text(answer.decode_executed_flops)));
  }
  if (answer.image) {
    section.notes.push_back(fmt::format(
        "an image is {} tokens: {} FLOP in the tower, {} in the projector", answer.image->tokens,
        flops_text(answer.image->tower_flops), flops_text(answer.image->projector_flops)));
  }
  return section;
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

ReportTable bound_table(const ModelAnswer& answer) {
  ReportTable table;
  table.columns = {{"stage", "stage", CellFormat::kText},
                   {"at least", "least_ns", CellFormat::kDuration},
                   {"compute", "compute_ns", CellFormat::kDuration},
                   {"memory", "memory_ns", CellFormat::kDuration},
                   {"part by part", "per_part_ns", CellFormat::kDuration},
                   {"bound by", "bound_by", CellFormat::kText}};
  const auto add = [&](const char* stage, const CostBound& bound) {
    table.rows.push_back(
        {.cells = {words(stage), time_of(bound.seconds()), time_of(bound.compute_s),
                   time_of(bound.memory_s), time_of(bound.per_part_s),
                   words(bound.is_compute_bound() ? "compute" : "memory")}});
  };
  add("prefill", *answer.prefill_bound);
  add("decode", *answer.decode_bound);
  return table;
}

// Sequences that fit beside the weights.
std::string fit_text(const ModelAnswer& answer, const GpuSpec& gpu) {
  const auto usable = usable_bytes(gpu);
  if (!usable) {
    return "n/a (the table has no memory size of it)";
  }
  const std::int64_t most = answer.memory.sequences_in(*usable);
  return most > 0 ? fmt::format("{} of {} tokens", count_of(most, "sequence"),
                                answer.decode_work.cached_tokens + 1)
                  : fmt::format("none: of its memory {} are usable",
                                format_bytes(static_cast<std::uint64_t>(*usable)));
}

// What is beside the bound: links, the routing of experts, and where the numbers are from.
std::vector<std::string> bound_notes(const ModelAnswer& answer, const GpuSpec& gpu) {
  std::vector<std::string> notes;
  if (!answer.decode_bound->reason.empty()) {
    notes.push_back("compute: n/a (" + answer.decode_bound->reason + ")");
  }
  const LinkTime& links = *answer.decode_links;
  if (answer.placement.tensor > 1 && links.seconds) {
    notes.push_back(fmt::format(
        "links: at least {} a prefill, {} a decode step: {} all-reduces, not in the bound above",
        shown(time_of(answer.prefill_links->seconds)), shown(time_of(links.seconds)),
        links.all_reduces));
  } else if (answer.placement.tensor > 1) {
    notes.push_back("links: n/a (" + links.reason + ")");
  }
  if (answer.placement.expert > 1) {
    notes.emplace_back("experts: n/a (what an all-to-all sends depends on the routing)");
  }
  notes.push_back(fmt::format("source: {} (confidence {})", gpu.source, gpu.confidence));
  if (!gpu.note.empty()) {
    notes.push_back("note: " + gpu.note);
  }
  return notes;
}

Section bound_section(const ModelAnswer& answer) {
  Section section = new_section("bound", "The bound in time");
  if (!answer.gpu.gpu) {
    section.missing = answer.is_gpu_asked ? fmt::format("n/a ({})", answer.gpu.reason)
                                          : "It needs --gpu-name NAME (gpuwhy list gpus)";
    return section;
  }
  const GpuSpec& gpu = *answer.gpu.gpu;
  section.title = gpu.name;
  section.paragraphs = {
      fmt::format("{}, {:g} GB/s", peaks_text(answer.llm, gpu), gpu.bytes_per_s() / 1e9)};
  section.tables = {bound_table(answer)};
  const double decode_s = answer.decode_bound->seconds();
  section.facts = {
      {"tokens/s at the bound",
       {static_cast<double>(answer.decode_work.batch) / decode_s, CellFormat::kRate, ""},
       ""},
      {fmt::format("fit into {:.0f} % of its memory", 100 * kUsedMemoryFraction),
       words(fit_text(answer, gpu)), ""}};
  if (const auto batch = crossover_batch(answer.llm, gpu)) {
    section.facts.push_back({"linear layers compute-bound from",
                             words(fmt::format("about {:.0f} tokens a pass{}", *batch,
                                               answer.llm.moe ? " and expert" : "")),
                             ""});
  }
  section.notes = bound_notes(answer, gpu);
  return section;
}

Section why_section(const ModelAnswer& answer) {
  Section section = new_section("why", "Your number differs from theirs because (one sequence)");
  ReportTable table;
  table.columns = {{"quantity", "quantity", CellFormat::kText},
                   {"convention", "convention", CellFormat::kText},
                   {"theirs", "theirs", CellFormat::kFlops},
                   {"to ours", "ratio", CellFormat::kRatio},
                   {"because", "because", CellFormat::kText}};
  for (const ConventionRow& row : answer.conventions) {
    table.rows.push_back({{words(row.quantity),
                           words(row.tool),
                           {row.theirs, CellFormat::kFlops, ""},
                           {row.theirs / row.ours, CellFormat::kRatio, ""},
                           words(row.because)},
                          "",
                          false});
  }
  section.missing =
      table.rows.empty() ? "Other tools' formulas do not cover layers like these" : "";
  section.tables = {std::move(table)};
  return section;
}

}  // namespace

Json model_json(const ModelAnswer& answer) {
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
  return json;
}

Document model_document(const ModelAnswer& answer) {
  Document document{"", {model_section(answer), cost_section(answer), bound_section(answer)}};
  if (answer.is_why_asked) {
    document.sections.push_back(why_section(answer));
  }
  return document;
}

}  // namespace gpuwhy
