// SPDX-License-Identifier: Apache-2.0
//
// A consumer of the library: prints the metrics of a recording, or its error as the program words
// it. llmprof_print_metrics FILE
#include <cstdio>

#include <llmprof/recording.h>

int main(int argc, char** argv) {
  if (argc != 2) {
    return 2;
  }
  try {
    std::fputs(llmprof::api::read_recording(argv[1]).metrics_json.c_str(), stdout);
    return 0;
  } catch (const llmprof::api::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
