// SPDX-License-Identifier: Apache-2.0
//
// Names and arguments of exported slices: what a viewer shows for a kernel, copy, graph or stage.
//
// A kernel's slice has its stage, grid and block, full name, and the ncu counters if they were
// measured for such launches. Counters are looked up by launch group (kernel, shape, stage, GPU,
// process); only groups with counters are in the table.
#include "export/overlay.h"

#include <map>

#include <fmt/format.h>

#include "analysis/profile.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

constexpr std::pair<CopyKind, const char*> kCopyNames[] = {
    {CopyKind::kHostToDevice, "copy host to device"},
    {CopyKind::kDeviceToHost, "copy device to host"},
    {CopyKind::kDeviceToDevice, "copy device to device"},
    {CopyKind::kPeerToPeer, "copy peer to peer"},
    {CopyKind::kPageableToDevice, "copy pageable host to device"},
    {CopyKind::kDeviceToPageable, "copy device to pageable host"},
    {CopyKind::kMemset, "memset"},
};

}  // namespace

std::string shown_name(std::string_view text) {
  constexpr std::size_t kMostBytes = 4096;  // the longest kernel names of CUTLASS have some 3000
  if (text.size() <= kMostBytes) {
    return printable(text);
  }
  return printable(text.substr(0, kMostBytes)) + fmt::format("... ({} bytes)", text.size());
}

Overlay::Overlay(const Profile& profile)
    : profile_(profile), texts_(profile.trace->strings), scopes_(*profile.trace) {
  // The most frequent texts first: small numbers are short in a file.
  for (const auto& [target, text] :
       {std::pair{&arg_stage_, "stage"},
        {&arg_kernel_, "kernel"},
        {&arg_shape_, "grid/block"},
        {&arg_bytes_, "bytes"},
        {&arg_tokens_, "tokens"},
        {&arg_open_, "open"},
        {&arg_domain_, "domain"},
        {&arg_payload_, "payload"},
        {&arg_operator_, "operator"},
        {&arg_module_, "module"},
        {&arg_range_, "range"},
        {&arg_pass_, "pass"},
        {&arg_layer_, "layer"},
        {&arg_kernels_, "kernels"},
        {&copy_, "memcpy"},  // "copy" is a family of kernels
        {&model_, "model"},
        {&prologue_, "prologue"},
        {&epilogue_, "epilogue"},
        {&stage_, "stage"},
        {&api_, "api"},
        {&nvtx_, "nvtx"},
        {&outside_, kRowWords[static_cast<std::size_t>(RowKind::kOutside)].c_str()},
        {&graph_name_, "[CUDA graph, recorded as a whole]"}}) {
    *target = texts_.add(text);
  }
  graph_family_ = texts_.add(kOpaqueGraph);
  copy_names_.fill(texts_.add("copy"));
  for (const auto& [kind, name] : kCopyNames) {
    copy_names_[static_cast<std::size_t>(kind)] = texts_.add(name);
  }
  for (const RowName& name : profile_.stages.names) {
    stage_names_.push_back(texts_.add(name.text()));
  }
  name_model();
  name_kernels();
  for (const LaunchShape& shape : trace().shapes) {
    shapes_.push_back(texts_.add(shape.text()));
  }
  add_counters();
}

void Overlay::name_model() {
  if (profile_.kernel_parts.empty()) {
    return;
  }
  const StructureSummary& structure = *analysis().structure;
  std::int64_t most_layers = 0;
  for (const PassRow& pass : structure.passes) {
    pass_names_.push_back(texts_.add(pass.pass));
    cut_names_.push_back(texts_.add(pass.pass + ", cut by the capture"));
    most_layers = std::max(most_layers, pass.num_layers);
  }
  for (std::int64_t layer = 0; layer < most_layers; ++layer) {
    layer_names_.push_back(texts_.add(fmt::format("layer {}", layer)));
  }
  for (const LayerPartRow& part : structure.parts) {
    part_names_.push_back(texts_.add(part.part));
  }
}

