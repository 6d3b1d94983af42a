// SPDX-License-Identifier: Apache-2.0
//
// Rates of matrix products and collectives.
#include "analysis/operators/operator_rates.h"

#include <cmath>

#include <fmt/format.h>

#include "testing.h"
#include "trace/op_inputs.h"
#include "trace_builder.h"

namespace gpuwhy {
namespace {

// Operators in a row, each with one kernel of 1000 ns.
class RateCase {
 public:
  RateCase() {
    const std::uint16_t process = made_.add_process();
    made_.add_thread(process);
    stream_ = made_.add_stream(process, made_.add_device());
  }

  RateCase& op(std::string_view name, std::string_view inputs, std::int64_t length_ns = 50) {
    made_.op(0, at_ns_, at_ns_ + length_ns, name, OpKind::kOperator, inputs);
    made_.kernel(stream_, at_ns_, at_ns_ + 1000, "kernel");
    launched_.push_back({num_ops_, num_ops_, 0});
    ++num_ops_;
    at_ns_ += 100;
    return *this;
  }

  OperatorRates rates() {
    const Trace trace = made_.finish();
    return operator_rates(trace, {row_name("prefill")}, launched_);
  }

 private:
  TraceBuilder made_;
  std::uint32_t stream_ = 0;
  std::uint32_t num_ops_ = 0;
  std::int64_t at_ns_ = 0;
  std::vector<OpKernel> launched_;
};

std::string bf16(std::string_view sizes) {
  return product_inputs(sizes, R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"])");
}

TEST(OperatorRates, RowsByStageAndSizeOfTheWeights) {
  const auto rates = RateCase()
                         .op("aten::mm", bf16("[[2, 3], [3, 4]]"))
                         .op("aten::addmm", bf16("[[4], [5, 3], [3, 4], []]"))
                         .op("aten::linear", bf16("[[7, 2, 3], [4, 3], [4]]"))
                         .op("aten::bmm", bf16("[[5, 2, 3], [5, 3, 4]]"))
                         .rates();
  ASSERT_EQ(rates.rows.size(), 1U);
  EXPECT_EQ(rates.rows[0].stage.text(), "prefill");
  EXPECT_EQ(rates.rows[0].num_inputs, 3);
  EXPECT_EQ(rates.rows[0].num_outputs, 4);
  EXPECT_EQ(rates.rows[0].calls, 3);
  EXPECT_EQ(rates.rows[0].rows, 2 + 5 + 14);
}

TEST(OperatorRates, ProductsBySizes) {
  const auto rates = RateCase()
                         .op("aten::mm", bf16("[[2, 3], [3, 4]]"))
                         .op("aten::mm", bf16("[[2,3],[3,4]]"))
                         .op("aten::addmm", bf16("[[4], [2, 3], [3, 4], []]"))
                         .op("aten::bmm", bf16("[[5, 2, 3], [5, 3, 4]]"))
                         .op("aten::baddbmm", bf16("[[1], [5, 2, 3], [5, 3, 4]]"))
                         .op("aten::linear", bf16("[[7, 2, 3], [4, 3], [4]]"))
                         .rates();
  ASSERT_EQ(rates.products.size(), 5U);
  EXPECT_EQ(rates.products[0].op, "aten::mm");
  EXPECT_EQ(rates.products[0].dims, "2x3 x 3x4");
  EXPECT_EQ(rates.products[0].dtype, "bf16");
  EXPECT_EQ(rates.products[0].calls, 2);
  EXPECT_EQ(rates.products[0].total_ns, 2000);
  EXPECT_EQ(rates.products[0].flops, 96);
  EXPECT_DOUBLE_EQ(*rates.products[0].flops_per_s, 96 / 2e-6);
  EXPECT_EQ(rates.products[1].op, "aten::addmm");
  EXPECT_EQ(rates.products[1].flops, 48);
  EXPECT_EQ(rates.products[2].flops, 240);
  EXPECT_EQ(rates.products[3].flops, 240);
  EXPECT_EQ(rates.products[4].op, "aten::linear");
  EXPECT_EQ(rates.products[4].flops, 2 * 7 * 2 * 3 * 4);
}

TEST(OperatorRates, ALinearWithAProductInsideIsNoProduct) {
  const auto rates = RateCase()
                         .op("aten::linear", bf16("[[2, 3], [4, 3]]"), 500)
                         .op("aten::mm", bf16("[[2, 3], [3, 4]]"))
                         .rates();
  ASSERT_EQ(rates.products.size(), 1U);
  EXPECT_EQ(rates.products[0].op, "aten::mm");
}

TEST(OperatorRates, SizesThatAreNoProductCountForNothing) {
  const auto rates = RateCase()
                         .op("aten::mm", bf16("[[2, 3], [4, 5]]"))
                         .op("aten::mm", bf16("[[-2, 3], [3, 5]]"))
                         .op("aten::mm", bf16("[[0, 3], [3, 5]]"))
                         .op("aten::mm", bf16("[[2, 3]]"))
                         .op("aten::mm", bf16("[]"))
                         .op("aten::mm", bf16("[[[2, 3]], [[3, 4]]]"))
                         .op("aten::mm", bf16("[[2, 99999999999999999999], [3, 4]]"))
                         .op("aten::mm", bf16("[[2, 3], [3, 4]"))
                         .op("aten::mm", bf16("]][["))
                         .op("aten::mm", bf16("[[2, 3.5], [3, 4]]"))
                         .op("aten::mm", "nonsense")
                         .rates();
  EXPECT_THAT(rates.products, IsEmpty());
}

std::string flash(std::string_view query, std::string_view keys, std::string_view causal,
                  std::string_view window = "") {
  return product_inputs(
      fmt::format("[{0}, {1}, {1}, [], [], [], [], [], [], [], [], [], []]", query, keys),
      R"(["c10::Half"])",
      fmt::format(R"(["", "", "", "", "", "9", "9", "0.", "{0}", "False", "0.1", "{1}", "{1}"])",
                  causal, window));
}

TEST(OperatorRates, AttentionCountsThePairsThatItComputes) {
  constexpr std::string_view kForward = "aten::_flash_attention_forward";
  const auto flops = [&](const std::string& inputs) {
    const auto rates = RateCase().op(kForward, inputs).rates();
    return rates.products.empty() ? -1.0 : rates.products[0].flops;
  };
  EXPECT_EQ(flops(flash("[2, 10, 4, 8]", "[2, 10, 4, 8]", "False")), 2.0 * 2 * 4 * 10 * 10 * 16);
  EXPECT_EQ(flops(flash("[2, 10, 4, 8]", "[2, 10, 4, 8]", "True")), 2.0 * 4 * 10 * 10 * 16);
  // Grouped queries; a single query sees all keys, whatever the mask.
  EXPECT_EQ(flops(flash("[2, 1, 4, 8]", "[2, 30, 1, 8]", "True")), 2.0 * 2 * 4 * 1 * 30 * 16);
  // Which keys are seen is not known.
  EXPECT_EQ(flops(flash("[2, 10, 4, 8]", "[2, 30, 4, 8]", "True")), -1);
  EXPECT_EQ(flops(flash("[2, 10, 4, 8]", "[2, 10, 4, 8]", "")), -1);
  EXPECT_EQ(flops(flash("[2, 10, 4, 8]", "[2, 10, 4, 8]", "True", "128")), -1);
  EXPECT_EQ(flops(flash("[20, 4, 8]", "[20, 4, 8]", "True")), -1);  // several lengths
  EXPECT_EQ(flops(product_inputs("[[2, 10, 4, 8], [2, 10, 4, 8], [2, 10, 4, 8]]", "")), -1);
}

TEST(OperatorRates, AttentionIsNamedWithItsMaskAndType) {
  const auto rates =
      RateCase()
          .op("aten::_flash_attention_forward", flash("[2, 10, 4, 8]", "[2, 10, 4, 8]", "True"))
          .rates();
  ASSERT_EQ(rates.products.size(), 1U);
  EXPECT_EQ(rates.products[0].dims, "2x10x4x8 x 2x10x4x8, causal");
  EXPECT_EQ(rates.products[0].dtype, "fp16");
}

TEST(OperatorRates, HugeSizesStayFinite) {
  constexpr std::string_view kHuge =
      "[[9000000000000000000, 9000000000000000000, 9000000000000000000], "
      "[9000000000000000000, 9000000000000000000, 9000000000000000000]]";
  const auto rates = RateCase().op("aten::bmm", bf16(kHuge)).rates();
  ASSERT_EQ(rates.products.size(), 1U);
  EXPECT_TRUE(std::isfinite(*rates.products[0].flops_per_s));
}

TEST(OperatorRates, ShareOfThePeakOrTheReason) {
  GpuMatch match;
  match.gpu.emplace();
  match.gpu->name = "X";
  match.gpu->dense_tflops = {{"bf16", 1.0}, {"fp32", 1e-6}};
  auto products = RateCase()
                      .op("aten::mm", bf16("[[2, 3], [3, 4]]"))
                      .op("aten::mm", product_inputs("[[2, 3], [3, 4]]", R"(["float", "float"])"))
                      .op("aten::mm", product_inputs("[[2, 3], [3, 4]]", R"(["c10::Half"])"))
                      .op("aten::mm", product_inputs("[[2, 3], [3, 4]]", ""))
                      .rates()
                      .products;
  add_peak_fractions(match, products);
  ASSERT_EQ(products.size(), 4U);  // in the order of their types
  EXPECT_THAT(products[0].reason, HasSubstr("does not name"));
  EXPECT_DOUBLE_EQ(products[1].peak_fraction.value_or(0), 48 / 1e-6 / 1e12);
  EXPECT_EQ(products[1].reason, "");
  EXPECT_THAT(products[2].reason, HasSubstr("no peak of fp16 for X"));
  EXPECT_THAT(products[3].reason, HasSubstr("tf32"));
  EXPECT_FALSE(products[3].peak_fraction);
  add_peak_fractions({std::nullopt, "not in the table", {}}, products);
  EXPECT_EQ(products[1].reason, "not in the table");
}

CollectiveMessage floats(std::string collective, std::int64_t in, std::int64_t out,
                         std::int64_t group_size = 4) {
  return {std::move(collective), "0", "Float", group_size, in, out};
}

TEST(OperatorRates, Bandwidths) {
  const auto rates =
      RateCase()
          .op("record_param_comms", message_inputs(floats("allreduce", 100, 100)))
          .op("record_param_comms", message_inputs(floats("allreduce", 300, 300)))
          .op("record_param_comms", message_inputs(floats("allreduce", 200, 200)))
          .op("record_param_comms", message_inputs(floats("_allgather_base", 100, 400)))
          .op("record_param_comms", message_inputs(floats("broadcast", 100, 100)))
          .rates()
          .collectives;
  ASSERT_EQ(rates.size(), 3U);
  EXPECT_EQ(rates[0].collective, "allreduce");
  EXPECT_EQ(rates[0].calls, 3);
  EXPECT_DOUBLE_EQ(*rates[0].size_bytes, 2400);
  EXPECT_DOUBLE_EQ(*rates[0].bytes_per_s, 2400 / 3e-6);
  EXPECT_DOUBLE_EQ(*rates[0].bus_bytes_per_s, 2400 / 3e-6 * 1.5);
  EXPECT_DOUBLE_EQ(*rates[0].bus_min_bytes_per_s, 400 / 1e-6 * 1.5);
  EXPECT_DOUBLE_EQ(*rates[0].bus_median_bytes_per_s, 800 / 1e-6 * 1.5);
  EXPECT_DOUBLE_EQ(*rates[0].bus_max_bytes_per_s, 1200 / 1e-6 * 1.5);
  EXPECT_DOUBLE_EQ(*rates[1].bus_bytes_per_s, 1600 / 1e-6 * 0.75);
  EXPECT_DOUBLE_EQ(*rates[2].bus_bytes_per_s, 400 / 1e-6);
}

TEST(OperatorRates, BandwidthsThatAreNotKnownHaveAReason) {
  CollectiveMessage odd = floats("allreduce", 100, 100);
  odd.dtype = "Quaternion";
  const auto rates =
      RateCase()
          .op("record_param_comms", message_inputs(odd))
          .op("record_param_comms", message_inputs(floats("a", 0, 0)))
          .op("record_param_comms", message_inputs(floats("b", 10, 10, 1)))
          .op("record_param_comms", message_inputs(floats("c", INT64_MIN, INT64_MAX, -5)))
          .rates()
          .collectives;
  ASSERT_EQ(rates.size(), 4U);
  for (const CollectiveRate& rate : rates) {
    EXPECT_FALSE(rate.reason.empty());
    EXPECT_FALSE(rate.bus_bytes_per_s);
  }
}

}  // namespace
}  // namespace gpuwhy
