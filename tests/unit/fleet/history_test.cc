// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "fleet/history/clickhouse.h"
#include "fleet/history/clickhouse_schema.h"
#include "fleet/history/history_queries.h"
#include "fleet/history/history_rows.h"
#include "fleet/history/push.h"
#include "fleet/history/queries.h"
#include "fleet/history/spool.h"
#include "fleet/summary/labels.h"
#include "fleet/summary/summary_file.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

RankSummary rank_of(const std::string& run, std::int64_t rank, std::int64_t compute_ns) {
  RankSummary summary;
  summary.identity.run_id = run;
  summary.identity.rank = rank;
  summary.identity.num_ranks = 3;
  summary.identity.engine_version = "v" + run;
  summary.identity.started_unix_s = 86'400 * 20'000 + std::stoll(run) * 86'400;
  StageSums stage;
  stage.stage = "decode";
  stage.instances = 1;
  stage.window_ns = 10'000;
  stage.buckets_ns[0] = compute_ns;
  summary.stages = {stage};
  summary.kernels = {
      {{"decode", "k", "gemm"}, {2, 2 * compute_ns, compute_ns, compute_ns, {{80, 2}}}}};
  return summary;
}

void put(const TemporaryDirectory& folder, const std::string& name, const RankSummary& summary) {
  folder.add(name + ".gpuwhy", summary_bytes(summary));
}

TEST(Dialect, IsToldByTheVersion) {
  EXPECT_FALSE(dialect_of("18.16.1\n").has_column_codecs);
  EXPECT_TRUE(dialect_of("20.3.1.1\n").has_column_codecs);
  EXPECT_FALSE(dialect_of("22.1.9").has_insert_token);
  EXPECT_TRUE(dialect_of("22.2.1").has_insert_token);
  EXPECT_TRUE(dialect_of("26.5.1.1").has_insert_token);
  for (const char* wrong : {"", "x", "18", "18.", "-1.2", "<html>18.16"}) {
    EXPECT_THROW(dialect_of(wrong), Error) << wrong;
  }
}

TEST(Dialect, MakesTablesInTheServersWords) {
  const std::vector<std::string> old = schema_statements(dialect_of("18.16.1"), {});
  for (const std::string& statement : old) {
    EXPECT_THAT(statement, Not(HasSubstr("CODEC")));
    EXPECT_THAT(statement, Not(HasSubstr("LowCardinality")));
    EXPECT_THAT(statement, Not(HasSubstr("Replicated")));
  }
  const std::vector<std::string> recent =
      schema_statements(dialect_of("26.5.1"), {"history", "fleet", 30});
  EXPECT_THAT(recent, Contains(HasSubstr("LowCardinality(String)")));
  EXPECT_THAT(recent, Contains(HasSubstr("TTL day + INTERVAL 30 DAY")));
  EXPECT_THAT(recent, Contains(HasSubstr("history.kernels_local ON CLUSTER fleet")));
  EXPECT_THAT(recent, Contains(HasSubstr("Distributed(fleet, history, kernels_local")));
  EXPECT_THROW(schema_statements(dialect_of("18.16"), {"history", "", 30}), Error);
  EXPECT_THROW(schema_statements(dialect_of("26.5"), {"a; DROP", "", 0}), Error);
  EXPECT_THROW(schema_statements(dialect_of("26.5"), {"a", "b'c", 0}), Error);
}

TEST(ServerUrl, HoldsNoCredentials) {
  EXPECT_EQ(checked_server_url("http://host:8123/"), "http://host:8123");
  EXPECT_EQ(checked_server_url("HTTPS://host/path"), "https://host/path");
  try {
    checked_server_url("http://me:secret@host");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), Not(HasSubstr("secret")));
    EXPECT_THAT(error.hint(), HasSubstr("GPUWHY_CLICKHOUSE_USER"));
  }
}

TEST(TabSeparated, IsReadBack) {
  const auto rows = tab_separated("a\\0\\'\\n\\\\\tb\n\t\n", 2);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0][0], std::string("a\0'\n\\", 5));
  EXPECT_EQ(rows[0][1], "b");
  EXPECT_EQ(rows[1][0], "");
  EXPECT_THROW(tab_separated("a\tb", 2), Error);
  EXPECT_THROW(tab_separated("a\n", 2), Error);
  EXPECT_EQ(server_numbers("[1,18446744073709551615]")[1], UINT64_MAX);
  EXPECT_TRUE(server_numbers("[]").empty());
  for (const char* wrong : {"", "1", "[", "[1,]", "[-1]", "[a]"}) {
    EXPECT_THROW(server_numbers(wrong), Error) << wrong;
  }
}

