// SPDX-License-Identifier: Apache-2.0
//
// The library as other programs see it: what is not known is empty, what is thrown is its own, and
// its structures lie in memory as they did.
#include <array>
#include <cstddef>
#include <thread>
#include <type_traits>

#include <gpuwhy/model.h>
#include <gpuwhy/recording.h>

#include "made_sqlite.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

using api::FindingRow;
using api::KernelRow;
using api::LedgerRow;
using api::ModelFacts;
using api::Recording;
using api::StageRow;
using api::WorkCost;

constexpr const char* kSummary =
    "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
    "75.0,900,1,900.0,900.0,900,900,0.0,g\n"
    "25.0,300,3,100.0,90.0,80,130,5.2,f\n";

// Two launches of a kernel, 100 and 300 ns, from 1000 to 2000.
constexpr const char* kTrace = R"sql(
CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES (1, 'f');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, "end" INTEGER, deviceId INTEGER, contextId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER,
  gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
  (1000, 1100, 0, 1, 7, 1, 16777216, 1, 1, 8, 1, 1, 128, 1, 1),
  (1700, 2000, 0, 1, 7, 2, 16777216, 1, 1, 8, 1, 1, 128, 1, 1);
)sql";

TEST(Api, WhatASummaryDoesNotTellIsEmpty) {
  const TemporaryDirectory folder;
  const Recording recording =
      api::read_recording(folder.add("run_cuda_gpu_kern_sum.csv", kSummary).string());
  EXPECT_EQ(recording.capture_ns, std::nullopt);
  EXPECT_EQ(recording.kernel_ns, 1200);
  ASSERT_EQ(recording.kernels.size(), 2U);
  for (const KernelRow& kernel : recording.kernels) {
    EXPECT_EQ(kernel.p99_ns, std::nullopt) << kernel.name;
  }
  EXPECT_EQ(recording.kernels[1].median_ns, 90);
  EXPECT_EQ(recording.kernels[1].max_ns, 130);
}

TEST(Api, RulesOfAFileComeFirst) {
  const TemporaryDirectory folder;
  const std::string path = folder.add("sums.csv", kSummary).string();
  const std::string rules =
      folder.add("my.yaml", "families: [{family: mine, words: [g]}]\n").string();
  const Recording recording = api::read_recording(path, rules);
  EXPECT_EQ(recording.kernels[0].family, "mine");
  EXPECT_THAT(recording.warnings, testing::Contains(testing::HasSubstr("my.yaml")));
  EXPECT_THROW(api::read_recording(path, path), api::Error);
}

TEST(Api, WhatARecordingTellsIsThere) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() / "run.sqlite";
  execute_sql(path, kTrace);
  const Recording recording = api::read_recording(path);
  EXPECT_EQ(recording.capture_ns, 1000);
  ASSERT_EQ(recording.kernels.size(), 1U);
  EXPECT_EQ(recording.kernels[0].calls, 2);
  EXPECT_EQ(recording.kernels[0].max_ns, 300);
  EXPECT_THAT(recording.kernels[0].p99_ns, testing::Optional(300));
}

// A folder that is gone has no absolute path: the C++ library throws an exception of its own.
TEST(Api, NothingButErrorLeavesIt) {
  const TemporaryDirectory folder;
  execute_sql(folder.path() / "run.sqlite", kTrace);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::create_directory(folder.path() / "gone");
  std::filesystem::current_path(folder.path() / "gone");
  std::filesystem::remove(folder.path() / "gone");
  EXPECT_THROW(api::read_recording("../run.sqlite"), api::Error);
  std::filesystem::current_path(before);
  EXPECT_THROW(api::read_recording((folder.path() / "nothing").string()), api::Error);
  EXPECT_THROW(api::model_facts((folder.path() / "nothing").string()), api::Error);
}

TEST(Api, ThreadsMayCallAtOnce) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() / "run.sqlite";
  execute_sql(path, kTrace);
  const std::string wanted = api::read_recording(path).metrics_json;
  std::array<int, 4> equal = {};
  {
    std::vector<std::jthread> threads;
    for (int& mine : equal) {
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i) {
          mine += api::read_recording(path).metrics_json == wanted ? 1 : 0;
        }
      });
    }
  }
  EXPECT_THAT(equal, testing::Each(20));
}

