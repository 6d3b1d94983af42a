// SPDX-License-Identifier: Apache-2.0
//
// What machine is this? Read from /proc, /etc and nvidia-smi, and only read.
//
// GPUs come from running nvidia-smi, not from linking NVML: the program stays one file that starts
// on machines without a driver. nvidia-smi may be missing in a container that has a GPU all the
// same; then the driver is known from /proc and the GPUs are not, and `gpu_problem` says so.
#include "capture/machine.h"

#include <charconv>
#include <thread>

#include <fmt/format.h>
#include <sys/utsname.h>

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "capture/subprocess.h"
#include "capture/tools.h"

namespace llmprof {
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

// The rest of the first line that starts with `label`, without separators around it.
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

// "550.54.15" of "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release
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

void read_gpus(const System& system, MachineFacts& facts) {
  const auto smi = find_on_path(system, "nvidia-smi");
  if (!smi) {
    facts.gpu_problem = "nvidia-smi is not on PATH";
    return;
  }
  const Process query{
      {smi->string(), "--query-gpu=index,memory.total,mig.mode.current,persistence_mode,name",
       "--format=csv,noheader,nounits"},
      system.environment};
  const ProcessResult answer = run_process(query);
  if (!answer.succeeded()) {
    const std::string said = answer.out + answer.err;
    facts.gpu_problem = answer.timed_out ? "nvidia-smi does not answer"
                                         : fmt::format("nvidia-smi failed: {}",
                                                       printable(trim(said).substr(0, 120)));
    return;
  }
  for (const std::string_view line : split(answer.out, '\n')) {
    const auto cells = split(line, ',');
    if (cells.size() < 5) {
      continue;
    }
    GpuFacts gpu;
    gpu.index = static_cast<int>(whole_number(cells[0]).value_or(0));
    gpu.memory_bytes = static_cast<std::uint64_t>(whole_number(cells[1]).value_or(0)) * kMiB;
    gpu.mig_enabled = trim(cells[2]) == "Enabled";
    gpu.persistence_enabled = trim(cells[3]) == "Enabled";
    gpu.name = trim(cells[4]);
    facts.gpus.push_back(gpu);
  }
  if (facts.gpus.empty()) {
    facts.gpu_problem = "nvidia-smi lists no GPU";
  }
}

void read_permissions(const System& system, MachineFacts& facts) {
  const std::string params = read_pseudo_file(system.at("/proc/driver/nvidia/params"));
  if (const auto value = whole_number(field_after(params, "RmProfilingAdminOnly"))) {
    facts.counters_need_admin = *value != 0;
  }
  const std::string status = read_pseudo_file(system.at("/proc/self/status"));
  const auto capabilities = whole_number(field_after(status, "CapEff"), 16).value_or(0);
  facts.has_cap_sys_admin = ((capabilities >> kCapSysAdmin) & 1) != 0;
  facts.has_cap_perfmon = ((capabilities >> kCapPerfmon) & 1) != 0;
  const std::string paranoid = read_pseudo_file(system.at("/proc/sys/kernel/perf_event_paranoid"));
  if (const auto value = whole_number(paranoid)) {
    facts.perf_event_paranoid = static_cast<int>(*value);
  }
}

std::string container_of(const System& system) {
  if (system.variable("KUBERNETES_SERVICE_HOST")) {
    return "kubernetes";
  }
  std::error_code ignored;
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
  facts.logical_cpus = static_cast<int>(std::thread::hardware_concurrency());
  const std::string memory = field_after(read_pseudo_file(system.at("/proc/meminfo")), "MemTotal");
  facts.memory_bytes = static_cast<std::uint64_t>(whole_number(memory).value_or(0)) * kKiB;
  facts.container = container_of(system);
  facts.driver_version =
      driver_version_in(read_pseudo_file(system.at("/proc/driver/nvidia/version")));
  read_gpus(system, facts);
  read_permissions(system, facts);
  return facts;
}

std::vector<std::string> running_processes(const System& system,
                                           const std::vector<std::string>& names) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(system.at("/proc"), ignored)) {
    const std::string pid = entry.path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    const std::string comm = read_pseudo_file(entry.path() / "comm");
    for (const std::string& name : names) {
      if (trim(comm) == name) {
        found.push_back(fmt::format("{} (pid {})", name, pid));
      }
    }
  }
  return found;
}

}  // namespace llmprof
