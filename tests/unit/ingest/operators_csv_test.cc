// SPDX-License-Identifier: Apache-2.0
#include "ingest/operators_csv.h"

#include "base/error.h"
#include "testing.h"

namespace gpuwhy {
namespace {

TEST(OperatorsCsv, ReadsStagesAndOperatorsByTheirHeadings) {
  const OperatorTable table = parse_operators_csv(
      "stage,kind,op,name,layer,total_ns,calls,flops,bytes,weights,something new\n"
      "prefill,stage,,,,1000,2,,,,\n"
      "prefill,operator,MUL_MAT,ffn_up,3,600,2,4096,12,blk.3.ffn_up.weight,x\n"
      "prefill,operator,\"SOFT,MAX\",,,300,2,,,,\n");
  ASSERT_EQ(table.stages.size(), 1U);
  EXPECT_EQ(table.stages[0].name, "prefill");
  EXPECT_EQ(table.stages[0].calls, 2);
  EXPECT_EQ(table.stages[0].total_ns, 1000);
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].op, "MUL_MAT");
  EXPECT_EQ(table.rows[0].name, "ffn_up");
  EXPECT_EQ(table.rows[0].layer, "3");
  EXPECT_EQ(table.rows[0].total_ns, 600);
  EXPECT_EQ(table.rows[0].flops, 4096);
  EXPECT_EQ(table.rows[0].bytes, 12);
  EXPECT_EQ(table.rows[1].op, "SOFT,MAX");
  EXPECT_EQ(table.rows[1].flops, std::nullopt) << "an empty cell is not zero";
  EXPECT_EQ(table.num_bad_rows, 0);
}

TEST(OperatorsCsv, RowsThatMakeNoSenseAreCountedAndLeftOut) {
  const OperatorTable table = parse_operators_csv(
      "kind,stage,op,calls,total_ns\n"
      "operator,a,ADD,1,-5\n"
      "operator,a,ADD,1,99999999999999999999\n"
      "operator,a,ADD,1,9223372036854775807\n"
      "operator,a,ADD,1,1.5\n"
      "operator,a\n"
      "neither,a,ADD,1,5\n"
      "\n"
      "operator,a,ADD,1,5\n");
  EXPECT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.num_bad_rows, 7);
}

TEST(OperatorsCsv, AnotherTableIsRefused) {
  EXPECT_THROW(parse_operators_csv(""), Error);
  EXPECT_THROW(parse_operators_csv("Time (%),Total Time (ns),Instances,Name\n1,2,3,f\n"), Error);
  EXPECT_THROW(parse_operators_csv(std::string("SQLite format 3\0\0\0", 18)), Error);
  EXPECT_THROW(load_operators_csv("/nowhere/at/all.csv"), Error);
}

}  // namespace
}  // namespace gpuwhy
