// SPDX-License-Identifier: Apache-2.0
//
// Test with counter files, damaged at random but reproducibly: reports, CSV and text of ncu,
// kernel summaries of nsys. Each is read and joined; whatever comes out, the program must not
// crash, take a second, or hold more than ten times the file in memory. Sanitizers see the rest.
//
//   gpuwhy_mutate_counters [COUNT [CORPUS]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "analysis/profile.h"
#include "base/error.h"
#include "base/json.h"
#include "fuzz/mutation.h"
#include "ingest/ncu/ncu_csv.h"
#include "ingest/ncu/ncu_rep.h"
#include "ingest/ncu_report_writer.h"
#include "ingest/nsys/nsys_csv.h"
#include "results/results.h"

namespace gpuwhy {
namespace {

std::string small_report() {
  test::WrittenLaunch launch;
  launch.metrics = {{0, 1500}, {1, 40}, {2, 7}, {3, 0.5}};
  launch.nvtx_domain = "LLM";
  launch.nvtx_stack = {"decode_all", "decode_step"};
  launch.has_rule = true;
  test::WrittenLaunch other = launch;
  other.mangled = "_Z3addv";
  other.demangled = "void ns::add<(int)4, float>(T1)";
  return test::report_bytes(
      {{{"source"},
        {launch, other},
        {"gpu__time_duration.sum", "launch__grid_size"},
        test::session_message(),
        42},
       {{},
        {launch},
        {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "dram__bytes.sum"},
        "",
        43}});
}

std::vector<std::string> seeds_of(const char* corpus) {
  std::vector<std::string> seeds = {
      small_report(),
      "==PROF== hello\n"
      "\"ID\",\"Process ID\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\",\"Grid Size\","
      "\"CC\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\",\"Rule Name\"\n"
      "\"0\",\"9\",\"void ns::add<4>(T1)\",\"1\",\"7\",\"(32, 4, 1)\",\"(224, 1, 1)\",\"12.0\","
      "\"GPU Speed Of Light Throughput\",\"Duration\",\"us\",\"6.75\",\n"
      "\"0\",\"9\",\"void ns::add<4>(T1)\",\"1\",\"7\",\"(32, 4, 1)\",\"(224, 1, 1)\",\"12.0\","
      "\"GPU Speed Of Light Throughput\",\"Elapsed Cycles\",\"cycle\",\"13,485\",\n",
      "\"ID\",\"Process ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"launch__grid_dim_x\"\n"
      "\"\",\"\",\"\",\"usecond\",\"\"\n"
      "\"0\",\"9\",\"f(int)\",\"431.648\",\"1,024.00\"\n",
      "[9] a.out@127.0.0.1\n  f(int) (8, 1, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 8.6\n"
      "    Section: GPU Speed Of Light Throughput\n    ---- ---- ----\n    Duration us 6.75\n",
      "Time (%),Total Time (ns),Instances,Med (ns),GridXYZ,BlockXYZ,Name\n"
      "50.0,300,3,90.0,  8    1    1, 128    1    1,\"void ns::add<(int)4, float>(T1)\"\n"};
  if (corpus == nullptr) {
    return seeds;
  }
  constexpr std::uintmax_t kLargestSeed = 200'000;
  std::vector<std::filesystem::path> files;
  for (const char* folder : {"ncu_rep", "ncu_csv", "nsys_csv"}) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             std::filesystem::path(corpus) / folder, ignored)) {
      if (entry.is_regular_file() && entry.file_size() < kLargestSeed) {
        files.push_back(entry.path());
      }
    }
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    std::ifstream stream(file, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return seeds;
}

// Everything that reads such a file; which one it is does not matter to a damaged one.
bool read_all(const std::string& bytes, const Analysis& recording) {
  const auto tried = [](auto&& body) {
    try {
      body();
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  bool any = false;
  if (bytes.starts_with("NVR")) {
    any |= tried([&] {
      const Counters counters = parse_ncu_rep(bytes);
      Analysis analysis = recording;
      join_counters(counters, {}, analysis);
    });
  } else {
    any |= tried([&] {
      const Counters counters = parse_ncu_output(bytes);
      Analysis analysis = recording;
      join_counters(counters, {}, analysis);
    });
    any |= tried([&] { profile(parse_nsys_csv(bytes), Rules()); });
  }
  return any;
}

Analysis small_recording() {
  return profile(
             parse_nsys_csv("Total Time (ns),Instances,Name\n300,3,\"void ns::add<(int)4>(T1)\"\n"
                            "200,2,gemm(float *)\n"),
             Rules())
      .analysis;
}

int run(std::size_t count, const char* corpus) {
  const std::vector<std::string> seeds = seeds_of(corpus);
  const Analysis recording = small_recording();
  Random random(20'261'115);
  for (const std::string& seed : seeds_of(nullptr)) {
    if (!read_all(seed, recording)) {
      std::printf("a seed is refused\n");
      return 1;
    }
  }
  std::size_t num_read = 0;
  double slowest_s = 0;
  double largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::string bytes = seeds[pick(random, seeds.size())];
    const std::string& other = seeds[pick(random, seeds.size())];
    for (std::size_t changes = 1 + pick(random, 8); changes > 0; --changes) {
      mutate(bytes, other, random);
    }
    const std::size_t before = live_bytes;
    peak_bytes = live_bytes;
    const auto start = std::chrono::steady_clock::now();
    num_read += read_all(bytes, recording) ? 1 : 0;
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    slowest_s = std::max(slowest_s, seconds);
    // Tables and buffers of fixed size are not the file's doing.
    constexpr double kFixedBytes = 1 << 17;
    const double held = static_cast<double>(peak_bytes - before);
    largest = std::max(largest, (held - kFixedBytes) / static_cast<double>(bytes.size() + 1));
    if (seconds > 1 || held > 10 * static_cast<double>(bytes.size()) + kFixedBytes) {
      std::printf("input %zu of %zu bytes took %.2f s and %.0f bytes\n", i, bytes.size(), seconds,
                  held);
      return 1;
    }
  }
  std::printf(
      "%zu inputs of %zu seeds, %zu of them readable; slowest %.3f s, most memory %.1f x the "
      "input, "
      "beyond 128 KiB\n",
      count, seeds.size(), num_read, slowest_s, largest);
  // Seeds that no longer parse at all would make this test idle.
  return num_read * 4 > count ? 0 : 1;
}

}  // namespace
}  // namespace gpuwhy

int main(int argc, char** argv) {
  const std::size_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20'000;
  return gpuwhy::run(count, argc > 2 ? argv[2] : nullptr);
}
