// SPDX-License-Identifier: Apache-2.0
//
// Reads a recording repeatedly in one process, as a service would, and prints what the process
// holds after each tenth: gpuwhy_read_again FILE COUNT -> "rss_kb descriptors" a line.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include <gpuwhy/recording.h>
#include <unistd.h>

namespace {

long resident_kb() {
  long total = 0;
  long resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &total, &resident) != 2) {
    std::abort();
  }
  std::fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

long open_descriptors() {
  const std::filesystem::directory_iterator descriptors("/proc/self/fd");
  return std::distance(begin(descriptors), end(descriptors));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    return 2;
  }
  const int count = std::atoi(argv[2]);
  const std::string first = gpuwhy::api::read_recording(argv[1]).metrics_json;
  for (int i = 1; i <= count; ++i) {
    if (gpuwhy::api::read_recording(argv[1]).metrics_json != first) {
      std::printf("reading %d says something else\n", i);
      return 1;
    }
    if (i * 10 / count != (i - 1) * 10 / count) {
      std::printf("%ld %ld\n", resident_kb(), open_descriptors());
    }
  }
  return 0;
}
