// SPDX-License-Identifier: Apache-2.0
//
// Test of the changes that keep a recording's structure: gpuwhy_fuzz_reach SEEDS [COUNT] changes
// the seeds COUNT times by their bytes, and as often by their structure, and counts how many are
// still read. Most recordings must be, and a quarter of what a strict reader takes: an input that
// is refused tests its refusal alone.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/mutation.h"
#include "fuzz/targets.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kMostBytes = 100'000;

std::vector<std::string> seeds_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> seeds;
  for (const std::filesystem::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return seeds;
}

// How many of `count` changed seeds are analyzed. The changes add up, three to an input.
template <typename Change>
std::size_t num_analyzed(const FuzzTarget& target, const std::vector<std::string>& seeds,
                         std::size_t count, Change change) {
  Random random(20'261'117);
  std::size_t num_read = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::string bytes = one_of(seeds, random);
    for (int changes = 0; changes < 3; ++changes) {
      change(bytes, random);
    }
    num_read += target.run(bytes) ? 1 : 0;
  }
  return num_read;
}

bool reaches(const FuzzTarget& target, const std::vector<std::string>& seeds, std::size_t count) {
  const std::size_t by_bytes = num_analyzed(
      target, seeds, count,
      [&](std::string& bytes, Random& random) { mutate(bytes, one_of(seeds, random), random); });
  const std::size_t by_structure =
      num_analyzed(target, seeds, count, [&](std::string& bytes, Random& random) {
        bytes = target.changed(bytes, kMostBytes, random).value_or(bytes);
      });
  std::size_t num_grown = 0;
  for (const std::string& seed : seeds) {
    Random random(1);
    const auto grown =
        target.grown == nullptr ? std::nullopt : target.grown(seed, 4 * kMostBytes, random);
    num_grown += grown && grown->size() > kMostBytes && target.run(*grown) ? 1 : 0;
  }
  std::printf(
      "%s: of %zu seeds changed by bytes %zu are read, by structure %zu; %zu of %zu seeds grow\n",
      target.name, count, by_bytes, by_structure, num_grown, seeds.size());
  const std::string_view name = target.name;
  const bool is_recording = name == "nsys_sqlite" || name == "kineto";
  return (is_recording ? 2 : 4) * by_structure > count && by_structure >= by_bytes &&
         (!is_recording || 2 * num_grown > seeds.size());
}

}  // namespace
}  // namespace gpuwhy

int main(int argc, char** argv) {
  if (argc < 2) {
    return 2;
  }
  const std::size_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 300;
  bool is_good = true;
  for (const gpuwhy::FuzzTarget& target : gpuwhy::fuzz_targets()) {
    if (target.changed != nullptr) {
      is_good =
          gpuwhy::reaches(target, gpuwhy::seeds_in(std::filesystem::path(argv[1]) / target.name),
                          count) &&
          is_good;
    }
  }
  return is_good ? 0 : 1;
}
