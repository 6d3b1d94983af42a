// SPDX-License-Identifier: Apache-2.0
//
// Tables of joined requests: percentiles, parts, late tokens, rates and load.
//
// Percentiles are times that occurred, never interpolated. Rows that are shown are the slowest to
// their first token and an even sample of all, so that the size of a report does not depend on the
// number of requests.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "analysis/requests/requests.h"
#include "base/list_of.h"
#include "base/units.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kMostSlowRows = 200;
constexpr std::size_t kMostSampleRows = 100;
constexpr std::size_t kMostLateTokens = 100;
constexpr std::int64_t kNumLoadBins = 100;

RequestTimes times_of(std::vector<std::int64_t> values) {
  RequestTimes times;
  times.n = static_cast<std::int64_t>(values.size());
  if (values.empty()) {
    return times;
  }
  std::ranges::sort(values);
  double sum = 0;
  for (const std::int64_t value : values) {
    sum += static_cast<double>(value);
  }
  // The nearest rank: the least value that is at least as large as that share of all.
  const auto at = [&](std::size_t percent) {
    return values[(values.size() * percent + 99) / 100 - 1];
  };
  times.mean_ns = sum / static_cast<double>(values.size());
  times.p50_ns = at(50);
  times.p90_ns = at(90);
  times.p95_ns = at(95);
  times.p99_ns = at(99);
  times.max_ns = values.back();
  return times;
}

class Summariser {
 public:
  Summariser(const JoinedRequests& joined, const Analysis& analysis)
      : requests_(joined.requests),
        loop_(joined.loop),
        join_(joined.join),
        late_(joined.late),
        zero_ns_(analysis.capture.start_ns) {
    for (std::size_t row = 0; row < requests_.size(); ++row) {
      order_.push_back(static_cast<std::uint32_t>(row));
    }
    std::ranges::sort(order_, {}, [&](std::uint32_t one) { return key(one); });
  }

  void add_counts(RequestsSummary& summary) const {
    std::map<std::string, std::int64_t> reasons;
    for (const std::uint32_t row : order_) {
      summary.num_failed += requests_.is_failed[row];
      summary.num_named += join_.told[row] == RequestTold::kNamed ? 1 : 0;
      summary.num_inferred += join_.told[row] == RequestTold::kInferred ? 1 : 0;
      summary.num_last_step += join_.told[row] == RequestTold::kLastStep ? 1 : 0;
      if (join_.reason[row] != nullptr) {
        ++reasons[join_.reason[row]];
      }
    }
    summary.told_fraction = fraction_of(summary.num_named + summary.num_inferred,
                                        static_cast<std::int64_t>(requests_.size()));
    for (const auto& [reason, count] : reasons) {
      summary.not_told.push_back({reason, count});
    }
    std::ranges::stable_sort(summary.not_told,
                             [](const auto& a, const auto& b) { return a.count > b.count; });
  }

  void add_times(RequestsSummary& summary) const {
    std::vector<std::int64_t> ttft;
    std::vector<std::int64_t> total;
    for (const std::uint32_t row : order_) {
      if (is_answered(row)) {
        ttft.push_back(ttft_ns(row));
      }
      if (const auto length = total_ns(row)) {
        total.push_back(*length);
      }
    }
    summary.ttft = times_of(std::move(ttft));
    summary.itl = times_of(late_.gaps_ns);
    summary.total = times_of(std::move(total));
  }

  void add_parts(RequestsSummary& summary) const {
    std::array<std::vector<std::int64_t>, kNumTtftParts> values;
    std::array<std::int64_t, kNumTtftParts> largest{};
    std::int64_t whole_ns = 0;
    for (const std::uint32_t row : order_) {
      if (!join_.is_apart(row)) {
        continue;
      }
      const TtftParts& parts = join_.parts[row];
      for (std::size_t i = 0; i < kNumTtftParts; ++i) {
        values[i].push_back(parts[i]);
      }
      whole_ns += ttft_ns(row);
      ++largest[static_cast<std::size_t>(std::max_element(parts.begin(), parts.end()) -
                                         parts.begin())];
    }
    const bool has_any = !values[0].empty();
    for (std::size_t i = 0; has_any && i < kNumTtftParts; ++i) {
      const std::int64_t sum = std::accumulate(values[i].begin(), values[i].end(), std::int64_t{0});
      summary.ttft_parts.push_back({kTtftPartNames[i], sum, fraction_of(sum, whole_ns),
                                    times_of(std::move(values[i])), largest[i]});
    }
  }

