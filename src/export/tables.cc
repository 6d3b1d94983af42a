// SPDX-License-Identifier: Apache-2.0
//
// Columns of the tables that data tools read, each a function of the row.
#include "export/tables.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include <fmt/format.h>

#include "analysis/recovered_steps.h"
#include "trace/device_label.h"

namespace gpuwhy {
namespace {

using MaybeNumber = std::optional<std::int64_t>;
using RowValue = std::function<MaybeNumber(std::size_t row)>;
using KeyText = std::function<std::string_view(std::int64_t key)>;

// Adds columns to a table: required ones, and those that may have no value.
struct TableMaker {
  ColumnTable& table;

  void number(const char* name, RowValue value) const {
    add(name, TableColumnType::kNumber, false, std::move(value));
  }
  void maybe_number(const char* name, RowValue value) const {
    add(name, TableColumnType::kNumber, true, std::move(value));
  }
  void flag(const char* name, RowValue value) const {
    add(name, TableColumnType::kFlag, false, std::move(value));
  }
  void text(const char* name, RowValue key, KeyText text) const {
    add(name, TableColumnType::kText, false, std::move(key), std::move(text));
  }
  // An empty text is none.
  void maybe_text(const char* name, RowValue key, const KeyText& text) const {
    add(
        name, TableColumnType::kText, true,
        [key = std::move(key), text](std::size_t row) {
          const MaybeNumber value = key(row);
          return value && text(*value).empty() ? std::nullopt : value;
        },
        text);
  }

