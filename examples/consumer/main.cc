// SPDX-License-Identifier: Apache-2.0
//
// Example of a program that uses the library: prints the top kernels of a recording, and the cost
// of a model.
//
//   consumer RECORDING [MODEL]
#include <cstdio>

#include <gpuwhy/model.h>
#include <gpuwhy/recording.h>

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: consumer RECORDING [MODEL]\n");
    return 2;
  }
  try {
    const gpuwhy::api::Recording recording = gpuwhy::api::read_recording(argv[1]);
    std::printf("gpuwhy %s, %s, %zu kernels\n", gpuwhy::api::version(), recording.format.c_str(),
                recording.kernels.size());
    for (const gpuwhy::api::KernelRow& kernel : recording.kernels) {
      std::printf("%lld %lld %s\n", static_cast<long long>(kernel.total_ns),
                  static_cast<long long>(kernel.calls), kernel.name.c_str());
    }
    if (argc > 2) {
      const gpuwhy::api::ModelFacts facts = gpuwhy::api::model_facts(argv[2]);
      const gpuwhy::api::WorkCost step = gpuwhy::api::decode_cost(argv[2], 1024);
      std::printf("model %s %lld params, a step at 1024: %lld FLOPs, %lld bytes\n",
                  facts.family.c_str(), static_cast<long long>(facts.params),
                  static_cast<long long>(step.flops), static_cast<long long>(step.bytes));
    }
  } catch (const gpuwhy::api::Error& error) {
    std::fprintf(stderr, "consumer: %s\n", error.what());
    return 1;
  }
  return 0;
}
