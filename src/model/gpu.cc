// SPDX-License-Identifier: Apache-2.0
//
// Lookup of a GPU's peak rates by device name and attributes.
//
// The names that tools record are product strings, and a suffix can mean twice the bandwidth:
// "NVIDIA H100 PCIe", "NVIDIA H100 80GB HBM3", "NVIDIA H100 NVL". Other tools search for "H100" in
// them, or use a default for unknown names, and so get the peak of another card. Here a name
// matches as a whole or not at all. No match is a valid result: no MFU, and advice on the row to
// add.
//
// Device attributes override the table where they are better: the bandwidth, which vendors round.
// Not the clock: peaks are stated at a tensor clock below the boost clock that devices report. On
// Tegra the attributes do not describe the memory, so an implausible bandwidth (more than a tenth
// off the table) is rejected with a note.
#include "model/gpu.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json.h"
#include "base/list_of.h"
#include "base/text.h"
#include "base/units.h"

namespace gpuwhy {
namespace {

constexpr std::string_view kVendor = "nvidia ";

std::optional<double> find_number(const Json& row, const char* key) {
  return row.contains(key) ? std::optional(row.at(key).get<double>()) : std::nullopt;
}

// A row of conf/hardware/gpus.yaml. Optional figures stay empty: a missing peak gives n/a, never a
// guess.
GpuSpec row_of(const Json& row) {
  GpuSpec gpu;
  gpu.name = row.at("name");
  gpu.device_names = row.at("device_names").get<std::vector<std::string>>();
  gpu.compute_capability = row.at("compute_capability");
  gpu.sms = row.at("sms");
  gpu.boost_mhz = find_number(row, "boost_mhz");
  gpu.tensor_mhz = find_number(row, "tensor_mhz");
  gpu.flop_per_clock_per_sm = find_number(row, "flop_per_clock_per_sm");
  gpu.l2_mib = find_number(row, "l2_mib");
  gpu.memory_gb = row.at("memory_gb").get<std::vector<double>>();
  gpu.label_gb_per_s = row.at("memory_gb_per_s");
  gpu.device_gb_per_s = find_number(row, "device_gb_per_s");
  gpu.nvlink_gb_per_s = find_number(row, "nvlink_gb_per_s");
  gpu.dense_tflops = row.at("dense_tflops").get<std::map<std::string, double>>();
  if (row.contains("sheet_quotes_sparse")) {
    gpu.sheet_quotes_sparse = row.at("sheet_quotes_sparse").get<std::vector<std::string>>();
  }
  gpu.source = row.at("source");
  gpu.confidence = row.at("confidence");
  gpu.note = row.value("note", "");
  return gpu;
}

// Lower case, without the vendor, which drivers before 2021 omit.
std::string plain_name(std::string_view name) {
  std::string plain = to_lower(trim(name));
  if (plain.starts_with(kVendor)) {
    plain.erase(0, kVendor.size());
  }
  return plain;
}

// All rows that have the longest name with which `given` starts, as whole words.
struct Candidates {
  std::vector<const GpuSpec*> rows;
  std::string rest;  // of the given name, after the match
};

// The rows whose name is the longest beginning of the given one. "A100" and "A100 80GB" both fit
// "A100 80GB PCIe"; the longer one wins. Several rows may share the name.
Candidates candidates_for(const std::vector<GpuSpec>& table, const std::string& given) {
  Candidates found;
  std::size_t longest = 0;
  for (const GpuSpec& gpu : table) {
    std::vector<std::string> names = gpu.device_names;
    names.push_back(gpu.name);
    for (const std::string& name : names) {
      const std::string plain = plain_name(name);
      const bool begins =
          given.starts_with(plain) && (given.size() == plain.size() || given[plain.size()] == ' ');
      if (!begins || plain.size() < longest) {
        continue;
      }
      if (plain.size() > longest) {
        found.rows.clear();
        longest = plain.size();
        found.rest = trim(std::string_view(given).substr(plain.size()));
      }
      if (found.rows.empty() || found.rows.back() != &gpu) {
        found.rows.push_back(&gpu);
      }
    }
  }
  return found;
}

bool fits(const GpuSpec& gpu, const GpuAttributes& attributes) {
  // Labels say GB and mean GiB; up to a tenth is reserved.
  const double memory_gb = static_cast<double>(attributes.memory_bytes) / static_cast<double>(kGiB);
  const bool fits_memory =
      attributes.memory_bytes == 0 || std::ranges::any_of(gpu.memory_gb, [&](double label) {
        return std::fabs(memory_gb / label - 1) < 0.10;
      });
  return fits_memory && (attributes.sms == 0 || attributes.sms == gpu.sms);
}

std::string names_of(const std::vector<const GpuSpec*>& rows) {
  std::string names;
  for (const GpuSpec* gpu : rows) {
    names += (names.empty() ? "" : ", ") + gpu->name;
  }
  return names;
}

std::string how_to_add(const std::string& name) {
  return fmt::format(
      "GPU '{}' is not in the table: add a row with this device_name, sms, memory_gb_per_s and "
      "dense_tflops to conf/hardware/gpus.yaml or to a YAML file of yours and give that, or name a "
      "known one (gpuwhy list gpus)",
      printable(name));
}

// The device's bandwidth replaces the table's if plausible. Notes list disagreements.
void use_attributes(const GpuAttributes& attributes, GpuMatch& match) {
  GpuSpec& gpu = *match.gpu;
  if (!fits(gpu, attributes)) {
    match.notes.push_back(fmt::format(
        "the device has {} SMs and {}, the table's {} has {} and {:g} GB: look at its row",
        attributes.sms, format_bytes(static_cast<std::uint64_t>(attributes.memory_bytes)), gpu.name,
        gpu.sms, fmt::join(gpu.memory_gb, " or ")));
  }
  if (attributes.memory_bytes_per_s == 0) {
    return;
  }
  const double device = static_cast<double>(attributes.memory_bytes_per_s) / 1e9;
  if (std::fabs(device / gpu.label_gb_per_s - 1) < 0.10) {
    gpu.device_gb_per_s = device;
  } else {
    match.notes.push_back(fmt::format(
        "the recording gives {:.1f} GB/s of memory bandwidth, the table {:g} for {}: the table's "
        "is used",
        device, gpu.label_gb_per_s, gpu.name));
  }
}

}  // namespace

std::optional<double> GpuSpec::flops_per_s(const std::string& dtype) const {
  const auto found = dense_tflops.find(dtype);
  return found == dense_tflops.end() ? std::nullopt : std::optional(found->second * 1e12);
}

std::vector<GpuSpec> gpu_table(const Json& file) {
  try {
    return list_of<GpuSpec>(file.at("gpus"), row_of);
  } catch (const Json::exception& failure) {
    throw Error(ErrorKind::kInput,
                fmt::format("a row of hardware/gpus.yaml is not complete: {}", failure.what()));
  }
}

GpuMatch find_gpu(const std::vector<GpuSpec>& table, const std::string& device_name,
                  const GpuAttributes& attributes) {
  GpuMatch match;
  if (trim(std::string_view(device_name)).empty()) {
    match.reason = "the recording does not name its GPU: name it with --gpu-name";
    return match;
  }
  Candidates found = candidates_for(table, plain_name(device_name));
  if (found.rest.starts_with("mig ")) {
    match.reason =
        fmt::format("'{}' is a slice of a GPU: its share of SMs and bandwidth is not in the table",
                    printable(device_name));
    return match;
  }
  if (found.rows.empty() || !found.rest.empty()) {
    match.reason = how_to_add(device_name);
    return match;
  }
  if (found.rows.size() > 1) {
    std::vector<const GpuSpec*> fitting = found.rows;
    std::erase_if(fitting, [&](const GpuSpec* gpu) { return !fits(*gpu, attributes); });
    if (fitting.size() != 1) {
      match.reason = fmt::format("several GPUs are called '{}': name one of {}",
                                 printable(device_name), names_of(found.rows));
      for (const GpuSpec* gpu : found.rows) {
        match.variants.push_back(gpu->name);
      }
      return match;
    }
    found.rows = fitting;
  }
  match.gpu = *found.rows.front();
  use_attributes(attributes, match);
  return match;
}

}  // namespace gpuwhy
