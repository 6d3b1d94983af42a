// SPDX-License-Identifier: Apache-2.0
//
// Columns of the tables of events, each declared once as a function of the row.
//
// The library and files for data tools choose among them. Launches differ in their rows: the
// library has kernels as the recording has them, files also CUDA graphs, all in order of start.
#include "export/tables.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "analysis/profile.h"
#include "analysis/structure/recovered_steps.h"
#include "trace/device_label.h"

namespace gpuwhy {
namespace {

constexpr Field time_field(std::string_view text) {
  return gpuwhy::number("ns", "", "", "", text);
}

}  // namespace

template <typename F>
void describe(const StageStep*, F&& f) {
  using T = StageStep;
  f("instance", &T::instance, plain("number of the mark"));
  f("rank_group", &T::group, plain("ranks that run one copy of the model share a number"));
  f("start_ns", &T::start_ns, time_field("start of the mark on the host"));
  f("duration_ns", &T::duration_ns, time_field("length of the mark"));
  f("gpu_start_ns", &T::gpu_start_ns, time_field("its first kernel"));
  f("gpu_window_ns", &T::gpu_window_ns, time_field("from there to the end of its last work"));
  f("gpu_work_ns", &T::gpu_work_ns, time_field("its own work runs, on the busiest GPU"));
  f("period_ns", &T::period_ns, time_field("to the first kernel of the next step"));
  f("tokens", &T::tokens, plain("as the mark says"));
  f("sequences", &T::sequences, plain("as the mark says"));
  f("is_open", &T::is_open, plain("the recording has no end of it"));
  f("is_step", &T::is_step, plain("one forward pass, not a loop of them"));
  f("is_steady", &T::is_steady, plain("in the steady window of its stage"));
}

namespace {

using MaybeNumber = std::optional<std::int64_t>;
using KeyText = std::function<std::string_view(std::int64_t key)>;

// Kernels of a pass before, in or after its layers.
struct LayerRow {
  std::string_view device;
  std::int64_t pid = 0;
  std::string_view pass;
  std::int64_t pass_number = 0;
  std::string_view kind;  // of the pass
  bool is_whole = true;
  std::string_view place;
  std::optional<std::int64_t> layer;  // from 0
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t kernel_ns = 0;
  std::int64_t num_kernels = 0;

  std::int64_t duration_ns() const { return end_ns - start_ns; }
};

template <typename F>
void describe(const LayerRow*, F&& f) {
  using T = LayerRow;
  f("device", &T::device, plain("the GPU"));
  f("pid", &T::pid, plain("the process"));
  f("pass", &T::pass, plain("the kind of pass"));
  f("pass_number", &T::pass_number, plain("among the passes of its process and GPU, from 0"));
  f("kind", &T::kind, maybe("what the pass computes"));
  f("is_whole", &T::is_whole, plain("false: the capture begins or ends inside the pass"));
  f("place", &T::place, plain("prologue, layer or epilogue"));
  f("layer", &T::layer, plain("from 0; none outside of layers"));
  f("start_ns", &T::start_ns, time_field("its first kernel"));
  f("duration_ns", &T::duration_ns, time_field("to the end of its last kernel"));
  f("kernel_ns", &T::kernel_ns, time_field("sum of its kernels"));
  f("kernels", &T::num_kernels, plain("their number"));
}

// What columns of events refer to.
class EventRows {
 public:
  // `has_graphs`: launches are kernels and whole graphs in order of start, instead of kernels as
  // they are recorded.
  EventRows(const Profile& from, bool has_graphs) : profile(from), trace(*from.trace) {
    for (const DeviceInfo& device : trace.devices) {
      devices.push_back(device_label(device));
    }
    for (const LaunchShape& shape : trace.shapes) {
      shapes.push_back(shape.text());
    }
    families.resize(trace.strings.size());
    for (const StringId id : trace.kernels.name) {
      std::string_view& family = families[static_cast<std::size_t>(id)];
      family = family.empty() ? family_of(profile.rules, trace.strings[id]) : family;
    }
    layer_of_kernel.assign(trace.kernels.size(), kNone);
    if (profile.analysis.structure && profile.structure.is_found()) {
      add_layers();
    }
    if (has_graphs) {
      order_launches();
    }
  }

