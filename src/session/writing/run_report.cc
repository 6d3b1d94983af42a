// SPDX-License-Identifier: Apache-2.0
//
// The report in a bundle.
//
// A run whose capture failed has one too: stage times without a profiler are worth reading, and a
// reader must see the reason before an empty table.
#include "session/writing/run_report.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include <fmt/format.h>

#include "analysis/profile.h"
#include "analysis/stages/capture_summary.h"
#include "bundle/layout.h"
#include "export/event_walk.h"
#include "results/results.h"
#include "session/reading/operator_table.h"
#include "session/reading/recording.h"
#include "session/record/rank_run.h"
#include "session/writing/report_folder.h"

namespace gpuwhy {
namespace {

// Why there is no recording, what broke the pass or that it was not requested; and what to do.
std::pair<std::string, std::string> absence(const RunSetup& setup,
                                            const std::vector<Breach>& breaches) {
  const auto broken = std::ranges::find_if(breaches, &Breach::is_fatal);
  if (broken == breaches.end()) {
    return {setup.options.has_nsys ? "the nsys pass was left out"
                                   : "no nsys pass was asked for (run.passes)",
            "make one: gpuwhy run with the nsys pass"};
  }
  return {
      broken->sentence,
      broken->reason == Reason::kWorkloadFailed
          ? fmt::format("fix the program; {}/log.txt in the bundle has its output", broken->pass)
          : broken->next};
}

FindingFacts machine_findings(const MachineFacts& machine) {
  FindingFacts facts;
  facts.has_gpu = !machine.gpus.empty();
  facts.num_other_gpu_users = machine.gpu_processes;
  for (const MachineGpu& gpu : machine.gpus) {
    if (gpu.persistence_enabled) {
      facts.keeps_clocks = facts.keeps_clocks.value_or(true) && *gpu.persistence_enabled;
    }
  }
  return facts;
}

// A profiler that fails has an exit code too. It is the program's only if no other reason is known.
RunEnding ending_of(int exit_code, const std::vector<Breach>& breaches,
                    std::int64_t started_unix_s) {
  RunEnding ending{exit_code, "", started_unix_s};
  const auto other = std::find_if(breaches.begin(), breaches.end(), [](const Breach& breach) {
    return breach.is_fatal && breach.reason != Reason::kWorkloadFailed;
  });
  const bool has_failed = std::any_of(breaches.begin(), breaches.end(), [](const Breach& breach) {
    return breach.is_fatal && breach.reason == Reason::kWorkloadFailed;
  });
  if (other != breaches.end() && !has_failed) {
    ending.exit_code = 0;
    ending.failure = code_of(other->reason);
  }
  return ending;
}

// The results of the passes besides the recording. Counters and requests are moved out of
// `results`.
Besides evidence_of(const RunSetup& setup, const Artifacts& artifacts, RunResults& results) {
  Besides evidence;
  evidence.facts = machine_findings(setup.machine);
  evidence.requests = std::move(results.requests);
  evidence.counters = std::move(results.counters);
  read_operators(artifacts.root(), evidence);
  evidence.baseline = results.baseline.times;
  evidence.gpus = known_gpus;
  evidence.machine_gpu = setup.machine.gpus.empty() ? "" : setup.machine.gpus.front().name;
  if (results.model && results.profile) {
    evidence.model = EfficiencySetup();
    evidence.model->model_name = results.model->name;
    evidence.model->llm = results.model->llm;
    if (gpu_name_of(results.profile->analysis).empty() && setup.machine.gpus.empty()) {
      evidence.model->gpu.reason = code_of(Reason::kNoGpu);
    }
  }
  return evidence;
}

std::vector<std::string> files_beside(const Artifacts& artifacts) {
  std::vector<std::string> files;
  for (const char* name : layout::kOfRun) {
    std::error_code ignored;
    // The manifest lists all others and is written last.
    if (std::string_view(name) == layout::kManifest ||
        std::filesystem::is_regular_file(artifacts.path(name), ignored)) {
      files.emplace_back(name);
    }
  }
  return files;
}

}  // namespace

std::vector<BreachRow> contract_of(const std::vector<Breach>& breaches) {
  std::vector<BreachRow> rows;
  rows.reserve(breaches.size());
  for (const Breach& breach : breaches) {
    rows.push_back(
        {code_of(breach.reason), breach.pass, breach.is_fatal, breach.sentence, breach.next});
  }
  return rows;
}

Results write_run_report(const RunSetup& setup, PassRunner& runner,
                         const std::vector<Breach>& breaches, const Artifacts& artifacts,
                         const RunReportOptions& options) {
  RunResults& results = runner.results();
  Besides evidence = evidence_of(setup, artifacts, results);
  Profile profile = std::move(results.profile).value_or(Profile());
  if (!profile.trace) {
    std::tie(profile.analysis.absent, profile.analysis.absent_next) = absence(setup, breaches);
    profile.analysis.data_quality = setup.rules.notes;
    // Nothing was recorded; the run itself has a date.
    constexpr std::int64_t kSecondNs = 1'000'000'000;
    profile.analysis.capture.utc_ns = options.started_unix_s * kSecondNs;
    profile.analysis.capture.recorded = recorded_at(profile.analysis.capture);
  }
  complete(profile, std::move(evidence));
  ReportFolder folder;
  folder.directory = artifacts.root();
  folder.beside = files_beside(artifacts);
  folder.trace_budget_bytes = options.has_trace ? kTraceBudgetBytes : 0;
  folder.kernel_rows = static_cast<std::size_t>(setup.options.top_n_kernels);
  folder.may_lack_exports = true;  // a full disk must not cost the report
  folder.run = {setup.machine, contract_of(breaches), std::nullopt, runner.command_line()};
  if (results.baseline.duration_ns > 0) {
    folder.run.program_ns = results.baseline.duration_ns;
  }
  folder.identity =
      identity_of(setup.described, setup.rank, artifacts, setup.machine, *setup.config,
                  ending_of(runner.workload_exit_code(), breaches, options.started_unix_s));
  write_report_folder(profile, folder);
  return std::move(profile.analysis);
}

}  // namespace gpuwhy
