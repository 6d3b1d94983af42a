// SPDX-License-Identifier: Apache-2.0
#include "session/reading/operator_table.h"

#include "analysis/profile.h"
#include "base/file.h"
#include "bundle/layout.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

OperatorTable a_table() {
  OperatorTable table;
  table.stages = {{"prefill", 1, 1000}, {"decode_step", 4, 400}};
  table.rows = {{"prefill", "MUL_MAT", "ffn_up", "10", 1, 300, 50, 7},
                {"prefill", "MUL_MAT", "ffn_up", "2", 1, 400, 50, 7},
                {"decode_step", "MUL_MAT", "ffn_up", "2", 4, 100, 20, 7},
                {"prefill", "ADD", "", "2", 1, 100, std::nullopt, 3},
                {"prefill", "MUL_MAT", "result_output", "", 1, 150, 9, 1}};
  return table;
}

TEST(OperatorTable, OperatorsSumOverLayersAndStayApartByStage) {
  const Operators operators = operators_of(a_table());
  ASSERT_EQ(operators.rows.size(), 4U);
  EXPECT_EQ(operators.rows[0].name, "MUL_MAT ffn_up");
  EXPECT_EQ(operators.rows[0].stage.text(), "prefill");
  EXPECT_EQ(operators.rows[0].total_ns, 700);
  EXPECT_EQ(operators.rows[0].calls, 2);
  EXPECT_EQ(operators.rows[0].flops, 100);
  EXPECT_EQ(operators.rows[0].bytes, 14);
  EXPECT_EQ(operators.rows[1].name, "MUL_MAT result_output");
  EXPECT_EQ(operators.rows[2].name, "ADD") << "equal times go by name";
  EXPECT_EQ(operators.rows[2].flops, std::nullopt);
  EXPECT_EQ(operators.time_of, OperatorTime::kHost);
  EXPECT_EQ(operators.covered_ns, 1050);
  EXPECT_EQ(operators.whole_ns, 1400);
}

TEST(OperatorTable, LayersStandInTheOrderOfTheModelAndSumToTheOperators) {
  const Operators operators = operators_of(a_table());
  ASSERT_EQ(operators.layers.size(), 3U);
  EXPECT_EQ(operators.layers[0].layer, "2") << "by number, not by text";
  EXPECT_EQ(operators.layers[0].total_ns, 600);
  EXPECT_EQ(operators.layers[0].calls, 6);
  EXPECT_EQ(operators.layers[1].layer, "10");
  EXPECT_EQ(operators.layers[2].layer, "outside layers");
  std::int64_t sum = 0;
  for (const LayerTotal& layer : operators.layers) {
    sum += layer.total_ns;
  }
  EXPECT_EQ(sum, operators.covered_ns);
}

TEST(OperatorTable, WithoutLayersThereIsNoRollUp) {
  OperatorTable table = a_table();
  for (OperatorTable::Row& row : table.rows) {
    row.layer.clear();
  }
  EXPECT_TRUE(operators_of(table).layers.empty());
}

TEST(OperatorTable, CountsThatDoNotFitAreNotKnown) {
  OperatorTable table;
  table.rows = {{"a", "MUL_MAT", "x", "0", 1, 1, INT64_MAX, 1},
                {"a", "MUL_MAT", "x", "1", 1, 1, INT64_MAX, 1},
                {"a", "MUL_MAT", "x", "2", 1, 1, 5, 1}};
  const Operators operators = operators_of(table);
  ASSERT_EQ(operators.rows.size(), 1U);
  EXPECT_EQ(operators.rows[0].flops, std::nullopt);
  EXPECT_EQ(operators.rows[0].bytes, 3);
}

TEST(OperatorTable, OfABundleOfAnEarlierVersionIsFound) {
  const TemporaryDirectory bundle;
  std::filesystem::create_directories(bundle.path() / "stage1");
  write_file(bundle.path() / "stage1/operators.csv",
             "kind,stage,op,calls,total_ns\nstage,a,,1,100\noperator,a,ADD,1,90\n");
  Besides evidence;
  read_operators(bundle.path(), evidence);
  EXPECT_TRUE(evidence.operators);
}

TEST(OperatorTable, AWordOfARowIsNoStage) {
  const TemporaryDirectory bundle;
  std::filesystem::create_directories(bundle.path() / "baseline");
  write_file(bundle.path() / layout::kOperatorTable,
             "kind,stage,op,calls,total_ns\noperator,capture,ADD,1,90\noperator,capture,MUL,1,80\n"
             "operator,,SUB,1,70\n");
  Besides evidence;
  read_operators(bundle.path(), evidence);
  ASSERT_TRUE(evidence.operators);
  ASSERT_EQ(evidence.operators->rows.size(), 3U);
  EXPECT_EQ(evidence.operators->rows[0].stage.text(), "capture (marked)");
  EXPECT_EQ(evidence.operators->rows[2].stage.text(), "");
  ASSERT_EQ(evidence.diagnostics.size(), 1U);
  EXPECT_EQ(evidence.diagnostics[0].kind, "stage_renamed");
}

TEST(OperatorTable, OfABundleIsTakenWhereNothingBetterIsKnown) {
  const TemporaryDirectory bundle;
  Besides none;
  read_operators(bundle.path(), none);
  EXPECT_FALSE(none.operators);
  EXPECT_TRUE(none.diagnostics.empty());

  std::filesystem::create_directories(bundle.path() / "baseline");
  write_file(bundle.path() / layout::kOperatorTable,
             "kind,stage,op,calls,total_ns\nstage,a,,1,100\noperator,a,ADD,1,90\nbroken\n");
  Besides one;
  read_operators(bundle.path(), one);
  ASSERT_TRUE(one.operators);
  EXPECT_EQ(one.operators->covered_ns, 90);
  ASSERT_EQ(one.diagnostics.size(), 1U);
  EXPECT_EQ(one.diagnostics[0].kind, "operator_row_damaged");

  Profile better;
  better.analysis.operators.emplace().source = "Kineto";
  complete(better, std::move(one));
  EXPECT_EQ(better.analysis.operators->source, "Kineto");

  write_file(bundle.path() / layout::kOperatorTable, "no table\n");
  Besides broken;
  read_operators(bundle.path(), broken);
  EXPECT_FALSE(broken.operators);
  ASSERT_EQ(broken.diagnostics.size(), 1U);
  EXPECT_EQ(broken.diagnostics[0].kind, "operators_unreadable");
}

}  // namespace
}  // namespace gpuwhy
