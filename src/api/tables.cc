// SPDX-License-Identifier: Apache-2.0
//
// Tables of a recording in Arrow's layout.
//
// Their columns are the fields of metrics.json, by the same descriptions (results/field.h),
// so names, order and values cannot differ. A list of rows is one table; fields inside a row become
// lists and structs, but the buckets of a ledger, which become columns.
#include "api/tables.h"

#include <algorithm>
#include <deque>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "results/results.h"

namespace gpuwhy {
namespace {

// A column under way: a null pointer is a row without a value.
template <typename T>
using Values = std::vector<const T*>;

template <typename T>
ArrowColumn column_of(const char* name, const Field& field, const Values<T>& values);

template <typename T>
void add_fields(const Values<T>& rows, std::vector<ArrowColumn>& columns);

// A bit for each row that has a value.
template <typename T>
ArrowBits present_of(const Values<T>& values) {
  ArrowBits present(values.size());
  for (std::size_t row = 0; row < values.size(); ++row) {
    if (values[row] != nullptr) {
      present.set(row);
    }
  }
  return present;
}

template <typename Number>
ArrowColumn number_values(const char* name, const char* format, const Values<Number>& values) {
  ArrowColumn column = new_column(name, format, values.size());
  add_validity(present_of(values), column);
  std::vector<Number> numbers;
  numbers.reserve(values.size());
  for (const Number* value : values) {
    numbers.push_back(value == nullptr ? Number{} : *value);
  }
  column.add(std::move(numbers));
  return column;
}

ArrowColumn flag_values(const char* name, const Values<bool>& values) {
  ArrowColumn column = new_column(name, "b", values.size());
  add_validity(present_of(values), column);
  ArrowBits bits(values.size());
  for (std::size_t row = 0; row < values.size(); ++row) {
    if (values[row] != nullptr && *values[row]) {
      bits.set(row);
    }
  }
  column.add(bits.take());
  return column;
}

// All items of all lists one after the other, and where each list begins. Results have thousands of
// items, far from the two billion that an offset can count.
template <typename List>
ArrowColumn list_values(const char* name, const Values<List>& values) {
  ArrowColumn column = new_column(name, "+l", values.size());
  add_validity(present_of(values), column);
  Values<typename List::value_type> items;
  std::vector<std::int32_t> offsets;
  offsets.reserve(values.size() + 1);
  offsets.push_back(0);
  for (const List* list : values) {
    if (list != nullptr) {
      for (const auto& item : *list) {
        items.push_back(&item);
      }
    }
    offsets.push_back(static_cast<std::int32_t>(items.size()));
  }
  column.add(std::move(offsets));
  column.children.push_back(column_of<typename List::value_type>("item", {}, items));
  return column;
}

// A bin of a histogram and what is in it.
template <>
ArrowColumn column_of(const char* name, const Field& /*field*/, const Values<NumberPair>& values) {
  ArrowColumn column = new_column(name, "+s", values.size());
  add_validity(present_of(values), column);
  Values<std::int64_t> bins;
  Values<std::int64_t> counts;
  bins.reserve(values.size());
  counts.reserve(values.size());
  for (const NumberPair* pair : values) {
    bins.push_back(pair == nullptr ? nullptr : &pair->first);
    counts.push_back(pair == nullptr ? nullptr : &pair->second);
  }
  column.children.push_back(number_values("bin", "l", bins));
  column.children.push_back(number_values("count", "l", counts));
  return column;
}

// A column by the type of its values.
template <typename T>
ArrowColumn column_of(const char* name, const Field& field, const Values<T>& values) {
  if constexpr (kIsText<T>) {
    std::string text;  // of the row that is asked for
    return text_column(name, values.size(), true, [&](std::size_t row) -> std::string_view {
      text = values[row] == nullptr ? std::string() : text_of_member(*values[row]);
      const bool is_null = values[row] == nullptr || (field.is_null_if_empty && text.empty());
      return is_null ? std::string_view() : text;
    });
  } else if constexpr (std::is_same_v<T, bool>) {
    return flag_values(name, values);
  } else if constexpr (std::is_same_v<T, double>) {
    return number_values(name, "g", values);
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return number_values(name, "l", values);
  } else if constexpr (kIsOptional<T>) {
    Values<typename T::value_type> inner;
    inner.reserve(values.size());
    for (const T* value : values) {
      inner.push_back(value == nullptr || !*value ? nullptr : &**value);
    }
    return column_of<typename T::value_type>(name, field, inner);
  } else if constexpr (kIsList<T>) {
    return list_values(name, values);
  } else {
    ArrowColumn column = new_column(name, "+s", values.size());
    add_validity(present_of(values), column);
    add_fields(values, column.children);
    return column;
  }
}

// One bucket of a ledger after the other.
void add_buckets(const Values<BucketTimes>& rows, std::vector<ArrowColumn>& columns) {
  for (std::size_t bucket = 0; bucket < kNumBuckets; ++bucket) {
    Values<std::int64_t> times;
    times.reserve(rows.size());
    for (const BucketTimes* row : rows) {
      times.push_back(row == nullptr ? nullptr : &(*row)[bucket]);
    }
    const std::string name = fmt::format("{}_ns", kBucketNames[bucket]);
    columns.push_back(number_values(name.c_str(), "l", times));
  }
}

// A column for each field of the rows.
template <typename T>
void add_fields(const Values<T>& rows, std::vector<ArrowColumn>& columns) {
  describe(static_cast<const T*>(nullptr),
           [&]<typename Member>(const char* key, Member member, const Field& field) {
             using Value = ValueOf<T, Member>;
             Values<Value> values;
             values.reserve(rows.size());
             std::deque<Value> results;  // of member functions
             for (const T* row : rows) {
               if (row == nullptr) {
                 values.push_back(nullptr);
               } else if constexpr (std::is_member_object_pointer_v<Member>) {
                 values.push_back(&(row->*member));
               } else {
                 values.push_back(&results.emplace_back(std::invoke(member, *row)));
               }
             }
             if constexpr (std::is_same_v<Value, BucketTimes>) {
               add_buckets(values, columns);
             } else {
               columns.push_back(column_of<Value>(key, field, values));
               columns.back().is_nullable = true;
             }
           });
}

// The rows of a list as a table.
template <typename T>
ArrowColumn table_of(const std::vector<T>& rows) {
  Values<T> pointers;
  pointers.reserve(rows.size());
  for (const T& row : rows) {
    pointers.push_back(&row);
  }
  ArrowColumn table = new_column("", "+s", rows.size());
  table.buffers = {nullptr};
  add_fields(pointers, table.children);
  return table;
}

// A row of the table of steps.
struct NamedStep {
  RowName stage;
  const StageStep* step = nullptr;
};

// Fields of a step, which metrics.json only sums up.
template <typename F>
void describe_step(F&& f) {
  f("start_ns", &StageStep::start_ns);
  f("duration_ns", &StageStep::duration_ns);
  f("is_open", &StageStep::is_open);
  f("is_step", &StageStep::is_step);
  f("is_steady", &StageStep::is_steady);
  f("tokens", &StageStep::tokens);
  f("sequences", &StageStep::sequences);
  f("gpu_start_ns", &StageStep::gpu_start_ns);
  f("gpu_window_ns", &StageStep::gpu_window_ns);
  f("gpu_work_ns", &StageStep::gpu_work_ns);
  f("period_ns", &StageStep::period_ns);
}

// Every step: the metrics only have the lengths of the first ones and their medians.
ArrowColumn step_table(const Analysis& analysis) {
  std::vector<NamedStep> rows;
  rows.reserve(analysis.stage_steps.size());
  for (const StageStep& step : analysis.stage_steps) {
    if (step.stage < analysis.stages.size()) {
      rows.push_back({analysis.stages[step.stage].stage, &step});
    }
  }
  ArrowColumn table = new_column("", "+s", rows.size());
  table.buffers = {nullptr};
  table.children.push_back(text_column("stage", rows.size(), false, [&](std::size_t row) {
    return std::string_view(rows[row].stage.text());
  }));
  describe_step([&]<typename T>(const char* key, T StageStep::*member) {
    Values<T> values;
    values.reserve(rows.size());
    for (const NamedStep& row : rows) {
      values.push_back(&(row.step->*member));
    }
    table.children.push_back(column_of<T>(key, {}, values));
    table.children.back().is_nullable = kIsOptional<T>;
  });
  std::vector<std::int64_t> groups;
  groups.reserve(rows.size());
  for (const NamedStep& row : rows) {
    groups.push_back(row.step->group);
  }
  table.children.push_back(owned_column("rank_group", "l", std::move(groups)));
  return table;
}

using Shared = std::shared_ptr<const OpenRecording>;

TableResult not_there(std::string reason, std::string hint = {}) {
  return {{}, std::move(reason), std::move(hint)};
}

TableResult launches(const Shared& recording) {
  const Profile& profile = recording->profile;
  if (!profile.trace) {
    return not_there("there are no launches: the file is a summary of kernels",
                     "use the recording it was made from");
  }
  return {launch_table(recording), {}, {}};
}

TableResult requests(const Shared& recording) {
  const Profile& profile = recording->profile;
  if (!profile.requests) {
    return not_there(
        "there are no requests: no file of them was given",
        "give what clients measured as requests, or --requests FILE: docs/requests.md");
  }
  ArrowColumn table = table_of(outline_requests(*profile.requests, profile.analysis));
  // Of the few rows of metrics.json: these are all.
  std::erase_if(table.children,
                [](const ArrowColumn& column) { return column.name == "is_sample"; });
  return {std::move(table), {}, {}};
}

// A list inside the structure of the model.
template <typename Row>
TableResult of_structure(const Results& metrics, std::vector<Row> StructureSummary::*rows) {
  if (!metrics.structure || !metrics.structure->reason.empty()) {
    return not_there(fmt::format(
        "no layers were found: {}",
        metrics.structure ? metrics.structure->reason : "the recording has no kernels one by one"));
  }
  return {table_of((*metrics.structure).*rows), {}, {}};
}

// Tables that are members of Results, and of its structure.
template <auto member>
TableResult list_of(const Shared& recording) {
  return {table_of(recording->profile.analysis.*member), {}, {}};
}
template <auto member>
TableResult structure_list(const Shared& recording) {
  return of_structure(recording->profile.analysis, member);
}

// A new table is a row here: gpuwhy table and the library have it then. What is not in metrics.json
// for want of evidence is not an empty table, but a reason.
constexpr TableInfo kTables[] = {
    {"findings", "What to fix, most urgent first", "findings", list_of<&Results::findings>},
    {"silent_rules", "Rules that could not be checked, and why", nullptr,
     list_of<&Results::silent_rules>},
    {"stages", "Stages: CPU time and kernel time of their marks", "stages",
     list_of<&Results::stages>},
    {"steps", "Each run through a stage: length on CPU and GPU", nullptr,
     [](const Shared& r) -> TableResult {
       return {step_table(r->profile.analysis), {}, {}};
     }},
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
                  ? TableResult{table_of(r->profile.analysis.operators->rows), {}, {}}
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
                  ? TableResult{table_of(r->profile.analysis.counters->kernels), {}, {}}
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
