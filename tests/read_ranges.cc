// SPDX-License-Identifier: Apache-2.0
//
// Prints the ranges that a program recorded under libgpuwhy_nvtx.so, for test scripts:
//   gpuwhy_read_ranges library DIRECTORY      writes the library there
//   gpuwhy_read_ranges ranges DIRECTORY       the CSV of all ranges
//   gpuwhy_read_ranges processes DIRECTORY    one line per process
#include <cstdio>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "capture/nvtx_library.h"
#include "capture/nvtx_timer.h"

using namespace gpuwhy;

namespace {

void show_processes(const TimedRun& run) {
  fmt::print("pid,parent_pid,command,ranges,lost,unmatched_pops,damaged,truncated\n");
  for (const TimedProcess& process : run.processes) {
    fmt::print("{},{},{},{},{},{},{},{}\n", process.pid, process.parent_pid, process.command,
               process.ranges.size(), process.num_lost, process.num_unmatched_pops,
               process.num_damaged, process.is_truncated ? 1 : 0);
  }
  for (const UnreadableRangeFile& file : run.unreadable) {
    fmt::print(stderr, "{}\n", file.reason);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    return 2;
  }
  const std::string_view what = argv[1];
  try {
    if (what == "library") {
      fmt::print("{}\n", write_stage_timer_library(argv[2]).string());
      return 0;
    }
    const TimedRun run = read_range_directory(argv[2]);
    if (what == "ranges") {
      write_timed_ranges_csv(
          run, [](std::string_view piece) { std::fwrite(piece.data(), 1, piece.size(), stdout); });
    } else {
      show_processes(run);
    }
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
