// SPDX-License-Identifier: Apache-2.0
//
// Facts about the machine from /proc, /etc and nvidia-smi, read-only.
//
// GPUs are listed by running nvidia-smi instead of linking NVML: the program remains a single file
// that starts on machines without a driver. nvidia-smi may be missing in a container that does have
// a GPU. Then the driver is known from /proc and the GPUs are not, and `gpu_problem` says so.
#include "capture/machine.h"

#include <algorithm>
#include <charconv>
#include <thread>

#include <fmt/format.h>
#include <sys/utsname.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "capture/processes.h"
#include "capture/subprocess.h"
#include "capture/tools.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

// Bit numbers from linux/capability.h.
constexpr int kCapSysAdmin = 21;
constexpr int kCapPerfmon = 38;

std::optional<std::int64_t> whole_number(std::string_view text, int base = 10) {
  text = trim(text);
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (failure != std::errc() || end == text.data()) {
    return std::nullopt;
  }
  return value;
}

// The rest of the first line that starts with `label`, without surrounding separators.
std::string field_after(const std::string& text, std::string_view label) {
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with(label)) {
      std::string_view rest = trim(line.substr(label.size()));
      while (!rest.empty() && (rest.front() == ':' || rest.front() == '=' || rest.front() == '"')) {
        rest.remove_prefix(1);
      }
      rest = trim(rest);
      return std::string(rest.substr(0, rest.find_last_not_of('"') + 1));
    }
  }
  return {};
}

// "550.54.15" from "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release
// Build".
std::string driver_version_in(const std::string& text) {
  for (const std::string_view word : split(split(text, '\n')[0], ' ')) {
    if (!word.empty() && word.find('.') != std::string_view::npos &&
        word.find_first_not_of("0123456789.") == std::string_view::npos) {
      return std::string(word);
    }
  }
  return {};
}

// nvidia-smi writes [N/A] or [Insufficient Permissions] for unknown values.
std::optional<bool> is_enabled(std::string_view cell) {
  cell = trim(cell);
  if (cell != "Enabled" && cell != "Disabled") {
    return std::nullopt;
  }
  return cell == "Enabled";
}

void add_gpu_row(std::string_view line, MachineFacts& facts) {
  const auto cells = split(line, ',');
  const auto index = whole_number(cells[0]);
  if (cells.size() < 6 || !index) {
    return;  // "Unable to determine the device handle ...": the exit code reports it
  }
  MachineGpu gpu;
  gpu.index = *index;
  if (const auto mib = whole_number(cells[1])) {
    gpu.memory_bytes = *mib * static_cast<std::int64_t>(kMiB);
  }
  gpu.mig_enabled = is_enabled(cells[2]).value_or(false);
  gpu.persistence_enabled = is_enabled(cells[3]);
  gpu.name = trim(cells[5]);
  if (facts.driver_version.empty()) {
    facts.driver_version = trim(cells[4]);  // WSL2 has no /proc/driver/nvidia
  }
  facts.gpus.push_back(gpu);
}

// A GPU that fails must not hide the others: rows are taken even if nvidia-smi reports an error.
void read_gpus(const System& system, MachineFacts& facts) {
  const auto smi = find_on_path(system, "nvidia-smi");
  if (!smi) {
    facts.gpu_problem = "nvidia-smi is not on PATH";
    return;
  }
  const Process query{
      {smi->string(),
       "--query-gpu=index,memory.total,mig.mode.current,persistence_mode,driver_version,name",
       "--format=csv,noheader,nounits"},
      system.environment};
  ProcessResult answer;
  try {
    answer = run_process(query);
  } catch (const Error& error) {
    facts.gpu_problem = error.message();
    return;
  }
  for (const std::string_view line : split(answer.out, '\n')) {
    add_gpu_row(line, facts);
  }
  if (answer.timed_out) {
    facts.gpu_problem = "nvidia-smi does not answer";
  } else if (!answer.succeeded()) {
    // Its complaint is a separate line, before or after the working GPUs.
    const std::string said = answer.err.empty() ? answer.out : answer.err;
    facts.gpu_problem = fmt::format("nvidia-smi failed: {}", printable(trim(said).substr(0, 120)));
  } else if (facts.gpus.empty()) {
    facts.gpu_problem = "nvidia-smi lists no GPU";
  }
}

// Clocks, power and temperature of the GPUs before the run, which drift between runs. A separate
// query, because a driver that does not know one of the names answers none.
void read_gpu_state(const System& system, MachineFacts& facts) {
  const auto smi = find_on_path(system, "nvidia-smi");
  if (!smi || facts.gpus.empty()) {
    return;
  }
  ProcessResult answer;
  try {
    answer = run_process({{smi->string(), "--query-gpu=index,clocks.sm,power.draw,temperature.gpu",
                           "--format=csv,noheader,nounits"},
                          system.environment});
  } catch (const Error&) {
    return;  // what does not answer is not known
  }
  for (const std::string_view line : split(answer.out, '\n')) {
    const auto cells = split(line, ',');
    const auto index = cells.size() == 4 ? whole_number(cells[0]) : std::nullopt;
    for (MachineGpu& gpu : facts.gpus) {
      if (index && gpu.index == *index) {
        gpu.sm_clock_mhz = whole_number(cells[1]);
        gpu.power_w = whole_number(cells[2]);
        gpu.temperature_c = whole_number(cells[3]);
      }
    }
  }
}

