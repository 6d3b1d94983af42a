// SPDX-License-Identifier: Apache-2.0
//
// Checks of the machine before a capture, each with a remedy.
//
// Each check is a small function from facts to a sentence and a remedy; the table at the end
// defines their order. Users are most often stopped by three things, in this order: a tool that is
// missing or lacks its importer, counters that the driver reserves for administrators, and another
// client (DCGM) that uses them. All three are visible before anything is launched.
//
// What this cannot see: whether the cloud host forbids counters to its guests, and whether this
// nsys supports this driver. Both only show in a capture.
#include "capture/doctor.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/list_of.h"
#include "base/text.h"
#include "base/units.h"
#include "capture/nsys_leftovers.h"
#include "capture/stale_runs.h"
#include "capture/workload.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;
using enum CheckStatus;

// A capture of one minute under load takes a few hundred MB, its SQLite export three to five times
// that.
constexpr std::uint64_t kComfortableDisk = 10 * kGiB;
constexpr std::uint64_t kLeastDisk = kGiB;
// nsys keeps the raw stream in TMPDIR until it is imported.
constexpr std::uint64_t kComfortableTmp = 2 * kGiB;
// From this driver branch on, CAP_PERFMON suffices (NVIDIA's page on ERR_NVGPUCTRPERM).
constexpr int kPerfmonDriver = 565;

// Inputs of all checks, collected once.
struct Facts {
  const System& system;
  const fs::path& artifacts_dir;
  Diagnosis& diagnosis;

  const MachineFacts& machine() const { return diagnosis.machine; }
};

// What a check found; the table below names it.
struct Found {
  CheckStatus status = kOk;
  std::string finding;
  std::string remedy = {};
};

// Runs ensure_nsys() or ensure_ncu(); an error becomes the finding.
template <typename Tool>
Found tool_check(const char* id, std::optional<Tool>& tool, Tool (*ensure)(const System&),
                 const System& system) {
  try {
    tool = ensure(system);
    return {kOk, fmt::format("{} {} at {}", id, tool->version.text(), tool->path.string())};
  } catch (const Error& error) {
    return {kFail, error.message(), error.hint()};
  }
}

Found check_nsys(const Facts& facts) {
  return tool_check("nsys", facts.diagnosis.nsys, ensure_nsys, facts.system);
}

Found check_importer(const Facts& facts) {
  const auto& nsys = facts.diagnosis.nsys;
  if (!nsys) {
    return {kSkip, "needs nsys"};
  }
  if (!nsys->importer.empty()) {
    return {kOk, nsys->importer.string()};
  }
  if (nsys->is_wrapper) {
    return {kSkip, "not checked: nsys is a wrapper script"};
  }
  return {
      kFail,
      "QdstrmImporter is missing next to nsys: captures would end as .qdstrm, without a report",
      "on Debian install nsight-systems too and run tools/install-deps.sh nsight, which links it"};
}

Found check_ncu(const Facts& facts) {
  return tool_check("ncu", facts.diagnosis.ncu, ensure_ncu, facts.system);
}

Found check_driver(const Facts& facts) {
  if (facts.machine().driver_version.empty()) {
    return {kFail, "no NVIDIA driver is loaded: GPU work cannot be captured here",
            "install NVIDIA's driver; in a container start it with --gpus all. Recordings can be "
            "analysed without one"};
  }
  return {kOk, fmt::format("NVIDIA driver {}", facts.machine().driver_version)};
}

