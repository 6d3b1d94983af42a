// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analysis/names/host_scopes.h"
#include "analysis/profile.h"
#include "export/event_sink.h"
#include "export/model_slices.h"
#include "trace/trace.h"

namespace gpuwhy {

// Analysis results per row of the trace: the name of each slice and the arguments shown with it.
class Overlay {
 public:
  explicit Overlay(const Profile& profile);  // has a trace; must outlive this object

  const Trace& trace() const { return *profile_.trace; }
  const Profile& profile() const { return profile_; }
  const Analysis& analysis() const { return profile_.analysis; }
  const Stages& stages() const { return profile_.stages; }
  const ExportTexts& texts() const { return texts_; }

  // Names and categories.
  TextId kernel_name(std::size_t row) const;  // short and unique
  TextId family(std::size_t row) const;
  TextId copy_name(CopyKind kind) const;
  TextId graph_name() const { return graph_name_; }
  TextId graph_family() const { return graph_family_; }
  TextId stage_name(std::uint32_t stage) const { return stage_names_[stage]; }
  TextId copy_category() const { return copy_; }
  TextId stage_category() const { return stage_; }
  TextId api_category() const { return api_; }
  TextId nvtx_category() const { return nvtx_; }
  TextId model_category() const { return model_; }
  TextId model_name(const KernelStream& stream, const ModelSlice& slice, ModelLevel level) const;

  // Arguments; `into` is cleared first.
  using Arguments = std::vector<SliceArgument>;
  void kernel_arguments(std::size_t row, Arguments& into) const;
  void copy_arguments(std::size_t row, Arguments& into) const;
  void graph_arguments(std::size_t row, Arguments& into) const;
  void stage_arguments(const StageInstance& instance, Arguments& into) const;
  void range_arguments(std::size_t row, Arguments& into) const;
  void model_arguments(const ModelSlice& slice, ModelLevel level, Arguments& into) const;

 private:
  void add_captured_names(std::uint32_t node, Arguments& into) const;
  // Identifies launches of the same group: a kernel in one shape, stage, GPU and process.
  struct LaunchKey {
    std::uint32_t name, mangled, shape, stage;
    std::uint16_t device, process;
    bool operator==(const LaunchKey&) const = default;
  };
  struct LaunchKeyHash {
    std::size_t operator()(const LaunchKey& key) const;
  };

  void name_kernels();
  void name_model();
  void add_counters();
  void add_counter_arguments(const CounterRow& counters);
  TextId stage_of(std::uint32_t instance) const;

  const Profile& profile_;
  ExportTexts texts_;
  ScopeNames scopes_;
  std::vector<TextId> stage_names_;
  std::vector<TextId> pass_names_;  // by kind of pass
  std::vector<TextId> cut_names_;   // the same of passes that the capture cuts
  std::vector<TextId> layer_names_;
  std::vector<TextId> part_names_;   // by StructureSummary::parts
  std::vector<TextId> short_names_;  // by StringId of kernels
  std::vector<TextId> families_;
  std::vector<TextId> shapes_;                                           // by row of Trace::shapes
  std::unordered_map<LaunchKey, std::uint32_t, LaunchKeyHash> covered_;  // -> counter_arguments_
  std::vector<Arguments> counter_arguments_;
  std::array<TextId, 256> copy_names_{};
  TextId outside_{}, graph_name_{}, graph_family_{}, copy_{}, stage_{}, api_{}, nvtx_{}, model_{},
      prologue_{}, epilogue_{};
  TextId arg_operator_{}, arg_module_{}, arg_range_{};
  TextId arg_stage_{}, arg_kernel_{}, arg_shape_{}, arg_bytes_{}, arg_tokens_{}, arg_open_{},
      arg_domain_{}, arg_payload_{}, arg_pass_{}, arg_layer_{}, arg_kernels_{};
};

}  // namespace gpuwhy
