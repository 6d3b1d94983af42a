// SPDX-License-Identifier: Apache-2.0
//
// Tokens that came late, and why.
//
// The time between two tokens of a request is cut at the ends of the steps that made them: steps
// without the request, no step, its own step with the GPU at work or not, and delivery. A token is
// late if it took more than twice the median of its request and more than 95 in 100 of all tokens.
// Its cause is the part that exceeds the median of that part by most.
#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "analysis/requests/request_join.h"
#include "base/median.h"
#include "base/units.h"

namespace gpuwhy {
namespace {

// Parts of the time between two tokens. They sum to it.
struct GapParts {
  std::int64_t own_gpu_ns = 0;
  std::int64_t waiting_ns = 0;  // no step runs, or its own does and the GPU waits
  std::int64_t others_ns = 0;   // steps without the request
  std::int64_t delivery_ns = 0;
};

GapParts parts_of(const EngineLoop& loop, std::int64_t from_ns, std::int64_t to_ns,
                  std::uint32_t number) {
  const LoopStep& step = loop.steps[number];
  const std::int64_t begin_ns = std::clamp(step.begin_ns, from_ns, to_ns);
  const std::int64_t end_ns = std::clamp(step.end_ns, begin_ns, to_ns);
  GapParts parts;
  parts.delivery_ns = to_ns - end_ns;
  // Where no step has GPU work, the CPU computes it.
  parts.own_gpu_ns =
      loop.has_gpu_work ? std::min(end_ns - begin_ns, step.busy_ns) : end_ns - begin_ns;
  parts.others_ns = loop.time_in_steps(from_ns, begin_ns);
  parts.waiting_ns = to_ns - from_ns - parts.delivery_ns - parts.own_gpu_ns - parts.others_ns;
  return parts;
}

// The cause of most idle time of all GPUs from `from_ns` to `to_ns`; empty if there is none.
std::string idle_cause(const std::vector<std::vector<LongGap>>& gaps, std::int64_t from_ns,
                       std::int64_t to_ns) {
  std::array<std::int64_t, kNumBuckets> times{};
  for (const std::vector<LongGap>& device : gaps) {
    auto gap = std::ranges::upper_bound(device, from_ns, {}, &LongGap::end_ns);
    for (; gap != device.end() && gap->start_ns < to_ns; ++gap) {
      times[static_cast<std::size_t>(gap->cause)] +=
          std::min(gap->end_ns, to_ns) - std::max(gap->start_ns, from_ns);
    }
  }
  const auto most = std::max_element(times.begin(), times.end());
  return *most == 0 ? "" : kBucketNames[static_cast<std::size_t>(most - times.begin())];
}

class LateTokenFinder {
 public:
  LateTokenFinder(const Requests& requests, const EngineLoop& loop, const RequestJoin& join,
                  const std::vector<std::vector<LongGap>>& gaps)
      : requests_(requests), loop_(loop), join_(join), gaps_(gaps) {}

  LateTokens run() {
    LateTokens result;
    collect(result.gaps_ns);
    const std::int64_t limit_ns = high_ns(result.gaps_ns);
    result.rule = fmt::format(
        "more than twice the median of its request, and more than {}, the 95th percentile",
        format_duration_ns(limit_ns));
    find_usual();
    for (std::uint32_t row = 0; row < requests_.size(); ++row) {
      const auto arrivals = requests_.tokens_of(row);
      std::vector<std::int64_t> own;
      for (std::size_t i = 1; i < arrivals.size(); ++i) {
        own.push_back(arrivals[i] - arrivals[i - 1]);
      }
      const std::int64_t median_ns = lower_median(std::move(own)).value_or(0);
      for (std::uint32_t i = 1; i < arrivals.size(); ++i) {
        const std::int64_t gap_ns = arrivals[i] - arrivals[i - 1];
        if (gap_ns > limit_ns && gap_ns > 2 * median_ns) {
          result.tokens.push_back(judge(row, i, gap_ns));
        }
      }
    }
    std::ranges::sort(result.tokens, {}, [&](const LateToken& one) {
      return std::tuple(-one.gap_ns, std::string_view(requests_.id[one.row]), one.token);
    });
    return result;
  }

 private:
  void collect(std::vector<std::int64_t>& gaps_ns) const {
    for (std::size_t row = 0; row < requests_.size(); ++row) {
      const auto arrivals = requests_.tokens_of(row);
      for (std::size_t i = 1; i < arrivals.size(); ++i) {
        gaps_ns.push_back(arrivals[i] - arrivals[i - 1]);
      }
    }
  }