// A GPU that nvidia-smi lists beside an error is usable, so that is only a warning.
Found check_gpus(const Facts& facts) {
  const MachineFacts& machine = facts.machine();
  if (!machine.gpus.empty()) {
    const auto names = list_of<std::string>(machine.gpus, [&](const MachineGpu& gpu) {
      return fmt::format("{}: {} ({})", gpu.index, printable(gpu.name),
                         gpu.memory_bytes
                             ? format_bytes(static_cast<std::uint64_t>(*gpu.memory_bytes))
                             : "memory shared with the CPU");
    });
    if (!machine.gpu_problem.empty()) {
      return {kWarn, fmt::format("{}; but {}", fmt::join(names, ", "), machine.gpu_problem),
              "run nvidia-smi and follow what it says: one GPU may have fallen off the bus"};
    }
    return {kOk, fmt::format("{}", fmt::join(names, ", "))};
  }
  if (machine.driver_version.empty()) {
    return {kSkip, "needs a driver"};
  }
  return {kFail, fmt::format("no GPU is visible: {}", machine.gpu_problem),
          machine.container.empty() ? "run nvidia-smi and follow what it says"
                                    : "start the container with --gpus all (Kubernetes: request "
                                      "nvidia.com/gpu)"};
}

Found check_counters(const Facts& facts) {
  const MachineFacts& machine = facts.machine();
  if (!machine.counters_need_admin) {
    return {kSkip, machine.driver_version.empty()
                       ? "needs a driver"
                       : "the driver does not say who may read counters"};
  }
  if (!*machine.counters_need_admin) {
    return {kOk, "every user may read hardware counters"};
  }
  // Administrators are recognized by their capabilities, not by uid 0: containers drop them.
  int driver = 0;
  std::from_chars(machine.driver_version.data(),
                  machine.driver_version.data() + machine.driver_version.size(), driver);
  if (machine.has_cap_sys_admin || (machine.has_cap_perfmon && driver >= kPerfmonDriver)) {
    return {kOk, "hardware counters are restricted to administrators; this process is one"};
  }
  const bool perfmon_suffices = driver >= kPerfmonDriver;
  return {
      kFail,
      "the driver restricts hardware counters to administrators: ncu would stop with "
      "ERR_NVGPUCTRPERM",
      machine.container.empty()
          ? "run as root, or once: echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | "
            "sudo tee /etc/modprobe.d/nvidia-profiling.conf, sudo update-initramfs -u, reboot"
          : fmt::format("start the container with --cap-add={0} (Kubernetes: "
                        "securityContext.capabilities.add: [{0}])",
                        perfmon_suffices ? "PERFMON" : "SYS_ADMIN")};
}

// Only one client at a time can use the counters.
Found check_counter_clients(const Facts& facts) {
  const auto clients = running_processes(
      facts.system, {"nv-hostengine", "dcgm-exporter", "nsys", "nsys-launcher", "ncu"});
  if (clients.empty() && !facts.machine().container.empty()) {
    return {kSkip, "no other profiler is running in this container; outside is not visible"};
  }
  if (clients.empty()) {
    return {kOk, "no other profiler is running"};
  }
  const bool has_dcgm = std::ranges::any_of(clients, [](const std::string& client) {
    return client.starts_with("nv-hostengine") || client.starts_with("dcgm");
  });
  return {kWarn,
          fmt::format("{} may use the counters: only one client can", fmt::join(clients, ", ")),
          has_dcgm ? "dcgmi profiling --pause before the capture, dcgmi profiling --resume after"
                   : "wait until it has finished"};
}

Found check_gpu_sharing(const Facts& facts) {
  const MachineFacts& machine = facts.machine();
  if (machine.gpus.empty()) {
    return {kSkip, "needs a GPU"};
  }
  if (!running_processes(facts.system, {"nvidia-cuda-mps"}).empty()) {
    return {kWarn, "MPS is running: ncu's behaviour under it is undefined",
            "echo quit | nvidia-cuda-mps-control"};
  }
  if (std::ranges::any_of(machine.gpus, [](const MachineGpu& gpu) { return gpu.mig_enabled; })) {
    return {kWarn,
            "MIG is on: clocks cannot be locked, and a slice has only part of the GPU's peaks",
            "sudo nvidia-smi -mig 0, if no other user needs the slices"};
  }
  return {kOk, "neither MIG nor MPS"};
}

