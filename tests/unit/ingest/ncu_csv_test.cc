// SPDX-License-Identifier: Apache-2.0
#include "ingest/ncu/ncu_csv.h"

#include "base/error.h"
#include "ingest/ncu/ncu_units.h"
#include "testing.h"

namespace gpuwhy {
namespace {

Counters counters_of(std::string_view text) {
  return parse_ncu_output(text);
}

constexpr std::string_view kDetails2025 =
    R"csv("ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description","Estimated Speedup Type","Estimated Speedup"
"0","9","llm","127.0.0.1","void gemm<4>(float *)","1","7","(32, 4, 1)","(224, 1, 1)","0","12.0","GPU Speed Of Light Throughput","Duration","us","6.75",
"0","9","llm","127.0.0.1","void gemm<4>(float *)","1","7","(32, 4, 1)","(224, 1, 1)","0","12.0","GPU Speed Of Light Throughput","Memory Throughput","%","19.66",
"0","9","llm","127.0.0.1","void gemm<4>(float *)","1","7","(32, 4, 1)","(224, 1, 1)","0","12.0","Memory Workload Analysis","Memory Throughput","Gbyte/s","345.14",
"0","9","llm","127.0.0.1","void gemm<4>(float *)","1","7","(32, 4, 1)","(224, 1, 1)","0","12.0","GPU Speed Of Light Throughput","SM Frequency","Ghz","1.99",
"0","9","llm","127.0.0.1","void gemm<4>(float *)","1","7","(32, 4, 1)","(224, 1, 1)","0","12.0","Command line profiler metrics","sm__ops_path_tensor_src_bf16_dst_fp32.sum","","12,532,580,352",
"0","9","llm","127.0.0.1","void gemm<4>(float *)","1","7","(32, 4, 1)","(224, 1, 1)","0","12.0","Command line profiler metrics","flop_count_hp.sum","","n/a",
"0","9","llm","127.0.0.1","void gemm<4>(float *)","1","7","(32, 4, 1)","(224, 1, 1)","0","12.0","A Section","A Label Of Tomorrow","Kbyte","2",
"0","9","llm","127.0.0.1","void gemm<4>(float *)","1","7","(32, 4, 1)","(224, 1, 1)","0","12.0","Occupancy","","","","TheoreticalOccupancy","OPT","Fewer registers, ""please""","global","80.34"
)csv";

TEST(NcuCsv, ReadsDetails) {
  const Counters counters = counters_of(kDetails2025);
  ASSERT_EQ(counters.results.size(), 1U);
  const CounterResult& result = counters.results[0];
  EXPECT_EQ(name_of(counters, result), "void gemm<4>(float *)");
  EXPECT_EQ(result.pid, 9U);
  ASSERT_TRUE(result.shape);
  EXPECT_EQ(result.shape->grid[0], 224);
  EXPECT_EQ(result.shape->block[1], 4);
  EXPECT_EQ(counters.strings[result.compute_capability], "12.0");
  EXPECT_EQ(number_of(counters, result, "gpu__time_duration.sum"), 6750);
  EXPECT_EQ(number_of(counters, result,
                      "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
            19.66);
  EXPECT_DOUBLE_EQ(*number_of(counters, result, "dram__bytes.sum.per_second"), 345.14e9);
  EXPECT_DOUBLE_EQ(*number_of(counters, result, "gpc__cycles_elapsed.avg.per_second"), 1.99e9);
  EXPECT_EQ(number_of(counters, result, "sm__ops_path_tensor_src_bf16_dst_fp32.sum"), 12532580352);
  EXPECT_EQ(number_of(counters, result, "flop_count_hp.sum"), std::nullopt);
  EXPECT_EQ(number_of(counters, result, "A Section/A Label Of Tomorrow"), 2000);
  ASSERT_EQ(result.rules.size(), 1U);
  EXPECT_EQ(counters.strings[result.rules[0].message], "Fewer registers, \"please\"");
  EXPECT_EQ(result.rules[0].speedup_percent, 80.34);
  EXPECT_TRUE(result.rules[0].is_global);
}

TEST(NcuCsv, SkipsWhatStandsAroundATable) {
  const std::string text = "==PROF== Connected to process 9\nsaid the program, \"unclosed\n" +
                           std::string(kDetails2025) + "==PROF== Disconnected\nthe end, \"9\"\n" +
                           std::string(kDetails2025);
  const Counters counters = counters_of(text);
  EXPECT_EQ(counters.results.size(), 1U);
  EXPECT_EQ(counters.results[0].metrics.size(), 6U);
}

TEST(NcuCsv, ReadsARawPageByItsUnits) {
  const Counters counters = counters_of(
      R"csv("ID","Process ID","Process Name","Host Name","thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg","Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg","Kernel Name","Context","Stream","gpu__time_duration.sum","dram__cycles_elapsed.avg.per_second","launch__grid_dim_x","launch__grid_dim_y","launch__grid_dim_z","launch__block_dim_x","launch__block_dim_y","launch__block_dim_z","launch__func_cache_config"
"","","","","","","","","","usecond","cycle/nsecond","","","","block","block","block",""
"0","9","llm","h","9  ""LLM:a:b:none:none:none:none:none:none""  ""LLM:decode_step:none:none:none:none:none:none"" ","","k(int)","1","7","431.648","6.25","1,024.00","1","1","128","2","1","CachePreferNone"
"1","9","llm","h","","","k(int)","1","7","","6.5","16","1","1","128","2","1","CachePreferNone"
)csv");
  ASSERT_EQ(counters.results.size(), 2U);
  const CounterResult& first = counters.results[0];
  EXPECT_DOUBLE_EQ(*number_of(counters, first, "gpu__time_duration.sum"), 431648);
  EXPECT_DOUBLE_EQ(*number_of(counters, first, "dram__cycles_elapsed.avg.per_second"), 6.25e9);
  EXPECT_EQ(text_of(counters, first, "launch__func_cache_config"), "CachePreferNone");
  ASSERT_TRUE(first.shape);
  EXPECT_EQ(first.shape->grid[0], 1024);
  EXPECT_EQ(first.threads_per_block, 256);
  ASSERT_EQ(first.ranges.size(), 2U);
  EXPECT_EQ(counters.strings[first.ranges[0].name], "a:b");
  EXPECT_EQ(counters.strings[first.ranges[1].name], "decode_step");
  EXPECT_EQ(counters.strings[first.ranges[1].domain], "LLM");
  EXPECT_EQ(first.ranges[0].thread, 9U);
  EXPECT_EQ(number_of(counters, counters.results[1], "gpu__time_duration.sum"), std::nullopt);
}

TEST(NcuCsv, ReadsASummaryByKernel) {
  const Counters counters = counters_of(
      R"csv("Process ID","Process Name","Host Name","Kernel Name","Block Size","Grid Size","Device Id","Invocations","Section Name","Metric Name","Metric Unit","Minimum","Maximum","Average"
"9","llm","h","k(int)","256","16384","1","3","GPU Speed Of Light Throughput","gpu__time_duration.sum","msecond","1","3","2"
"9","llm","h","k(int)","128","16384","1","5","GPU Speed Of Light Throughput","gpu__time_duration.sum","usecond","1","3","2"
)csv");
  ASSERT_EQ(counters.results.size(), 2U);
  EXPECT_EQ(number_of(counters, counters.results[0], "gpu__time_duration.sum"), 2e6);
  EXPECT_EQ(counters.results[0].invocations, 3);
  EXPECT_EQ(counters.results[0].device, 1U);
  EXPECT_FALSE(counters.results[0].shape);
  EXPECT_EQ(counters.results[0].num_blocks, 16384);
  EXPECT_EQ(counters.results[1].threads_per_block, 128);
}

TEST(NcuCsv, ReadsTablesForTheEye) {
  const Counters counters = counters_of(R"csv(==PROF== Connected
[8821] a.out@127.0.0.1
  k(int, float *) (32, 32, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 8.6
    Section: GPU Speed Of Light Throughput
    ----------------------- ------------- ------------
    Metric Name               Metric Unit Metric Value
    ----------------------- ------------- ------------
    Elapsed Cycles                  cycle   12,196,559
    Duration                      usecond       431.65
    ----------------------- ------------- ------------
    INF   Compute and Memory are well-balanced to a degree that is long enough
          to reach into the columns.

  old(int), 2025-Mar-09 14:24:02, Context 1, Stream 7
    Section: GPU Speed Of Light Throughput
    ----------------------- ------------- ------------
    Duration                      nsecond         2.50
    ----------------------- ------------- ------------
)csv");
  ASSERT_EQ(counters.results.size(), 2U);
  EXPECT_EQ(name_of(counters, counters.results[0]), "k(int, float *)");
  EXPECT_EQ(counters.results[0].pid, 8821U);
  EXPECT_EQ(counters.results[0].metrics.size(), 2U);
  EXPECT_DOUBLE_EQ(*number_of(counters, counters.results[0], "gpu__time_duration.sum"), 431650);
  EXPECT_EQ(number_of(counters, counters.results[0], "gpc__cycles_elapsed.max"), 12196559);
  ASSERT_TRUE(counters.results[0].shape);
  EXPECT_EQ(counters.results[0].shape->grid[1], 32);
  EXPECT_EQ(name_of(counters, counters.results[1]), "old(int)");
  EXPECT_EQ(number_of(counters, counters.results[1], "gpu__time_duration.sum"), 2.5);
}

TEST(NcuCsv, SaysWhatIsThereInstead) {
  const auto message_of = [](std::string_view text) -> std::string {
    try {
      counters_of(text);
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  EXPECT_NE(message_of("==ERROR== Failed to open the file\n").find("Failed to open"),
            std::string::npos);
  EXPECT_NE(message_of("\"Kernel Name\",\"k\"\n\"Address\",\"Source\"\n").find("source page"),
            std::string::npos);
  EXPECT_NE(message_of("hello\n").find("no table"), std::string::npos);
}

TEST(NcuUnits, TakesPrefixesOff) {
  const auto base = [](std::string_view unit) { return unit_scale(unit).base; };
  const auto factor = [](std::string_view unit) { return unit_scale(unit).factor; };
  for (const char* unit : {"ns", "nsecond", "us", "usecond", "ms", "msecond", "s", "second"}) {
    EXPECT_EQ(base(unit), "nsecond") << unit;
  }
  EXPECT_DOUBLE_EQ(factor("usecond"), 1e3);
  EXPECT_DOUBLE_EQ(factor("ms"), 1e6);
  EXPECT_EQ(base("Gbyte/s"), "byte/second");
  EXPECT_DOUBLE_EQ(factor("Gbyte/second"), 1e9);
  EXPECT_EQ(base("Ghz"), "cycle/second");
  EXPECT_DOUBLE_EQ(factor("Mhz"), 1e6);
  EXPECT_EQ(base("cycle/nsecond"), "cycle/second");
  EXPECT_DOUBLE_EQ(factor("cycle/nsecond"), 1e9);
  EXPECT_EQ(base("Kbyte/block"), "byte/block");
  EXPECT_DOUBLE_EQ(factor("Kbyte/block"), 1e3);
  EXPECT_EQ(base("register/thread"), "register/thread");
  EXPECT_EQ(base("%"), "%");
  EXPECT_DOUBLE_EQ(factor("SM"), 1);
}

TEST(NcuUnits, ReadsNumbersWithAndWithoutSeparators) {
  EXPECT_EQ(parse_number("13,485"), 13485);
  EXPECT_EQ(parse_number("9,495.42"), 9495.42);
  EXPECT_EQ(parse_number("12,532,580,352"), 12532580352);
  EXPECT_EQ(parse_number("-1,000"), -1000);
  EXPECT_EQ(parse_number("431.648000"), 431.648);
  EXPECT_EQ(parse_number("1,2"), std::nullopt);
  EXPECT_EQ(parse_number("1234,567"), std::nullopt);
  EXPECT_EQ(parse_number("nan"), std::nullopt);
  EXPECT_EQ(parse_number("PolicySpread"), std::nullopt);
  EXPECT_EQ(parse_number(""), std::nullopt);
  EXPECT_EQ(parse_number(std::string(500, '9')), std::nullopt);
}

TEST(Counters, FilesOfOneLaunchBecomeOneResult) {
  std::vector<Counters> files;
  files.push_back(counters_of(kDetails2025));
  files.push_back(counters_of(
      R"csv("ID","Process ID","Kernel Name","Context","Stream","Block Size","Grid Size","Section Name","Metric Name","Metric Unit","Metric Value"
"0","9","void gemm<4>(float *)","1","7","(32, 4, 1)","(224, 1, 1)","S","sm__throughput.avg","%","5"
"0","9","void gemm<4>(float *)","1","7","(32, 4, 1)","(224, 1, 1)","S","gpu__time_duration.sum","us","1"
"0","10","void gemm<4>(float *)","1","7","(32, 4, 1)","(224, 1, 1)","S","sm__throughput.avg","%","6"
)csv"));
  const Counters merged = merge_counters(std::move(files));
  ASSERT_EQ(merged.results.size(), 2U);
  EXPECT_EQ(number_of(merged, merged.results[0], "gpu__time_duration.sum"), 6750);
  EXPECT_EQ(number_of(merged, merged.results[0], "sm__throughput.avg"), 5);
  EXPECT_EQ(number_of(merged, merged.results[1], "sm__throughput.avg"), 6);
}

}  // namespace
}  // namespace gpuwhy
