// SPDX-License-Identifier: Apache-2.0
//
// Suggestions for --mark and --step in a recording whose ranges are not known as stages.
//
// Programs number their steps ("ProfilerStep#12", "token_3_processing"), so names that differ only
// in their numbers are one suggestion, with everything before the first number as its prefix. That
// holds only if the prefix fits nothing else: "layer_*" would also fit "layer_norm". Names that no
// option can tell apart are left out.
//
// Ranges of libraries, operators and modules are not stages, however much time they take. A range
// with less than half of the GPU time is a part of a step, unless its name says otherwise.
//
// What it gets wrong: it cannot know what a range means. Of prefill, decode and steps it goes by
// the words that programs use.
#include "analysis/stages/possible_marks.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "analysis/names/operator_names.h"
#include "base/cut_name.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kMostMarks = 5;

bool has_word(std::string_view lower, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return lower.find(word) != std::string_view::npos; });
}

// By their domain, or by their function names in the default one.
bool is_of_library(std::string_view name) {
  constexpr std::array<std::string_view, 11> kBeginnings = {
      "nccl",    "cublas", "cudnn", "cufft",     "cusolver", "cusparse",
      "nvshmem", "cub:",   "cccl",  "tensorrt:", "fsdp::"};
  const std::string lower = to_lower(name);
  return std::ranges::any_of(
      kBeginnings, [&](std::string_view beginning) { return lower.starts_with(beginning); });
}

// Functions of a framework: "FlashAttnFunc", "flash_attn::_flash_attn_forward", a compiled graph.
bool is_function(std::string_view name) {
  return name.find("::") != std::string_view::npos || name.ends_with("Func") ||
         name.ends_with("Function") || name.starts_with("## Call ");
}

bool could_be_stage(const RangeTotal& range) {
  const std::string& name = range.range;
  return range.kernel_ns + range.host_ns > 0 && !name.empty() && printable_name(name) == name &&
         !name.starts_with('{') && !is_of_library(name) && !is_operator_text(name) &&
         !is_function(range.text.empty() ? name : range.text) && module_path(name).empty();
}

// "layer_#_token_#": numbers left out.
std::string shape_of(std::string_view name) {
  std::string shape;
  for (const char c : name) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit) {
      shape += c;
    } else if (shape.empty() || shape.back() != '\0') {
      shape += '\0';  // in no name: they are printable
    }
  }
  return shape;
}

std::string in_quotes(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

// Ranges that one option names.
struct Candidate {
  std::string name;  // ends in '*' for a prefix
  std::int64_t num_names = 0;
  PossibleMark mark;

  void add(const RangeTotal& range) {
    ++num_names;
    mark.instances += range.instances;
    mark.kernel_ns += range.kernel_ns - range.captured_ns;  // a stage is where work is launched
    mark.host_ns += range.host_ns;
  }
};

bool is_named_as_stage(std::string_view name) {
  return has_word(to_lower(name), {"step", "iter", "prefill", "prompt", "decode", "generat",
                                   "token", "warm", "forward", "batch", "request"});
}

std::string option_for(const Candidate& candidate) {
  const std::string lower = to_lower(candidate.name);
  // Numbered, and each number once: steps. Layers come again with every step.
  const bool is_numbered =
      candidate.num_names > 1 && candidate.num_names == candidate.mark.instances;
  if (is_numbered || has_word(lower, {"step", "iter"})) {
    return "--step " + in_quotes(candidate.name);
  }
  const char* stage = has_word(lower, {"prefill", "prompt", "context"}) ? "prefill"
                      : has_word(lower, {"warm"})                       ? "warmup"
                      : has_word(lower, {"backward"})                   ? "backward"
                      : has_word(lower, {"forward"})                    ? "forward"
                      : has_word(lower, {"train", "optim"})             ? "train"
                      : has_word(lower, {"decode", "generat", "sampl"}) ? "decode"
                                                                        : "step";
  return fmt::format("--mark {}={}", stage, in_quotes(candidate.name));
}

}  // namespace

std::vector<PossibleMark> possible_marks(const Stages& stages,
                                         const std::vector<RangeTotal>& ranges,
                                         std::int64_t kernel_ns) {
  if (stages.are_marked()) {
    return {};
  }
  // Candidates by shape; how many names begin with the prefix of each is counted over all ranges.
  std::map<std::string, Candidate> by_shape;
  std::vector<std::string> names;
  names.reserve(ranges.size());
  for (const RangeTotal& range : ranges) {
    names.push_back(range.range);
    if (could_be_stage(range)) {
      Candidate& candidate = by_shape[shape_of(range.range)];
      candidate.name = range.range;
      candidate.add(range);
    }
  }
  std::ranges::sort(names);
  const auto num_with = [&](const std::string& prefix) {
    const auto begin = std::lower_bound(names.begin(), names.end(), prefix);
    const auto end = std::partition_point(
        begin, names.end(), [&](const std::string& name) { return name.starts_with(prefix); });
    return end - begin;
  };
  std::vector<Candidate> chosen;
  for (auto& [shape, candidate] : by_shape) {
    if (candidate.num_names > 1) {
      const std::string prefix =
          candidate.name.substr(0, candidate.name.find_first_of("0123456789"));
      if (prefix.empty() || prefix.ends_with(':') || num_with(prefix) != candidate.num_names) {
        continue;
      }
      candidate.name = prefix + "*";
    }
    candidate.mark.option = option_for(candidate);
    chosen.push_back(std::move(candidate));
  }
  std::ranges::sort(chosen, {}, [](const Candidate& one) {
    return std::tuple(-one.mark.kernel_ns, -one.mark.host_ns, one.name);
  });
  // Where the GPU worked in some range, those without GPU work are of no use.
  if (std::ranges::any_of(ranges, [](const RangeTotal& range) { return range.kernel_ns > 0; })) {
    std::erase_if(chosen, [](const Candidate& one) { return one.mark.kernel_ns == 0; });
  }
  // A range with little of the GPU time is a part of a step, unless its name says otherwise.
  constexpr std::int64_t kLeastShare = 4;  // a quarter of the largest
  if (!chosen.empty()) {
    const std::int64_t most_ns = chosen[0].mark.kernel_ns;
    std::erase_if(chosen, [&](const Candidate& one) {
      const bool is_part =
          one.mark.kernel_ns < most_ns / kLeastShare || one.mark.kernel_ns < kernel_ns / 2;
      return is_part && !is_named_as_stage(one.name);
    });
    // What comes once is the loop or the program; what repeats in it and has most of its work is a
    // step, which tells more.
    std::stable_partition(chosen.begin(), chosen.end(), [&](const Candidate& one) {
      return one.mark.instances > 1 && one.mark.kernel_ns >= most_ns / 2;
    });
  }
  std::vector<PossibleMark> marks;
  for (std::size_t i = 0; i < std::min(chosen.size(), kMostMarks); ++i) {
    marks.push_back(std::move(chosen[i].mark));
  }
  return marks;
}

}  // namespace gpuwhy
