// SPDX-License-Identifier: Apache-2.0
//
// Reads a recording with N threads and prints its number of kernels: llmprof_load_trace
// FILE THREADS
#include <cstdio>
#include <cstdlib>

#include "ingest/ingest.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    return 2;
  }
  const llmprof::Trace trace =
      llmprof::load_trace(llmprof::InputFile(argv[1]), static_cast<unsigned>(std::atoi(argv[2])));
  std::printf("%zu kernels\n", trace.kernels.size());
  return trace.kernels.size() > 0 ? 0 : 1;
}
