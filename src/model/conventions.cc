// SPDX-License-Identifier: Apache-2.0
//
// FLOP and byte counts by the published formulas of other tools, and why they differ from ours.
//
// People compare MFU across tools that count different things. Each formula here is fed with the
// same model as its tool would use (a tool without support for mixtures reads intermediate_size),
// so that the difference has a name:
//   PaLM               Chowdhery et al. 2022, appendix B, forward part; nanoGPT uses the same
//   llm-foundry        MosaicML, callbacks of its MFU monitor
//   Megatron-LM        num_floating_point_operations in training.py, forward part
//   llm-analysis       its forward FLOPs and its bytes of weights and cache
//   vLLM               v1/metrics/perf.py
//   MBU by Databricks  the definition in its blog: all parameters and the cache
// Training formulas are divided by three. What it gets wrong: tools change; these are the versions
// of 2025.
#include "model/conventions.h"

#include <algorithm>

#include <fmt/format.h>

namespace gpuwhy {
namespace {

double real(Count count) {
  return static_cast<double>(count.value());
}

// Inputs of all formulas.
struct Case {
  const Llm& llm;
  LlmParams params;
  LlmCost prefill;
  LlmCost decode;
  double tokens;
  double context;
  double layers;
  double head_width;  // of all heads
  double attention;   // FLOPs a query-key pair costs, all layers, if it were full everywhere
  bool is_moe;
  bool has_windows;
};

Case case_of(const Llm& llm, std::int64_t tokens, std::int64_t context) {
  Case made{llm,
            params_of(llm),
            cost_of(llm, prefill_work(tokens)),
            cost_of(llm, decode_work(context)),
            static_cast<double>(tokens),
            static_cast<double>(context),
            static_cast<double>(llm.layers.size()),
            real(Count(llm.heads) * llm.head_dim),
            0,
            llm.moe.has_value(),
            std::ranges::any_of(llm.layers,
                                [](const LlmLayer& layer) { return layer.reach != Reach::kFull; })};
  const LlmCost one = cost_of(llm, decode_work(1));
  made.attention = real(one.flops[LlmPart::kScores] + one.flops[LlmPart::kValues]);
  return made;
}

// FLOPs of attention itself: queries times keys, and weights times values.
double core_flops(const LlmCost& cost) {
  return real(cost.flops[LlmPart::kScores] + cost.flops[LlmPart::kValues]);
}

// One function per tool; each adds a row per quantity that the tool counts.
class Comparison {
 public:
  explicit Comparison(const Case& given) : case_(given) {}

  void add_palm() {
    const auto all = static_cast<double>(case_.params.total);
    const double pair = 4 * case_.layers * case_.head_width;
    std::string because =
        "all parameters count, the embedding table too; scores above the diagonal count";
    because += case_.is_moe ? "; idle experts count" : "";
    prefill("PaLM, nanoGPT", case_.tokens * (2 * all + pair * case_.tokens), because);
    because = "all parameters count, the embedding table too";
    because += case_.is_moe ? "; idle experts count" : "";
    decode("PaLM, nanoGPT", 2 * all + pair * case_.context, because);
    decode("2 x parameters", 2 * all, because + "; attention does not count");
  }

  void add_foundry() {
    const auto active = static_cast<double>(case_.params.active);
    const double square = case_.tokens * case_.tokens;
    prefill("llm-foundry",
            2 * active * case_.tokens +
                4 * case_.layers * static_cast<double>(case_.llm.hidden) * square,
            "the embedding table counts as if it were multiplied; scores above the diagonal count");
  }

  void add_megatron() {
    constexpr std::int64_t kPadding = 128;  // of the vocabulary, on one GPU
    const std::int64_t padded = (case_.llm.vocab + kPadding - 1) / kPadding * kPadding;
    const double logits =
        2 * case_.tokens * static_cast<double>(case_.llm.hidden) * static_cast<double>(padded);
    std::string because = "logits of every token count, not of the last";
    because += case_.is_moe ? "; the router does not count" : "";
    because += case_.has_windows ? "; windows are taken as full attention" : "";
    prefill(
        "Megatron-LM",
        linear_flops(case_.prefill) + case_.attention * case_.tokens * case_.tokens / 2 + logits,
        because);
  }

