// SPDX-License-Identifier: Apache-2.0
#include "capture/nvtx_timer.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "capture/nvtx_library.h"
#include "nvtx/range_file.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

// A range file written by hand: what the reader may expect of the library, byte for byte.
class MadeFile {
 public:
  MadeFile() : bytes_(kRangeFileHeaderBytes, '\0') {
    std::memcpy(header().magic, kRangeFileMagic, sizeof(kRangeFileMagic));
    header().version = kRangeFileVersion;
    header().chunk_bytes = kRangeChunkBytes;
    header().pid = 100;
    header().parent_pid = 99;
    header().start_monotonic_ns = 5000;
    std::memcpy(header().command, "server", 6);
  }

  RangeFileHeader& header() { return *reinterpret_cast<RangeFileHeader*>(bytes_.data()); }

  MadeFile& chunk() {
    bytes_.resize(kRangeFileHeaderBytes + num_chunks_++ * kRangeChunkBytes);
    return *this;
  }
  MadeFile& thread(std::uint32_t id) {
    RangeRecord record = {};
    record.head = {RangeRecordType::kThread, 0, 0, id};
    return put(record);
  }
  MadeFile& text(RangeRecordType type, std::uint32_t number, const std::string& text) {
    const bool is_domain = type == RangeRecordType::kDomain;
    RangeTextRecord record = {};
    record.head = {type, 0, static_cast<std::uint16_t>(is_domain ? number : 0),
                   is_domain ? 0 : number};
    record.num_bytes = static_cast<std::uint32_t>(text.size());
    const std::size_t start = bytes_.size();
    put(record);
    bytes_ += text;
    bytes_.resize(start + range_text_record_bytes(text.size()));
    return *this;
  }
  MadeFile& range(std::uint16_t domain, std::uint32_t name, std::int64_t start_ns,
                  std::int64_t end_ns, std::uint8_t flags = 0, std::uint64_t payload = 0) {
    return put(
        RangeRecord{{RangeRecordType::kRange, flags, domain, name}, start_ns, end_ns, payload});
  }

  std::string bytes() {
    bytes_.resize(kRangeFileHeaderBytes + num_chunks_ * kRangeChunkBytes);
    header().end_bytes = bytes_.size();
    return bytes_;
  }

 private:
  template <typename Record>
  MadeFile& put(const Record& record) {
    bytes_.append(reinterpret_cast<const char*>(&record), sizeof(record));
    return *this;
  }

  std::string bytes_;
  std::size_t num_chunks_ = 0;
};

constexpr auto kDomain = RangeRecordType::kDomain;
constexpr auto kName = RangeRecordType::kName;

MadeFile usual_file() {
  MadeFile file;
  file.chunk().thread(7).text(kDomain, 1, "LLM").text(kName, 1, "prefill");
  file.range(1, 1, 1000, 3000, kRangeIsRegistered | kRangeHasInteger, 512);
  file.range(1, 2, 3000, 0, kRangeIsStartEnd);
  file.chunk().thread(8).text(kName, 2, "decode_all").text(kName, 70000, "prefill");
  file.range(0, 70000, 2000, 2001).thread(9).range(0, 0, 2500, 2600);
  return file;
}

std::vector<std::string> described(const TimedProcess& process) {
  std::vector<std::string> rows;
  for (const TimedRange& range : process.ranges) {
    rows.push_back(process.domain_of(range) + ":" + process.name_of(range) + "@" +
                   std::to_string(range.thread_id) + " " + std::to_string(range.start_ns) + "+" +
                   (range.is_open ? "open" : std::to_string(*range.duration_ns())));
  }
  return rows;
}

TEST(NvtxTimer, ReadsWhatTheProcessLeft) {
  const TemporaryDirectory directory;
  MadeFile file = usual_file();
  file.header().lost_ranges = 3;
  file.header().unmatched_pops = 2;
  const TimedProcess process = read_range_file(directory.add("a.nvtx", file.bytes()));
  EXPECT_EQ(process.pid, 100);
  EXPECT_EQ(process.parent_pid, 99);
  EXPECT_EQ(process.command, "server");
  EXPECT_EQ(process.num_lost, 3U);
  EXPECT_EQ(process.num_unmatched_pops, 2U);
  EXPECT_EQ(process.num_damaged, 0U);
  EXPECT_FALSE(process.is_truncated);
  EXPECT_THAT(described(process), ElementsAre("LLM:prefill@7 1000+2000", ":prefill@8 2000+1",
                                              ":@9 2500+100", "LLM:decode_all@7 3000+open"));
  EXPECT_TRUE(process.ranges[0].is_registered);
  EXPECT_EQ(process.ranges[0].kind, TimedRangeKind::kPushPop);
  EXPECT_EQ(process.ranges[0].integer_payload(), 512);
  EXPECT_FALSE(process.ranges[1].is_registered);
  EXPECT_EQ(process.ranges[1].integer_payload(), std::nullopt);
  EXPECT_EQ(process.ranges[3].kind, TimedRangeKind::kStartEnd);
}

