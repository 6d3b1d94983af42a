// SPDX-License-Identifier: Apache-2.0
//
// Test with PyTorch traces, damaged at random but reproducibly. Each is read, analysed
// and written; whatever comes out, the program must not crash, take a second, or hold more than its
// window and thirty times the file in memory. What it does read must add up. Sanitizers see the
// rest.
//
//   gpuwhy_mutate_traces [COUNT [CORPUS]]
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "analysis/kernels/graph_names.h"
#include "analysis/profile.h"
#include "base/error.h"
#include "base/gzip_reader.h"
#include "base/json.h"
#include "fuzz/mutation.h"
#include "ingest/ingest.h"
#include "results/json.h"
#include "results/results.h"

namespace gpuwhy {
namespace {

std::vector<std::string> seeds_of(const char* corpus) {
  const std::string events =
      R"j({"ph": "X", "cat": "user_annotation", "name": "execute_context_1(8)_generation_0(0)",
"pid": 9, "tid": 9, "ts": 100.5, "dur": 50.001, "args": {"External id": 1}},
{"ph": "X", "cat": "python_function", "name": "nn.Module: TinyLayer_0", "pid": 9, "tid": 9, "ts": 101, "dur": 40},
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 102, "dur": 9,
"args": {"Input Dims": [[4, 4], [4, 4]], "Module Hierarchy": "m.layers.0"}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 103, "dur": 3,
"args": {"cbid": 211, "correlation": 77}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "pid": 9, "tid": 10, "ts": 105, "dur": 3,
"args": {"cbid": 311, "correlation": 78}},
{"ph": "s", "id": 77, "pid": 9, "tid": 9, "ts": 103, "cat": "ac2g", "name": "ac2g"},
{"ph": "X", "cat": "kernel", "name": "gemm<\"4\", int>", "pid": 0, "tid": 7, "ts": 110.25, "dur": 4.125,
"args": {"device": 0, "context": 1, "stream": 7, "correlation": 77, "grid": [8, 4, 1], "block": [128, 1, 1]}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 7, "ts": 115, "dur": 6,
"args": {"device": 0, "stream": 8, "correlation": 78, "Collective name": "allreduce", "dtype": "BFloat16",
"In msg nelems": 64, "Out msg nelems": 64, "Group size": 2, "Process Group Description": "tp"}},
{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 7, "ts": 120,
"dur": 1, "args": {"device": 1, "stream": 7, "correlation": 79, "bytes": 4096}})j";
  std::vector<std::string> seeds = {
      R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "X", "numSms": 8}], "traceEvents": [)" +
          events +
          R"(], "distributedInfo": {"rank": 0, "world_size": 2}, "baseTimeNanoseconds": 5})",
      "[" + events + "]",
      R"([{"name": "add", "ph": "X", "ts": 10.5, "dur": 9.0, "tid": 2, "pid": "CPU functions", "args": {}},
{"name": "add", "ph": "s", "ts": 10.5, "tid": 2, "pid": "CPU functions", "id": 0, "cat": "cpu_to_cuda", "args": {}},
{"name": "k", "ph": "f", "ts": 30.0, "tid": 1, "pid": "CUDA functions", "id": 0, "cat": "cpu_to_cuda", "args": {}},
{"name": "k", "ph": "X", "ts": 30.0, "dur": 4.0, "tid": 1, "pid": "CUDA functions", "args": {}}])"};
  if (corpus == nullptr) {
    return seeds;
  }
  // Packed ones both as they are and unpacked.
  constexpr std::uintmax_t kLargestSeed = 100'000;
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(corpus) / "kineto")) {
    if (entry.file_size() < kLargestSeed) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    std::ifstream stream(file, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
    GzipReader source(file);
    std::string text(kLargestSeed, '\0');
    text.resize(source.read(text.data(), text.size()));
    seeds.push_back(std::move(text));
  }
  return seeds;
}

// Whether it was a trace after all; its figures must add up then.
bool read_all(const std::filesystem::path& file, bool& adds_up) {
  try {
    Trace trace = load_trace(file, 1);
    name_nodes_by_order(trace, trace);
    const Analysis analysis = profile(std::move(trace), Rules()).analysis;
    adds_up = metrics_json(analysis).contains("operators");
    for (const LedgerRow& ledger : analysis.ledgers) {
      adds_up = adds_up && ledger.sum_ns() == ledger.window_ns;
    }
    adds_up = adds_up && (!analysis.operators ||
                          analysis.operators->covered_ns <= analysis.operators->whole_ns);
    return true;
  } catch (const Error&) {
    return false;
  }
}

int run(std::size_t count, const char* corpus) {
  const std::vector<std::string> seeds = seeds_of(corpus);
  const int memory = memfd_create("mutated", MFD_CLOEXEC);
  const std::filesystem::path file = "/proc/self/fd/" + std::to_string(memory);
  Random random(20'261'115);
  std::size_t num_read = 0;
  double slowest_s = 0;
  double largest = 0;
  bool is_good = true;
  const auto write_file = [&](const std::string& bytes) {
    return ftruncate(memory, 0) == 0 &&
           pwrite(memory, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
  };
  for (const std::string& seed : seeds_of(nullptr)) {
    bool adds_up = true;
    if (!write_file(seed) || !read_all(file, adds_up) || !adds_up) {
      std::printf("a seed is refused\n");
      return 1;
    }
  }
  for (std::size_t i = 0; i < count && is_good; ++i) {
    std::string bytes = seeds[pick(random, seeds.size())];
    const std::string& other = seeds[pick(random, seeds.size())];
    for (std::size_t changes = 1 + pick(random, 4); changes > 0; --changes) {
      mutate(bytes, other, random);
    }
    if (!write_file(bytes)) {
      return 1;
    }
    const std::size_t before = live_bytes;
    peak_bytes = live_bytes;
    const auto start = std::chrono::steady_clock::now();
    bool adds_up = true;
    num_read += read_all(file, adds_up) ? 1 : 0;
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    slowest_s = std::max(slowest_s, seconds);
    // The window, the parser's index of it, blocks of columns, the steps of a kernel's histogram.
    constexpr double kFixedBytes = 16 << 20;
    const double held = static_cast<double>(peak_bytes - before);
    largest = std::max(largest, held);
    if (seconds > 1 || held > 30 * static_cast<double>(bytes.size()) + kFixedBytes || !adds_up) {
      std::printf("input %zu of %zu bytes took %.2f s and %.0f bytes%s\n", i, bytes.size(), seconds,
                  held, adds_up ? "" : ", and its figures do not add up");
      is_good = false;
    }
  }
  std::printf(
      "%zu inputs of %zu seeds, %zu of them readable; slowest %.3f s, most memory %.1f MB\n", count,
      seeds.size(), num_read, slowest_s, largest / 1e6);
  // Seeds that no longer parse at all would make this test idle.
  return is_good && num_read * 4 > count ? 0 : 1;
}

}  // namespace
}  // namespace gpuwhy

int main(int argc, char** argv) {
  const std::size_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 5'000;
  return gpuwhy::run(count, argc > 2 ? argv[2] : nullptr);
}
