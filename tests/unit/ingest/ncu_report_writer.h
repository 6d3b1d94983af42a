// SPDX-License-Identifier: Apache-2.0
//
// Writes small reports of Nsight Compute, field by field, for tests and measurements.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <protozero/pbf_writer.hpp>

namespace gpuwhy::test {

using protozero::pbf_writer;

inline std::string with_length(const std::string& bytes) {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  std::string text;
  for (int shift = 0; shift < 32; shift += 8) {
    text += static_cast<char>(size >> shift & 0xff);
  }
  return text + bytes;
}

struct WrittenLaunch {
  std::string mangled = "_Z4gemmPf";
  std::string function = "gemm";
  std::string demangled = "gemm(float *)";
  std::vector<std::uint64_t> grid = {8, 2, 1};
  std::vector<std::uint64_t> block = {128, 1, 1};
  std::vector<std::pair<std::uint32_t, double>> metrics;  // number in the string table, value
  std::string nvtx_domain;
  std::vector<std::string> nvtx_stack;
  bool has_rule = false;
};

inline std::string dimensions(const std::vector<std::uint64_t>& dims) {
  std::string bytes;
  pbf_writer message(bytes);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    message.add_uint64(static_cast<std::uint32_t>(i + 1), dims[i]);
  }
  return bytes;
}

inline std::string result_message(const WrittenLaunch& launch) {
  std::string bytes;
  pbf_writer message(bytes);
  message.add_uint32(1, 77);
  message.add_string(5, launch.mangled);
  message.add_string(6, launch.function);
  message.add_string(7, launch.demangled);
  message.add_message(10, dimensions(launch.grid));
  message.add_message(11, dimensions(launch.block));
  for (const auto& [name, value] : launch.metrics) {
    pbf_writer metric(message, 13);
    metric.add_uint32(1, name);
    pbf_writer stored(metric, 2);
    stored.add_double(3, value);
  }
  if (launch.has_rule) {
    pbf_writer rule(message, 19);
    rule.add_string(1, "SOLBottleneck");
    rule.add_string(2, "Bottleneck");
    rule.add_string(4, "SpeedOfLight");
    pbf_writer body(rule, 3);
    pbf_writer item(body, 1);
    {
      pbf_writer text(item, 1);
      text.add_string(1, "too few warps");
      text.add_uint32(2, 4);
    }
    pbf_writer speedup(item, 10);
    speedup.add_uint32(1, 2);
    speedup.add_double(2, 12.5);
  }
  if (!launch.nvtx_stack.empty()) {
    pbf_writer state(message, 21);
    {
      pbf_writer domain(state, 1);
      domain.add_uint64(1, 5);
      domain.add_string(2, launch.nvtx_domain);
    }
    pbf_writer thread(state, 2);
    thread.add_uint32(1, 77);
    pbf_writer stack(thread, 2);
    stack.add_uint64(1, 5);
    for (const std::string& name : launch.nvtx_stack) {
      pbf_writer range(stack, 3);
      range.add_string(1, name);
    }
  }
  message.add_uint32(22, 1);
  message.add_uint32(23, 7);
  message.add_string(900, "a field of a release to come");
  return bytes;
}

struct WrittenBlock {
  std::vector<std::string> sources;
  std::vector<WrittenLaunch> launches;
  std::vector<std::string> strings;
  std::string session;  // a message
  std::uint32_t pid = 42;
};

inline std::string block_bytes(const WrittenBlock& block) {
  std::string payload;
  for (const std::string& source : block.sources) {
    payload += with_length(source);
  }
  for (const WrittenLaunch& launch : block.launches) {
    payload += with_length(result_message(launch));
  }
  std::string header;
  pbf_writer message(header);
  message.add_uint32(1, static_cast<std::uint32_t>(block.sources.size()));
  message.add_uint32(2, static_cast<std::uint32_t>(block.launches.size()));
  if (!block.session.empty()) {
    message.add_message(3, block.session);
  }
  {
    pbf_writer table(message, 4);
    for (const std::string& text : block.strings) {
      table.add_string(1, text);
    }
  }
  message.add_uint32(5, static_cast<std::uint32_t>(payload.size()));
  {
    pbf_writer process(message, 6);
    process.add_uint32(1, block.pid);
    process.add_string(3, "/usr/bin/llm");
  }
  return with_length(header) + payload;
}

inline std::string report_head() {
  std::string header;
  pbf_writer(header).add_uint32(1, 7);
  return std::string("NVR\0", 4) + with_length(header);
}

inline std::string report_bytes(const std::vector<WrittenBlock>& blocks) {
  std::string report = report_head();
  for (const WrittenBlock& block : blocks) {
    report += block_bytes(block);
  }
  return report;
}

// Versions, clock control and one device.
inline std::string session_message() {
  std::string bytes;
  pbf_writer session(bytes);
  {
    pbf_writer device(session, 6);
    device.add_uint32(1, 0);
    device.add_string(2, "Test GPU");
    pbf_writer attribute(device, 3);
    attribute.add_string(1, "device__attribute_multiprocessor_count");
    pbf_writer value(attribute, 2);
    value.add_uint64(5, 40);
  }
  {
    pbf_writer version(session, 8);
    version.add_string(1, "Nsight Compute Target");
    version.add_string(2, "2025.1.0.0 (build 1) (public-release)");
  }
  pbf_writer settings(session, 10);
  settings.add_string(8, "Base");
  return bytes;
}

}  // namespace gpuwhy::test
