// SPDX-License-Identifier: Apache-2.0
//
// Other tools' formulas against their differences as a second program computed them.
#include "model/conventions.h"

#include "model/llm_goldens.h"
#include "testing.h"

namespace gpuwhy {
namespace {

double percent(const std::string& model, const std::string& tool, const std::string& quantity) {
  for (const ConventionRow& row : compare_conventions(golden_llm(model), 4096, 4096)) {
    if (row.tool == tool && row.quantity == quantity) {
      EXPECT_FALSE(row.because.empty());
      return 100 * row.difference_fraction();
    }
  }
  ADD_FAILURE() << "no row for " << tool << ", " << quantity;
  return 0;
}

TEST(Conventions, DifferAsComputedElsewhere) {
  const auto near = [](const char* model, const char* tool, const char* quantity, double expected) {
    EXPECT_NEAR(percent(model, tool, quantity), expected, 0.051) << model << " " << tool;
  };
  near("Llama-3.1-8B", "PaLM, nanoGPT", "prefill FLOPs", 21.1);
  near("Llama-3.1-8B", "PaLM, nanoGPT", "decode FLOPs", 6.1);
  near("Llama-3.1-8B", "llm-foundry", "prefill FLOPs", 21.1);
  near("Llama-3.1-8B", "Megatron-LM", "prefill FLOPs", 7.0);
  near("Llama-3.1-8B", "llm-analysis", "prefill FLOPs", 14.1);
  near("Llama-3.1-8B", "llm-analysis", "decode FLOPs", -12.5);
  near("Llama-3.1-8B", "vLLM", "prefill FLOPs", 7.1);
  near("Llama-3.1-8B", "vLLM", "decode FLOPs", 0.0);
  near("Llama-3.1-8B", "2 x parameters", "decode FLOPs", -6.4);
  near("Llama-3.1-8B", "Databricks' MBU", "decode bytes", 6.8);
  near("Llama-3.1-8B", "llm-analysis", "decode bytes", 3.45);
  near("Mixtral-8x7B", "llm-foundry", "prefill FLOPs", 6.1);
  near("Mixtral-8x7B", "Megatron-LM", "prefill FLOPs", 1.0);
  near("Mixtral-8x7B", "llm-analysis", "prefill FLOPs", -37.8);
  near("Mixtral-8x7B", "llm-analysis", "decode FLOPs", -48.6);
  near("Mixtral-8x7B", "vLLM", "prefill FLOPs", 4.1);
  near("Mixtral-8x7B", "2 x parameters", "decode FLOPs", 237.9);
  near("DeepSeek-OCR", "llm-analysis", "decode FLOPs", -20.0);
  near("DeepSeek-OCR", "vLLM", "decode FLOPs", -0.1);
  EXPECT_NEAR(percent("DeepSeek-OCR", "PaLM, nanoGPT", "decode FLOPs"), 395, 0.5);
  EXPECT_NEAR(percent("Mixtral-8x7B", "PaLM, nanoGPT", "prefill FLOPs"), 263, 0.5);
  EXPECT_NEAR(percent("Mixtral-8x7B", "PaLM, nanoGPT", "decode FLOPs"), 246, 0.5);
}

}  // namespace
}  // namespace gpuwhy