TextId Overlay::model_name(const KernelStream& stream, const ModelSlice& slice,
                           ModelLevel level) const {
  const ModelPass& pass = stream.passes[slice.pass];
  if (level == ModelLevel::kPasses) {
    return pass.is_whole ? pass_names_[pass.kind] : cut_names_[pass.kind];
  }
  if (level == ModelLevel::kParts) {
    return part_names_[slice.part];
  }
  return slice.layer < 0                    ? prologue_
         : slice.layer >= pass.num_layers() ? epilogue_
                                            : layer_names_[static_cast<std::size_t>(slice.layer)];
}

void Overlay::model_arguments(const ModelSlice& slice, ModelLevel level, Arguments& into) const {
  into.clear();
  if (level == ModelLevel::kParts) {
    into.push_back({arg_layer_, std::int64_t{slice.layer}});
  } else {
    into.push_back({arg_pass_, std::int64_t{slice.pass}});
  }
  into.push_back({arg_kernels_, std::int64_t{slice.kernels}});
}

void Overlay::name_kernels() {
  short_names_.resize(trace().strings.size());
  families_.resize(trace().strings.size());
  for (const KernelRow& record : analysis().kernels) {
    if (const auto id = trace().strings.find(record.kernel_name)) {
      families_[static_cast<std::size_t>(*id)] = texts_.add(record.family);
    }
  }
  for (const KernelRow& record : analysis().kernels) {
    if (const auto id = trace().strings.find(record.kernel_name)) {
      short_names_[static_cast<std::size_t>(*id)] = texts_.add(record.short_name);
    }
  }
}

std::size_t Overlay::LaunchKeyHash::operator()(const LaunchKey& key) const {
  std::uint64_t hash = 0;
  for (const std::uint64_t part :
       {(std::uint64_t{key.name} << 32) | key.mangled, (std::uint64_t{key.shape} << 32) | key.stage,
        (std::uint64_t{key.device} << 16) | key.process}) {
    hash = (hash ^ part) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29;
  }
  return hash;
}

void Overlay::add_counters() {
  if (!analysis().counters) {
    return;
  }
  std::map<RowName, std::uint32_t> stage_numbers{{{RowKind::kOutside}, kNone}};
  for (std::uint32_t i = 0; i < profile_.stages.names.size(); ++i) {
    stage_numbers[profile_.stages.names[i]] = i;
  }
  for (const CounterRow& counters : analysis().counters->kernels) {
    if (counters.covered_ns > 0) {  // else withheld, or nearer ones are there; these come last
      add_counter_arguments(counters);
    }
  }
  // Counters apply to launches of the same kernel, shape, stage, device and process. A group whose
  // names are not in this recording has no launches to annotate.
  for (const LaunchGroup& group : analysis().launch_groups) {
    const auto name = trace().strings.find(group.kernel_name);
    const auto mangled = trace().strings.find(group.mangled_name);
    const auto stage = stage_numbers.find(group.stage);
    if (group.counters && name && mangled && stage != stage_numbers.end()) {
      covered_[{static_cast<std::uint32_t>(*name), static_cast<std::uint32_t>(*mangled),
                static_cast<std::uint32_t>(texts_.add(group.shape.text())), stage->second,
                group.device, group.process}] = static_cast<std::uint32_t>(*group.counters);
    }
  }
}

// Absent figures are left out, not written as zero.
void Overlay::add_counter_arguments(const CounterRow& counters) {
  Arguments& arguments = counter_arguments_.emplace_back();
  const auto add_text = [&](const char* name, std::string_view value) {
    if (!value.empty()) {
      arguments.push_back({texts_.add(name), texts_.add(value)});
    }
  };
  const auto add_number = [&](const char* name, const std::optional<double>& value) {
    if (value) {
      arguments.push_back({texts_.add(name), *value});
    }
  };
  const RooflineRow& roofline = counters.roofline;
  add_text("ncu.bound", counters.bound.empty() ? "n/a" : std::string_view(counters.bound));
  add_text("ncu.confidence", counters.confidence);
  add_number("ncu.sol_fraction", roofline.sol_fraction());
  add_number("ncu.compute_fraction", roofline.compute_fraction);
  add_number("ncu.memory_fraction", roofline.memory_fraction);
  add_text("ncu.memory_level", roofline.memory_level);
  add_number("ncu.intensity_flops_per_byte", roofline.intensity_flops_per_byte);
  add_number("ncu.dram_bytes", roofline.dram_bytes);
  add_number("ncu.achieved_occupancy_fraction", roofline.achieved_occupancy_fraction);
  add_number("ncu.no_eligible_fraction", roofline.no_eligible_fraction);
  add_number("ncu.waves", roofline.waves);
}