// Number of processes computing on the GPUs. In a container, others are often invisible.
void read_gpu_processes(const System& system, MachineFacts& facts) {
  const auto smi = find_on_path(system, "nvidia-smi");
  if (!smi || facts.gpus.empty()) {
    return;
  }
  try {
    const ProcessResult answer = run_process(
        {{smi->string(), "--query-compute-apps=pid", "--format=csv,noheader"}, system.environment});
    if (!answer.succeeded()) {
      return;
    }
    facts.gpu_processes = 0;
    for (const std::string_view line : split(answer.out, '\n')) {
      *facts.gpu_processes += whole_number(line) ? 1 : 0;
    }
  } catch (const Error&) {
    // Unknown if it does not answer.
  }
}

void read_permissions(const System& system, MachineFacts& facts) {
  const std::string params = read_pseudo_file(system.at("/proc/driver/nvidia/params"));
  if (const auto value = whole_number(field_after(params, "RmProfilingAdminOnly"))) {
    facts.counters_need_admin = *value != 0;
  }
  const std::string status = read_pseudo_file(system.at("/proc/self/status"));
  const auto capabilities = whole_number(field_after(status, "CapEff"), 16).value_or(0);
  // Capabilities inside a user namespace do not count for the driver. The machine's own namespace
  // maps all ids to themselves.
  const std::string uid_map = read_pseudo_file(system.at("/proc/self/uid_map"));
  const bool is_own_namespace = uid_map.empty() || uid_map.find("4294967295") != std::string::npos;
  facts.has_cap_sys_admin = is_own_namespace && ((capabilities >> kCapSysAdmin) & 1) != 0;
  facts.has_cap_perfmon = is_own_namespace && ((capabilities >> kCapPerfmon) & 1) != 0;
  const std::string paranoid = read_pseudo_file(system.at("/proc/sys/kernel/perf_event_paranoid"));
  if (const auto value = whole_number(paranoid)) {
    facts.perf_event_paranoid = static_cast<int>(*value);
  }
}

// From the most to the least reliable sign.
std::string container_of(const System& system) {
  if (system.variable("KUBERNETES_SERVICE_HOST")) {
    return "kubernetes";
  }
  std::error_code ignored;
  if (fs::exists(system.at("/.singularity.d"), ignored) || system.variable("APPTAINER_CONTAINER")) {
    return "apptainer";
  }
  if (fs::exists(system.at("/.dockerenv"), ignored)) {
    return "docker";
  }
  if (fs::exists(system.at("/run/.containerenv"), ignored)) {
    return "podman";
  }
  if (const auto named = system.variable("container")) {
    return *named;
  }
  const std::string cgroup = read_pseudo_file(system.at("/proc/1/cgroup"));
  for (const char* name : {"docker", "kubepods", "containerd", "lxc"}) {
    if (cgroup.find(name) != std::string::npos) {
      return name;
    }
  }
  return {};
}

}  // namespace

// Every fact is optional: what cannot be read stays empty, and the reader of the facts says so.
MachineFacts machine_facts(const System& system) {
  MachineFacts facts;
  utsname names{};
  if (::uname(&names) == 0) {
    facts.hostname = names.nodename;
    facts.kernel = names.release;
    facts.architecture = names.machine;
  }
  facts.distribution = field_after(read_pseudo_file(system.at("/etc/os-release")), "PRETTY_NAME");
  facts.cpu = field_after(read_pseudo_file(system.at("/proc/cpuinfo")), "model name");
  facts.logical_cpus = std::thread::hardware_concurrency();
  const std::string memory = field_after(read_pseudo_file(system.at("/proc/meminfo")), "MemTotal");
  if (const auto kib = whole_number(memory); kib && *kib > 0) {
    facts.memory_bytes = *kib * static_cast<std::int64_t>(kKiB);
  }
  facts.container = container_of(system);
  facts.driver_version =
      driver_version_in(read_pseudo_file(system.at("/proc/driver/nvidia/version")));
  read_gpus(system, facts);
  read_gpu_state(system, facts);
  read_gpu_processes(system, facts);
  read_permissions(system, facts);
  return facts;
}

std::optional<std::uint64_t> available_memory_bytes(const System& system) {
  const auto available =
      whole_number(field_after(read_pseudo_file(system.at("/proc/meminfo")), "MemAvailable"));
  if (!available || *available < 0) {
    return std::nullopt;
  }
  std::uint64_t bytes = static_cast<std::uint64_t>(*available) * kKiB;
  // Limits of control groups v2 and v1, as a container sees its own ("max": no limit).
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const auto limit = whole_number(read_pseudo_file(system.at(path)));
    if (limit && *limit > 0) {
      bytes = std::min(bytes, static_cast<std::uint64_t>(*limit));
    }
  }
  return bytes;
}

std::vector<std::string> running_processes(const System& system,
                                           const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const RunningProcess& process : all_processes(system)) {
    if (std::find(names.begin(), names.end(), process.name) != names.end()) {
      found.push_back(process.text());
    }
  }
  return found;
}

}  // namespace gpuwhy