TEST(WideSum, HoldsMoreThanAnInteger) {
  WideSum sum;
  for (int i = 0; i < 1000; ++i) {
    sum.add(INT64_MAX);
  }
  EXPECT_DOUBLE_EQ(sum.value(), 1000 * 9223372036854775807.0);
  EXPECT_LT(sum.rest, WideSum::kBillion);
}

TEST(Queries, HoldNumbersAlone) {
  KnownRun run;
  run.run_key = key_of("'; DROP TABLE runs");
  run.run_id = "'; DROP TABLE runs";
  const HistoryQueries queries("gpuwhy");
  const std::span<const KnownRun> runs(&run, 1);
  for (const RowChoice choice : {RowChoice::kStored, RowChoice::kCounted}) {
    for (const std::string& sql :
         {queries.runs({0, {run.run_key}}), queries.seals({}), queries.kernels(runs, choice),
          queries.sealed_kernels(runs, choice), queries.stages(runs, choice),
          queries.parts(runs, choice), queries.rank_stages(run, choice), queries.places(run, {1}),
          queries.rollup(run, choice)}) {
      EXPECT_EQ(sql.find('\''), std::string::npos) << sql;
      EXPECT_EQ(sql.find("DROP"), std::string::npos) << sql;
    }
  }
}

TEST(Queries, AreCheapUnlessRowsWereStoredTwice) {
  KnownRun run;
  run.run_key = 7;
  const std::span<const KnownRun> runs(&run, 1);
  const HistoryQueries queries("gpuwhy");
  EXPECT_EQ(queries.kernels(runs, RowChoice::kStored).find("FINAL"), std::string::npos);
  EXPECT_NE(queries.kernels(runs, RowChoice::kCounted).find("FINAL"), std::string::npos);
  // A rank that was stored twice while another is missing: the same number of rows.
  RowCheck expected;
  expected.add(10, 10 * 3);
  expected.add(10, 10 * 5);
  RowCheck got;
  got.add(20, 20 * 3);
  EXPECT_EQ(got.rows, expected.rows);
  EXPECT_FALSE(got == expected);
}

TEST(Rows, RefuseWhatCannotBeStored) {
  StoredSummary stored{rank_of("1", 0, 5), 1, 1};
  stored.summary.kernels[0].calls = -1;
  EXPECT_THROW(RowBatch().add(stored), Error);
  stored = {rank_of("1", INT64_MAX, 5), 1, 1};
  EXPECT_THROW(RowBatch().add(stored), Error);
}

TEST(Rows, OfARankAreOrderedSoThatItIsSeenLast) {
  RowBatch batch;
  batch.add({rank_of("1", 0, 5), 1, 1});
  const auto sections = batch.sections();
  ASSERT_EQ(sections.size(), 4U);
  EXPECT_STREQ(sections[3]->table, "ranks");
  // 8 + 4 + 8 + 2 of the place, three keys, four sums, and two arrays of one number.
  EXPECT_EQ(sections[1]->bytes.size(), 22U + 24 + 32 + 1 + 2 + 1 + 8);
}

TEST(Versions, LaterAttemptsAndFilesWin) {
  StoredSummary first{rank_of("1", 0, 5), 1, 1'800'000'000'000};
  StoredSummary later = first;
  later.modified_ms += 1;
  EXPECT_LT(version_of(first), version_of(later));
  first.summary.identity.attempt = 1;
  EXPECT_GT(version_of(first), version_of(later));
}

