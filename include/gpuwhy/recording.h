// SPDX-License-Identifier: Apache-2.0
//
// A recording of a GPU program, read and analyzed.
//
//   #include <gpuwhy/recording.h>
//
//   const gpuwhy::api::Recording recording = gpuwhy::api::read_recording("run.sqlite");
//   for (const auto& kernel : recording.kernels) ...
//
// Times are nanoseconds in whole numbers. The buckets of a ledger sum to its window, exactly. What
// is not known is an empty optional, never 0. Everything `gpuwhy analyze` knows is in
// `metrics_json`, whose keys are explained in docs/metrics.md. Threads: see error.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gpuwhy/error.h>

namespace gpuwhy::api {

// A kernel on a device in a stage.
struct KernelRow {
  std::string name;  // whole
  std::string short_name;
  std::string device;  // "cuda:0"
  std::string stage;
  std::string family;  // "gemm", "attention", ...
  std::int64_t calls = 0;
  std::int64_t total_ns = 0;
  // Where a kernel summary lacks one of these three, the mean stands for it.
  std::int64_t min_ns = 0;
  std::int64_t median_ns = 0;
  std::int64_t max_ns = 0;
  std::optional<std::int64_t> p99_ns;  // no kernel summary tells it
};

struct StageRow {
  std::string name;
  std::int64_t instances = 0;
  std::int64_t total_ns = 0;  // on the host
  std::int64_t median_ns = 0;
  std::int64_t kernel_ns = 0;  // of the kernels it launched
  std::optional<std::int64_t> tokens;
};

// Where the time of a stage's windows on one GPU went.
struct LedgerRow {
  std::string stage;
  std::string device;
  std::int64_t window_ns = 0;
  std::vector<std::pair<std::string, std::int64_t>> buckets_ns;
};

struct FindingRow {
  std::string id;
  std::string sentence;
  std::string next;            // what to do
  std::int64_t saving_ns = 0;  // at most
};

struct Recording {
  std::string format;                      // "nsys SQLite", ...
  std::optional<std::int64_t> capture_ns;  // from the first event to the last
  std::int64_t kernel_ns = 0;
  std::vector<std::string> devices;
  std::vector<StageRow> stages;
  std::vector<KernelRow> kernels;  // by total time
  std::vector<LedgerRow> ledgers;
  std::vector<FindingRow> findings;  // what to fix first
  std::vector<std::string> warnings;
  std::string metrics_json;
};

// Reads what `gpuwhy analyze` reads: an nsys export (.sqlite), a report (.nsys-rep, where nsys is
// installed), a kernel summary of nsys stats (.csv), a trace of PyTorch's profiler, or a bundle.
// Throws Error.
GPUWHY_API Recording read_recording(const std::string& path);

// The same, with a file of your own rules for stages and families, whose rows come before those of
// gpuwhy: docs/marking.md.
GPUWHY_API Recording read_recording(const std::string& path, const std::string& rules_file);

// "1.2.3" of the library that is loaded.
GPUWHY_API const char* version();

}  // namespace gpuwhy::api