  void add_late_tokens(RequestsSummary& summary) const {
    std::array<std::vector<std::int64_t>, kNumStutterCauses> values;
    for (const LateToken& late : late_.tokens) {
      values[static_cast<std::size_t>(late.cause)].push_back(late.gap_ns);
      if (summary.late_tokens.size() < kMostLateTokens) {
        summary.late_tokens.push_back(stutter_of(late));
      }
    }
    for (std::size_t i = 0; i < kNumStutterCauses; ++i) {
      if (!values[i].empty()) {
        const std::int64_t sum =
            std::accumulate(values[i].begin(), values[i].end(), std::int64_t{0});
        summary.stutters.push_back({kStutterCauseNames[i],
                                    static_cast<std::int64_t>(values[i].size()), sum,
                                    times_of(std::move(values[i]))});
      }
    }
    summary.stutter_rule = late_.rule;
  }

  std::vector<RequestOutline> all_rows() const {
    auto rows = list_of<RequestOutline>(
        order_, [&](const std::uint32_t row) { return outline_of(row, false); });
    return rows;
  }

  void add_rows(RequestsSummary& summary) const {
    std::vector<std::uint32_t> slow;
    for (const std::uint32_t row : order_) {
      if (is_answered(row)) {
        slow.push_back(row);
      }
    }
    std::ranges::stable_sort(
        slow, [&](std::uint32_t a, std::uint32_t b) { return ttft_ns(a) > ttft_ns(b); });
    slow.resize(std::min(slow.size(), kMostSlowRows));
    std::set<std::uint32_t> shown;
    for (const std::uint32_t row : slow) {
      summary.rows.push_back(outline_of(row, false));
      shown.insert(row);
    }
    const std::size_t stride = order_.size() / kMostSampleRows + 1;
    for (std::size_t i = 0; i < order_.size(); i += stride) {
      if (!shown.contains(order_[i])) {
        summary.rows.push_back(outline_of(order_[i], true));
      }
    }
  }

  void add_rates(std::int64_t num_gpus, RequestsSummary& summary) const {
    std::int64_t tokens = 0;
    std::int64_t first_ns = INT64_MAX;
    std::int64_t last_ns = INT64_MIN;
    std::vector<double> users;
    for (const std::uint32_t row : order_) {
      const auto count = num_tokens(row);
      if (!count || !is_answered(row) || requests_.done_ns[row] == kNoTime) {
        continue;
      }
      tokens += *count;
      first_ns = std::min(first_ns, requests_.sent_ns[row]);
      last_ns = std::max(last_ns, requests_.done_ns[row]);
      const std::int64_t decode_ns = requests_.done_ns[row] - requests_.first_token_ns[row];
      if (*count > 1 && decode_ns > 0) {
        users.push_back(static_cast<double>(*count - 1) * kNsPerS / static_cast<double>(decode_ns));
      }
    }
    if (tokens > 0 && last_ns > first_ns && requests_.clock != RequestClock::kUntimed) {
      const double rate =
          static_cast<double>(tokens) * kNsPerS / static_cast<double>(last_ns - first_ns);
      summary.output_tokens_per_s = rate;
      if (num_gpus > 0) {
        summary.output_tokens_per_s_per_gpu = rate / static_cast<double>(num_gpus);
      }
    }
    if (!users.empty()) {
      std::ranges::sort(users);
      summary.output_tokens_per_s_per_user = users[(users.size() - 1) / 2];
    }
  }

  void add_goodput(const ServiceLimits& limits, RequestsSummary& summary) const {
    if (!limits.ttft_ns && !limits.itl_ns) {
      return;
    }
    Goodput good{limits.ttft_ns, limits.itl_ns, 0, 0, 0};
    std::int64_t first_ns = INT64_MAX;
    std::int64_t last_ns = INT64_MIN;
    for (const std::uint32_t row : order_) {
      first_ns = std::min(first_ns, requests_.sent_ns[row]);
      last_ns = std::max(last_ns, std::max(requests_.done_ns[row], requests_.first_token_ns[row]));
      const auto itl = itl_mean_ns(row);
      const bool is_good = is_answered(row) &&
                           (!limits.ttft_ns || ttft_ns(row) <= *limits.ttft_ns) &&
                           (!limits.itl_ns || !itl || *itl <= *limits.itl_ns);
      good.num_good += is_good ? 1 : 0;
    }
    good.good_fraction = fraction_of(good.num_good, static_cast<std::int64_t>(requests_.size()));
    if (last_ns > first_ns && requests_.clock != RequestClock::kUntimed) {
      good.good_per_s =
          static_cast<double>(good.num_good) * kNsPerS / static_cast<double>(last_ns - first_ns);
    }
    summary.goodput = good;
  }

