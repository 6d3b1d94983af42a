// SPDX-License-Identifier: Apache-2.0
//
// The table of formats: what its rows say of themselves, and how the row of a file is found.
#include "ingest/ingest.h"

#include <set>

#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "made_sqlite.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

constexpr const char* kExport = "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT)";
constexpr const char* kSummary = "Total Time (ns),Instances,Name\n100,2,gemm\n";

// How often a file is opened while it is watched. Reads are watched too, since equal events that
// follow each other are reported as one.
class Openings {
 public:
  explicit Openings(const std::filesystem::path& path) : queue_(::inotify_init1(IN_NONBLOCK)) {
    ::inotify_add_watch(queue_, path.c_str(), IN_OPEN | IN_ACCESS | IN_CLOSE);
  }
  ~Openings() { ::close(queue_); }
  Openings(const Openings&) = delete;
  Openings& operator=(const Openings&) = delete;

  int count() const {
    inotify_event events[64];
    const ssize_t size = ::read(queue_, events, sizeof events);
    const auto num = size < 0 ? 0 : static_cast<std::size_t>(size) / sizeof events[0];
    return static_cast<int>(std::count_if(
        events, events + num, [](const inotify_event& event) { return event.mask & IN_OPEN; }));
  }

 private:
  int queue_;
};

TEST(Ingest, EveryFormatDescribesItself) {
  std::set<std::string_view> names;
  for (const auto& formats : {recording_formats(), counter_formats()}) {
    for (const FormatInfo& format : formats) {
      EXPECT_TRUE(names.insert(format.name).second) << format.name;
      for (const std::string_view words :
           {format.name, format.tool, format.tool_id, format.kind, format.made_with}) {
        EXPECT_FALSE(words.empty()) << format.name;
      }
    }
  }
  EXPECT_EQ(recording_kinds(false),
            "SQLite export or report of Nsight Systems, trace of PyTorch's profiler");
  EXPECT_THAT(recording_kinds(true), HasSubstr("kernel summary (CSV) of Nsight Systems"));
  EXPECT_EQ(format_named("nsys SQLite").kernels, "CUPTI_ACTIVITY_KIND_KERNEL");
  EXPECT_EQ(format_named("of another world").kernels, "kernel events");
}

TEST(Ingest, AKernelSummaryIsAFormatLikeOthers) {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory.add("sums.csv", kSummary);
  const Recording recording = load_input(path, 1);
  ASSERT_TRUE(std::holds_alternative<KernelSummary>(recording));
  EXPECT_EQ(std::get<KernelSummary>(recording).capture.format.name, "nsys kernel summary");
  EXPECT_EQ(std::get<KernelSummary>(recording).capture.path, path.string());
  EXPECT_EQ(outline_trace(path).num_events(), 0U);
  expect_error([&] { load_trace(path, 1); }, ErrorKind::kInput, HasSubstr("no events"),
               HasSubstr("SQLite export"));
}

TEST(Ingest, ADatabaseOfAnotherToolIsNotClaimed) {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory.path() / "other.db";
  execute_sql(path, "CREATE TABLE rocpd_kernel_dispatch(id INTEGER PRIMARY KEY)");
  const InputFile file(path);
  EXPECT_FALSE(kNsysSqlite.sniff(file));
  EXPECT_NE(file.sqlite(), nullptr);
  expect_error([&] { load_input(file, 1); }, ErrorKind::kInput,
               HasSubstr(": a SQLite database, but not a recording that gpuwhy reads"),
               HasSubstr("trace of PyTorch's profiler"));
}

// Once for the first bytes of all formats, and then by the reader, which for a database opens it
// for itself and for SQLite.
TEST(Ingest, AFileIsOpenedOnceForItsFirstBytes) {
  const TemporaryDirectory directory;
  const std::filesystem::path trace =
      directory.add("trace.json", R"({"schemaVersion": 1, "traceEvents": []})");
  const std::filesystem::path summary = directory.add("sums.csv", kSummary);
  const std::filesystem::path sqlite = directory.path() / "run.sqlite";
  execute_sql(sqlite, kExport);
  for (const auto& [path, most] :
       std::map<std::filesystem::path, int>{{trace, 2}, {summary, 2}, {sqlite, 3}}) {
    const Openings openings(path);
    load_input(path, 1);
    EXPECT_LE(openings.count(), most) << path;
  }
}

constexpr const char* kCounters =
    R"csv("ID","Process ID","Kernel Name","Context","Stream",)csv"
    R"csv("Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"
"0","41","gemv","1","7","(128, 1, 1)","(17, 1, 1)","0","12.0","Occupancy","Achieved Occupancy","%","81.50"
)csv";

TEST(Counters, AFolderThatCannotBeReadIsSaidAndTheOthersAreRead) {
  const TemporaryDirectory folder;
  folder.add("a/pages.csv", kCounters);
  EXPECT_THAT(load_counter_files(folder.path()).at(0).diagnostics, testing::IsEmpty());
  // Its path is longer than the system takes, which stops an administrator too.
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  for (int depth = 0; depth < 20; ++depth) {
    const std::string name(250, 'b');
    std::filesystem::create_directory(name);
    std::filesystem::current_path(name);
  }
  std::filesystem::current_path(here);
  folder.add("c/pages.csv", kCounters);
  const std::vector<Counters> read = load_counter_files(folder.path());
  ASSERT_EQ(read.size(), 2U);
  ASSERT_EQ(read[0].diagnostics.size(), 1U);
  EXPECT_EQ(read[0].diagnostics[0].kind, "counter_folders_left_out");
  EXPECT_THAT(read[0].diagnostics[0].sentence,
              testing::AllOf(testing::StartsWith("1 folder of " + folder.path().string() +
                                                 " could not be read to the end: "),
                             testing::EndsWith("File name too long")));
  std::filesystem::remove_all(folder.path() / "a");
  std::filesystem::remove_all(folder.path() / "c");
  expect_error([&] { load_counter_files(folder.path()); }, ErrorKind::kInput,
               testing::EndsWith("File name too long"), testing::_);
}

TEST(Counters, AFolderOfTooManyFilesIsRefused) {
  const TemporaryDirectory folder;
  for (int i = 0; i < 4096; ++i) {
    folder.add(fmt::format("{}/{}.txt", i % 7, i), "");
  }
  folder.add("pages.csv", kCounters);
  expect_error([&] { load_counter_files(folder.path()); }, ErrorKind::kUsage,
               HasSubstr("more than 4096 files that may hold counters"),
               HasSubstr("the files by name"));
}

}  // namespace
}  // namespace gpuwhy