Found check_persistence(const Facts& facts) {
  const auto& gpus = facts.machine().gpus;
  if (gpus.empty()) {
    return {kSkip, "needs a GPU"};
  }
  if (std::ranges::any_of(gpus, [](const MachineGpu& gpu) { return !gpu.persistence_enabled; })) {
    return {kSkip, "the driver does not say"};
  }
  if (std::ranges::all_of(gpus, [](const MachineGpu& gpu) { return *gpu.persistence_enabled; })) {
    return {kOk, "persistence mode is on"};
  }
  return {kWarn, "persistence mode is off: the first CUDA call of each run waits for the driver",
          "sudo nvidia-smi -pm 1"};
}

Found check_perf_events(const Facts& facts) {
  const auto level = facts.machine().perf_event_paranoid;
  if (!level) {
    return {kSkip, "the kernel does not say"};
  }
  if (*level <= 2) {
    return {kOk, fmt::format("level {}", *level)};
  }
  return {kWarn,
          fmt::format("level {}: nsys cannot sample the CPU (gpuwhy's presets do not ask it to)",
                      *level),
          "sudo sysctl kernel.perf_event_paranoid=2"};
}

// Writable first, then the free space.
Found check_disk(const Facts& facts) {
  const fs::path place = nearest_existing(facts.artifacts_dir);
  std::error_code ignored;
  if (!fs::is_directory(place, ignored) || ::access(place.c_str(), W_OK) != 0) {
    return {kFail,
            fmt::format("bundles cannot be written to {}: {} is not a writable directory",
                        facts.artifacts_dir.string(), place.string()),
            "put them elsewhere: artifacts.dir=/some/directory"};
  }
  const auto free = free_bytes(place);
  if (!free) {
    return {kSkip, fmt::format("cannot check {}", facts.artifacts_dir.string())};
  }
  const std::string finding =
      fmt::format("{} free for bundles in {}", format_bytes(*free), facts.artifacts_dir.string());
  const std::string remedy = "free some, or put bundles elsewhere: artifacts.dir=/large/disk";
  if (*free < kLeastDisk) {
    return {kFail, finding, remedy};
  }
  return {*free < kComfortableDisk ? kWarn : kOk, finding, *free < kComfortableDisk ? remedy : ""};
}

Found check_tmp(const Facts& facts) {
  const fs::path tmp = facts.system.temporary_directory();
  std::error_code ignored;
  if (!fs::is_directory(tmp, ignored) || ::access(tmp.c_str(), W_OK) != 0) {
    return {kFail, fmt::format("{} is not a writable directory", tmp.string()),
            "export TMPDIR=/some/writable/directory"};
  }
  const std::uint64_t free = free_bytes(tmp).value_or(0);
  const std::string finding = fmt::format("{} free in {}", format_bytes(free), tmp.string());
  if (free < kComfortableTmp) {
    return {kWarn, finding + ": nsys keeps the raw capture there",
            "export TMPDIR=/a/larger/directory"};
  }
  return {kOk, finding};
}

// ncu takes this lock for every user. If another user left it behind, it cannot be opened.
Found check_ncu_lock(const Facts& facts) {
  const fs::path lock = fs::path(facts.system.temporary_directory()) / "nsight-compute-lock";
  struct stat owner {};
  if (::stat(lock.c_str(), &owner) != 0 || ::access(lock.c_str(), W_OK) == 0) {
    return {kOk, "free"};
  }
  return {kWarn, fmt::format("{} belongs to another user: ncu would not start", lock.string()),
          "export TMPDIR to a directory of your own"};
}

Found check_home(const Facts& facts) {
  const auto home = facts.system.variable("HOME");
  if (home && ::access(home->c_str(), W_OK) == 0) {
    return {kOk, *home};
  }
  return {kWarn, "HOME is not writable: ncu cannot unpack its sections there",
          "export HOME=/some/writable/directory"};
}

Found check_container(const Facts& facts) {
  const std::string& container = facts.machine().container;
  return {kOk,
          container.empty() ? "none found" : fmt::format("{} container", printable(container))};
}