  const Profile& profile;
  const Trace& trace;
  std::vector<std::string> devices, shapes;  // texts of columns
  std::vector<std::string_view> families;    // by StringId of kernels
  std::vector<LayerRow> layers;
  std::vector<std::uint32_t> layer_of_kernel;  // into layers, or kNone
  std::vector<std::uint32_t> launches;         // a graph: the number of kernels and its row
  std::unordered_map<std::string_view, std::string_view> short_names;  // by kernel

 private:
  void order_launches() {
    const std::size_t num_kernels = trace.kernels.size();
    launches.resize(num_kernels + trace.graphs.size());
    std::iota(launches.begin(), launches.end(), 0U);
    const auto start_of = [&](std::uint32_t launch) {
      return launch < num_kernels ? trace.kernels.start_ns[launch]
                                  : trace.graphs.start_ns[launch - num_kernels];
    };
    const auto is_before = [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(start_of(a), a) < std::pair(start_of(b), b);
    };
    if (!std::is_sorted(launches.begin(), launches.end(), is_before)) {
      std::sort(launches.begin(), launches.end(), is_before);
    }
    for (const KernelRow& kernel : profile.analysis.kernels) {
      short_names.try_emplace(kernel.kernel_name, kernel.short_name);
    }
  }

  // Finds the layers of all passes, and the layer of each kernel.
  void add_layers() {
    const Kernels& kernels = trace.kernels;
    for (const KernelStream& stream : profile.structure.streams) {
      for (std::size_t number = 0; number < stream.passes.size(); ++number) {
        const ModelPass& pass = stream.passes[number];
        int open = -2;  // no layer
        for (std::uint32_t i = pass.begin; i < pass.end; ++i) {
          const std::uint32_t row = stream.kernels[i];
          if (const int layer = pass.layer_at(i); layer != open) {
            open = layer;
            layers.push_back(new_layer(stream, pass, layer));
            layers.back().pass_number = static_cast<std::int64_t>(number);
            layers.back().start_ns = kernels.start_ns[row];
            layers.back().end_ns = kernels.end_ns[row];
          }
          LayerRow& into = layers.back();
          into.end_ns = std::max(into.end_ns, kernels.end_ns[row]);
          into.kernel_ns += kernels.end_ns[row] - kernels.start_ns[row];
          ++into.num_kernels;
          layer_of_kernel[row] = static_cast<std::uint32_t>(layers.size() - 1);
        }
      }
    }
  }

  LayerRow new_layer(const KernelStream& stream, const ModelPass& pass, int layer) const {
    LayerRow row;
    row.device = devices[stream.device];
    row.pid = trace.processes[stream.process].pid;
    row.pass = profile.analysis.structure->passes[pass.kind].pass;
    row.kind = text_of(pass.work);
    row.is_whole = pass.is_whole;
    row.place = layer < 0 ? "prologue" : layer < pass.num_layers() ? "layer" : "epilogue";
    row.layer = layer < 0 || layer >= pass.num_layers() ? std::nullopt : MaybeNumber(layer);
    return row;
  }
};
using SharedRows = std::shared_ptr<const EventRows>;

// Adds columns, which are optional where the value may be absent.
class ColumnMaker {
 public:
  template <typename Value>
  void add(const char* name, ColumnType type, Value value, const char* unit = "",
           KeyText text = {}) {
    ResultColumn& column = columns.emplace_back();
    column.name = name;
    column.type = type;
    column.is_optional = kIsOptional<std::invoke_result_t<Value, std::size_t>>;
    column.value = [value](std::size_t row) { return MaybeNumber(value(row)); };
    column.unit = unit;
    column.text = std::move(text);
  }
  template <typename Value>
  void time(const char* name, Value value) {
    add(name, ColumnType::kNumber, value, "ns");
  }
  template <typename Value>
  void text(const char* name, Value key, KeyText text) {
    add(name, ColumnType::kName, key, "", std::move(text));
  }

