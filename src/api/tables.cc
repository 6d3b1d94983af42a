// SPDX-License-Identifier: Apache-2.0
//
// The tables of a recording.
//
// Their columns are the fields of metrics.json, by the same descriptions (results/field.h), so
// names, order and values cannot differ. A list of rows is one table; fields inside a row become
// lists and structs, but the buckets of a ledger, which become columns.
#include "api/tables.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "export/tables.h"
#include "results/results.h"

namespace gpuwhy {
namespace {

using Shared = std::shared_ptr<const OpenRecording>;

TableResult not_there(std::string reason, std::string hint = {}) {
  return {0, {}, std::move(reason), std::move(hint)};
}

// A list that lies in the recording.
template <typename Row>
TableResult table_of(const std::vector<Row>& rows) {
  return {rows.size(), [&rows] { return result_columns(rows); }};
}

// Every step: the metrics only have the lengths of the first ones and their medians.
TableResult steps(const Shared& recording) {
  const Profile& profile = recording->profile;
  return {profile.analysis.stage_steps.size(), [&profile] {
            return pick(step_table(profile).columns,
                        {"stage", "start_ns", "duration_ns", "is_open", "is_step", "is_steady",
                         "tokens", "sequences", "gpu_start_ns", "gpu_window_ns", "gpu_work_ns",
                         "period_ns", "rank_group"});
          }};
}

TableResult launches(const Shared& recording) {
  const Profile& profile = recording->profile;
  if (!profile.trace) {
    return not_there("there are no launches: the file is a summary of kernels",
                     "use the recording it was made from");
  }
  return {profile.trace->kernels.size(),
          [recording] { return launch_table(recording->profile, recording).columns; }};
}

TableResult requests(const Shared& recording) {
  const Profile& profile = recording->profile;
  if (!profile.requests) {
    return not_there(
        "there are no requests: no file of them was given",
        "give what clients measured as requests, or --requests FILE: docs/requests.md");
  }
  return {profile.requests->requests.size(), [&profile] {
            const auto rows = std::make_shared<const std::vector<RequestOutline>>(
                outline_requests(*profile.requests, profile.analysis));
            std::vector<ResultColumn> columns = result_columns(*rows);
            // Of the few rows of metrics.json: these are all.
            std::erase_if(columns, [](const auto& column) { return column.name == "is_sample"; });
            for (ResultColumn& column : columns) {
              column.owner = rows;
            }
            return columns;
          }};
}

// A list inside the structure of the model.
template <auto member>
TableResult structure_list(const Shared& recording) {
  const std::optional<StructureSummary>& structure = recording->profile.analysis.structure;
  return structure && structure->reason.empty()
             ? table_of((*structure).*member)
             : not_there(fmt::format(
                   "no layers were found: {}",
                   structure ? structure->reason : "the recording has no kernels one by one"));
}

// Tables that are members of Metrics.
template <auto member>
TableResult list_of(const Shared& recording) {
  return table_of(recording->profile.analysis.*member);
}

// A new table is a row here: gpuwhy table and the library have it then. What is not in metrics.json
// for want of evidence is not an empty table, but a reason.
constexpr TableInfo kTables[] = {
    {"findings", "What to fix, most urgent first", "findings", list_of<&Results::findings>},
    {"silent_rules", "Rules that could not be checked, and why", nullptr,
     list_of<&Results::silent_rules>},
    {"stages", "Stages: CPU time and kernel time of their marks", "stages",
     list_of<&Results::stages>},
    {"steps", "Each run through a stage: length on CPU and GPU", nullptr, steps},
    {"ledger", "Where GPU time went, by stage and GPU", "ledger", list_of<&Results::ledgers>},
    {"idle_causes", "Idle GPU time by what the CPU did", nullptr, list_of<&Results::idle_causes>},
    {"kernels", "Kernels by total time, per stage and GPU", "kernels", list_of<&Results::kernels>},
    {"launches", "Each kernel that ran: time, stage, shape, pass, layer", nullptr, launches},
    {"families", "Kernel time by family: GEMM, attention, ...", "families",
     list_of<&Results::families>},
    {"layers", "The model: passes, layers, parts, by order of kernels", "model",
     structure_list<&StructureSummary::parts>},
    {"passes", "Kinds of passes of the model", nullptr, structure_list<&StructureSummary::passes>},
    {"slow_layers", "Layers that took longer than others of their kind", nullptr,
     structure_list<&StructureSummary::slow_layers>},
    {"slow_passes", "Passes that took longer than the median, and why", nullptr,
     structure_list<&StructureSummary::slow_passes>},
    {"requests", "Requests of clients joined to steps: --requests FILE", "requests", requests},
    {"operators", "Operators of a framework by time", "operators",
     [](const Shared& r) -> TableResult {
       return r->profile.analysis.operators
                  ? table_of(r->profile.analysis.operators->rows)
                  : not_there("there are no operators: the recording names none");
     }},
    {"devices", "The GPUs: busy time, kernels, copies", nullptr, list_of<&Results::devices>},
    {"copies", "Copies by GPU, direction and kind of host memory", nullptr,
     list_of<&Results::copies>},
    {"compositions", "Steps of an engine by stage and number of sequences", nullptr,
     list_of<&Results::compositions>},
    {"gemm_rates", "GEMM and attention by operator, sizes and type", "gemm_rates",
     list_of<&Results::gemm_rates>},
    {"collective_rates", "Collectives by group of processes and type", nullptr,
     list_of<&Results::collective_rates>},
    {"ranges", "NVTX ranges: CPU time, and the kernels launched inside", "ranges",
     list_of<&Results::ranges>},
    {"host_phases", "Parts of a step on the CPU, as engines mark them", "host_phases",
     list_of<&Results::host_phases>},
    {"counters", "What ncu measured, launch by launch: --ncu FILE", "counters",
     [](const Shared& r) -> TableResult {
       return r->profile.analysis.counters
                  ? table_of(r->profile.analysis.counters->kernels)
                  : not_there("there are no counters: no file of ncu was given",
                              "give it as ncu, or --ncu FILE");
     }},
    {"data_quality", "What was imperfect in the recording", "quality",
     list_of<&Results::data_quality>},
};

}  // namespace

OpenRecording read_recording(std::vector<std::string> paths, RecordingOptions options,
                             const ModelChoice& model, const System& system) {
  OpenRecording recording{std::move(paths), std::move(options), {}, {}, {}};
  if (!model.model.empty()) {
    recording.wants.model = model_setup(model);
  }
  recording.wants.gpu_name = model.gpu_name;
  recording.wants.batch = model.setup.batch;
  recording.profile =
      profile_recordings(recording.paths, recording.options, system, recording.wants);
  recording.verdict = text_of_member(recording.profile.analysis.verdict);
  return recording;
}

std::span<const TableInfo> all_tables() {
  return kTables;
}

TableResult make_table(const std::shared_ptr<const OpenRecording>& recording,
                       std::string_view name) {
  const auto* const found = std::ranges::find(kTables, name, &TableInfo::name);
  if (found == std::end(kTables)) {
    std::vector<std::string> names;
    for (const TableInfo& table : kTables) {
      names.emplace_back(table.name);
    }
    throw Error(ErrorKind::kUsage, fmt::format("there is no table '{}'", printable(name)),
                fmt::format("there are: {}", fmt::join(names, ", ")));
  }
  return found->make(recording);
}

}  // namespace gpuwhy
