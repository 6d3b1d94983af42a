// SPDX-License-Identifier: Apache-2.0
//
// Kinds of passes by the work of their kernels.
//
// A decode pass computes one token of each sequence: its products take little time, however many
// sequences there are, and its attention and products are kernels for single tokens. One sign is
// the order of passes: short ones that are alike follow a long one, or each other. The other is of
// the kernels: names and grids. Where one of the two is missing nothing is told.
//
// Each GPU is looked at alone. Only kernels of layers count, so that lm_head does not.
#include "analysis/structure/recovered_steps.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analysis/names/kernel_symbols.h"
#include "analysis/stages/stage_times.h"
#include "base/list_of.h"
#include "base/median.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kLongFactor = 3;     // products of prefill against those of decode, at least
constexpr std::size_t kLeastAfterLong = 3;  // alike passes after a long one
constexpr std::size_t kLeastAlone = 4;      // alike passes where none is long
constexpr std::int64_t kFewBlocks = 32;     // of a norm in a short pass
constexpr std::int64_t kFewBlocksAlone = 4;  // the same where no pass is long
constexpr std::int64_t kPauseFactor = 5;     // a period above this many medians is a pause
constexpr const char* kRecovered = "recovered from the order of kernels";

// What tells the kind of passes; the order is that of the report.
enum Sign : std::size_t { kAfterLong, kInARow, kTokenAttention, kVectors, kPrompts, kSmallNorms };
constexpr std::size_t kNumSigns = 6;
constexpr std::array<const char*, kNumSigns> kSignTexts = {
    "short passes that are alike follow a long one, whose products take three times as long",
    "four or more passes that are alike follow each other",
    "attention kernels of decode passes are for single tokens",
    "products of decode passes are matrix times vector",
    "attention kernels of prefill passes are for prompts",
    "norms of decode passes run in few blocks, and each of them ends with sampling",
};
using Signs = std::array<bool, kNumSigns>;

// What the name of a kernel says.
struct NameSays {
  bool is_known = false;
  bool is_decode = false;
  bool is_prefill = false;
  bool is_split = false;  // attention with a row of blocks for each tile of queries
  bool is_vector = false;
};

NameSays says_of(std::string_view name) {
  std::string text(name);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto has = [&](std::initializer_list<const char*> words) {
    return std::ranges::any_of(
        words, [&](const char* word) { return text.find(word) != std::string::npos; });
  };
  // A model's decoder does not mean decode.
  const auto has_decode = [&] {
    std::size_t at = text.find("decode");
    while (at != std::string::npos && text.compare(at, 7, "decoder") == 0) {
      at = text.find("decode", at + 7);
    }
    return at != std::string::npos;
  };
  NameSays says;
  says.is_known = true;
  says.is_prefill = has({"prefill", "extend_attention", "context_attention"});
  says.is_decode =
      !says.is_prefill &&
      (has_decode() || has({"decoding", "paged_attention", "masked_multihead", "splitkv_mla",
                            "unified_attention_3d", "fwd_grouped_kernel_stage"}));
  says.is_split = has({"flash_fwd_splitkv"}) && !has({"combine", "splitkv_mla"});
  says.is_vector = has({"gemv", "wvsplitk"});
  return says;
}

// Blocks of a launch. Numbers of a file may be anything, and these are summed.
std::int64_t blocks_of(const LaunchShape& shape) {
  static constexpr std::int64_t kMostBlocks = 1 << 26;
  std::int64_t blocks = 1;
  for (const std::int32_t size : shape.grid) {
    blocks = std::min(kMostBlocks, blocks * std::max(size, 0));
  }
  return blocks;
}

// The work of one whole pass.
struct PassWork {
  ModelPass* pass = nullptr;
  std::int64_t product_ns = 0;
  std::int64_t num_blocks = 0;              // of all kernels but communication
  std::optional<std::int64_t> norm_blocks;  // of the smallest norm
  bool is_single = false;                   // attention for single tokens
  bool is_prompt = false;                   // attention for prompts
  bool is_vector = false;                   // all products are matrix times vector
  bool has_sampling = false;                // after the last layer
  bool is_alike = false;                    // to most of the short ones

  bool is_named_decode() const { return (is_single || is_vector) && !is_prompt; }
  bool is_small(std::int64_t most_blocks) const {
    return has_sampling && norm_blocks && *norm_blocks > 0 && *norm_blocks <= most_blocks &&
           !is_prompt;
  }
};