 private:
  void add(const char* name, TableColumnType type, bool is_optional, RowValue value,
           KeyText text = {}) const {
    table.columns.push_back({name, type, is_optional, std::move(value), std::move(text)});
  }
};

// The row itself, for texts that are looked up by it.
MaybeNumber same(std::size_t row) {
  return static_cast<std::int64_t>(row);
}

MaybeNumber index_or_none(std::uint32_t index) {
  return index == kNone ? std::nullopt : MaybeNumber(index);
}

// A size that the recording does not have is 0.
MaybeNumber shape_size(const std::int32_t (&sizes)[3], int axis) {
  return sizes[axis] == 0 ? std::nullopt : MaybeNumber(sizes[axis]);
}

}  // namespace

RecordingTables::RecordingTables(const Profile& profile) : profile_(profile) {
  for (std::size_t i = 0; i < profile.analysis.kernels.size(); ++i) {
    records_.try_emplace(profile.analysis.kernels[i].kernel_name, static_cast<std::uint32_t>(i));
  }
  if (!profile.trace) {
    return;
  }
  for (const DeviceInfo& device : profile.trace->devices) {
    devices_.push_back(device_label(device));
  }
  add_layers();
  order_launches();
}

const ModelPass& RecordingTables::pass_of(const LayerRow& row) const {
  return profile_.structure.streams[row.stream].passes[row.pass];
}

std::string_view RecordingTables::device_text(std::int64_t device) const {
  return devices_[static_cast<std::size_t>(device)];
}

void RecordingTables::add_layers() {
  const Structure& structure = profile_.structure;
  const Kernels& kernels = profile_.trace->kernels;
  if (!profile_.analysis.structure || !structure.is_found()) {
    return;
  }
  layer_of_kernel_.assign(kernels.size(), kNone);
  for (std::size_t s = 0; s < structure.streams.size(); ++s) {
    const KernelStream& stream = structure.streams[s];
    for (std::size_t p = 0; p < stream.passes.size(); ++p) {
      const ModelPass& pass = stream.passes[p];
      for (std::uint32_t i = pass.begin; i < pass.end; ++i) {
        const std::uint32_t row = stream.kernels[i];
        const int layer = pass.layer_at(i);
        if (i == pass.begin || layers_.back().layer != layer) {
          layers_.push_back({static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(p), layer,
                             kernels.start_ns[row], kernels.end_ns[row], 0, 0});
        }
        LayerRow& into = layers_.back();
        into.end_ns = std::max(into.end_ns, kernels.end_ns[row]);
        into.kernel_ns += kernels.end_ns[row] - kernels.start_ns[row];
        ++into.num_kernels;
        layer_of_kernel_[row] = static_cast<std::uint32_t>(layers_.size() - 1);
      }
    }
  }
}

void RecordingTables::order_launches() {
  const Trace& trace = *profile_.trace;
  const std::size_t num_kernels = trace.kernels.size();
  launches_.resize(num_kernels + trace.graphs.size());
  std::iota(launches_.begin(), launches_.end(), 0U);
  const auto start_of = [&](std::uint32_t launch) {
    return launch < num_kernels ? trace.kernels.start_ns[launch]
                                : trace.graphs.start_ns[launch - num_kernels];
  };
  const auto is_before = [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(start_of(a), a) < std::pair(start_of(b), b);
  };
  if (!std::is_sorted(launches_.begin(), launches_.end(), is_before)) {
    std::sort(launches_.begin(), launches_.end(), is_before);
  }
}

ColumnTable RecordingTables::kernels_table() const {
  const std::vector<KernelRow>& rows = profile_.analysis.kernels;
  ColumnTable table{"kernels", rows.size(), {}};
  const TableMaker add{table};
  const auto text = [&](const char* name, std::string KernelRow::*member) {
    add.text(name, same, [&rows, member](std::int64_t row) -> std::string_view {
      return rows[static_cast<std::size_t>(row)].*member;
    });
  };
  const auto number = [&](const char* name, std::int64_t KernelRow::*member) {
    add.number(name, [&rows, member](std::size_t row) { return rows[row].*member; });
  };
  text("kernel_name", &KernelRow::kernel_name);
  text("short_name", &KernelRow::short_name);
  text("family", &KernelRow::family);
  add.maybe_text("device", same, [&rows](std::int64_t row) -> std::string_view {
    return rows[static_cast<std::size_t>(row)].device;
  });
  add.maybe_text("stage", same, [&rows](std::int64_t row) -> std::string_view {
    return rows[static_cast<std::size_t>(row)].stage.text();
  });
  number("calls", &KernelRow::calls);
  number("total_ns", &KernelRow::total_ns);
  number("min_ns", &KernelRow::min_ns);
  number("median_ns", &KernelRow::median_ns);
  add.maybe_number("p99_ns", [&rows](std::size_t row) { return rows[row].p99_ns; });
  number("max_ns", &KernelRow::max_ns);
  return table;
}

ColumnTable RecordingTables::steps_table() const {
  const std::vector<StageStep>& rows = profile_.analysis.stage_steps;
  const Stages& stages = profile_.stages;
  ColumnTable table{"steps", rows.size(), {}};
  const TableMaker add{table};
  const auto maybe = [&](const char* name, std::optional<std::int64_t> StageStep::*member) {
    add.maybe_number(name, [&rows, member](std::size_t row) { return rows[row].*member; });
  };
  add.number("instance", [&rows](std::size_t row) { return MaybeNumber(rows[row].instance); });
  add.text(
      "stage",
      [&rows, &stages](std::size_t row) {
        return MaybeNumber(stages.instances[rows[row].instance].stage);
      },
      [&stages](std::int64_t key) -> std::string_view {
        return stages.names[static_cast<std::size_t>(key)].text();
      });
  add.number("rank_group", [&rows](std::size_t row) { return MaybeNumber(rows[row].group); });
  add.number("start_ns", [&rows](std::size_t row) { return rows[row].start_ns; });
  // A mark that the recording does not end has no length.
  add.maybe_number("duration_ns", [&rows](std::size_t row) {
    return rows[row].is_open ? std::nullopt : MaybeNumber(rows[row].duration_ns);
  });
  maybe("gpu_start_ns", &StageStep::gpu_start_ns);
  maybe("gpu_window_ns", &StageStep::gpu_window_ns);
  maybe("gpu_work_ns", &StageStep::gpu_work_ns);
  maybe("period_ns", &StageStep::period_ns);
  maybe("tokens", &StageStep::tokens);
  maybe("sequences", &StageStep::sequences);
  add.flag("is_step", [&rows](std::size_t row) { return MaybeNumber(rows[row].is_step); });
  add.flag("is_steady", [&rows](std::size_t row) { return MaybeNumber(rows[row].is_steady); });
  return table;
}

ColumnTable RecordingTables::layers_table() const {
  const Trace& trace = *profile_.trace;
  const std::vector<KernelStream>& streams = profile_.structure.streams;
  ColumnTable table{"layers", layers_.size(), {}};
  const TableMaker add{table};
  add.text(
      "device",
      [this, &streams](std::size_t row) {
        return MaybeNumber(streams[layers_[row].stream].device);
      },
      [this](std::int64_t device) { return device_text(device); });
  add.number("pid", [this, &streams, &trace](std::size_t row) {
    return MaybeNumber(trace.processes[streams[layers_[row].stream].process].pid);
  });
  add.text(
      "pass", [this](std::size_t row) { return MaybeNumber(pass_of(layers_[row]).kind); },
      [this](std::int64_t kind) -> std::string_view {
        return profile_.analysis.structure->passes[static_cast<std::size_t>(kind)].pass;
      });
  add.number("pass_number", [this](std::size_t row) { return MaybeNumber(layers_[row].pass); });
  add.maybe_text(
      "kind",
      [this](std::size_t row) {
        return MaybeNumber(static_cast<std::int64_t>(pass_of(layers_[row]).work));
      },
      [](std::int64_t work) { return text_of(static_cast<PassWorkKind>(work)); });
  add.flag("is_whole",
           [this](std::size_t row) { return MaybeNumber(pass_of(layers_[row]).is_whole); });
  add.text(
      "place",
      [this](std::size_t row) {
        const LayerRow& layer = layers_[row];
        return MaybeNumber(layer.layer < 0 ? 0 : layer.layer < pass_of(layer).num_layers() ? 1 : 2);
      },
      [](std::int64_t place) -> std::string_view {
        return place == 0 ? "prologue" : place == 1 ? "layer" : "epilogue";
      });
  add.maybe_number("layer", [this](std::size_t row) {
    const LayerRow& layer = layers_[row];
    const bool is_layer = layer.layer >= 0 && layer.layer < pass_of(layer).num_layers();
    return is_layer ? MaybeNumber(layer.layer) : std::nullopt;
  });
  add.number("start_ns", [this](std::size_t row) { return layers_[row].start_ns; });
  add.number("duration_ns",
             [this](std::size_t row) { return layers_[row].end_ns - layers_[row].start_ns; });
  add.number("kernel_ns", [this](std::size_t row) { return layers_[row].kernel_ns; });
  add.number("kernels", [this](std::size_t row) { return layers_[row].num_kernels; });
  return table;
}

// Stage, pass, layer and part of a launch.
void RecordingTables::add_launch_place(ColumnTable& table) const {
  const TableMaker add{table};
  const Attribution& attribution = profile_.attribution;
  const Stages& stages = profile_.stages;
  const std::size_t num_kernels = profile_.trace->kernels.size();
  const auto instance_of = [this, &attribution, num_kernels](std::size_t row, bool is_nested) {
    const std::uint32_t launch = launches_[row];
    const bool is_kernel = launch < num_kernels;
    const Origins& origins = is_kernel ? attribution.kernels : attribution.graphs;
    const std::size_t place = is_kernel ? launch : launch - num_kernels;
    return is_nested ? origins.nested[place] : origins.instance[place];
  };
  add.maybe_text(
      "stage",
      [instance_of, &stages](std::size_t row) {
        const std::uint32_t instance = instance_of(row, false);
        return instance == kNone ? std::nullopt : MaybeNumber(stages.instances[instance].stage);
      },
      [&stages](std::int64_t key) -> std::string_view {
        return stages.names[static_cast<std::size_t>(key)].text();
      });
  add.maybe_number("instance", [instance_of](std::size_t row) {
    return index_or_none(instance_of(row, false));
  });
  add.maybe_number("nested_instance", [instance_of](std::size_t row) {
    return index_or_none(instance_of(row, true));
  });
  const auto layer_of = [this](std::size_t row) -> const LayerRow* {
    const std::uint32_t launch = launches_[row];
    const std::uint32_t layer = launch < layer_of_kernel_.size() ? layer_of_kernel_[launch] : kNone;
    return layer == kNone ? nullptr : &layers_[layer];
  };
  add.maybe_text(
      "pass",
      [this, layer_of](std::size_t row) {
        const LayerRow* layer = layer_of(row);
        return layer == nullptr ? std::nullopt : MaybeNumber(pass_of(*layer).kind);
      },
      [this](std::int64_t kind) -> std::string_view {
        return profile_.analysis.structure->passes[static_cast<std::size_t>(kind)].pass;
      });
  add.maybe_number("pass_number", [layer_of](std::size_t row) {
    const LayerRow* layer = layer_of(row);
    return layer == nullptr ? std::nullopt : MaybeNumber(layer->pass);
  });
  add.maybe_number("layer", [this, layer_of](std::size_t row) {
    const LayerRow* layer = layer_of(row);
    const bool is_layer =
        layer != nullptr && layer->layer >= 0 && layer->layer < pass_of(*layer).num_layers();
    return is_layer ? MaybeNumber(layer->layer) : std::nullopt;
  });
  add.maybe_text(
      "part",
      [this](std::size_t row) {
        const std::uint32_t launch = launches_[row];
        return launch < layer_of_kernel_.size() && launch < profile_.kernel_parts.size()
                   ? index_or_none(profile_.kernel_parts[launch])
                   : std::nullopt;
      },
      [this](std::int64_t part) -> std::string_view {
        return profile_.analysis.structure->parts[static_cast<std::size_t>(part)].part;
      });
}

// The API call that made a launch.
void RecordingTables::add_launch_call(ColumnTable& table) const {
  const TableMaker add{table};
  const Trace& trace = *profile_.trace;
  const auto call_of = [this](std::size_t row) {
    const std::uint32_t launch = launches_[row];
    const std::size_t num_kernels = profile_.trace->kernels.size();
    return launch < num_kernels ? profile_.attribution.kernels.call[launch]
                                : profile_.attribution.graphs.call[launch - num_kernels];
  };
  const auto of_call = [call_of](auto value) {
    return [call_of, value](std::size_t row) {
      const std::uint32_t call = call_of(row);
      return call == kNone ? std::nullopt : MaybeNumber(value(call));
    };
  };
  const ApiCalls& calls = trace.api_calls;
  add.maybe_text("call", of_call([&calls](std::uint32_t call) {
                   return static_cast<std::int64_t>(calls.name[call]);
                 }),
                 [&trace](std::int64_t key) { return trace.strings[static_cast<StringId>(key)]; });
  add.maybe_number("call_start_ns",
                   of_call([&calls](std::uint32_t call) { return calls.start_ns[call]; }));
  add.maybe_number("call_duration_ns", of_call([&calls](std::uint32_t call) {
                     return calls.end_ns[call] - calls.start_ns[call];
                   }));
  add.maybe_number("call_tid", of_call([&calls, &trace](std::uint32_t call) {
                     return std::int64_t{trace.threads[calls.thread[call]].tid};
                   }));
}

ColumnTable RecordingTables::launches_table() const {
  const Trace& trace = *profile_.trace;
  const Kernels& kernels = trace.kernels;
  const GraphLaunches& graphs = trace.graphs;
  const std::size_t num_kernels = kernels.size();
  ColumnTable table{"launches", launches_.size(), {}};
  const TableMaker add{table};
  // A value that kernels and whole graphs have, and one that only kernels have.
  const auto of_both = [this, num_kernels](auto of_kernel, auto of_graph) {
    return [this, num_kernels, of_kernel, of_graph](std::size_t row) -> MaybeNumber {
      const std::uint32_t launch = launches_[row];
      return launch < num_kernels ? MaybeNumber(of_kernel(launch))
                                  : MaybeNumber(of_graph(launch - num_kernels));
    };
  };
  const auto of_kernel_only = [this, num_kernels](auto of_kernel) {
    return [this, num_kernels, of_kernel](std::size_t row) -> MaybeNumber {
      const std::uint32_t launch = launches_[row];
      return launch < num_kernels ? MaybeNumber(of_kernel(launch)) : std::nullopt;
    };
  };
  add.text(
      "kind",
      [this, num_kernels](std::size_t row) {
        return MaybeNumber(launches_[row] < num_kernels ? 0 : 1);
      },
      [](std::int64_t kind) -> std::string_view { return kind == 0 ? "kernel" : "graph"; });
  add.number("start_ns", of_both([&](std::size_t row) { return kernels.start_ns[row]; },
                                 [&](std::size_t row) { return graphs.start_ns[row]; }));
  add.number("duration_ns",
             of_both([&](std::size_t row) { return kernels.end_ns[row] - kernels.start_ns[row]; },
                     [&](std::size_t row) { return graphs.end_ns[row] - graphs.start_ns[row]; }));
  const auto name_of =
      of_kernel_only([&](std::size_t row) { return static_cast<std::int64_t>(kernels.name[row]); });
  const auto record_text = [this, &trace](std::string KernelRow::*member) {
    return [this, &trace, member](std::int64_t name) -> std::string_view {
      const auto found = records_.find(trace.strings[static_cast<StringId>(name)]);
      return found == records_.end() ? std::string_view()
                                     : profile_.analysis.kernels[found->second].*member;
    };
  };
  add.maybe_text("kernel_name", name_of,
                 [&trace](std::int64_t key) { return trace.strings[static_cast<StringId>(key)]; });
  add.maybe_text("short_name", name_of, record_text(&KernelRow::short_name));
  add.maybe_text("family", name_of, record_text(&KernelRow::family));
  add.text("device",
           of_both([&](std::size_t row) { return kernels.device[row]; },
                   [&](std::size_t row) { return graphs.device[row]; }),
           [this](std::int64_t device) { return device_text(device); });
  add.number("pid",
             of_both([&](std::size_t row) { return trace.processes[kernels.process[row]].pid; },
                     [&](std::size_t row) { return trace.processes[graphs.process[row]].pid; }));
  add.number("stream",
             of_both([&](std::size_t row) { return trace.streams[kernels.stream[row]].stream; },
                     [&](std::size_t row) { return trace.streams[graphs.stream[row]].stream; }));
  add.maybe_number("correlation", [this, num_kernels, &kernels, &graphs](std::size_t row) {
    const std::uint32_t launch = launches_[row];
    return index_or_none(launch < num_kernels ? kernels.correlation[launch]
                                              : graphs.correlation[launch - num_kernels]);
  });
  for (int axis = 0; axis < 3; ++axis) {
    add.maybe_number(axis == 0   ? "grid_x"
                     : axis == 1 ? "grid_y"
                                 : "grid_z",
                     of_kernel_only([&trace, &kernels, axis](std::size_t row) {
                       return shape_size(trace.shapes[kernels.shape[row]].grid, axis);
                     }));
  }
  for (int axis = 0; axis < 3; ++axis) {
    add.maybe_number(axis == 0   ? "block_x"
                     : axis == 1 ? "block_y"
                                 : "block_z",
                     of_kernel_only([&trace, &kernels, axis](std::size_t row) {
                       return shape_size(trace.shapes[kernels.shape[row]].block, axis);
                     }));
  }
  add.flag("is_graph_node", of_both([&](std::size_t row) { return kernels.is_graph_node(row); },
                                    [](std::size_t) { return 0; }));
  add_launch_place(table);
  add_launch_call(table);
  return table;
}

std::vector<ColumnTable> RecordingTables::tables() const {
  std::vector<ColumnTable> tables;
  tables.push_back(kernels_table());
  if (profile_.trace) {
    tables.push_back(steps_table());
    tables.push_back(layers_table());
    tables.push_back(launches_table());
  }
  return tables;
}

std::vector<std::pair<std::string, std::string>> RecordingTables::metadata_of(
    const ColumnTable& table) const {
  const CaptureInfo& capture = profile_.analysis.capture;
  std::vector<std::pair<std::string, std::string>> pairs = {
      {"gpuwhy.schema", "gpuwhy.tables." + table.name},
      {"gpuwhy.schema_version", fmt::to_string(kTablesVersion)},
      {"gpuwhy.recording", std::filesystem::path(capture.path).filename().string()},
      {"gpuwhy.format", std::string(capture.format.name)}};
  if (capture.utc_ns) {
    pairs.emplace_back("gpuwhy.utc_ns", fmt::to_string(*capture.utc_ns));
  }
  return pairs;
}

}  // namespace gpuwhy