  static std::int64_t high_ns(std::vector<std::int64_t>& gaps_ns) {
    if (gaps_ns.empty()) {
      return 0;
    }
    const auto place =
        gaps_ns.begin() + static_cast<std::ptrdiff_t>((gaps_ns.size() - 1) * 95 / 100);
    std::nth_element(gaps_ns.begin(), place, gaps_ns.end());
    return *place;
  }

  // Parts of the gap before a token, if the steps of both its ends are known.
  std::optional<GapParts> parts_before(std::uint32_t row, std::uint32_t token) const {
    const std::uint64_t at = requests_.token_begin[row] + token;
    if (join_.token_step[at] == kNone || join_.token_step[at - 1] == kNone) {
      return std::nullopt;
    }
    return parts_of(loop_, requests_.token_ns[at - 1] + join_.offset_ns,
                    requests_.token_ns[at] + join_.offset_ns, join_.token_step[at]);
  }

  // Medians of the parts, over at most a million tokens.
  void find_usual() {
    constexpr std::uint64_t kMostTokensRead = 1'000'000;
    const std::uint64_t stride = requests_.token_ns.size() / kMostTokensRead + 1;
    std::vector<std::int64_t> gpu;
    std::vector<std::int64_t> waiting;
    std::vector<std::int64_t> delivery;
    std::uint64_t count = 0;
    for (std::uint32_t row = 0; row < requests_.size(); ++row) {
      for (std::uint32_t i = 1; i < requests_.tokens_of(row).size(); ++i) {
        const auto parts = count++ % stride == 0 ? parts_before(row, i) : std::nullopt;
        if (parts) {
          gpu.push_back(parts->own_gpu_ns);
          waiting.push_back(parts->waiting_ns);
          delivery.push_back(parts->delivery_ns);
        }
      }
    }
    usual_.own_gpu_ns = lower_median(std::move(gpu)).value_or(0);
    usual_.waiting_ns = lower_median(std::move(waiting)).value_or(0);
    usual_.delivery_ns = lower_median(std::move(delivery)).value_or(0);
  }

  LateToken judge(std::uint32_t row, std::uint32_t token, std::int64_t gap_ns) const {
    LateToken late{row, token, gap_ns, StutterCause::kNotTold, kNone, ""};
    const auto parts = parts_before(row, token);
    if (!parts) {
      return late;
    }
    const std::uint64_t at = requests_.token_begin[row] + token;
    late.step = join_.token_step[at];
    const LoopStep& step = loop_.steps[late.step];
    const StutterCause own =
        step.context_tokens > 0 ? StutterCause::kMixedStep : StutterCause::kLongStep;
    const std::pair<std::int64_t, StutterCause> excess[] = {
        {parts->own_gpu_ns - usual_.own_gpu_ns, own},
        {parts->waiting_ns - usual_.waiting_ns, StutterCause::kGap},
        {parts->others_ns, StutterCause::kMissing},
        {parts->delivery_ns - usual_.delivery_ns, StutterCause::kDelivery}};
    const auto* most = std::ranges::max_element(
        excess, {}, [](const auto& one) -> const auto& { return one.first; });
    late.cause = most->second;
    late.detail = detail_of(late, *parts, requests_.token_ns[at - 1] + join_.offset_ns);
    return late;
  }

  std::string detail_of(const LateToken& late, const GapParts& parts, std::int64_t from_ns) const {
    const LoopStep& step = loop_.steps[late.step];
    switch (late.cause) {
      case StutterCause::kMixedStep:
        return fmt::format("its step also read {}", count_of(step.context_tokens, "prompt token"));
      case StutterCause::kLongStep:
        return fmt::format("the {} worked {} for its step, the median is {}",
                           loop_.has_gpu_work ? "GPU" : "CPU", format_duration_ns(parts.own_gpu_ns),
                           format_duration_ns(usual_.own_gpu_ns));
      case StutterCause::kGap:  // an id of the ledger's buckets
        return idle_cause(gaps_, from_ns, step.end_ns);
      case StutterCause::kMissing: {
        const std::uint32_t first = loop_.first_begun(from_ns);
        return fmt::format("{} without it",
                           count_of(late.step > first ? late.step - first : 1, "step"));
      }
      case StutterCause::kDelivery:
        return fmt::format("{} from the end of its step to the client",
                           format_duration_ns(parts.delivery_ns));
      case StutterCause::kNotTold:
        break;
    }
    return "";
  }

  const Requests& requests_;
  const EngineLoop& loop_;
  const RequestJoin& join_;
  const std::vector<std::vector<LongGap>>& gaps_;
  GapParts usual_;
};

}  // namespace

LateTokens find_late_tokens(const Requests& requests, const EngineLoop& loop,
                            const RequestJoin& join,
                            const std::vector<std::vector<LongGap>>& gaps) {
  return LateTokenFinder(requests, loop, join, gaps).run();
}

}  // namespace gpuwhy
