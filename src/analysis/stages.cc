// SPDX-License-Identifier: Apache-2.0
//
// Detection of stages (prefill, decode) from marks in the recording, most reliable source first.
//
// Library domains (NCCL, cuBLAS, cub, TensorRT) also push ranges, thousands of them, and none is a
// stage: only the domain LLM, the two engines' own formats and the rules are looked at. Rules of a
// user's file come before all, since somebody wrote them for this recording.
// Where a program marks steps but not the loop around them, the steps are the stage `decode`.
//
// A range without an end was open when the recording stopped. It is closed at the end of the
// recording so that its work is not lost, and flagged, so that its length enters no mean.
#include "analysis/stages.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <tuple>

#include "base/text.h"

namespace llmprof {
namespace {

struct Found {
  std::string_view stage;
  std::optional<std::int64_t> tokens;
  std::optional<std::int64_t> sequences = std::nullopt;
};

// No step has more tokens or sequences: what says so counts something else, or comes from a
// stranger. Sums of what is left cannot overflow.
constexpr std::int64_t kMostTokens = 1'000'000'000;

constexpr const char* kStageRules = "conf/rules/stages.yaml";

// Digits at the start of a text.
std::optional<std::int64_t> leading_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end == text.data() || value < 0 || value > kMostTokens) {
    return std::nullopt;
  }
  return value;
}

// The number behind `label`, as 512 of "toks=512 c_sq=..." for "toks=".
std::optional<std::int64_t> number_after(std::string_view text, std::string_view label) {
  const std::size_t at = text.find(label);
  return at == std::string_view::npos ? std::nullopt
                                      : leading_number(text.substr(at + label.size()));
}

// "execute_context_2(600)_generation_3(3)": two requests in prefill with 600 tokens, three in
// decode. The detailed form "execute_603_context_2(sq600sk600...)_generation_..." has its counts
// behind "sq".
std::optional<Found> vllm_marker(std::string_view text) {
  const std::size_t context = text.find("context_");
  const std::size_t generation = text.find("_generation_");
  if (!text.starts_with("execute_") || context == std::string_view::npos ||
      generation == std::string_view::npos || generation < context) {
    return std::nullopt;
  }
  const auto tokens_in = [](std::string_view part) {
    const std::size_t open = part.find('(');
    if (open == std::string_view::npos) {
      return std::optional<std::int64_t>{};
    }
    std::string_view inside = part.substr(open + 1);
    if (inside.starts_with("sq")) {
      inside.remove_prefix(2);
    }
    return leading_number(inside);
  };
  const auto num_context = leading_number(text.substr(context + 8));
  const auto num_generation = leading_number(text.substr(generation + 12));
  if (!num_context || !num_generation) {
    return std::nullopt;
  }
  const auto prefill = tokens_in(text.substr(context, generation - context));
  const auto decode = tokens_in(text.substr(generation));
  if (*num_context > 0 && *num_generation > 0) {
    return Found{"mixed", prefill && decode ? std::optional(*prefill + *decode) : std::nullopt};
  }
  return *num_context > 0 ? Found{"prefill", prefill, num_context}
                          : Found{"decode", decode, num_generation};
}

// "step[EXTEND bs=4 toks=512 ...]", "step[DECODE bs=8 g_sq=8]", "step[MIXED ...]".
std::optional<Found> sglang_marker(std::string_view text) {
  if (text.starts_with("step[EXTEND")) {
    return Found{"prefill", number_after(text, "toks="), number_after(text, "bs=")};
  }
  if (text.starts_with("step[DECODE") || text.starts_with("step[TARGET_VERIFY")) {
    return Found{"decode", number_after(text, "bs="), number_after(text, "bs=")};
  }
  if (text.starts_with("step[MIXED")) {
    return Found{"mixed", number_after(text, "toks=")};
  }
  return std::nullopt;
}

class Finder {
 public:
  Finder(const Trace& trace, std::int64_t end_ns) : trace_(trace), end_ns_(end_ns) {}

  template <typename Classify>
  bool collect(std::string_view source, Classify classify) {
    for (std::size_t row = 0; row < trace_.ranges.size(); ++row) {
      if (trace_.ranges.kind[row] == RangeKind::kMark) {
        continue;
      }
      const std::optional<Found> found = classify(trace_.strings[trace_.ranges.domain[row]],
                                                  trace_.strings[trace_.ranges.text[row]]);
      if (found) {
        add(row, *found);
      }
    }
    stages_.source = source;
    return !stages_.instances.empty();
  }

  void add_whole(std::int64_t start_ns) {
    stages_.source = "no stage marks were found: everything is one stage, all";
    StageInstance all;
    all.stage = number_of("all");
    all.start_ns = start_ns;
    all.end_ns = end_ns_;
    all.is_process_wide = true;
    all.thread = kNone;
    stages_.instances.push_back(all);
  }

  Stages finish() {
    nest_steps();
    order_stages();
    std::sort(stages_.instances.begin(), stages_.instances.end(),
              [](const StageInstance& a, const StageInstance& b) {
                return std::tuple(a.thread, a.start_ns, -a.end_ns, a.stage) <
                       std::tuple(b.thread, b.start_ns, -b.end_ns, b.stage);
              });
    return std::move(stages_);
  }

