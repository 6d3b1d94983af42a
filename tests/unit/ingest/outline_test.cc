// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "ingest/ingest.h"
#include "ingest/kineto/kineto_outline.h"
#include "made_sqlite.h"
#include "testing.h"

namespace gpuwhy {
namespace {

class Outline : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  TraceOutline of_sql(const std::string& sql) {
    execute_sql(path_, sql);
    return outline_trace(path_);
  }

  TraceOutline of_text(const std::string& text) {
    std::ofstream(path_) << text;
    return outline_trace(path_);
  }

  std::filesystem::path path_ = testing::TempDir() + "outline_test-" + std::to_string(::getpid());
};

constexpr const char* kNames =
    "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaLaunchKernel');";

TEST_F(Outline, CountsRowsOfAnExport) {
  const TraceOutline outline =
      of_sql(std::string(kNames) +
             "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER);"
             "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2), (3, 4), (5, 6);"
             "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, text TEXT);"
             "INSERT INTO NVTX_EVENTS VALUES (1, 2, 'step 1'), (3, 4, 'step 2')");
  EXPECT_EQ(outline.format, "nsys SQLite");
  EXPECT_EQ(outline.num_kernels, 3U);
  EXPECT_EQ(outline.num_ranges, 2U);
  EXPECT_EQ(outline.num_calls, 0U);
  EXPECT_EQ(outline.num_events(), 5U);
  EXPECT_GE(outline.num_texts, 4U);
  EXPECT_FALSE(outline.is_estimate);
}

// A row id is a number in an untrusted file: it may not promise more than the file can hold.
TEST_F(Outline, AnAbsurdRowIdIsHeldAgainstTheFile) {
  const TraceOutline outline =
      of_sql(std::string(kNames) +
             "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER);"
             "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(rowid, start) VALUES (9223372036854775807, 1);"
             "INSERT INTO StringIds VALUES (9223372036854775807, 'x')");
  EXPECT_LE(outline.num_kernels, outline.file_bytes / 8);
  EXPECT_EQ(outline.num_texts, 3U);
}

// As the analysis does: a plan that fits would be a wrong one.
TEST_F(Outline, MoreGpusThanAnyMachineHasAreRefused) {
  const auto with_gpus = [](int number) {
    return fmt::format(
        "{}CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start, end, deviceId);"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {})"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT i, i + 1, i FROM n",
        kNames, number);
  };
  EXPECT_EQ(of_sql(with_gpus(256)).num_devices, 256U);
  std::filesystem::remove(path_);
  EXPECT_THROW(of_sql(with_gpus(257)), Error);
}

TEST_F(Outline, OtherDatabasesAreRefused) {
  EXPECT_THROW(of_sql("CREATE TABLE a(b)"), Error);
}

TEST_F(Outline, CountsEventsOfASmallTraceExactly) {
  const TraceOutline outline = of_text(
      R"({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm"},
          {"ph":"X","cat":"kernel","name":"gemm"}, {"ph": "X", "cat": "gpu_memset"},
          {"ph": "X", "cat": "python_function", "name": "nn.Module: Linear_0"},
          {"ph": "X", "cat": "python_function", "name": "train.py(3): main"},
          {"ph": "s", "cat": "ac2g"}, {"ph": "X", "cat": "cuda_runtime"}]})");
  EXPECT_EQ(outline.num_ops, 2U);
  EXPECT_EQ(outline.num_kernels, 1U);
  EXPECT_EQ(outline.num_copies, 1U);
  EXPECT_EQ(outline.num_calls, 1U);
  EXPECT_FALSE(outline.is_estimate);
}

TEST_F(Outline, ScalesALongTraceUp) {
  std::string text = "{\"traceEvents\": [\n";
  const std::string event =
      R"({"ph": "X", "cat": "kernel", "name": ")" + std::string(460, 'k') + "\"},\n";
  constexpr std::size_t kEvents = 60'000;  // 30 MB, of which 16 MiB are looked at
  for (std::size_t i = 0; i < kEvents; ++i) {
    text += event;
  }
  const TraceOutline outline = of_text(text);
  EXPECT_TRUE(outline.is_estimate);
  EXPECT_NEAR(static_cast<double>(outline.num_kernels), kEvents, kEvents / 100.0);
}

// A sample may stop anywhere.
TEST(KinetoOutline, TextCutAnywhereIsCounted) {
  const std::string event = R"({"cat": "kernel"})";
  for (std::size_t size = 0; size <= event.size(); ++size) {
    TraceOutline outline;
    count_kineto_events(std::string_view(event).substr(0, size), outline);
    EXPECT_EQ(outline.num_kernels, size >= event.size() - 1 ? 1U : 0U) << size;
  }
}

}  // namespace
}  // namespace gpuwhy