TEST(SpoolFolder, KeepsBatchesUntilTheyAreRemoved) {
  const TemporaryDirectory folder;
  Spool spool(folder.path() / "spool");
  RowBatch batch;
  batch.add({rank_of("1", 0, 5), 1, 1});
  spool.add(batch);
  spool.add(batch);
  ASSERT_EQ(spool.waiting().size(), 1U);
  const SpooledBatch loaded = spool.load(spool.waiting()[0]);
  ASSERT_EQ(loaded.sections.size(), 4U);
  EXPECT_EQ(loaded.sections[1].bytes, batch.sections()[1]->bytes);
  EXPECT_EQ(loaded.run_keys, std::vector<std::uint64_t>{key_of("1")});
  std::string bytes = read_file(spool.waiting()[0]);
  const std::size_t end = bytes.find('\n');
  const Json head = parse_json(bytes.substr(0, end), "head");
  for (const char* field :
       {"/num_ranks", "/run_keys/0", "/first_day", "/sections/0/bytes", "/sections/0/rows"}) {
    Json wrong = head;
    wrong.at(Json::json_pointer(field)) = -1.5;
    write_file(spool.waiting()[0], to_json_line(wrong) + bytes.substr(end));
    EXPECT_THROW(spool.load(spool.waiting()[0]), Error) << field;
  }
  bytes.back() ^= 1;
  write_file(spool.waiting()[0], bytes);
  EXPECT_THROW(spool.load(spool.waiting()[0]), Error);
  for (const std::string& wrong :
       {std::string(), std::string("{}\n"), std::string("[1]\n"), bytes.substr(0, 100)}) {
    write_file(spool.waiting()[0], wrong);
    EXPECT_THROW(spool.load(spool.waiting()[0]), Error) << wrong;
  }
  const fs::path aside = spool.set_aside(spool.waiting()[0]);
  EXPECT_TRUE(fs::exists(aside));
  EXPECT_TRUE(spool.waiting().empty());
}

TEST(SpoolFolder, TakesWholeRanksOfOneMonthABatch) {
  const TemporaryDirectory folder;
  std::vector<fs::path> files;
  for (int run = 0; run < 62; run += 31) {
    for (int rank = 0; rank < 3; ++rank) {
      const std::string name = std::to_string(run) + "-" + std::to_string(rank) + ".gpuwhy";
      files.push_back(folder.add(name, summary_bytes(rank_of(std::to_string(run), rank, 5))));
    }
  }
  Spool spool(folder.path() / "spool");
  SpoolRules rules;
  rules.batch_rows = 4;
  int num_batches = 0;
  rules.on_batch = [&] { ++num_batches; };
  const SpooledCounts counts = spool_summaries(files, rules, spool);
  EXPECT_EQ(num_batches, 4);
  EXPECT_EQ(counts.ranks, 6U);
  EXPECT_EQ(counts.rows, 12U);
  EXPECT_EQ(spool.waiting().size(), 4U);  // two ranks of two rows, then one, for each month
}

TEST(SpoolFolder, OneDamagedSummaryDoesNotHoldUpTheOthers) {
  const TemporaryDirectory folder;
  RankSummary negative = rank_of("1", 2, 5);
  negative.identity.attempt = INT64_MAX;  // cannot be stored, found after the rows of its kernels
  const std::vector<fs::path> files = {
      folder.add("0.gpuwhy", summary_bytes(rank_of("1", 0, 5))), folder.add("1.gpuwhy", "nonsense"),
      folder.add("2.gpuwhy", summary_bytes(negative)), folder.add("3.gpuwhy", ""),
      folder.add("4.gpuwhy", summary_bytes(rank_of("1", 1, 5)))};
  Spool spool(folder.path() / "spool");
  const SpooledCounts counts = spool_summaries(files, {}, spool);
  EXPECT_EQ(counts.ranks, 2U);
  ASSERT_EQ(counts.skipped.size(), 3U);
  EXPECT_THAT(counts.skipped[0], HasSubstr("1.gpuwhy"));
  ASSERT_EQ(spool.waiting().size(), 1U);
  const SpooledBatch batch = spool.load(spool.waiting()[0]);
  EXPECT_EQ(batch.num_ranks, 2U);
  RowBatch expected;
  expected.add({rank_of("1", 0, 5), 1, 1});
  expected.add({rank_of("1", 1, 5), 1, 1});
  EXPECT_EQ(batch.sections[1].bytes.size(), expected.sections()[1]->bytes.size());
}

