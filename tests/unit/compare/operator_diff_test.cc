// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "compare/compare.h"
#include "compare/compared_rows.h"
#include "testing.h"

namespace gpuwhy {
namespace {

struct Op {
  std::string name;
  RowName stage;
  std::int64_t total_ns = 0;
  std::int64_t calls = 0;
  std::string shape = {};
};

RunSummary run_with(const std::vector<Op>& operators, std::int64_t whole_ns) {
  RunSummary run;
  run.label = "run";
  for (const Op& one : operators) {
    run.operators.push_back(operator_row(one.name, one.stage, one.total_ns, one.calls, one.shape));
  }
  run.operators_whole_ns = whole_ns;
  run.operators_time = "the time is the host's";
  return run;
}

const OperatorChange* row_of(const OperatorComparison& comparison, const std::string& name,
                             const std::string& stage) {
  for (const OperatorChange& row : comparison.rows) {
    if (row.base.name == name && row.base.stage.text() == stage) {
      return &row;
    }
  }
  return nullptr;
}

TEST(CompareOperators, RowsAndTheRestSumToTheWholeExactly) {
  const RunSummary base = run_with({{"MUL_MAT up", row_name("decode"), 1001, 10},
                                    {"MUL_MAT up", row_name("prefill"), 500, 1},
                                    {"ADD", row_name("decode"), 100, 10},
                                    {"ROPE", row_name("decode"), 70, 7}},
                                   2000);
  const RunSummary candidate = run_with({{"MUL_MAT up", row_name("decode"), 601, 12},
                                         {"MUL_MAT up", row_name("prefill"), 450, 1},
                                         {"ADD", row_name("decode"), 100, 10},
                                         {"QUANT", row_name("decode"), 33, 3}},
                                        1300);
  const OperatorComparison changes = operator_changes(base, candidate);
  EXPECT_EQ(changes.missing, "");
  ASSERT_EQ(changes.rows.size(), 5U);
  EXPECT_EQ(changes.rows[0].base.name, "MUL_MAT up");  // the largest first
  std::int64_t rows_ns = 0;
  for (const OperatorChange& row : changes.rows) {
    EXPECT_EQ(row.calls_ns + row.duration_ns, row.difference_ns());
    rows_ns += row.difference_ns();
  }
  EXPECT_EQ(rows_ns, 1184 - 1671);
  EXPECT_EQ(changes.candidate_ns - changes.base_ns - rows_ns, -213);  // in no operator

  const OperatorChange* matmul = row_of(changes, "MUL_MAT up", "decode");
  ASSERT_NE(matmul, nullptr);
  EXPECT_EQ(matmul->calls_ns, 200);  // two more at 100.1
  EXPECT_EQ(matmul->duration_ns, -600);
  const OperatorChange* gone = row_of(changes, "ROPE", "decode");
  ASSERT_NE(gone, nullptr);
  EXPECT_EQ(gone->calls_ns, -70);
  EXPECT_EQ(gone->candidate.calls, 0);
  const OperatorChange* come = row_of(changes, "QUANT", "decode");
  ASSERT_NE(come, nullptr);
  EXPECT_EQ(come->difference_ns(), 33);
}

TEST(CompareOperators, KindsAndStagesSumToTheRows) {
  const RunSummary base = run_with(
      {{"MUL_MAT up", row_name("decode"), 900, 9}, {"MUL_MAT down", row_name("prefill"), 300, 3}},
      1200);
  const RunSummary candidate = run_with({{"MUL_MAT up", row_name("decode"), 400, 9},
                                         {"MUL_MAT down", row_name("prefill"), 310, 3},
                                         {"ADD", row_name("prefill"), 5, 1}},
                                        715);
  const OperatorComparison changes = operator_changes(base, candidate);
  ASSERT_EQ(changes.kinds.size(), 2U);
  EXPECT_EQ(changes.kinds[0].name, "MUL_MAT");
  EXPECT_EQ(changes.kinds[0].difference_ns(), -490);
  ASSERT_EQ(changes.stages.size(), 2U);
  EXPECT_EQ(changes.stages[0].name, "decode");
  EXPECT_EQ(changes.stages[0].difference_ns(), -500);
  EXPECT_EQ(changes.stages[1].difference_ns(), 15);
}

TEST(CompareOperators, WhatCannotBeComparedSaysWhy) {
  const RunSummary none = run_with({}, 0);
  const RunSummary some = run_with({{"ADD", {}, 5, 1}}, 10);
  RunSummary other = some;
  other.operators_time = "the time is that of kernels";
  EXPECT_EQ(operator_changes(none, none).missing, "no run names operators");
  EXPECT_EQ(operator_changes(none, some).missing, "the base names no operators");
  EXPECT_EQ(operator_changes(some, none).missing, "the candidate names no operators");
  EXPECT_THAT(operator_changes(some, other).missing, HasSubstr("differently"));
  EXPECT_TRUE(operator_changes(some, other).rows.empty());
}

TEST(CompareOperators, SeveralRunsTellNoiseFromMoves) {
  std::vector<RunSummary> base;
  std::vector<RunSummary> candidate;
  for (int i = 0; i < 6; ++i) {
    base.push_back(run_with({{"MUL_MAT", {}, 1000 + i, 1}, {"ADD", {}, 100 + 20 * (i % 3), 1}}, 0));
    candidate.push_back(
        run_with({{"MUL_MAT", {}, 700 + i, 1}, {"ADD", {}, 100 + 20 * ((i + 1) % 3), 1}}, 0));
  }
  const Comparison comparison = compare_runs(base, candidate, {});
  const OperatorChange* matmul = row_of(comparison.operators, "MUL_MAT", "");
  const OperatorChange* add = row_of(comparison.operators, "ADD", "");
  ASSERT_NE(matmul, nullptr);
  ASSERT_NE(add, nullptr);
  EXPECT_NEAR(*matmul->p, 2.0 / 924, 1e-9);  // the most extreme of C(12, 6) deals, both ways
  EXPECT_NEAR(*matmul->adjusted_p, 4.0 / 924, 1e-9);
  EXPECT_TRUE(matmul->is_significant);
  EXPECT_FALSE(add->is_significant);
  EXPECT_FALSE(compare_runs({base[0]}, {candidate[0]}, {}).operators.rows[0].p.has_value());
}

// A product of other sizes is other work: its time is not that of a slower one.
TEST(CompareOperators, ShapesThatBothSidesKnowAreRows) {
  const RunSummary base = run_with(
      {{"aten::mm", {}, 1000, 10, "8x8 x 8x8, bf16"}, {"aten::mm", {}, 500, 1, "64x8 x 8x8, bf16"}},
      1500);
  const RunSummary candidate = run_with(
      {{"aten::mm", {}, 900, 10, "8x8 x 8x8, bf16"}, {"aten::mm", {}, 1600, 3, "64x8 x 8x8, bf16"}},
      2500);
  const OperatorComparison changes = operator_changes(base, candidate);
  ASSERT_EQ(changes.rows.size(), 2U);
  EXPECT_EQ(changes.rows[0].base.shape, "64x8 x 8x8, bf16");
  EXPECT_EQ(changes.rows[0].calls_ns, 1000);
  EXPECT_EQ(changes.rows[0].duration_ns, 100);
  EXPECT_EQ(changes.rows[1].duration_ns, -100);
  ASSERT_EQ(changes.kinds.size(), 1U);

  // One side without shapes: one row, as before.
  const OperatorComparison mixed =
      operator_changes(base, run_with({{"aten::mm", {}, 2500, 13}}, 2500));
  ASSERT_EQ(mixed.rows.size(), 1U);
  EXPECT_EQ(mixed.rows[0].base.shape, "");
  EXPECT_EQ(mixed.rows[0].base.calls, 11);
  EXPECT_EQ(mixed.rows[0].difference_ns(), 1000);

  // Each is tested over its own times.
  const Comparison tested =
      compare_runs(std::vector<RunSummary>(6, base), std::vector<RunSummary>(6, candidate), {});
  EXPECT_NEAR(*tested.operators.rows[0].p, 2.0 / 924, 1e-9);
}

TEST(CompareOperators, ARunThatRecordedNothingIsNotTakenApart) {
  std::vector<RunSummary> base;
  for (const double tpot_ns : {10.0, 20.0, 31.0}) {
    base.push_back(run_with({{"ADD", {}, 5, 1}}, 10));
    base.back().label = std::to_string(base.size());
    base.back().metrics = {{"aggregates.tpot.p50_ns", "ns", tpot_ns, false, true, ""}};
  }
  EXPECT_EQ(compare_runs(base, std::vector<RunSummary>(base), {}).base_median, "2");
  base[1].operators.clear();
  EXPECT_EQ(compare_runs(base, std::vector<RunSummary>(base), {}).base_median, "1");
}

TEST(CompareOperators, CountsOfStrangersDoNotOverflow) {
  constexpr std::int64_t kLarge = 1'000'000'000'000'000'000;
  const OperatorComparison changes = operator_changes(run_with({{"ADD", {}, kLarge, 1}}, kLarge),
                                                      run_with({{"ADD", {}, 1, kLarge}}, 1));
  ASSERT_EQ(changes.rows.size(), 1U);
  EXPECT_EQ(changes.rows[0].calls_ns + changes.rows[0].duration_ns, 1 - kLarge);
}

}  // namespace
}  // namespace gpuwhy