bool is_near(std::int64_t value, std::int64_t middle) {
  const auto one = static_cast<double>(value);
  const auto other = static_cast<double>(middle);
  return 2 * one <= 3 * other && 3 * one >= 2 * other;
}

class WorkReader {
 public:
  WorkReader(const Trace& trace, const KernelSymbols& symbols)
      : trace_(trace), symbols_(symbols), says_(trace.strings.size()) {
    for (const LaunchShape& shape : trace.shapes) {
      blocks_.push_back(blocks_of(shape));
    }
  }

  PassWork read(const KernelStream& stream, ModelPass& pass) {
    PassWork work;
    work.pass = &pass;
    bool has_products = false;
    work.is_vector = true;
    for (std::uint32_t i = pass.layers.front(); i < pass.layers.back(); ++i) {
      const std::uint32_t row = stream.kernels[i];
      const KernelRole role = symbols_.roles[stream.symbols[i]];
      if (role == KernelRole::kComm) {
        continue;
      }
      const std::uint32_t shape = trace_.kernels.shape[row];
      const std::int64_t num_blocks = blocks_[shape];
      work.num_blocks += num_blocks;
      if (role == KernelRole::kGemm) {
        work.product_ns += trace_.kernels.end_ns[row] - trace_.kernels.start_ns[row];
        has_products = true;
        work.is_vector = work.is_vector && says(row).is_vector;
      } else if (role == KernelRole::kAttention) {
        const NameSays& name = says(row);
        const std::int32_t width = trace_.shapes[shape].grid[0];
        work.is_single = work.is_single || name.is_decode || (name.is_split && width == 1);
        work.is_prompt = work.is_prompt || name.is_prefill || (name.is_split && width > 1);
      } else if (role == KernelRole::kNorm) {
        work.norm_blocks = std::min(work.norm_blocks.value_or(num_blocks), num_blocks);
      }
    }
    work.is_vector = work.is_vector && has_products;
    for (std::uint32_t i = pass.layers.back(); i < pass.end; ++i) {
      work.has_sampling =
          work.has_sampling || symbols_.roles[stream.symbols[i]] == KernelRole::kSampling;
    }
    return work;
  }

 private:
  const NameSays& says(std::uint32_t row) {
    const StringId name = trace_.kernels.name[row];
    NameSays& known = says_[static_cast<std::size_t>(name)];
    if (!known.is_known) {
      known = says_of(trace_.strings[name]);
    }
    return known;
  }

  const Trace& trace_;
  const KernelSymbols& symbols_;
  std::vector<NameSays> says_;
  std::vector<std::int64_t> blocks_;  // by shape
};

// Whether the second of two passes follows the first, without much work between them.
bool is_next(const ModelPass& one, const ModelPass& next) {
  return next.begin <= one.end || 2 * (next.begin - one.end) <= one.end - one.begin;
}

// The passes of one GPU, in order.
class StreamSteps {
 public:
  explicit StreamSteps(std::vector<PassWork> works) : works_(std::move(works)) {}

  // Sets the kind of passes. Returns why none has one; empty: some have.
  std::string tell(Signs& signs) {
    if (works_.size() < kLeastAlone) {
      return "fewer than four passes on a GPU";
    }
    find_short();
    if (long_ns_ && tell_both(signs)) {
      return {};
    }
    if (tell_decode(signs)) {
      return {};
    }
    return long_ns_ ? "passes are long and short, but kernels and order do not both tell why"
                    : "no kernel tells decode, or too few passes are alike";
  }

 private:
  // Short passes are those below the first gap, or all.
  void find_short() {
    auto times_ns = list_of<std::int64_t>(works_, &PassWork::product_ns);
    std::ranges::sort(times_ns);
    std::size_t num_short = times_ns.size();
    for (std::size_t i = kLeastAfterLong; i < times_ns.size(); ++i) {
      if (times_ns[i] / kLongFactor >= times_ns[i - 1]) {
        num_short = i;
        long_ns_ = times_ns[i];
        break;
      }
    }
    const std::int64_t short_ns = times_ns[(num_short - 1) / 2];
    std::vector<std::int64_t> blocks;
    blocks.reserve(works_.size());
    for (const PassWork& work : works_) {
      if (is_near(work.product_ns, short_ns)) {
        blocks.push_back(work.num_blocks);
      }
    }
    short_blocks_ = lower_median(std::move(blocks)).value_or(0);
    for (PassWork& work : works_) {
      work.is_alike = is_near(work.product_ns, short_ns) && is_near(work.num_blocks, short_blocks_);
    }
  }

  bool is_long(const PassWork& work) const { return work.product_ns >= *long_ns_; }