TEST(SpoolFolder, RowsThatTheServerWouldDropAreNotSent) {
  const TemporaryDirectory folder;
  RankSummary timeless = rank_of("1", 1, 5);
  timeless.identity.started_unix_s = 0;
  const std::vector<fs::path> files = {folder.add("old.gpuwhy", summary_bytes(rank_of("1", 0, 5))),
                                       folder.add("timeless.gpuwhy", summary_bytes(timeless)),
                                       folder.add("new.gpuwhy", summary_bytes(rank_of("9", 0, 5)))};
  Spool spool(folder.path() / "spool");
  SpoolRules rules;
  rules.first_kept_day = 20'005;
  const SpooledCounts counts = spool_summaries(files, rules, spool);
  EXPECT_EQ(counts.ranks, 1U);
  ASSERT_EQ(counts.skipped.size(), 2U);
  EXPECT_THAT(counts.skipped[0], HasSubstr("drops rows from before 2024-10-09"));
  EXPECT_THAT(counts.skipped[1], HasSubstr("does not say when it began"));
}

TEST(SpoolFolder, RemembersWhatWasSentToWhom) {
  const TemporaryDirectory folder;
  const std::vector<fs::path> files = {folder.add("0.gpuwhy", summary_bytes(rank_of("1", 0, 5)))};
  const SpoolTarget target{"gpuwhy", {"http://a:1"}};
  {
    Spool spool(folder.path() / "spool");
    spool.set_target(target, false);
    EXPECT_EQ(spool_summaries(files, {}, spool).ranks, 1U);
    spool.remember_sent(spool.load(spool.waiting()[0]).summaries);
  }
  Spool again(folder.path() / "spool");
  again.set_target(target, false);
  EXPECT_EQ(spool_summaries(files, {}, again).sent_before, 1U);
  SpoolRules rules;
  rules.sends_again = true;
  EXPECT_EQ(spool_summaries(files, rules, again).ranks, 1U);
  Spool other(folder.path() / "spool");
  other.set_target({"gpuwhy", {"http://b:1"}}, false);
  EXPECT_EQ(spool_summaries(files, {}, other).ranks, 1U);
  // A file that changed is another summary.
  fs::last_write_time(files[0], fs::file_time_type::clock::now() + std::chrono::hours(1));
  again.set_target(target, false);
  EXPECT_EQ(spool_summaries(files, {}, again).ranks, 1U);
}

TEST(SpoolFolder, BatchesFollowAServerWhoseAddressesChange) {
  const TemporaryDirectory folder;
  RowBatch batch;
  batch.add({rank_of("1", 0, 5), 1, 1});
  Spool before(folder.path() / "one");
  EXPECT_TRUE(before.set_target({"gpuwhy", {"http://a:1", "http://b:1"}}, true).empty());
  before.add(batch);
  Spool unrelated(folder.path() / "two");
  const std::vector<std::string> others = unrelated.set_target({"gpuwhy", {"http://c:1"}}, true);
  ASSERT_EQ(others.size(), 1U);
  EXPECT_THAT(others[0], HasSubstr("1 batches for http://a:1,http://b:1 wait in"));
  Spool database(folder.path() / "three");
  EXPECT_EQ(database.set_target({"other", {"http://a:1"}}, true).size(), 1U);
  EXPECT_TRUE(database.waiting().empty());
  Spool after(folder.path() / "four");
  after.set_target({"gpuwhy", {"http://b:1", "http://c:1"}}, true);
  EXPECT_EQ(after.waiting().size(), 1U);
  EXPECT_TRUE(before.waiting().empty());
}

TEST(SpoolFolder, BatchesOfAnOlderProgramHaveTheColumnsOfItsTime) {
  const TemporaryDirectory folder;
  Spool spool(folder.path() / "spool");
  RowBatch batch;
  batch.add({rank_of("1", 0, 5), 1, 1});
  spool.add(batch);
  EXPECT_THAT(spool.load(spool.waiting()[0]).sections[3].columns, HasSubstr(", labels"));
  std::string bytes = read_file(spool.waiting()[0]);
  Json head = parse_json(bytes.substr(0, bytes.find('\n')), "head");
  head.erase("summaries");
  for (Json& section : head["sections"]) {
    section.erase("columns");
  }
  write_file(spool.waiting()[0], to_json_line(head) + bytes.substr(bytes.find('\n')));
  const SpooledBatch old = spool.load(spool.waiting()[0]);
  EXPECT_THAT(old.sections[3].columns, Not(HasSubstr("labels")));
  EXPECT_THAT(old.sections[3].columns, HasSubstr("run_key, rank, attempt, content"));
}

