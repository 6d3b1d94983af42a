// SPDX-License-Identifier: Apache-2.0
//
// Regression test with the fuzzing seeds and the inputs that once broke something:
// gpuwhy_fuzz_replay SEEDS FOUND, each with one folder per target. Every target has seeds, and
// none may be refused: a target that refuses everything is never fuzzed.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz/targets.h"

namespace {

struct Replayed {
  int num_files = 0;
  int num_refused = 0;
};

Replayed replay(const gpuwhy::FuzzTarget& target, const std::filesystem::path& folder) {
  Replayed replayed;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    replayed.num_refused += target.run(bytes) ? 0 : 1;
    ++replayed.num_files;
  }
  return replayed;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    return 2;
  }
  int num_files = 0;
  bool is_wrong = false;
  for (const gpuwhy::FuzzTarget& target : gpuwhy::fuzz_targets()) {
    const std::filesystem::path seeds = std::filesystem::path(argv[1]) / target.name;
    if (!std::filesystem::is_directory(seeds)) {
      std::printf("%s has no seeds in %s\n", target.name, seeds.c_str());
      return 1;
    }
    const Replayed read = replay(target, seeds);
    if (read.num_files == 0 || read.num_refused > 0) {
      std::printf("%s refuses %d of its %d seeds\n", target.name, read.num_refused, read.num_files);
      is_wrong = true;
    }
    num_files += read.num_files;
    const std::filesystem::path found = std::filesystem::path(argv[2]) / target.name;
    if (std::filesystem::is_directory(found)) {
      num_files += replay(target, found).num_files;
    }
  }
  std::printf("%d files\n", num_files);
  return is_wrong || num_files == 0 ? 1 : 0;
}