  std::vector<ResultColumn> columns;
};

MaybeNumber index_or_none(std::uint32_t index) {
  return index == kNone ? std::nullopt : MaybeNumber(index);
}

// Texts of keys that are places in a list.
template <typename Text>
KeyText text_at(Text text) {
  return
      [text](std::int64_t key) -> std::string_view { return text(static_cast<std::size_t>(key)); };
}

// Stage, pass, layer and part of a launch, and the API call that made it.
template <typename IsKernel>
void add_origin(const SharedRows& rows, IsKernel launch_of, ColumnMaker& add) {
  const Trace& trace = rows->trace;
  const std::size_t num_kernels = trace.kernels.size();
  const auto origin = [rows, launch_of, num_kernels](auto Origins::*column) {
    return [rows, launch_of, num_kernels, column](std::size_t row) {
      const std::size_t launch = launch_of(row);
      const Attribution& found = rows->profile.attribution;
      return launch < num_kernels ? (found.kernels.*column)[launch]
                                  : (found.graphs.*column)[launch - num_kernels];
    };
  };
  const auto instance = origin(&Origins::instance);
  const auto nested = origin(&Origins::nested);
  const auto call = origin(&Origins::call);
  add.text(
      "stage",
      [rows, instance](std::size_t row) -> MaybeNumber {
        const std::uint32_t of = instance(row);
        return of == kNone ? std::nullopt : MaybeNumber(rows->profile.stages.instances[of].stage);
      },
      text_at([rows](std::size_t stage) -> std::string_view {
        return rows->profile.stages.name_of(static_cast<std::uint32_t>(stage)).text();
      }));
  add.add("instance", ColumnType::kNumber,
          [instance](std::size_t row) { return index_or_none(instance(row)); });
  add.add("nested_instance", ColumnType::kNumber,
          [nested](std::size_t row) { return index_or_none(nested(row)); });
  const auto layer = [rows, launch_of](std::size_t row) {
    const std::size_t launch = launch_of(row);
    return launch < rows->layer_of_kernel.size() ? index_or_none(rows->layer_of_kernel[launch])
                                                 : std::nullopt;
  };
  const auto of_layer = [rows, layer](auto member) {
    return [rows, layer, member](std::size_t row) -> MaybeNumber {
      const MaybeNumber found = layer(row);
      return found ? MaybeNumber(rows->layers[static_cast<std::size_t>(*found)].*member)
                   : std::nullopt;
    };
  };
  const auto layer_text = [rows](auto member) {
    return text_at([rows, member](std::size_t row) { return rows->layers[row].*member; });
  };
  add.text("pass", layer, layer_text(&LayerRow::pass));
  add.text("pass_kind", layer, layer_text(&LayerRow::kind));
  add.add("pass_number", ColumnType::kIndex, of_layer(&LayerRow::pass_number));
  add.add("layer", ColumnType::kIndex, of_layer(&LayerRow::layer));
  add.text(
      "part",
      [rows, launch_of](std::size_t row) {
        const std::vector<std::uint32_t>& parts = rows->profile.kernel_parts;
        const std::size_t launch = launch_of(row);
        return launch < parts.size() ? index_or_none(parts[launch]) : std::nullopt;
      },
      text_at([rows](std::size_t part) -> std::string_view {
        return rows->profile.analysis.structure->parts[part].part;
      }));
  const auto of_call = [call](auto value) {
    return [call, value](std::size_t row) -> MaybeNumber {
      const std::uint32_t of = call(row);
      return of == kNone ? std::nullopt : MaybeNumber(value(of));
    };
  };
  const ApiCalls& calls = trace.api_calls;
  add.columns.push_back(without_empty(
      {"call", ColumnType::kName, true,
       of_call([&calls](std::uint32_t of) { return static_cast<std::int64_t>(calls.name[of]); }),
       text_at([&trace](std::size_t key) { return trace.strings[static_cast<StringId>(key)]; })}));
  add.time("call_start_ns", of_call([&calls](std::uint32_t of) { return calls.start_ns[of]; }));
  add.time("call_duration_ns",
           of_call([&calls](std::uint32_t of) { return calls.end_ns[of] - calls.start_ns[of]; }));
  add.add("call_tid", ColumnType::kId, of_call([&calls, &trace](std::uint32_t of) {
            return trace.threads[calls.thread[of]].tid;
          }));
}

// Everything that is known of a launch.
std::vector<ResultColumn> launch_columns(const SharedRows& rows) {
  ColumnMaker add;
  const Trace& trace = rows->trace;
  const Kernels& kernels = trace.kernels;
  const std::size_t num_kernels = kernels.size();
  const auto launch_of = [rows](std::size_t row) -> std::size_t {
    return rows->launches.empty() ? row : rows->launches[row];
  };
  // A value that kernels and whole graphs have, and one that only kernels have.
  const auto of_both = [launch_of, &trace, num_kernels](auto value) {
    return [launch_of, &trace, num_kernels, value](std::size_t row) -> std::int64_t {
      const std::size_t launch = launch_of(row);
      return launch < num_kernels ? value(trace.kernels, launch)
                                  : value(trace.graphs, launch - num_kernels);
    };
  };
  const auto of_kernel = [launch_of, num_kernels](auto value) {
    return [launch_of, num_kernels, value](std::size_t row) -> MaybeNumber {
      const std::size_t launch = launch_of(row);
      return launch < num_kernels ? MaybeNumber(value(launch)) : std::nullopt;
    };
  };
  add.text(
      "kind", [launch_of, num_kernels](std::size_t row) { return launch_of(row) < num_kernels; },
      text_at([](std::size_t is_kernel) { return is_kernel != 0 ? "kernel" : "graph"; }));
  add.time("start_ns", of_both([](const auto& table, std::size_t i) { return table.start_ns[i]; }));
  add.time("end_ns", of_both([](const auto& table, std::size_t i) { return table.end_ns[i]; }));
  add.time("duration_ns", of_both([](const auto& table, std::size_t i) {
             return table.end_ns[i] - table.start_ns[i];
           }));
  const auto name_of = of_kernel(
      [&kernels](std::size_t row) { return static_cast<std::int64_t>(kernels.name[row]); });
  const auto name_text = [&trace](std::size_t name) {
    return trace.strings[static_cast<StringId>(name)];
  };
  add.text("kernel_name", name_of, text_at(name_text));
  add.text("short_name", name_of, text_at([rows, name_text](std::size_t name) -> std::string_view {
             const auto found = rows->short_names.find(name_text(name));
             return found == rows->short_names.end() ? std::string_view() : found->second;
           }));
  add.text("family", name_of, text_at([rows](std::size_t name) { return rows->families[name]; }));
  add.text(
      "device", of_both([](const auto& table, std::size_t i) { return table.device[i]; }),
      text_at([rows](std::size_t device) -> std::string_view { return rows->devices[device]; }));
  add.add("pid", ColumnType::kId, of_both([&trace](const auto& table, std::size_t i) {
            return trace.processes[table.process[i]].pid;
          }));
  add.add("stream", ColumnType::kId, of_both([&trace](const auto& table, std::size_t i) {
            return trace.streams[table.stream[i]].stream;
          }));
  add.add("correlation", ColumnType::kId,
          of_both([](const auto& table, std::size_t i) { return table.correlation[i]; }));
  const auto shape_of = of_kernel([&kernels](std::size_t row) { return kernels.shape[row]; });
  add.text("shape", shape_of,
           text_at([rows](std::size_t shape) -> std::string_view { return rows->shapes[shape]; }));
  // A size that the recording does not have is 0.
  const auto add_size = [&](const char* name, auto size_of) {
    add.add(name, ColumnType::kNumber, [shape_of, size_of, &trace](std::size_t row) -> MaybeNumber {
      const auto shape = shape_of(row);
      const std::int32_t size = shape ? size_of(trace.shapes[static_cast<std::size_t>(*shape)]) : 0;
      return size == 0 ? std::nullopt : MaybeNumber(size);
    });
  };
  constexpr const char* kGrid[] = {"grid_x", "grid_y", "grid_z"};
  constexpr const char* kBlock[] = {"block_x", "block_y", "block_z"};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    add_size(kGrid[axis], [axis](const LaunchShape& shape) { return shape.grid[axis]; });
    add_size(kBlock[axis], [axis](const LaunchShape& shape) { return shape.block[axis]; });
  }
  add.add("in_graph", ColumnType::kFlag, [launch_of, &kernels](std::size_t row) {
    const std::size_t launch = launch_of(row);
    return launch < kernels.size() && kernels.is_graph_node(launch);
  });
  add_origin(rows, launch_of, add);
  return std::move(add.columns);
}

ResultColumn& column_named(std::string_view name, std::vector<ResultColumn>& columns) {
  return *std::ranges::find(columns, name, &ResultColumn::name);
}

// Launches for data tools: what is not there is null.
ColumnTable all_launches(const SharedRows& rows) {
  std::vector<ResultColumn> columns =
      pick(launch_columns(rows),
           {"kind",          "start_ns",         "duration_ns", "kernel_name", "short_name",
            "family",        "device",           "pid",         "stream",      "correlation",
            "grid_x",        "grid_y",           "grid_z",      "block_x",     "block_y",
            "block_z",       "in_graph",         "stage",       "instance",    "nested_instance",
            "pass",          "pass_number",      "layer",       "part",        "call",
            "call_start_ns", "call_duration_ns", "call_tid"});
  for (const char* name : {"kernel_name", "short_name", "family", "stage", "pass", "part"}) {
    ResultColumn& column = column_named(name, columns);
    column = without_empty(std::move(column));
  }
  column_named("in_graph", columns).name = "is_graph_node";
  ResultColumn& correlation = column_named("correlation", columns);
  correlation.is_optional = true;
  correlation.value = [value = correlation.value](std::size_t row) {
    return index_or_none(static_cast<std::uint32_t>(*value(row)));
  };
  return {"launches", rows->launches.size(), std::move(columns)};
}

ColumnTable kernel_table(const std::vector<KernelRow>& kernels) {
  std::vector<ResultColumn> columns = pick(
      result_columns(kernels), {"kernel_name", "short_name", "family", "device", "stage", "calls",
                                "total_ns", "min_ns", "median_ns", "p99_ns", "max_ns"});
  for (const char* name : {"device", "stage"}) {  // a summary has none
    ResultColumn& column = column_named(name, columns);
    column = without_empty(std::move(column));
  }
  return {"kernels", kernels.size(), std::move(columns)};
}

}  // namespace