  // Whether this many consecutive passes, from `first` on, fulfil `is_one`.
  template <typename Is>
  bool is_run(std::size_t first, std::size_t length, Is&& is_one) const {
    for (std::size_t i = first; i < first + length; ++i) {
      if (i >= works_.size() || !is_one(works_[i]) ||
          (i > first && !is_next(*works_[i - 1].pass, *works_[i].pass))) {
        return false;
      }
    }
    return true;
  }

  // Sets the kind of all passes that fulfil one of both.
  template <typename IsPrefill, typename IsDecode>
  void set(IsPrefill&& is_prefill, IsDecode&& is_decode) {
    for (PassWork& work : works_) {
      if (is_decode(work)) {
        work.pass->work = PassWorkKind::kDecode;
      } else if (is_prefill(work)) {
        work.pass->work = PassWorkKind::kPrefill;
      }
    }
  }

  // A long pass, then short ones that differ from it by their kernels.
  template <typename IsPrefill, typename IsDecode>
  bool tell_pair(IsPrefill&& is_prefill, IsDecode&& is_decode) {
    for (std::size_t i = 0; i + 1 < works_.size(); ++i) {
      if (is_prefill(works_[i]) && is_next(*works_[i].pass, *works_[i + 1].pass) &&
          is_run(i + 1, kLeastAfterLong, is_decode)) {
        set(is_prefill, is_decode);
        return true;
      }
    }
    return false;
  }

  bool tell_both(Signs& signs) {
    // By names: the short ones are for single tokens, the long ones are not.
    const auto is_other = [&](const PassWork& work) {
      return is_long(work) && !work.is_single && !work.is_vector;
    };
    if (tell_pair(is_other, [](const PassWork& w) { return w.is_alike && w.is_named_decode(); })) {
      signs[kAfterLong] = true;
      add_names(signs);
      return true;
    }
    // By names: the long ones are for prompts, the short ones are not.
    if (tell_pair([&](const PassWork& w) { return is_other(w) && w.is_prompt; },
                  [](const PassWork& w) { return w.is_alike && !w.is_prompt; })) {
      signs[kAfterLong] = true;
      add_names(signs);
      return true;
    }
    // By grids.
    if (tell_pair(
            [&](const PassWork& w) {
              return is_other(w) && w.num_blocks >= kLongFactor * short_blocks_;
            },
            [](const PassWork& w) { return w.is_alike && w.is_small(kFewBlocks); })) {
      signs[kAfterLong] = signs[kSmallNorms] = true;
      return true;
    }
    return false;
  }

  bool tell_decode(Signs& signs) {
    const auto is_none = [](const PassWork&) { return false; };
    const auto is_named = [](const PassWork& w) { return w.is_alike && w.is_named_decode(); };
    const auto is_small = [](const PassWork& w) {
      return w.is_alike && w.is_small(kFewBlocksAlone);
    };
    for (std::size_t i = 0; i < works_.size(); ++i) {
      if (is_run(i, kLeastAlone, is_named)) {
        set(is_none, is_named);
        signs[kInARow] = true;
        add_names(signs);
        return true;
      }
      if (is_run(i, kLeastAlone, is_small)) {
        set(is_none, is_small);
        signs[kInARow] = signs[kSmallNorms] = true;
        return true;
      }
    }
    return false;
  }

  void add_names(Signs& signs) const {
    for (const PassWork& work : works_) {
      const bool is_decode = work.pass->work == PassWorkKind::kDecode;
      const bool is_prefill = work.pass->work == PassWorkKind::kPrefill;
      signs[kTokenAttention] = signs[kTokenAttention] || (is_decode && work.is_single);
      signs[kVectors] = signs[kVectors] || (is_decode && work.is_vector);
      signs[kPrompts] = signs[kPrompts] || (is_prefill && work.is_prompt);
    }
  }

  std::vector<PassWork> works_;
  std::optional<std::int64_t> long_ns_;  // the shortest long pass; nullopt: all are short
  std::int64_t short_blocks_ = 0;
};

// Why no pass of the recording can have a kind; empty: they may.
std::string refusal_of(const Structure& structure) {
  const bool is_training = std::ranges::any_of(
      structure.kinds, [](const ModelPassKind& kind) { return kind.is_backward; });
  return is_training ? "backward passes: this is training" : "";
}