// Programs are compiled with these places and sizes in them. A field that is added, moved or of
// another type is another library for them: raise the minor version (after 1.0 the major one), say
// it in CHANGELOG.md, and only then change this table.
#if defined(__x86_64__) && defined(__GLIBCXX__) && _GLIBCXX_USE_CXX11_ABI
#define EXPECT_PLACE(type, field, wanted) EXPECT_EQ(offsetof(type, field), wanted##U)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
TEST(Api, StructuresLieInMemoryAsTheyDid) {
  EXPECT_PLACE(KernelRow, name, 0);
  EXPECT_PLACE(KernelRow, short_name, 32);
  EXPECT_PLACE(KernelRow, device, 64);
  EXPECT_PLACE(KernelRow, stage, 96);
  EXPECT_PLACE(KernelRow, family, 128);
  EXPECT_PLACE(KernelRow, calls, 160);
  EXPECT_PLACE(KernelRow, total_ns, 168);
  EXPECT_PLACE(KernelRow, min_ns, 176);
  EXPECT_PLACE(KernelRow, median_ns, 184);
  EXPECT_PLACE(KernelRow, max_ns, 192);
  EXPECT_PLACE(KernelRow, p99_ns, 200);
  EXPECT_EQ(sizeof(KernelRow), 216U);

  EXPECT_PLACE(StageRow, name, 0);
  EXPECT_PLACE(StageRow, instances, 32);
  EXPECT_PLACE(StageRow, total_ns, 40);
  EXPECT_PLACE(StageRow, median_ns, 48);
  EXPECT_PLACE(StageRow, kernel_ns, 56);
  EXPECT_PLACE(StageRow, tokens, 64);
  EXPECT_EQ(sizeof(StageRow), 80U);

  EXPECT_PLACE(LedgerRow, stage, 0);
  EXPECT_PLACE(LedgerRow, device, 32);
  EXPECT_PLACE(LedgerRow, window_ns, 64);
  EXPECT_PLACE(LedgerRow, buckets_ns, 72);
  EXPECT_EQ(sizeof(LedgerRow), 96U);

  EXPECT_PLACE(FindingRow, id, 0);
  EXPECT_PLACE(FindingRow, sentence, 32);
  EXPECT_PLACE(FindingRow, next, 64);
  EXPECT_PLACE(FindingRow, saving_ns, 96);
  EXPECT_EQ(sizeof(FindingRow), 104U);

  EXPECT_PLACE(Recording, format, 0);
  EXPECT_PLACE(Recording, capture_ns, 32);
  EXPECT_PLACE(Recording, kernel_ns, 48);
  EXPECT_PLACE(Recording, devices, 56);
  EXPECT_PLACE(Recording, stages, 80);
  EXPECT_PLACE(Recording, kernels, 104);
  EXPECT_PLACE(Recording, ledgers, 128);
  EXPECT_PLACE(Recording, findings, 152);
  EXPECT_PLACE(Recording, warnings, 176);
  EXPECT_PLACE(Recording, metrics_json, 200);
  EXPECT_EQ(sizeof(Recording), 232U);

  EXPECT_PLACE(ModelFacts, family, 0);
  EXPECT_PLACE(ModelFacts, params, 32);
  EXPECT_PLACE(ModelFacts, active_params, 40);
  EXPECT_PLACE(ModelFacts, kv_bytes_per_token, 48);
  EXPECT_PLACE(ModelFacts, weight_dtype, 56);
  EXPECT_EQ(sizeof(ModelFacts), 88U);

  EXPECT_PLACE(WorkCost, flops, 0);
  EXPECT_PLACE(WorkCost, bytes, 8);
  EXPECT_EQ(sizeof(WorkCost), 16U);

  EXPECT_EQ(sizeof(api::Error), sizeof(std::runtime_error) + sizeof(std::string));
}
#pragma GCC diagnostic pop
#endif

// The same for their types.
static_assert(std::is_same_v<decltype(KernelRow::p99_ns), std::optional<std::int64_t>>);
static_assert(std::is_same_v<decltype(StageRow::tokens), std::optional<std::int64_t>>);
static_assert(std::is_same_v<decltype(LedgerRow::buckets_ns),
                             std::vector<std::pair<std::string, std::int64_t>>>);
static_assert(std::is_same_v<decltype(Recording::capture_ns), std::optional<std::int64_t>>);
static_assert(std::is_same_v<decltype(Recording::kernels), std::vector<KernelRow>>);

}  // namespace
}  // namespace gpuwhy