TextId Overlay::kernel_name(std::size_t row) const {
  return short_names_[static_cast<std::size_t>(trace().kernels.name[row])];
}

TextId Overlay::family(std::size_t row) const {
  return families_[static_cast<std::size_t>(trace().kernels.name[row])];
}

TextId Overlay::copy_name(CopyKind kind) const {
  return copy_names_[static_cast<std::size_t>(kind)];
}

TextId Overlay::stage_of(std::uint32_t instance) const {
  return instance == kNone ? outside_ : stage_names_[profile_.stages.instances[instance].stage];
}

// What was open when a graph node was captured: nothing around the launch of the graph tells it.
void Overlay::add_captured_names(std::uint32_t node, Arguments& into) const {
  const std::uint32_t scope = trace().graph_nodes[node].scope;
  if (scope == kNone) {
    return;
  }
  const auto add = [&](TextId argument, std::uint32_t named) {
    if (named != kNone) {
      into.push_back({argument, texts_.of_recorded(trace().host_scopes[named].name)});
    }
  };
  add(arg_operator_, scopes_.op[scope]);
  add(arg_module_, scopes_.module[scope]);
  add(arg_range_, trace().host_scopes[scope].kind == ScopeKind::kRange ? scope : kNone);
}

void Overlay::kernel_arguments(std::size_t row, Arguments& into) const {
  const Kernels& kernels = trace().kernels;
  const std::uint32_t instance = profile_.attribution.kernels.instance[row];
  const TextId whole = texts_.of_recorded(kernels.name[row]);
  const TextId shape = shapes_[kernels.shape[row]];
  into.assign({{arg_stage_, stage_of(instance)}, {arg_shape_, shape}});
  // The full name is an argument only where the shown name was shortened.
  if (texts_[whole] != texts_[kernel_name(row)]) {
    into.push_back({arg_kernel_, whole});
  }
  add_captured_names(kernels.graph_node[row], into);
  if (covered_.empty()) {
    return;
  }
  // Same key as in add_counters.
  const std::uint32_t stage = instance == kNone ? kNone : profile_.stages.instances[instance].stage;
  const auto found = covered_.find({static_cast<std::uint32_t>(kernels.name[row]),
                                    static_cast<std::uint32_t>(kernels.mangled_name[row]),
                                    static_cast<std::uint32_t>(shape), stage, kernels.device[row],
                                    kernels.process[row]});
  if (found != covered_.end()) {
    const Arguments& counters = counter_arguments_[found->second];
    into.insert(into.end(), counters.begin(), counters.end());
  }
}

void Overlay::copy_arguments(std::size_t row, Arguments& into) const {
  into.assign({{arg_stage_, stage_of(profile_.attribution.copies.instance[row])},
               {arg_bytes_, trace().copies.size_bytes[row]}});
}

void Overlay::graph_arguments(std::size_t row, Arguments& into) const {
  into.assign({{arg_stage_, stage_of(profile_.attribution.graphs.instance[row])}});
}

void Overlay::stage_arguments(const StageInstance& instance, Arguments& into) const {
  into.clear();
  if (instance.tokens) {
    into.push_back({arg_tokens_, *instance.tokens});
  }
  if (instance.is_open) {
    into.push_back({arg_open_, std::int64_t{1}});
  }
}

void Overlay::range_arguments(std::size_t row, Arguments& into) const {
  const Ranges& ranges = trace().ranges;
  into.clear();
  if (ranges.domain[row] != StringId{}) {
    into.push_back({arg_domain_, texts_.of_recorded(ranges.domain[row])});
  }
  if (ranges.payload[row] != kNoPayload) {
    into.push_back({arg_payload_, ranges.payload[row]});
  }
  if (ranges.end_ns[row] == kOpenEnd && ranges.kind[row] != RangeKind::kMark) {
    into.push_back({arg_open_, std::int64_t{1}});
  }
}

}  // namespace gpuwhy
