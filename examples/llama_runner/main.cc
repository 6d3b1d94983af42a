// SPDX-License-Identifier: Apache-2.0
//
// A real LLM to profile: llama.cpp behind the C interface of its libraries, marked with
// gpuwhy/nvtx.h. On a machine with a CUDA build of them it runs on the GPU; without one on the
// CPU, with the same marks and files.
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>

#include "generate.h"
#include "make_model.h"
#include "metrics.h"
#include "operators.h"
#include "options.h"

namespace llama_runner {
namespace {

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) {
    throw std::runtime_error("cannot write " + path);
  }
}

int run(const Options& options) {
  if (!options.made_model.empty()) {
    std::puts(make_model(options.made_model, options.model, options.tokenizer).c_str());
    return 0;
  }
  OperatorTimer operators;
  const bool is_timing = !options.operators.empty();
  const RunResult result = run_requests(options, is_timing ? &operators : nullptr);
  if (is_timing) {
    write_text(options.operators, operators.csv());
  }
  if (!options.metrics.empty()) {
    write_text(options.metrics, metrics_json(options, result));
  }
  std::fputs(metrics_text(options, result).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace llama_runner

int main(int argc, char** argv) {
  llama_runner::Options options;
  try {
    options = llama_runner::parse_options(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "llama_runner: %s\n%s", error.what(), llama_runner::kUsage);
    return 2;
  }
  try {
    return llama_runner::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "llama_runner: %s\n", error.what());
    return 1;
  }
}