// Why the passes of one GPU can have no kind.
std::string refusal_of(const KernelStream& stream) {
  const ModelPass* first = nullptr;
  for (const ModelPass& pass : stream.passes) {
    if (pass.is_whole) {
      first = first == nullptr ? &pass : first;
      if (pass.num_layers() != first->num_layers()) {
        return "passes of several models run on one GPU";
      }
    }
  }
  return "";
}

RecoveredTimes times_of(std::vector<std::int64_t> lengths_ns, const char* basis,
                        const char* reason) {
  RecoveredTimes times;
  if (lengths_ns.empty()) {
    times.reason = reason;
    return times;
  }
  const StageTimes all = times_of_durations(std::move(lengths_ns));
  times.n = all.n;
  times.mean_ns = all.mean_ns;
  times.p50_ns = all.p50_ns;
  times.p99_ns = all.p99_ns;
  times.basis = fmt::format("{}: {}", kRecovered, basis);
  return times;
}

// Periods of decode passes that follow each other on a GPU, without pauses.
void add_periods(const KernelStream& stream, std::vector<std::int64_t>& all_ns) {
  std::vector<std::int64_t> periods_ns;
  for (std::size_t i = 0; i + 1 < stream.passes.size(); ++i) {
    const ModelPass& one = stream.passes[i];
    const ModelPass& next = stream.passes[i + 1];
    if (one.work == PassWorkKind::kDecode && next.work == PassWorkKind::kDecode &&
        is_next(one, next)) {
      periods_ns.push_back(next.start_ns - one.start_ns);
    }
  }
  const std::optional<std::int64_t> median_ns = lower_median(periods_ns);
  std::copy_if(periods_ns.begin(), periods_ns.end(), std::back_inserter(all_ns),
               [&](std::int64_t period_ns) { return period_ns / kPauseFactor <= *median_ns; });
}

void add_times(const Structure& structure, RecoveredSteps& steps) {
  std::vector<std::int64_t> prefills_ns;
  std::vector<std::int64_t> periods_ns;
  for (const KernelStream& stream : structure.streams) {
    for (const ModelPass& pass : stream.passes) {
      steps.num_decode += pass.work == PassWorkKind::kDecode ? 1 : 0;
      if (pass.work == PassWorkKind::kPrefill) {
        ++steps.num_prefill;
        prefills_ns.push_back(pass.end_ns - pass.start_ns);
      }
    }
    add_periods(stream, periods_ns);
  }
  steps.ttft =
      times_of(std::move(prefills_ns),
               "from the first kernel of a prefill pass to the end of its last", "no prefill pass");
  steps.tpot = times_of(std::move(periods_ns),
                        "from the first kernel of a decode pass to that of the next one",
                        "no decode pass follows another");
}

// A kind of passes is what most of them are, where none is the other.
void add_kind(const Structure& structure, std::uint32_t kind, const std::string& reason,
              PassRow& row) {
  std::int64_t num_prefill = 0;
  std::int64_t num_decode = 0;
  for (const KernelStream& stream : structure.streams) {
    for (const ModelPass& pass : stream.passes) {
      if (pass.kind == kind) {
        num_prefill += pass.work == PassWorkKind::kPrefill ? 1 : 0;
        num_decode += pass.work == PassWorkKind::kDecode ? 1 : 0;
      }
    }
  }
  if (!reason.empty()) {
    row.kind_reason = reason;
  } else if (num_prefill > 0 && num_decode > 0) {
    row.kind_reason = fmt::format("{} passes of prefill and {} of decode", num_prefill, num_decode);
  } else if (2 * (num_prefill + num_decode) <= row.num_passes) {
    row.kind_reason =
        fmt::format("{} of {} passes are told", num_prefill + num_decode, row.num_passes);
  } else {
    row.kind = text_of(num_prefill > 0 ? PassWorkKind::kPrefill : PassWorkKind::kDecode);
  }
}

// The kind of the step that a mark says; kUnknown: another stage, or a loop of steps.
PassWorkKind marked_kind(const Stages& stages, std::uint32_t instance) {
  const StageInstance& step = stages.instances[instance];
  const StageRole role = role_of(stages.names[step.stage]);
  if (role == StageRole::kPrefill) {
    return PassWorkKind::kPrefill;
  }
  const bool is_decode =
      role == StageRole::kDecodeStep || (role == StageRole::kDecode && is_step(stages, step));
  return is_decode ? PassWorkKind::kDecode : PassWorkKind::kUnknown;
}

// The passes that run in one marked step.
struct StepPasses {
  std::int64_t num_passes = 0;
  bool is_told = false;  // one of them has a kind
  bool is_same = true;   // all of its layers are in the step, and its kind is the mark's
};

