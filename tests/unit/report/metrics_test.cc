// SPDX-License-Identifier: Apache-2.0
//
// metrics.json as structs: nothing is lost on the way, nothing wrong is taken, and what is made of
// the field descriptions is up to date. GPUWHY_UPDATE=1 writes the schema and the table of keys.
#include <cstdlib>

#include "base/file.h"
#include "base/json.h"
#include "folders.h"
#include "gpuwhy/recording.h"
#include "results/catalog.h"
#include "results/json.h"
#include "results/results.h"
#include "session/reading/recording.h"
#include "testing.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = fs::path(data_folder()) / ".." / "..";

std::vector<std::pair<std::string, Json>> golden_metrics() {
  std::vector<std::pair<std::string, Json>> files;
  for (const auto& entry : fs::directory_iterator(kRoot / "tests/golden")) {
    const fs::path path = entry.path() / "expected.out";
    const std::string text = fs::exists(path) ? read_file(path) : "";
    if (text.starts_with("{\n  \"schema\": \"gpuwhy.metrics\"")) {
      files.emplace_back(entry.path().filename().string(), parse_json(text, path.string()));
    }
  }
  return files;
}

void expect_round_trip(const Json& json, const std::string& name) {
  EXPECT_EQ(to_json_text(metrics_json(metrics_from_json(json))), to_json_text(json)) << name;
}

TEST(Metrics, GoldensComeBackAsTheyWere) {
  const auto files = golden_metrics();
  EXPECT_GE(files.size(), 2U);
  for (const auto& [name, json] : files) {
    expect_round_trip(json, name);
  }
  const fs::path counters = kRoot / "tests/golden/analyze-ncu-json";
  RecordingOptions options;
  options.ncu = {(counters / "counters.csv").string()};
  const LoadedMetrics loaded =
      load_metrics({(counters / "kernels.csv").string()}, options, System());
  EXPECT_TRUE(loaded.metrics.counters);
  expect_round_trip(*loaded.json, "counters");
}

TEST(Metrics, RecordingsComeBackAsTheyWere) {
  if (!fs::is_directory(corpus_folder())) {
    GTEST_SKIP() << "no corpus";
  }
  for (const char* folder : {"nsys_sqlite", "kineto"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(corpus_folder()) / folder)) {
      const std::string path = entry.path().string();
      std::string text;
      try {
        text = api::read_recording(path).metrics_json;
      } catch (const std::exception&) {
        continue;  // a recording that cannot be read has no metrics
      }
      expect_round_trip(parse_json(text, path), path);
    }
  }
}

TEST(Metrics, AbsentKeysLeaveTheirMembers) {
  const Results none = metrics_from_json(Json::object());
  EXPECT_FALSE(none.efficiency || none.counters || none.baseline || none.environment);
  EXPECT_TRUE(none.kernels.empty());
  const Results some = metrics_from_json(
      {{"counters", {{"kernels", nullptr}, {"reason", "needs an ncu capture"}}},
       {"capture", {{"rank", nullptr}, {"kernel_ns", 12}, {"a_newer_key", Json::array()}}},
       {"ledgers", {{{"stage", "decode"}, {"buckets_ns", {{"sync", 3}, {"newer", "x"}}}}}}});
  EXPECT_FALSE(some.counters);
  EXPECT_FALSE(some.capture.rank);
  EXPECT_EQ(some.capture.kernel_ns, 12);
  EXPECT_EQ(some.ledgers.at(0)[Bucket::kSync], 3);
}

TEST(Metrics, AWrongTypeIsAnErrorThatNamesTheKey) {
  const std::vector<std::pair<Json, const char*>> wrong = {
      {Json::array(), "the whole is not an object"},
      {{{"verdict", 1}}, "verdict is not a text"},
      {{{"capture", {{"kernel_ns", 1.5}}}}, "capture.kernel_ns is not a whole number"},
      {{{"capture", {{"kernel_ns", UINT64_MAX}}}}, "capture.kernel_ns is not a whole number"},
      {{{"kernels", 5}}, "kernels is not an array"},
      {{{"kernels", {{{"calls", 1}}, {{"calls", "2"}}}}}, "kernels[1].calls is not a whole"},
      {{{"kernels", {{{"histogram", {{1, 2, 3}}}}}}}, "kernels[0].histogram[0] is not a pair"},
      {{{"stages", {{{"nested", 0}}}}}, "stages[0].nested is not true or false"},
      {{{"efficiency", {{"stages", {{{"mfu", {{"wall_fraction", "x"}}}}}}}}},
       "efficiency.stages[0].mfu.wall_fraction is not a number"},
      {{{"data_quality", {{{"severity", "dire"}}}}}, "data_quality[0].severity is not info"},
      {{{"counters", {{"kernels", {{{"grid", {1, 2}}}}}}}}, "counters.kernels[0].grid is not"},
      {{{"ledgers", {{{"buckets_ns", {{"sync", true}}}}}}}, "ledgers[0].buckets_ns.sync is not"}};
  for (const auto& [json, message] : wrong) {
    expect_error([&json = json] { metrics_from_json(json); }, ErrorKind::kInput,
                 HasSubstr(std::string("metrics.json: ") + message), testing::IsEmpty());
  }
}

TEST(MetricCatalog, UnitsFollowThePattern) {
  EXPECT_EQ(metric_info("kernels[].total_ns")->unit, "ns");
  EXPECT_EQ(metric_info("ledgers[].buckets_ns.sync")->formula, "ledgers.bucket");
  EXPECT_EQ(metric_info("efficiency.stages[].mfu.wall_fraction")->formula, "efficiency.mfu");
  EXPECT_EQ(metric_info("aggregates.ttft.n")->unit, "1");
  EXPECT_EQ(metric_info("kernels[].kernel_name"), nullptr);
  EXPECT_EQ(metric_info("mystery"), nullptr);
  for (const CatalogRow& row : metric_catalog()) {
    EXPECT_FALSE(row.info.text.empty()) << row.keys;
    EXPECT_TRUE(row.info.unit != "" || !row.keys.ends_with("_ns")) << row.keys;
  }
}

// The part of a file between two lines; all of it where there are no such lines.
void expect_made(const fs::path& file, const std::string& made, const std::string& begin = "",
                 const std::string& end = "") {
  const std::string text = read_file(file);
  const std::size_t from = text.find(begin) + begin.size();
  const std::size_t to = end.empty() ? text.size() : text.find(end);
  ASSERT_LE(from, to) << file;
  if (std::getenv("GPUWHY_UPDATE") != nullptr) {
    write_file(file, text.substr(0, from) + made + text.substr(to));
    return;
  }
  EXPECT_EQ(text.substr(from, to - from), made)
      << file << " is out of date: run this test with GPUWHY_UPDATE=1";
}

TEST(MetricCatalog, SchemaAndTableOfKeysAreUpToDate) {
  expect_made(kRoot / "docs/schema/metrics.schema.json", to_json_text(metrics_schema()));
  expect_made(kRoot / "docs/metrics.md", key_table(), "<!-- keys begin -->\n", "<!-- keys end -->");
}

}  // namespace
}  // namespace gpuwhy