  // Requests in flight and sequences per step, over the time of the steps.
  void add_load(RequestsSummary& summary) const {
    if (loop_.steps.empty() || !summary.reason.empty()) {
      return;
    }
    const std::int64_t from_ns = loop_.steps.front().begin_ns;
    const std::int64_t to_ns = loop_.steps.back().end_ns;
    const std::int64_t bin_ns = (to_ns - from_ns) / kNumLoadBins + 1;
    const auto num_bins = static_cast<std::size_t>((to_ns - from_ns) / bin_ns + 1);
    std::vector<double> flying(num_bins);
    std::vector<double> sequences(num_bins);
    std::vector<double> stepping(num_bins);
    std::vector<std::int64_t> count(num_bins);
    const auto spread = [&](std::int64_t begin, std::int64_t end, double weight,
                            std::vector<double>& bins) {
      begin = std::max(begin, from_ns);
      end = std::min(end, to_ns);
      for (std::int64_t at = begin; at < end;) {
        const std::int64_t bin = (at - from_ns) / bin_ns;
        const std::int64_t until = std::min(end, from_ns + (bin + 1) * bin_ns);
        bins[static_cast<std::size_t>(bin)] += weight * static_cast<double>(until - at);
        at = until;
      }
    };
    for (const std::uint32_t row : order_) {
      if (requests_.done_ns[row] != kNoTime) {
        spread(requests_.sent_ns[row] + join_.offset_ns, requests_.done_ns[row] + join_.offset_ns,
               1, flying);
      }
    }
    bool has_sequences = true;
    for (const LoopStep& step : loop_.steps) {
      has_sequences &= step.sequences >= 0;
      spread(step.begin_ns, step.end_ns, static_cast<double>(step.sequences), sequences);
      spread(step.begin_ns, step.end_ns, 1, stepping);
      ++count[static_cast<std::size_t>((step.begin_ns - from_ns) / bin_ns)];
    }
    for (std::size_t i = 0; i < num_bins; ++i) {
      const std::int64_t start_ns = from_ns + static_cast<std::int64_t>(i) * bin_ns;
      const std::int64_t length_ns = std::min(bin_ns, to_ns - start_ns);
      if (length_ns <= 0) {
        continue;
      }
      LoadBin bin{
          start_ns - zero_ns_, length_ns, flying[i] / static_cast<double>(length_ns), {}, count[i]};
      if (has_sequences && stepping[i] > 0) {
        bin.sequences = sequences[i] / stepping[i];
      }
      summary.load.push_back(bin);
    }
  }

 private:
  using Key = std::tuple<std::int64_t, std::int64_t, std::string_view>;
  Key key(std::uint32_t row) const {
    return {requests_.sent_ns[row], requests_.first_token_ns[row], requests_.id[row]};
  }
  bool is_answered(std::uint32_t row) const {
    return requests_.is_failed[row] == 0 && requests_.first_token_ns[row] != kNoTime;
  }
  std::int64_t ttft_ns(std::uint32_t row) const {
    return requests_.first_token_ns[row] - requests_.sent_ns[row];
  }
  std::optional<std::int64_t> total_ns(std::uint32_t row) const {
    return is_answered(row) && requests_.done_ns[row] != kNoTime
               ? std::optional(requests_.done_ns[row] - requests_.sent_ns[row])
               : std::nullopt;
  }
  std::optional<std::int64_t> num_tokens(std::uint32_t row) const {
    const std::int64_t told = requests_.output_tokens[row];
    const auto seen = static_cast<std::int64_t>(requests_.tokens_of(row).size());
    return told >= 0 ? std::optional(told) : seen > 0 ? std::optional(seen) : std::nullopt;
  }
  // From the first token to the end, per token after the first.
  std::optional<std::int64_t> itl_mean_ns(std::uint32_t row) const {
    const auto count = num_tokens(row);
    return count && *count > 1 && total_ns(row)
               ? std::optional((requests_.done_ns[row] - requests_.first_token_ns[row]) /
                               (*count - 1))
               : std::nullopt;
  }

