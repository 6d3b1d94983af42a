// SPDX-License-Identifier: Apache-2.0
//
// Inputs that once broke something, and the seeds, read again by every build: llmprof_fuzz_replay
// FOLDER, with a folder a target in it.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz/targets.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    return 2;
  }
  int num_files = 0;
  for (const llmprof::FuzzTarget& target : llmprof::fuzz_targets()) {
    const std::filesystem::path folder = std::filesystem::path(argv[1]) / target.name;
    if (!std::filesystem::is_directory(folder)) {
      std::printf("%s has no seeds in %s\n", target.name, folder.c_str());
      return 1;
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(in), {}};
      target.run(bytes);
      ++num_files;
    }
  }
  std::printf("%d files\n", num_files);
  return num_files > 0 ? 0 : 1;
}