// The steps in which the layers of a pass were launched. Few: mostly one.
std::vector<std::uint32_t> steps_of(const KernelStream& stream, const ModelPass& pass,
                                    const Origins& origins) {
  std::vector<std::uint32_t> steps;
  std::uint32_t last = kNone;
  for (std::uint32_t i = pass.layers.front(); i < pass.layers.back(); ++i) {
    const std::uint32_t row = stream.kernels[i];
    const std::uint32_t nested = origins.nested[row];
    const std::uint32_t step = nested != kNone ? nested : origins.instance[row];
    if (step != last) {
      last = step;
      if (step != kNone) {
        steps.push_back(step);
      }
    }
  }
  std::ranges::sort(steps);
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

}  // namespace

std::string_view text_of(PassWorkKind work) {
  constexpr std::array<std::string_view, 3> kNames = {"", "prefill", "decode"};
  return kNames[static_cast<std::size_t>(work)];
}

void recover_steps(const Trace& trace, Structure& structure, StructureSummary& summary) {
  RecoveredSteps& steps = summary.recovered.emplace();
  Signs signs{};
  std::string reason = refusal_of(structure);
  if (reason.empty()) {
    WorkReader reader(trace, structure.symbols);
    for (KernelStream& stream : structure.streams) {
      if (stream.passes.empty()) {
        continue;
      }
      std::string refusal = refusal_of(stream);
      if (refusal.empty()) {
        std::vector<PassWork> works;
        works.reserve(stream.passes.size());
        for (ModelPass& pass : stream.passes) {
          if (pass.is_whole) {
            works.push_back(reader.read(stream, pass));
          }
        }
        refusal = StreamSteps(std::move(works)).tell(signs);
      }
      reason = reason.empty() ? std::move(refusal) : std::move(reason);
    }
  }
  add_times(structure, steps);
  if (steps.num_prefill + steps.num_decode == 0) {
    steps.reason = std::move(reason);
  }
  for (std::size_t i = 0; i < kNumSigns; ++i) {
    if (signs[i]) {
      steps.signs.emplace_back(kSignTexts[i]);
    }
  }
  for (std::uint32_t kind = 0; kind < summary.passes.size(); ++kind) {
    add_kind(structure, kind, steps.reason, summary.passes[kind]);
  }
}

void compare_with_marks(const Structure& structure, const Stages& stages,
                        const Attribution& attribution, StructureSummary& summary) {
  MarkAgreement agreement;
  for (const KernelStream& stream : structure.streams) {
    std::unordered_map<std::uint32_t, StepPasses> passes_by_step;
    for (const ModelPass& pass : stream.passes) {
      const std::vector<std::uint32_t> steps = steps_of(stream, pass, attribution.kernels);
      for (const std::uint32_t step : steps) {
        const PassWorkKind marked = marked_kind(stages, step);
        if (marked == PassWorkKind::kUnknown) {
          continue;
        }
        StepPasses& found = passes_by_step[step];
        ++found.num_passes;
        found.is_told = found.is_told || pass.work != PassWorkKind::kUnknown;
        found.is_same = found.is_same && steps.size() == 1 && pass.work == marked;
      }
    }
    for (const auto& [step, found] : passes_by_step) {
      agreement.num_steps += found.is_told ? 1 : 0;
      agreement.num_same += found.is_told && found.num_passes == 1 && found.is_same ? 1 : 0;
    }
  }
  if (agreement.num_steps > 0 && summary.recovered) {
    summary.recovered->agrees_with_marks = agreement;
  }
}

void add_disagreement(const StructureSummary& summary, Diagnostics& diagnostics) {
  if (!summary.recovered || !summary.recovered->agrees_with_marks) {
    return;
  }
  const MarkAgreement& agreement = *summary.recovered->agrees_with_marks;
  if (10 * agreement.num_same < 9 * agreement.num_steps) {
    diagnostics.push_back(
        {"marks_differ_from_passes", Severity::kWarning, agreement.num_steps - agreement.num_same,
         fmt::format("{} of {} marked steps are one pass of the same kind by the order of kernels: "
                     "marks may not say what ran",
                     agreement.num_same, agreement.num_steps)});
  }
}

void add_recovered_rate(std::int64_t batch, StructureSummary& summary) {
  if (summary.recovered && summary.recovered->tpot.mean_ns.value_or(0) > 0) {
    summary.recovered->decode_tokens_per_s =
        static_cast<double>(batch) * 1e9 / *summary.recovered->tpot.mean_ns;
  }
}

}  // namespace gpuwhy
