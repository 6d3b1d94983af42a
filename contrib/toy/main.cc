// SPDX-License-Identifier: Apache-2.0
//
// Prints what the reader finds in a file: its format, its kernels, and the supported formats.
#include <cstdio>

#include "base/error.h"
#include "ingest/ingest.h"

int main(int, char** argv) {
  try {
    const gpuwhy::Trace trace = gpuwhy::load_trace(gpuwhy::InputFile(argv[1]), 1);
    std::printf("%s of %s: %zu kernels\n", trace.capture.format.kind.data(),
                trace.capture.format.tool.data(), trace.kernels.size());
    std::puts(gpuwhy::recording_kinds(false).c_str());
  } catch (const gpuwhy::Error& error) {
    std::puts(error.what());
    return 1;
  }
}
