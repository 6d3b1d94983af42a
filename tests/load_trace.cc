// SPDX-License-Identifier: Apache-2.0
//
// Reading and analysis of a recording with N threads, for the thread sanitizer. Prints the number
// of kernels and the time of the ledgers: gpuwhy_load_trace FILE THREADS
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "analysis/names/rules_json.h"
#include "analysis/profile.h"
#include "base/json.h"
#include "config/presets.h"
#include "ingest/ingest.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    return 2;
  }
  gpuwhy::ProfileOptions options;
  options.has_timeline = true;
  options.num_threads = static_cast<unsigned>(std::atoi(argv[2]));
  gpuwhy::Trace trace = gpuwhy::load_trace(gpuwhy::InputFile(argv[1]), options.num_threads);
  const gpuwhy::Profile made =
      gpuwhy::profile(std::move(trace),
                      gpuwhy::rules_from(gpuwhy::embedded_yaml("rules/kernels.yaml"),
                                         gpuwhy::embedded_yaml("rules/stages.yaml")),
                      options);
  long long ledger_ns = 0;
  for (const gpuwhy::LedgerRow& row : made.analysis.ledgers) {
    ledger_ns += row.sum_ns();
  }
  std::printf("%zu kernels, %lld ns in ledgers\n", made.trace->kernels.size(), ledger_ns);
  return made.trace->kernels.size() > 0 && ledger_ns > 0 ? 0 : 1;
}
