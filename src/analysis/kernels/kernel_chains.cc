// SPDX-License-Identifier: Apache-2.0
//
// Chains of kernels that fused ones would replace, in one pass over the kernels in time order.
//
//   product  scale  mask  softmax  dropout  product        attention in parts
//   norm  copy  add  mul                                   movers: each writes what the next reads
//
// A chain lies on one stream. Other kinds of kernels end it, and so do more than eight kernels
// between two products.
//
// What it gets wrong: neighbours that do not depend on each other count as a chain.
#include "analysis/kernels/kernel_chains.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "analysis/kernels/mover_rows.h"
#include "analysis/kernels/steady_work.h"
#include "trace/device_label.h"

namespace gpuwhy {
namespace {

constexpr int kMostBetween = 8;  // kernels between two products of an attention

enum class ChainRole : std::uint8_t { kOther, kProduct, kSoftmax, kMover };

// What a library runs inside a convolution is not for others to fuse.
bool is_of_convolution(std::string_view name) {
  return converts_layout(name) || name.starts_with("SubTensorOp");
}

ChainRole role_of(std::string_view family, std::string_view name) {
  static constexpr std::array<std::string_view, 6> kMovers = {"elementwise", "activation", "norm",
                                                              "reduction",   "copy",       "rope"};
  if (family == "gemm" || family == "gemv") {
    return ChainRole::kProduct;
  }
  if (family == "softmax") {
    return ChainRole::kSoftmax;
  }
  if (is_of_convolution(name)) {
    return ChainRole::kOther;
  }
  return std::find(kMovers.begin(), kMovers.end(), family) != kMovers.end() ? ChainRole::kMover
                                                                            : ChainRole::kOther;
}

// The chains that are open on one stream.
struct OpenChains {
  // Since the last product.
  bool has_product = false;
  bool has_softmax = false;
  int num_between = 0;
  std::int64_t product_ns = 0;
  std::int64_t between_ns = 0;
  // Movers in a row.
  std::int64_t num_in_row = 0;
  std::int64_t longest_ns = 0;
};

// A mover alone has nothing to be fused with: all of it remains.
void end_movers(OpenChains& open, KernelChains& into) {
  into.fused_ns += open.num_in_row > 1 ? fused_row_ns(open.longest_ns) : open.longest_ns;
  open.num_in_row = 0;
  open.longest_ns = 0;
}

// Returns whether it ends an attention. What lies between its products counts for it alone.
bool take_product(std::int64_t time_ns, OpenChains& open, KernelChains& into) {
  if (open.has_product && open.has_softmax) {
    ++into.num_attentions;
    into.attention_ns += open.product_ns + open.between_ns + time_ns;
    into.product_ns += open.product_ns + time_ns;
    into.num_movers -= open.num_between;
    into.mover_ns -= open.between_ns;
    open = {};  // the second product of one attention is not the first of the next
    return true;
  }
  end_movers(open, into);
  open = {};
  open.has_product = true;
  open.product_ns = time_ns;
  return false;
}

void take_mover(std::int64_t time_ns, bool is_softmax, OpenChains& open, KernelChains& into) {
  ++into.num_movers;
  into.mover_ns += time_ns;
  ++open.num_in_row;
  open.longest_ns = std::max(open.longest_ns, time_ns);
  if (open.has_product && ++open.num_between > kMostBetween) {
    open.has_product = false;
  }
  open.between_ns += time_ns;
  open.has_softmax = open.has_softmax || is_softmax;
}

// Whether the kernels of each stream come in order of time. Streams do not matter to each other,
// and recordings of several GPUs have one after the other.
bool is_sorted_by_stream(const Trace& trace) {
  const Kernels& kernels = trace.kernels;
  std::vector<std::pair<std::int64_t, std::int64_t>> last(trace.streams.size(),
                                                          {INT64_MIN, INT64_MIN});
  for (std::size_t row = 0; row < kernels.size(); ++row) {
    const std::pair time(kernels.start_ns[row], kernels.end_ns[row]);
    if (time < last[kernels.stream[row]]) {
      return false;
    }
    last[kernels.stream[row]] = time;
  }
  return true;
}

}  // namespace

bool converts_layout(std::string_view kernel_name) {
  return kernel_name.starts_with("batched_transpose_") ||
         kernel_name.find("nchwToNhwc") != std::string_view::npos ||
         kernel_name.find("nhwcToNchw") != std::string_view::npos;
}

std::vector<KernelChains> find_kernel_chains(const Trace& trace, const KernelFamilies& families,
                                             const Stages& stages, const Attribution& attribution,
                                             const std::vector<SteadyPart>& steady) {
  const Kernels& kernels = trace.kernels;
  std::vector<ChainRole> roles(trace.strings.size());
  for (const StringId name : families.names()) {
    roles[static_cast<std::size_t>(name)] = role_of(families[name], trace.strings[name]);
  }
  std::vector<std::uint32_t> rows;
  const bool is_sorted = is_sorted_by_stream(trace);
  if (!is_sorted) {
    rows.resize(kernels.size());
    std::iota(rows.begin(), rows.end(), 0);
    std::ranges::sort(rows, {}, [&](std::uint32_t one) {
      return std::tuple(kernels.start_ns[one], kernels.end_ns[one]);
    });
  }
  // By device: the stages, and kernels of none, once outside the steady phase and once inside it.
  const std::size_t num_stages = stages.names.size() + 1;
  const std::size_t outside_stage = num_stages - 1;
  std::vector<KernelChains> chains(trace.devices.size() * 2 * num_stages);
  std::vector<OpenChains> open(trace.streams.size());
  std::vector<std::size_t> place_of(trace.streams.size());  // where a stream's chain counts
  MoverRows mover_rows(trace);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const std::size_t row = is_sorted ? i : rows[i];
    const std::uint32_t instance = attribution.kernels.instance[row];
    const std::size_t stage = instance == kNone ? outside_stage : stages.instances[instance].stage;
    const std::size_t device = kernels.device[row];
    const std::size_t is_steady = steady[device].has(kernels.start_ns[row]) ? 1 : 0;
    const std::size_t place = (device * 2 + is_steady) * num_stages + stage;
    const std::uint32_t stream = kernels.stream[row];
    if (place_of[stream] != place) {
      end_movers(open[stream], chains[place_of[stream]]);
      mover_rows.end(stream, place_of[stream]);
      open[stream] = {};
      place_of[stream] = place;
    }
    const std::int64_t time_ns = kernels.end_ns[row] - kernels.start_ns[row];
    switch (const ChainRole kind = roles[static_cast<std::size_t>(kernels.name[row])]) {
      case ChainRole::kProduct:
        if (take_product(time_ns, open[stream], chains[place])) {
          mover_rows.drop(stream);
        } else {
          mover_rows.end(stream, place);
        }
        break;
      case ChainRole::kSoftmax:
      case ChainRole::kMover:
        take_mover(time_ns, kind == ChainRole::kSoftmax, open[stream], chains[place]);
        mover_rows.extend(stream, kernels.name[row], time_ns);
        break;
      case ChainRole::kOther:
        end_movers(open[stream], chains[place]);
        mover_rows.end(stream, place);
        open[stream] = {};
        break;
    }
  }
  for (std::uint32_t stream = 0; stream < open.size(); ++stream) {
    end_movers(open[stream], chains[place_of[stream]]);
    mover_rows.end(stream, place_of[stream]);
  }
  mover_rows.name_largest(chains);
  std::vector<KernelChains> found;
  const auto keep = [&](KernelChains sum, const RowName& stage, std::size_t device) {
    if (sum.num_movers > 0) {
      sum.stage = stage;
      sum.device = device_label(trace.devices[device]);
      found.push_back(std::move(sum));
    }
  };
  for (std::size_t device = 0; device < trace.devices.size(); ++device) {
    KernelChains in_steady;
    for (std::size_t stage = 0; stage < num_stages; ++stage) {
      const KernelChains& inside = chains[(device * 2 + 1) * num_stages + stage];
      in_steady.add(inside);
      KernelChains both = chains[device * 2 * num_stages + stage];
      both.add(inside);
      keep(std::move(both),
           stages.name_of(stage == outside_stage ? kNone : static_cast<std::uint32_t>(stage)),
           device);
    }
    keep(std::move(in_steady), {RowKind::kSteady}, device);
  }
  std::ranges::sort(found, {},
                    [](const KernelChains& one) { return std::tie(one.device, one.stage); });
  return found;
}

}  // namespace gpuwhy