ColumnTable launch_table(const Profile& profile, std::shared_ptr<const void> owner) {
  const auto rows = std::make_shared<const EventRows>(profile, false);
  const Kernels& kernels = profile.trace->kernels;
  std::vector<ResultColumn> columns = pick(
      launch_columns(rows), {"start_ns", "end_ns", "duration_ns", "kernel_name", "family", "stage",
                             "device", "stream", "pid", "shape", "in_graph", "correlation", "pass",
                             "pass_kind", "pass_number", "layer", "part"});
  const auto borrow = [&](const char* name, const void* numbers) {
    ResultColumn& column = column_named(name, columns);
    column.numbers = numbers;
    column.owner = owner;
  };
  borrow("start_ns", kernels.start_ns.begin());
  borrow("end_ns", kernels.end_ns.begin());
  borrow("correlation", kernels.correlation.begin());
  // As in the table of kernels: outside of stages is a name too.
  ResultColumn& stage = column_named("stage", columns);
  stage.is_optional = false;
  stage.value = [value = stage.value](std::size_t row) { return value(row).value_or(kNone); };
  for (const char* name : {"kernel_name", "family", "shape"}) {
    column_named(name, columns).is_optional = false;
  }
  return {"launches", kernels.size(), std::move(columns)};
}

ColumnTable step_table(const Profile& profile) {
  const std::vector<StageStep>& steps = profile.analysis.stage_steps;
  const Stages& stages = profile.stages;
  ColumnTable table{"steps", steps.size(), result_columns(steps)};
  table.columns.push_back(
      {"stage", ColumnType::kText, false,
       [&](std::size_t row) { return MaybeNumber(stages.instances[steps[row].instance].stage); },
       text_at([&](std::size_t stage) -> std::string_view { return stages.names[stage].text(); })});
  return table;
}

std::vector<ColumnTable> parquet_tables(const Profile& profile) {
  std::vector<ColumnTable> tables = {kernel_table(profile.analysis.kernels)};
  if (profile.trace) {
    const auto rows = std::make_shared<const EventRows>(profile, true);
    ColumnTable& steps = tables.emplace_back(step_table(profile));
    steps.columns = pick(std::move(steps.columns),
                         {"instance", "stage", "rank_group", "start_ns", "duration_ns",
                          "gpu_start_ns", "gpu_window_ns", "gpu_work_ns", "period_ns", "tokens",
                          "sequences", "is_step", "is_steady"});
    // A mark that the recording does not end has no length.
    ResultColumn& duration = column_named("duration_ns", steps.columns);
    duration.is_optional = true;
    duration.value = [&all = profile.analysis.stage_steps](std::size_t row) {
      return all[row].is_open ? std::nullopt : MaybeNumber(all[row].duration_ns);
    };
    tables.push_back({"layers", rows->layers.size(), result_columns(rows->layers), rows});
    tables.push_back(all_launches(rows));
  }
  return tables;
}

}  // namespace gpuwhy