 private:
  std::uint32_t number_of(std::string_view stage) {
    const auto found = std::find(stages_.names.begin(), stages_.names.end(), stage);
    if (found != stages_.names.end()) {
      return static_cast<std::uint32_t>(found - stages_.names.begin());
    }
    stages_.names.emplace_back(stage);
    stages_.is_nested.push_back(false);
    return static_cast<std::uint32_t>(stages_.names.size() - 1);
  }

  void add(std::size_t row, const Found& found) {
    const Ranges& ranges = trace_.ranges;
    StageInstance instance;
    instance.stage = number_of(found.stage);
    instance.start_ns = ranges.start_ns[row];
    instance.is_open = ranges.end_ns[row] == kOpenEnd;
    instance.end_ns = instance.is_open ? std::max(end_ns_, instance.start_ns) : ranges.end_ns[row];
    instance.thread = ranges.thread[row];
    instance.is_process_wide = ranges.kind[row] == RangeKind::kStartEnd;
    instance.tokens = found.tokens;
    instance.sequences = found.sequences;
    if (!instance.tokens && ranges.payload[row] >= 0 && ranges.payload[row] <= kMostTokens) {
      instance.tokens = ranges.payload[row];
    }
    stages_.instances.push_back(instance);
  }

  // decode_step lies inside decode where there is one; alone, it is decode.
  void nest_steps() {
    const auto step = std::find(stages_.names.begin(), stages_.names.end(), "decode_step");
    if (step == stages_.names.end()) {
      return;
    }
    const bool has_decode =
        std::find(stages_.names.begin(), stages_.names.end(), "decode") != stages_.names.end();
    if (has_decode) {
      stages_.is_nested[static_cast<std::size_t>(step - stages_.names.begin())] = true;
    } else {
      *step = "decode";
      stages_.are_steps = true;
    }
  }

  // By when each was first entered, nested ones last: not by the order of rows.
  void order_stages() {
    std::vector<std::int64_t> first(stages_.names.size(), INT64_MAX);
    for (const StageInstance& instance : stages_.instances) {
      first[instance.stage] = std::min(first[instance.stage], instance.start_ns);
    }
    std::vector<std::uint32_t> order(stages_.names.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(bool(stages_.is_nested[a]), first[a], stages_.names[a]) <
             std::tuple(bool(stages_.is_nested[b]), first[b], stages_.names[b]);
    });
    Stages sorted;
    std::vector<std::uint32_t> number(order.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      number[order[i]] = i;
      sorted.names.push_back(stages_.names[order[i]]);
      sorted.is_nested.push_back(stages_.is_nested[order[i]]);
    }
    for (StageInstance& instance : stages_.instances) {
      instance.stage = number[instance.stage];
    }
    stages_.names = std::move(sorted.names);
    stages_.is_nested = std::move(sorted.is_nested);
  }

  const Trace& trace_;
  std::int64_t end_ns_;
  Stages stages_;
};

bool matches(const StageRule& rule, std::string_view domain, std::string_view text) {
  if (rule.domain != domain) {
    return false;
  }
  if (rule.text.ends_with('*')) {
    return text.starts_with(std::string_view(rule.text).substr(0, rule.text.size() - 1));
  }
  return text == rule.text;
}

}  // namespace

Stages find_stages(const Trace& trace, const Rules& rules, std::int64_t start_ns,
                   std::int64_t end_ns) {
  Finder finder(trace, end_ns);
  const auto by_domain = [](std::string_view domain,
                            std::string_view text) -> std::optional<Found> {
    if (domain != "LLM") {
      return std::nullopt;
    }
    if (text == "prefill" || text == "decode_step") {
      return Found{text, std::nullopt};
    }
    return text == "decode_all" ? std::optional(Found{"decode", std::nullopt}) : std::nullopt;
  };
  const auto by_vllm = [](std::string_view, std::string_view text) { return vllm_marker(text); };
  const auto by_sglang = [](std::string_view, std::string_view text) {
    return sglang_marker(text);
  };
  bool has_user_stage = false;
  const auto by_rule = [&](std::string_view domain, std::string_view text) -> std::optional<Found> {
    for (std::size_t row = 0; row < rules.stages.size(); ++row) {
      if (matches(rules.stages[row], domain, text)) {
        has_user_stage |= row < rules.num_user_stages;
        return Found{rules.stages[row].stage, std::nullopt};
      }
    }
    return std::nullopt;
  };
  if (Finder own(trace, end_ns);
      rules.num_user_stages > 0 &&
      own.collect("rules of " + rules.user_file + " and " + kStageRules, by_rule) &&
      has_user_stage) {
    return own.finish();
  }
  const bool has_domain = finder.collect("NVTX domain LLM", by_domain);
  // SGLang can be told to mark its steps in both ways, one inside the other.
  const char* engine = "step markers of the engine";
  const bool has_engine =
      !has_domain && (finder.collect(engine, by_vllm) || finder.collect(engine, by_sglang));
  if (!has_domain && !has_engine &&
      !finder.collect(std::string("rules of ") + kStageRules, by_rule)) {
    finder.add_whole(start_ns);
  }
  Stages stages = finder.finish();
  stages.are_steps = stages.are_steps || has_engine;
  return stages;
}

}  // namespace llmprof