  // llm-analysis counts every score, also above the diagonal, and ignores experts. Its bytes are
  // given for dense models only.
  void add_llm_analysis() {
    const Llm& llm = case_.llm;
    const double mlp = 2 * 3 * case_.layers * real(Count(llm.hidden) * dense_width());
    const double projections =
        real(case_.decode.flops[LlmPart::kQkv]) + real(case_.decode.flops[LlmPart::kOut]);
    const double logits = real(case_.decode.flops[LlmPart::kLmHead]);
    const std::string experts =
        case_.is_moe ? "; one MLP of intermediate_size a layer, whatever the experts" : "";
    prefill(
        "llm-analysis",
        case_.tokens * (mlp + projections + logits) + case_.attention * case_.tokens * case_.tokens,
        "scores above the diagonal and logits of every token count" + experts);
    decode("llm-analysis", mlp + projections + logits + case_.attention,
           "a decode step is counted with a context of one" + experts);
    if (!case_.is_moe) {
      const double weights = real(case_.decode.weight_bytes[LlmPart::kEmbedding]);
      decode_bytes("llm-analysis",
                   real(Count(case_.decode.weight_bytes.sum())) - weights +
                       2 * real(case_.decode.kv_read_bytes),
                   "the whole cache counts as read and written each step");
    }
  }

  void add_vllm() {
    std::string because = "scores above the diagonal count";
    because += case_.is_moe ? "; the router does not" : "";
    because += case_.has_windows ? "; windows are ignored" : "";
    prefill("vLLM",
            linear_flops(case_.prefill) + real(case_.prefill.flops[LlmPart::kLmHead]) +
                case_.attention * case_.tokens * case_.tokens,
            because);
    because = case_.is_moe ? "the router does not count" : "it counts the same";
    because += case_.has_windows ? "; windows are ignored" : "";
    decode("vLLM",
           linear_flops(case_.decode) + real(case_.decode.flops[LlmPart::kLmHead]) +
               case_.attention * case_.context,
           because);
  }

  void add_databricks() {
    const Llm& llm = case_.llm;
    double weights = 0;
    for (std::size_t i = 0; i < kNumLlmParts; ++i) {
      weights += static_cast<double>(llm.widths[i].bytes_of(case_.params.parts.counts[i].value()));
    }
    std::string because = "the whole embedding table counts, not the row that is read";
    because += case_.is_moe ? "; idle experts count as read" : "";
    decode_bytes("Databricks' MBU", weights + real(case_.decode.kv_read_bytes), because);
  }

  std::vector<ConventionRow> rows;

 private:
  // All products except attention's own, the router's and the head's.
  static double linear_flops(const LlmCost& cost) {
    return static_cast<double>(cost.total_flops()) - core_flops(cost) -
           real(cost.flops[LlmPart::kRouter] + cost.flops[LlmPart::kLmHead]);
  }

  // The value that a tool without support for experts reads as intermediate_size.
  std::int64_t dense_width() const { return case_.llm.dense_ff; }

  void prefill(const std::string& tool, double theirs, const std::string& because) {
    rows.push_back(
        {tool, "prefill FLOPs", theirs, static_cast<double>(case_.prefill.total_flops()), because});
  }
  void decode(const std::string& tool, double theirs, const std::string& because) {
    rows.push_back(
        {tool, "decode FLOPs", theirs, static_cast<double>(case_.decode.total_flops()), because});
  }
  void decode_bytes(const std::string& tool, double theirs, const std::string& because) {
    rows.push_back(
        {tool, "decode bytes", theirs, static_cast<double>(case_.decode.total_bytes()), because});
  }

  const Case& case_;
};

}  // namespace

std::vector<ConventionRow> compare_conventions(const Llm& llm, std::int64_t tokens,
                                               std::int64_t context) {
  // No formula knows of states or sparse attention.
  if (llm.state || llm.indexer || llm.compressed) {
    return {};
  }
  const Case given = case_of(llm, tokens, context);
  Comparison comparison(given);
  comparison.add_palm();
  comparison.add_foundry();
  comparison.add_megatron();
  comparison.add_llm_analysis();
  comparison.add_vllm();
  comparison.add_databricks();
  std::ranges::stable_sort(comparison.rows, [](const ConventionRow& a, const ConventionRow& b) {
    return a.quantity > b.quantity;  // prefill, then decode
  });
  return std::move(comparison.rows);
}

}  // namespace gpuwhy
