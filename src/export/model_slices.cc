// SPDX-License-Identifier: Apache-2.0
//
// Passes, layers and parts of the model as slices of a viewer.
#include "export/model_slices.h"

#include <algorithm>
#include <optional>

#include "analysis/profile.h"

namespace gpuwhy {
namespace {

// Joins kernels to slices and passes on each slice when the next one begins.
class SliceJoiner {
 public:
  explicit SliceJoiner(const std::function<void(const ModelSlice&)>& visit) : visit_(visit) {}

  // Kernels come in order of start. `is_same`: of the slice that is open.
  void add(const ModelSlice& kernel, bool is_same) {
    if (open_ && is_same) {
      open_->end_ns = std::max(open_->end_ns, kernel.end_ns);
      ++open_->kernels;
      return;
    }
    end(kernel.start_ns);
    open_ = kernel;
    open_->kernels = 1;
  }

  void end(std::int64_t until_ns) {
    if (open_) {
      open_->end_ns = std::max(open_->start_ns, std::min(open_->end_ns, until_ns));
      visit_(*open_);
      open_.reset();
    }
  }

  const ModelSlice* open() const { return open_ ? &*open_ : nullptr; }

 private:
  const std::function<void(const ModelSlice&)>& visit_;
  std::optional<ModelSlice> open_;
};

}  // namespace

void for_each_model_slice(const Profile& profile, const KernelStream& stream, ModelLevel level,
                          const std::function<void(const ModelSlice&)>& visit) {
  const Trace& trace = *profile.trace;
  const std::vector<LayerPartRow>& parts = profile.analysis.structure->parts;
  SliceJoiner joiner(visit);
  for (std::uint32_t number = 0; number < stream.passes.size(); ++number) {
    const ModelPass& pass = stream.passes[number];
    for (std::uint32_t i = pass.begin; i < pass.end; ++i) {
      const std::uint32_t row = stream.kernels[i];
      ModelSlice kernel{trace.kernels.start_ns[row],
                        trace.kernels.end_ns[row],
                        number,
                        pass.layer_at(i),
                        profile.kernel_parts[row],
                        0};
      if (level == ModelLevel::kParts && kernel.part == kNone) {
        continue;
      }
      const ModelSlice* open = joiner.open();
      bool is_same = open != nullptr && open->pass == number;
      if (is_same && level != ModelLevel::kPasses) {
        is_same = open->layer == kernel.layer;
      }
      if (is_same && level == ModelLevel::kParts) {
        is_same = parts[open->part].part == parts[kernel.part].part;
      }
      joiner.add(kernel, is_same);
    }
  }
  joiner.end(INT64_MAX);
}

std::size_t most_model_slices(const Profile& profile, ModelLevel level) {
  std::size_t most = 0;
  for (const KernelStream& stream : profile.structure.streams) {
    for (const ModelPass& pass : stream.passes) {
      most += level == ModelLevel::kPasses   ? 1
              : level == ModelLevel::kLayers ? pass.layers.size() + 1
                                             : pass.end - pass.begin;
    }
  }
  return most;
}

}  // namespace gpuwhy