TEST(Schema, MissingColumnsAreAdded) {
  const Dialect dialect = dialect_of("26.5.1");
  ExistingTables tables;
  tables.columns["ranks"] = {"run_key", "rank"};
  for (const char* column : {"attempt", "content", "day", "ver", "run_id", "num_ranks", "node",
                             "gpu", "model", "engine", "engine_version", "driver_version",
                             "gpuwhy_version", "started_unix_s", "kernel_rows", "stage_rows"}) {
    tables.columns["ranks"].insert(column);
  }
  EXPECT_THAT(migration_statements(dialect, {}, tables),
              ElementsAre("ALTER TABLE gpuwhy.ranks ADD COLUMN labels String",
                          "ALTER TABLE gpuwhy.ranks ADD COLUMN part_rows UInt64"));
  tables.columns["ranks"].insert({"labels", "part_rows", "of_somebody_else"});
  EXPECT_TRUE(migration_statements(dialect, {}, tables).empty());
  tables.columns["kernels"];
  tables.keep_days = 30;
  SchemaOptions options;
  options.keep_days = 7;
  EXPECT_THAT(migration_statements(dialect, options, tables),
              Contains("ALTER TABLE gpuwhy.kernels MODIFY TTL day + INTERVAL 7 DAY"));
  options.keep_days = 30;
  EXPECT_THAT(migration_statements(dialect, options, tables), Not(Contains(HasSubstr("TTL"))));
  tables.columns["kernels_local"];
  EXPECT_THROW(migration_statements(dialect, options, tables), Error);
  options.cluster = "fleet";
  options.keep_days = 7;
  EXPECT_THAT(
      migration_statements(dialect, options, tables),
      Contains(
          "ALTER TABLE gpuwhy.kernels_local ON CLUSTER fleet MODIFY TTL day + INTERVAL 7 DAY"));
  tables.version = kSchemaVersion + 1;
  EXPECT_THROW(migration_statements(dialect, options, tables), Error);
}

TEST(Schema, ReadsTheAgeLimitOfATable) {
  EXPECT_EQ(keep_days_in("CREATE TABLE a (x Date) TTL day + toIntervalDay(30) SETTINGS"), 30);
  EXPECT_EQ(keep_days_in("CREATE TABLE a (x Date)"), std::nullopt);
  EXPECT_EQ(keep_days_in("TTL day + toIntervalDay("), std::nullopt);
  EXPECT_EQ(column_list("names"), "name_key, name");
  EXPECT_EQ(column_list("none"), "");
}

TEST(FolderHistory, UnprofiledRanksAreNotCompared) {
  const TemporaryDirectory folder;
  for (std::int64_t rank = 0; rank < 12; ++rank) {
    RankSummary summary = rank_of("1", rank, rank == 8 ? 130 : 100);
    summary.identity.num_ranks = 12;
    if (rank % 4 != 0) {  // ranks.capture=every:4
      summary.kernels.clear();
      summary.stages[0].window_ns = 0;
      summary.stages[0].buckets_ns = {};
    }
    put(folder, std::to_string(rank), summary);
  }
  const Json slow = fleet_stragglers(*folder_history(folder.path()), {});
  EXPECT_EQ(slow["num_measured"], 3);
  ASSERT_EQ(slow["stragglers"].size(), 1U);
  EXPECT_EQ(slow["stragglers"][0]["rank"], 8);
  EXPECT_NEAR(slow["stragglers"][0]["slower_fraction"].get<double>(), 0.3, 1e-9);
  EXPECT_THAT(slow["notes"][0].get<std::string>(), HasSubstr("3 of 12 ranks have kernels"));
}

TEST(FolderHistory, SaysThatARankHasTwoSummaries) {
  const TemporaryDirectory folder;
  put(folder, "a", rank_of("1", 0, 100));
  put(folder, "b", rank_of("1", 0, 130));
  const Json status = fleet_status(*folder_history(folder.path()), {});
  ASSERT_EQ(status["notes"].size(), 1U);
  EXPECT_THAT(status["notes"][0].get<std::string>(),
              HasSubstr("rank 0 has two different summaries"));
}

