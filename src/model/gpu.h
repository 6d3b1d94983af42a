// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"

namespace llmprof {

// A GPU's ceilings: one row of conf/hardware/gpus.yaml.
struct GpuSpec {
  std::string name;  // "H100-SXM5-80GB"
  std::vector<std::string> device_names;
  std::string compute_capability;
  std::int64_t sms = 0;
  std::optional<double> boost_mhz;
  std::optional<double> tensor_mhz;
  std::optional<double> flop_per_clock_per_sm;
  std::optional<double> l2_mib;
  std::vector<double> memory_gb;
  double label_gb_per_s = 0;              // on the box
  std::optional<double> device_gb_per_s;  // as the device reports it
  std::optional<double> nvlink_gb_per_s;
  std::map<std::string, double> dense_tflops;
  std::vector<std::string> sheet_quotes_sparse;
  std::string source;
  std::string confidence;
  std::string note;

  double bytes_per_s() const { return device_gb_per_s.value_or(label_gb_per_s) * 1e9; }
  // Nothing where the part has no such path or nobody states it.
  std::optional<double> flops_per_s(const std::string& dtype) const;
};

// conf/hardware/gpus.yaml as it was parsed. Throws kInput when a row lacks what it must have.
std::vector<GpuSpec> gpu_table(const Json& file);

// What a recording knows of the device itself; 0 where it does not say.
struct GpuAttributes {
  std::int64_t sms = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t memory_bytes_per_s = 0;
};

struct GpuMatch {
  std::optional<GpuSpec> gpu;
  std::string reason;              // why there is none, and what to do about it
  std::vector<std::string> notes;  // where the device and its row disagree
};

// The row of a device, by the name nsys and ncu give it or by the row's own. The longest name that
// begins the given one decides, and what follows it must mean nothing: a "4090 Laptop GPU" is no
// 4090. A name of several rows needs attributes. The device's own bandwidth replaces the table's.
GpuMatch find_gpu(const std::vector<GpuSpec>& table, const std::string& device_name,
                  const GpuAttributes& attributes = {});

}  // namespace llmprof
