// SPDX-License-Identifier: Apache-2.0
//
// The table of launches: one row per kernel that ran, in the order of the file. Times and
// correlation numbers are the columns of the trace themselves; the others are made here.
#include <unordered_map>

#include <fmt/format.h>

#include "analysis/recovered_steps.h"
#include "api/tables.h"
#include "trace/device_label.h"

namespace gpuwhy {
namespace {

// Numbers for texts in order of first use.
class Words {
 public:
  std::int32_t number_of(const std::string& text) {
    const auto [found, is_new] = numbers_.emplace(text, static_cast<std::int32_t>(texts_.size()));
    if (is_new) {
      texts_.push_back(text);
    }
    return found->second;
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::unordered_map<std::string, std::int32_t> numbers_;
  std::vector<std::string> texts_;
};

// Names and families of kernels. There are few names among the texts of a recording: a data frame
// gets those alone as its categories, not every range and call.
struct NameColumns {
  std::vector<std::int32_t> names;
  std::vector<std::int32_t> families;
  std::vector<std::string> name_texts;
  Words family_texts;
};

NameColumns name_columns(const Trace& trace, const Rules& rules) {
  constexpr std::int32_t kNotSeen = -1;
  NameColumns columns;
  columns.names.reserve(trace.kernels.size());
  columns.families.reserve(trace.kernels.size());
  std::vector<std::int32_t> seen(trace.strings.size(), kNotSeen);
  std::vector<std::int32_t> family_of_name;
  for (const StringId id : trace.kernels.name) {
    std::int32_t& number = seen[static_cast<std::size_t>(id)];
    if (number == kNotSeen) {
      number = static_cast<std::int32_t>(columns.name_texts.size());
      columns.name_texts.emplace_back(trace.strings[id]);
      family_of_name.push_back(
          columns.family_texts.number_of(std::string(family_of(rules, columns.name_texts.back()))));
    }
    columns.names.push_back(number);
    columns.families.push_back(family_of_name[static_cast<std::size_t>(number)]);
  }
  return columns;
}

// A text for each row of a small table that a column refers to.
template <typename Index, typename Text>
ArrowColumn looked_up(const char* name, const Column<Index>& indexes, std::size_t num_entries,
                      Text&& text) {
  Words words;
  std::vector<std::int32_t> numbers;
  numbers.reserve(num_entries);
  for (std::size_t i = 0; i < num_entries; ++i) {
    numbers.push_back(words.number_of(text(i)));
  }
  std::vector<std::int32_t> values;
  values.reserve(indexes.size());
  for (const Index index : indexes) {
    values.push_back(numbers[index]);
  }
  return dictionary_column(name, std::move(values), words.texts());
}

// The stage that launched each kernel, as in the table of kernels.
ArrowColumn stage_column(const Profile& profile) {
  const Stages& stages = profile.stages;
  std::vector<std::string> texts;
  for (const RowName& name : stages.names) {
    texts.push_back(name.text());
  }
  texts.push_back(stages.name_of(kNone).text());
  const auto outside = static_cast<std::int32_t>(stages.names.size());
  std::vector<std::int32_t> values;
  values.reserve(profile.attribution.kernels.instance.size());
  for (const std::uint32_t instance : profile.attribution.kernels.instance) {
    values.push_back(
        instance == kNone ? outside : static_cast<std::int32_t>(stages.instances[instance].stage));
  }
  return dictionary_column("stage", std::move(values), texts);
}

// Numbers of which some are absent: those below 0.
ArrowColumn number_column(const char* name, std::vector<std::int32_t> values) {
  ArrowColumn column = new_column(name, "i", values.size());
  column.is_nullable = true;
  ArrowBits present(values.size());
  for (std::size_t row = 0; row < values.size(); ++row) {
    if (values[row] >= 0) {
      present.set(row);
    }
  }
  add_validity(std::move(present), column);
  column.add(std::move(values));
  return column;
}

// The pass and layer that a kernel runs in, and what it does there, as the order of kernels shows
// it.
void add_places(const Profile& profile, std::vector<ArrowColumn>& columns) {
  const std::size_t num_rows = profile.trace->kernels.size();
  std::vector<std::int32_t> passes(num_rows, -1);
  std::vector<std::int32_t> layers(num_rows, -1);
  std::vector<std::int32_t> parts(num_rows, -1);
  std::vector<std::int32_t> kinds(num_rows, -1);
  std::vector<std::int32_t> works(num_rows, -1);
  Words kind_words;
  Words work_words;
  for (const KernelStream& stream : profile.structure.streams) {
    for (std::size_t number = 0; number < stream.passes.size(); ++number) {
      const ModelPass& pass = stream.passes[number];
      const std::int32_t kind =
          kind_words.number_of(profile.analysis.structure->passes[pass.kind].pass);
      const std::int32_t work = work_words.number_of(std::string(text_of(pass.work)));
      for (std::uint32_t i = pass.begin; i < pass.end; ++i) {
        const std::uint32_t row = stream.kernels[i];
        const int layer = pass.layer_at(i);
        passes[row] = static_cast<std::int32_t>(number);
        kinds[row] = kind;
        works[row] = work;
        layers[row] = layer < pass.num_layers() ? layer : -1;  // none before and after them
      }
    }
  }
  Words words;
  std::vector<std::int32_t> word_of_part;
  if (profile.analysis.structure) {
    word_of_part.reserve(profile.analysis.structure->parts.size());
    for (const LayerPartRow& part : profile.analysis.structure->parts) {
      word_of_part.push_back(words.number_of(part.part));
    }
  }
  for (std::size_t row = 0; row < profile.kernel_parts.size(); ++row) {
    if (const std::uint32_t part = profile.kernel_parts[row]; part != kNone) {
      parts[row] = word_of_part[part];
    }
  }
  columns.push_back(dictionary_column("pass", std::move(kinds), kind_words.texts()));
  columns.push_back(dictionary_column("pass_kind", std::move(works), work_words.texts()));
  columns.push_back(number_column("pass_number", std::move(passes)));
  columns.push_back(number_column("layer", std::move(layers)));
  columns.push_back(dictionary_column("part", std::move(parts), words.texts()));
}

// A column of what `value` says of each row.
template <typename T, typename Value>
ArrowColumn computed(const char* name, const char* format, std::size_t num_rows, Value&& value) {
  std::vector<T> values;
  values.reserve(num_rows);
  for (std::size_t row = 0; row < num_rows; ++row) {
    values.push_back(value(row));
  }
  return owned_column(name, format, std::move(values));
}

}  // namespace

ArrowColumn launch_table(const std::shared_ptr<const OpenRecording>& recording) {
  const Profile& profile = recording->profile;
  const Trace& trace = *profile.trace;
  const Kernels& kernels = trace.kernels;
  const std::size_t num_rows = kernels.size();
  ArrowColumn table = new_column("", "+s", num_rows);
  table.buffers = {nullptr};
  std::vector<ArrowColumn>& columns = table.children;
  columns.push_back(borrowed_column("start_ns", "l", kernels.start_ns.span(), recording));
  columns.push_back(borrowed_column("end_ns", "l", kernels.end_ns.span(), recording));
  columns.push_back(computed<std::int64_t>("duration_ns", "l", num_rows, [&](std::size_t row) {
    return kernels.end_ns[row] - kernels.start_ns[row];
  }));
  NameColumns names = name_columns(trace, profile.rules);
  columns.push_back(dictionary_column("kernel_name", std::move(names.names), names.name_texts));
  columns.push_back(
      dictionary_column("family", std::move(names.families), names.family_texts.texts()));
  columns.push_back(stage_column(profile));
  columns.push_back(looked_up("device", kernels.device, trace.devices.size(),
                              [&](std::size_t i) { return device_label(trace.devices[i]); }));
  columns.push_back(computed<std::uint32_t>("stream", "I", num_rows, [&](std::size_t row) {
    return trace.streams[kernels.stream[row]].stream;
  }));
  columns.push_back(computed<std::uint32_t>("pid", "I", num_rows, [&](std::size_t row) {
    return trace.processes[kernels.process[row]].pid;
  }));
  columns.push_back(looked_up("shape", kernels.shape, trace.shapes.size(),
                              [&](std::size_t i) { return trace.shapes[i].text(); }));
  ArrowBits in_graph(num_rows);
  for (std::size_t row = 0; row < num_rows; ++row) {
    if (kernels.is_graph_node(row)) {
      in_graph.set(row);
    }
  }
  ArrowColumn graph = new_column("in_graph", "b", num_rows);
  graph.buffers = {nullptr};
  graph.add(in_graph.take());
  columns.push_back(std::move(graph));
  columns.push_back(borrowed_column("correlation", "I", kernels.correlation.span(), recording));
  add_places(profile, columns);
  return table;
}

}  // namespace gpuwhy