TEST(FolderHistory, RunsAreChosenByLabel) {
  const TemporaryDirectory folder;
  for (const char* run : {"1", "2"}) {
    RankSummary summary = rank_of(run, 0, 100);
    Labels labels;
    add_labels(run == std::string("1") ? "cluster=a,user=x" : "cluster=b", labels);
    put_labels(labels, summary.identity);
    put(folder, run, summary);
  }
  FleetFilter filter;
  filter.label = "cluster=b";
  const Json status = fleet_status(*folder_history(folder.path()), filter);
  ASSERT_EQ(status["runs"].size(), 1U);
  EXPECT_EQ(status["runs"][0]["run_id"], "2");
  EXPECT_EQ(status["runs"][0]["labels"], Json::array({"cluster=b"}));
}

TEST(LabelWords, AreCheckedAndSorted) {
  Labels labels;
  add_labels("user=b, cluster=a,engine=vllm,engine_version=0.10.1,cluster=c", labels);
  RankIdentity identity;
  put_labels(labels, identity);
  EXPECT_EQ(identity.labels, "cluster=c\nuser=b");
  EXPECT_EQ(identity.engine, "vllm");
  EXPECT_EQ(identity.engine_version, "0.10.1");
  EXPECT_TRUE(has_label(identity.labels, "user=b"));
  EXPECT_FALSE(has_label(identity.labels, "user"));
  for (const char* wrong : {"cluster", "=a", "Cluster=a", "a=", "a=\x1b[31m"}) {
    EXPECT_THROW(add_labels(wrong, labels), Error) << wrong;
  }
}

TEST(FolderHistory, AnswersOfTheLastAttemptAndTheLastFile) {
  const TemporaryDirectory folder;
  put(folder, "0", rank_of("1", 0, 100));
  put(folder, "1", rank_of("1", 1, 100));
  put(folder, "2", rank_of("1", 2, 150));
  folder.add("broken.gpuwhy", "nonsense");
  put(folder, "2-again", rank_of("1", 2, 160));
  fs::last_write_time(folder.path() / "2.gpuwhy",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  const auto history = folder_history(folder.path());
  const Json slow = fleet_stragglers(*history, {});
  ASSERT_EQ(slow["stragglers"].size(), 1U);
  EXPECT_EQ(slow["stragglers"][0]["rank"], 2);
  EXPECT_EQ(slow["stragglers"][0]["compute_ns"], 160);
  EXPECT_THAT(slow["notes"].dump(), HasSubstr("broken.gpuwhy"));
  RankSummary again = rank_of("1", 0, 100);
  again.identity.attempt = 1;
  put(folder, "0-second", again);
  const Json status = fleet_status(*folder_history(folder.path()), {});
  ASSERT_EQ(status["runs"].size(), 1U);
  EXPECT_EQ(status["runs"][0]["ranks"], 1);  // ranks of two attempts did not run together
  EXPECT_EQ(status["runs"][0]["is_sealed"], false);
}

TEST(FolderHistory, FindsWhatGrewACall) {
  const TemporaryDirectory folder;
  put(folder, "1", rank_of("1", 0, 100));
  put(folder, "2", rank_of("2", 0, 130));
  const auto history = folder_history(folder.path());
  const Json answer = fleet_regressions(*history, {});
  EXPECT_EQ(answer["base"]["label"], "v1");
  ASSERT_EQ(answer["kernels"].size(), 1U);
  EXPECT_NEAR(answer["kernels"][0]["slower_fraction"].get<double>(), 0.3, 1e-9);
  EXPECT_TRUE(fleet_regressions(*history, {.base = "v2", .candidate = "v1"})["kernels"].empty());
  EXPECT_THROW(fleet_regressions(*history, {.base = "v3", .candidate = "v1"}), Error);
  FleetFilter unknown;
  unknown.run = "none";
  EXPECT_THROW(fleet_stragglers(*history, unknown), Error);
}

TEST(FolderHistory, RefusesASummaryThatHasAKernelTwice) {
  const TemporaryDirectory folder;
  RankSummary twice = rank_of("1", 0, 100);
  twice.kernels.push_back(twice.kernels[0]);
  put(folder, "0", twice);
  const Json status = fleet_status(*folder_history(folder.path()), {});
  EXPECT_TRUE(status["runs"].empty());
  EXPECT_EQ(status["notes"].size(), 1U);
}

}  // namespace
}  // namespace gpuwhy
