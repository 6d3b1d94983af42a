// SPDX-License-Identifier: Apache-2.0
//
// A consumer of the library: prints the metrics of a recording, or its error as the program words
// it. gpuwhy_print_metrics FILE
#include <cstdio>

#include <gpuwhy/recording.h>

int main(int argc, char** argv) {
  if (argc != 2) {
    return 2;
  }
  try {
    std::fputs(gpuwhy::api::read_recording(argv[1]).metrics_json.c_str(), stdout);
    return 0;
  } catch (const gpuwhy::api::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