TEST(NvtxTimer, AParentRangeComesBeforeItsChildOfTheSameStart) {
  MadeFile file;
  file.chunk().thread(1).text(kName, 1, "in").text(kName, 2, "out").text(kName, 3, "open");
  file.range(0, 1, 1000, 1100).range(0, 2, 1000, 1200).range(0, 3, 1000, 0);
  const TemporaryDirectory directory;
  const TimedProcess process = read_range_file(directory.add("a.nvtx", file.bytes()));
  EXPECT_THAT(described(process),
              ElementsAre(":open@1 1000+open", ":out@1 1000+200", ":in@1 1000+100"));
}

TEST(NvtxTimer, PayloadsKeepTheirType) {
  const double half = 0.5;
  std::uint64_t bits = 0;
  std::memcpy(&bits, &half, sizeof(bits));
  MadeFile file;
  file.chunk().thread(1).range(0, 0, 1, 2, kRangeHasDouble, bits);
  file.range(0, 0, 2, 3, kRangeHasInteger, static_cast<std::uint64_t>(-1));
  const TemporaryDirectory directory;
  const TimedProcess process = read_range_file(directory.add("a.nvtx", file.bytes()));
  ASSERT_THAT(process.ranges, SizeIs(2));
  EXPECT_EQ(process.ranges[0].double_payload(), 0.5);
  EXPECT_EQ(process.ranges[0].integer_payload(), std::nullopt);
  EXPECT_EQ(process.ranges[1].integer_payload(), -1);
}

TEST(NvtxTimer, AFileThatWasCutSaysSo) {
  const TemporaryDirectory directory;
  const std::string whole = usual_file().bytes();
  const TimedProcess cut = read_range_file(
      directory.add("a.nvtx", whole.substr(0, kRangeFileHeaderBytes + kRangeChunkBytes)));
  EXPECT_TRUE(cut.is_truncated);
  EXPECT_THAT(cut.ranges, SizeIs(2));
  EXPECT_EQ(cut.num_damaged, 1U) << "the text of decode_all was in the other chunk";
}

TEST(NvtxTimer, AChunkIsLeftWhereItMakesNoSense) {
  MadeFile file;
  file.chunk().thread(1).range(0, 0, 10, 20).range(0, 0, 30, 25);  // ends before it starts
  file.text(static_cast<RangeRecordType>(77), 1, "?").range(0, 0, 50, 60);
  file.chunk().thread(2).range(0, 0, 70, 80);
  const TemporaryDirectory directory;
  const TimedProcess process = read_range_file(directory.add("a.nvtx", file.bytes()));
  EXPECT_THAT(described(process), ElementsAre(":@1 10+10", ":@2 70+10"));
  EXPECT_EQ(process.num_damaged, 2U);
}

TEST(NvtxTimer, WhatIsNoRangeFileIsRefused) {
  const TemporaryDirectory directory;
  const auto refused = [&](const std::string& bytes, const char* why) {
    const auto file = directory.add("a.nvtx", bytes);
    expect_error([&] { read_range_file(file); }, ErrorKind::kInput, HasSubstr(why), IsEmpty());
  };
  refused("", "does not begin as one");
  refused(std::string(kRangeFileHeaderBytes, '\0'), "does not begin as one");
  refused("pid,tid,domain\n1,2,3\n", "does not begin as one");
  MadeFile newer = usual_file();
  newer.header().version = 9;
  refused(newer.bytes(), "version 9");
  expect_error([&] { read_range_file(directory.path()); }, ErrorKind::kInput,
               HasSubstr("not a regular file"), IsEmpty());
  expect_error([&] { read_range_file(directory.path() / "absent"); }, ErrorKind::kInput,
               HasSubstr("No such file"), IsEmpty());
}

