// SPDX-License-Identifier: Apache-2.0
#include "ingest/nsys/nsys_csv.h"

#include "base/error.h"
#include "testing.h"

namespace gpuwhy {
namespace {

TEST(NsysCsv, ReadsASummaryBehindWhatNsysSays) {
  const KernelSummary summary = parse_nsys_csv(R"csv(
Processing [run.sqlite] with [cuda_gpu_kern_sum.py]...
Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
24.9,300,3,100.0,90.0,80,130,5.2,"void a::f<(int)4, b>(T1)"
75.1,900,1,900.0,900.0,900,900,0.0,g

** the next report
)csv");
  ASSERT_EQ(summary.rows.size(), 2U);
  EXPECT_EQ(summary.rows[0].name, "void a::f<(int)4, b>(T1)");
  EXPECT_EQ(summary.rows[0].total_ns, 300);
  EXPECT_EQ(summary.rows[0].instances, 3);
  EXPECT_EQ(summary.rows[0].median_ns, 90);
  EXPECT_EQ(summary.rows[0].max_ns, 130);
  EXPECT_FALSE(summary.rows[0].shape);
  EXPECT_TRUE(summary.diagnostics.empty());
}

TEST(NsysCsv, ReadsShapesOldHeadingsAndOtherUnits) {
  const KernelSummary summary = parse_nsys_csv(
      "Time(%),Total Time (us),Instances,Average,Minimum (us),Maximum (us),GridXYZ,BlockXYZ,Name\n"
      "100.0,1.5,2,0.75,0.5,1,  20   32    1, 128    1    1,f\n"
      "0.0,broken,2,0.75,0.5,1,,,g\n");
  ASSERT_EQ(summary.rows.size(), 1U);
  EXPECT_EQ(summary.rows[0].total_ns, 1500);
  EXPECT_EQ(summary.rows[0].min_ns, 500);
  EXPECT_EQ(summary.rows[0].median_ns, std::nullopt);
  ASSERT_TRUE(summary.rows[0].shape);
  EXPECT_EQ(summary.rows[0].shape->grid[1], 32);
  EXPECT_EQ(summary.rows[0].shape->block[0], 128);
  ASSERT_EQ(summary.diagnostics.size(), 1U);
  EXPECT_EQ(summary.diagnostics[0].count, 1);
}

TEST(NsysCsv, RefusesOtherText) {
  EXPECT_THROW(parse_nsys_csv(""), Error);
  EXPECT_THROW(parse_nsys_csv("a,b,c\n1,2,3\n"), Error);
  EXPECT_THROW(parse_nsys_csv("Name,Total Time of Instances\nx,1\n"), Error);
}

}  // namespace
}  // namespace gpuwhy