  Stutter stutter_of(const LateToken& late) const {
    Stutter stutter{requests_.id[late.row],
                    late.token,
                    late.gap_ns,
                    kStutterCauseNames[static_cast<std::size_t>(late.cause)],
                    {},
                    {},
                    {},
                    late.detail};
    if (late.step != kNone) {
      const LoopStep& step = loop_.steps[late.step];
      stutter.step = late.step;
      stutter.step_ns = step.length_ns();
      if (step.context_tokens >= 0) {
        stutter.prefill_tokens = step.context_tokens;
      }
    }
    return stutter;
  }

  RequestOutline outline_of(std::uint32_t row, bool is_sample) const {
    RequestOutline line;
    line.id = requests_.id[row];
    line.is_sample = is_sample;
    line.sent_ns = requests_.sent_ns[row] + join_.offset_ns - zero_ns_;
    if (is_answered(row)) {
      line.ttft_ns = ttft_ns(row);
    }
    line.total_ns = total_ns(row);
    line.itl_mean_ns = itl_mean_ns(row);
    const auto arrivals = requests_.tokens_of(row);
    for (std::size_t i = 1; i < arrivals.size(); ++i) {
      line.itl_max_ns = std::max(line.itl_max_ns.value_or(0), arrivals[i] - arrivals[i - 1]);
    }
    if (requests_.prompt_tokens[row] >= 0) {
      line.prompt_tokens = requests_.prompt_tokens[row];
    }
    line.output_tokens = num_tokens(row);
    line.told = kToldNames[static_cast<std::size_t>(join_.told[row])];
    line.reason = join_.reason[row] == nullptr ? "" : join_.reason[row];
    if (const auto own = join_.prefill_of(row); !own.empty()) {
      line.last_step = own.back();
      if (join_.is_apart(row)) {
        line.first_step = own.front();
        set_parts(join_.parts[row], join_.has_network[row] != 0, line);
      }
    }
    return line;
  }

  static void set_parts(const TtftParts& parts, bool has_network, RequestOutline& line) {
    std::optional<std::int64_t>* const members[] = {
        &line.network_ns,      &line.queue_busy_ns,  &line.queue_idle_ns, &line.prefill_gpu_ns,
        &line.prefill_host_ns, &line.other_steps_ns, &line.between_ns,    &line.delivery_ns};
    for (std::size_t i = 0; i < kNumTtftParts; ++i) {
      if (i > 0 || has_network) {
        *members[i] = parts[i];
      }
    }
  }

  const Requests& requests_;
  const EngineLoop& loop_;
  const RequestJoin& join_;
  const LateTokens& late_;
  std::int64_t zero_ns_;
  std::vector<std::uint32_t> order_;  // by time sent: results do not depend on the file's order
};

}  // namespace

RequestsSummary summarise_requests(const JoinedRequests& joined, const ServiceLimits& limits,
                                   const Analysis& analysis) {
  RequestsSummary summary;
  const std::string& path = joined.requests.path;
  summary.file = path.substr(path.find_last_of('/') + 1);
  summary.format = joined.requests.format;
  summary.num_requests = static_cast<std::int64_t>(joined.requests.size());
  summary.num_skipped = joined.requests.num_skipped;
  summary.reason = joined.reason;
  summary.clock = joined.clock;
  const Summariser summariser(joined, analysis);
  summariser.add_counts(summary);
  summariser.add_times(summary);
  summariser.add_parts(summary);
  summariser.add_late_tokens(summary);
  summariser.add_rows(summary);
  summariser.add_goodput(limits, summary);
  summariser.add_load(summary);
  const auto num_gpus = std::ranges::count_if(
      analysis.devices, [](const DeviceRow& device) { return device.num_kernels > 0; });
  summariser.add_rates(num_gpus, summary);
  return summary;
}

std::vector<RequestOutline> outline_requests(const JoinedRequests& joined,
                                             const Analysis& analysis) {
  return Summariser(joined, analysis).all_rows();
}

}  // namespace gpuwhy
