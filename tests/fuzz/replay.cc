// SPDX-License-Identifier: Apache-2.0
//
// Inputs that once broke something, and the seeds, read again by every build: llmprof_fuzz_replay
// SEEDS FOUND, each with a folder a target in it. Every target has seeds.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz/targets.h"

namespace {

int replay(const llmprof::FuzzTarget& target, const std::filesystem::path& folder) {
  int num_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    target.run(bytes);
    ++num_files;
  }
  return num_files;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    return 2;
  }
  int num_files = 0;
  for (const llmprof::FuzzTarget& target : llmprof::fuzz_targets()) {
    const std::filesystem::path seeds = std::filesystem::path(argv[1]) / target.name;
    if (!std::filesystem::is_directory(seeds)) {
      std::printf("%s has no seeds in %s\n", target.name, seeds.c_str());
      return 1;
    }
    num_files += replay(target, seeds);
    const std::filesystem::path found = std::filesystem::path(argv[2]) / target.name;
    if (std::filesystem::is_directory(found)) {
      num_files += replay(target, found);
    }
  }
  std::printf("%d files\n", num_files);
  return num_files > 0 ? 0 : 1;
}
