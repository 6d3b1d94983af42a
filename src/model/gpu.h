// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"

namespace gpuwhy {

// Peak rates of a GPU: one row of conf/hardware/gpus.yaml.
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
  // nullopt if the GPU lacks this data type, or no source states its rate.
  std::optional<double> flops_per_s(const std::string& dtype) const;
};

// The rows of the parsed conf/hardware/gpus.yaml. Throws kInput if a row lacks a required field.
std::vector<GpuSpec> gpu_table(const Json& file);

// Device properties from a recording; 0 if not recorded.
struct GpuAttributes {
  std::int64_t sms = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t memory_bytes_per_s = 0;
};

// The result of a lookup: a row, or the reason why there is none.
struct GpuMatch {
  std::optional<GpuSpec> gpu;
  std::string reason;                      // why there is none, and what to do about it
  std::vector<std::string> notes;          // where the device and its row disagree
  std::vector<std::string> variants = {};  // the rows of a name that several share
};

// The row of a device, by the name in nsys and ncu recordings or by the row's own name. The longest
// name that is a prefix of the given one decides, and the rest must be insignificant: a "4090
// Laptop GPU" is not a 4090. A name shared by several rows needs attributes. The device's own
// bandwidth replaces the table's.
GpuMatch find_gpu(const std::vector<GpuSpec>& table, const std::string& device_name,
                  const GpuAttributes& attributes = {});

}  // namespace gpuwhy