TEST(NvtxTimer, ADirectoryGivesAllProcessesByStart) {
  const TemporaryDirectory directory;
  MadeFile later = usual_file();
  later.header().pid = 200;
  later.header().start_monotonic_ns = 9000;
  directory.add("1.nvtx", later.bytes());
  directory.add("2.nvtx", usual_file().bytes());
  directory.add("3.nvtx", "");
  directory.add("libgpuwhy_nvtx.so", "other");
  const TimedRun run = read_range_directory(directory.path());
  ASSERT_THAT(run.processes, SizeIs(2));
  EXPECT_EQ(run.processes[0].pid, 100);
  EXPECT_EQ(run.processes[1].pid, 200);
  ASSERT_THAT(run.unreadable, SizeIs(1));
  EXPECT_EQ(run.unreadable[0].file.filename(), "3.nvtx");
  expect_error([&] { read_range_directory(directory.path() / "absent"); }, ErrorKind::kInput,
               HasSubstr("absent"), IsEmpty());
}

TEST(NvtxTimer, CsvQuotesWhatProgramsCallTheirRanges) {
  MadeFile file;
  file.chunk().thread(7).text(kDomain, 1, "a,b").text(kName, 1, "say \"x\"\nand go");
  file.range(1, 1, 1000, 1500, kRangeHasInteger, 4).range(1, 1, 2000, 0, kRangeIsStartEnd);
  const TemporaryDirectory directory;
  directory.add("a.nvtx", file.bytes());
  EXPECT_EQ(timed_ranges_csv(read_range_directory(directory.path())),
            "pid,tid,domain,name,kind,start_ns,end_ns,duration_ns,payload\n"
            "100,7,\"a,b\",\"say \"\"x\"\"\nand go\",push_pop,1000,1500,500,4\n"
            "100,7,\"a,b\",\"say \"\"x\"\"\nand go\",start_end,2000,,,\n");
}

// No bytes may crash it, hang it or make it read what is not there; the sanitizers watch.
TEST(NvtxTimer, SurvivesAnyDamage) {
  const TemporaryDirectory directory;
  const std::string whole = usual_file().bytes();
  std::mt19937 random(20240607);
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
  // Where the records are; damage to the zeros behind them would be seen by nobody.
  const std::size_t live[] = {0, kRangeFileHeaderBytes, kRangeFileHeaderBytes + kRangeChunkBytes};
  std::size_t read = 0;
  std::size_t noticed = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = whole;
    for (std::size_t i = 0; i <= below(4); ++i) {
      bytes[live[below(3)] + below(224)] = static_cast<char>(random());
    }
    if (round % 5 == 0) {
      bytes.resize(below(bytes.size()));
    }
    const auto file = directory.add("a.nvtx", bytes);
    try {
      const TimedProcess process = read_range_file(file);
      ++read;
      noticed += process.num_damaged > 0 || process.is_truncated ? 1 : 0;
      EXPECT_LE(process.ranges.size(), 2 * kRangeChunkBytes / kRangeRecordBytes);
      for (const TimedRange& range : process.ranges) {
        ASSERT_LT(std::max(range.domain, range.name), process.texts.size());
        ASSERT_TRUE(range.is_open || range.end_ns >= range.start_ns);
      }
      timed_ranges_csv({{process}, {}});
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      ++noticed;
    }
  }
  EXPECT_GT(read, 500U);
  EXPECT_GT(noticed, 500U);
}

TEST(NvtxLibrary, IsASharedLibraryAndIsWrittenOut) {
  EXPECT_TRUE(
      stage_timer_library().starts_with("\x7f"
                                        "ELF"));
  EXPECT_THAT(std::string(stage_timer_library()), HasSubstr("InitializeInjectionNvtx2"));
  const TemporaryDirectory directory;
  const auto library = write_stage_timer_library(directory.path());
  EXPECT_EQ(std::filesystem::file_size(library), stage_timer_library().size());
  const auto environment = stage_timer_environment(library, directory.path());
  EXPECT_EQ(environment.at("NVTX_INJECTION64_PATH"), library.string());
  EXPECT_EQ(environment.at("GPUWHY_NVTX_DIR"), directory.path().string());
}

}  // namespace
}  // namespace gpuwhy
