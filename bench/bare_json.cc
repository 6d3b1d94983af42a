// SPDX-License-Identifier: Apache-2.0
//
// Speed reference for PyTorch traces: simdjson's On-Demand parser over the whole text in memory,
// stepping over every field of every event and keeping nothing. Prints seconds, reading of the file
// included, and the number of fields.
#include <chrono>
#include <cstdio>

#include <simdjson.h>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: bare_json FILE.json\n");
    return 2;
  }
  const auto start = std::chrono::steady_clock::now();
  unsigned long long fields = 0;
  try {
    simdjson::ondemand::parser parser;
    const simdjson::padded_string text = simdjson::padded_string::load(argv[1]);
    simdjson::ondemand::document document = parser.iterate(text);
    for (simdjson::ondemand::object event : document["traceEvents"].get_array()) {
      for (auto field : event) {
        fields += field.key().error() == simdjson::SUCCESS ? 1 : 0;
      }
    }
  } catch (const simdjson::simdjson_error& error) {
    std::fprintf(stderr, "bare_json: %s\n", error.what());
    return 1;
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  std::printf("%.4f %llu\n", taken.count(), fields);
  return 0;
}