void add_leftovers_of_nsys(const NsysLeftovers& found, std::vector<std::string>& findings,
                           std::vector<std::string>& remedies) {
  if (!found.files.empty()) {
    std::vector<std::string> remedy = {"rm", "-f"};
    for (const fs::path& path : found.files) {
      remedy.push_back(path.string());
    }
    findings.push_back(fmt::format("a killed nsys left {} in {}: captures may end in \"{}\"",
                                   printable(found.files[0].filename().string()),
                                   found.files[0].parent_path().string(), kAgentFailed));
    remedies.push_back(shell_text(remedy));
  }
  if (!found.hung_agents.empty()) {
    std::vector<std::string> names;
    std::vector<std::string> remedy = {"kill"};
    for (const RunningProcess& agent : found.hung_agents) {
      names.push_back(printable(agent.text()));
      remedy.push_back(std::to_string(agent.pid));
    }
    findings.push_back(fmt::format(
        "{} waits for ever for what a killed nsys had begun, and holds the lock of nsys' sessions: "
        "captures end in \"{}\"",
        fmt::join(names, ", "), kAgentFailed));
    remedies.push_back(shell_text(remedy));
  }
}

// Remains of killed runs: processes first, because they may hold a GPU.
Found check_leftovers(const Facts& facts) {
  const Leftovers found = find_leftovers(facts.system, facts.artifacts_dir);
  const NsysLeftovers of_nsys = find_nsys_leftovers(facts.system);
  if (found.bundles.empty() && found.processes.empty() && of_nsys.empty()) {
    return {kOk, found.running.empty() ? "no killed run"
                                       : fmt::format("a run is in progress: {}",
                                                     printable(found.running[0].string()))};
  }
  std::vector<std::string> findings;
  std::vector<std::string> pids;
  std::vector<std::string> remedies;
  for (const Leftovers::Process& process : found.processes) {
    findings.push_back(
        fmt::format("process {} ({}) of a killed run", process.pid, printable(process.name)));
    pids.push_back(std::to_string(process.pid));
  }
  for (const fs::path& bundle : found.bundles) {
    findings.push_back(fmt::format("unfinished bundle {}", printable(bundle.string())));
  }
  if (!pids.empty()) {
    remedies.push_back(fmt::format("kill -9 {}", fmt::join(pids, " ")));
  }
  for (const fs::path& bundle : found.bundles) {
    remedies.push_back(fmt::format("rm -r {}", shell_text({bundle.string()})));
  }
  for (const fs::path& scratch : found.scratch) {
    findings.push_back(fmt::format("its scratch folder {}", printable(scratch.string())));
    remedies.push_back(fmt::format("rm -r {}", shell_text({scratch.string()})));
  }
  add_leftovers_of_nsys(of_nsys, findings, remedies);
  return {kWarn, fmt::format("{}", fmt::join(findings, "; ")),
          fmt::format("{}", fmt::join(remedies, "; "))};
}

// Tools first: later checks use the results of earlier ones.
constexpr std::pair<const char*, Found (*)(const Facts&)> kChecks[] = {
    {"nsys", check_nsys},
    {"nsys_importer", check_importer},
    {"ncu", check_ncu},
    {"driver", check_driver},
    {"gpus", check_gpus},
    {"counter_permission", check_counters},
    {"counter_clients", check_counter_clients},
    {"gpu_sharing", check_gpu_sharing},
    {"gpu_persistence", check_persistence},
    {"perf_event_paranoid", check_perf_events},
    {"disk", check_disk},
    {"tmpdir", check_tmp},
    {"ncu_lock", check_ncu_lock},
    {"home", check_home},
    {"container", check_container},
    {"leftovers", check_leftovers},
};

}  // namespace

Diagnosis diagnose(const System& system, const fs::path& artifacts_dir) {
  Diagnosis diagnosis;
  diagnosis.machine = machine_facts(system);
  const Facts facts{system, artifacts_dir, diagnosis};
  for (const auto& [id, check] : kChecks) {
    Found found = check(facts);
    diagnosis.checks.push_back(
        {id, found.status, std::move(found.finding), std::move(found.remedy)});
  }
  return diagnosis;
}

}  // namespace gpuwhy
