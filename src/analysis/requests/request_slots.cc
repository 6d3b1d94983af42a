// SPDX-License-Identifier: Apache-2.0
//
// Requests joined to steps that name slots: exact.
//
// A slot serves one request after another. Each reads its prompt, which makes the first token, and
// then one token per step: a request of P prompt tokens and N output tokens takes entries of P
// tokens in sum and N - 1 entries of one token. So the entries of a slot are divided by counting,
// not by times. A preempted request reads its prompt and the tokens made so far again: an entry of
// more than one token after the first token begins such a stretch. A cached prefix leaves out a
// part of the prompt: then the entries of more than one token are the prompt, if nothing else fits.
//
// Times confirm the division: no step begins before the request was sent, no token arrives before
// its step ends. Where they do not, or counts do not fit, the request is not told.
#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "analysis/requests/request_join.h"

namespace gpuwhy {
namespace {

// Tokens of a slot in one step.
struct SlotEntry {
  std::uint32_t step = 0;
  std::int64_t tokens = 0;
};

// Steps of a request, as counting divides them.
struct SlotShare {
  std::vector<std::uint32_t> prefill;
  std::vector<std::uint32_t> makers;  // by token: the step that made it
  std::size_t next = 0;               // the first entry after its own
  bool is_cut = false;                // the recording ended before the request
};

// The entries of one slot, and who they belong to.
class SlotReader {
 public:
  SlotReader(const Requests& requests, const EngineLoop& loop, const JoinTimes& times,
             const std::vector<SlotEntry>& entries)
      : requests_(requests), loop_(loop), times_(times), entries_(entries) {
    next_wide_.resize(entries.size() + 1, entries.size());
    for (std::size_t i = entries.size(); i-- > 0;) {
      next_wide_[i] = entries[i].tokens > 1 ? i : next_wide_[i + 1];
    }
  }

  // Claims the request, or says why not.
  void claim(std::size_t row, RequestJoin& join) {
    constexpr int kMostTries = 4;
    const std::int64_t arrival_ns = requests_.first_token_ns[row] + times_.offset_ns;
    std::size_t at = first_after(requests_.sent_ns[row] + times_.offset_ns - times_.slack_ns);
    for (int i = 0; i < kMostTries && at < entries_.size() && begin_ns(at) <= arrival_ns; ++i) {
      for (const bool has_cache : {false, true}) {
        SlotShare share;
        if (divide(row, at, has_cache, share) && is_in_order(row, share)) {
          join.claim(row, RequestTold::kNamed, share.prefill);
          set_tokens(row, share, join);
          next_ = share.next;
          return;
        }
      }
      // The rest of somebody else: a prompt begins with more than one token.
      at = next_wide_[at + 1];
    }
    join.refuse(row, "the tokens of its slot do not add up to its prompt and output");
  }

 private:
  std::int64_t begin_ns(std::size_t entry) const {
    return loop_.steps[entries_[entry].step].begin_ns;
  }
  std::int64_t end_ns(std::uint32_t step) const { return loop_.steps[step].end_ns; }

  // The first entry not yet taken whose step begins at `time_ns` or later.
  std::size_t first_after(std::int64_t time_ns) const {
    const auto from = entries_.begin() + static_cast<std::ptrdiff_t>(next_);
    const std::uint32_t step = loop_.first_begun(time_ns);
    const auto found = std::lower_bound(
        from, entries_.end(), step,
        [](const SlotEntry& entry, std::uint32_t one) { return entry.step < one; });
    return static_cast<std::size_t>(found - entries_.begin());
  }

  // Takes entries of `tokens` in sum. False: they do not fit, or end.
  bool take(std::int64_t tokens, std::size_t& at, std::vector<std::uint32_t>& steps) const {
    while (tokens > 0 && at < entries_.size() && entries_[at].tokens <= tokens) {
      tokens -= entries_[at].tokens;
      steps.push_back(entries_[at++].step);
    }
    return tokens == 0;
  }

  bool take_prompt(std::int64_t prompt, bool has_cache, std::size_t& at, SlotShare& share) const {
    if (!has_cache) {
      return prompt > 0 && take(prompt, at, share.prefill);
    }
    while (at < entries_.size() && entries_[at].tokens > 1 && entries_[at].tokens < prompt) {
      prompt -= entries_[at].tokens;
      share.prefill.push_back(entries_[at++].step);
    }
    return !share.prefill.empty();
  }

  bool divide(std::size_t row, std::size_t at, bool has_cache, SlotShare& share) const {
    const std::int64_t prompt = requests_.prompt_tokens[row];
    if (!take_prompt(prompt, has_cache, at, share)) {
      return false;
    }
    share.makers.push_back(share.prefill.back());
    const std::int64_t count = num_tokens(row);
    std::vector<std::uint32_t> again;
    for (std::int64_t made = 1; made < count && !share.is_cut; ++made) {
      again.clear();
      if (at < entries_.size() && entries_[at].tokens == 1) {
        share.makers.push_back(entries_[at++].step);
      } else if (at < entries_.size() && !has_cache && take(prompt + made, at, again)) {
        share.makers.push_back(again.back());
      } else if (at < entries_.size()) {
        return false;
      } else {
        share.is_cut = true;
      }
    }
    share.next = at;
    // One more token of the same request would make the division a guess.
    return !has_cache || at == entries_.size() || entries_[at].tokens > 1;
  }

  std::int64_t num_tokens(std::size_t row) const {
    const std::int64_t told = requests_.output_tokens[row];
    return told > 0 ? told : static_cast<std::int64_t>(requests_.tokens_of(row).size());
  }

  bool has_all_arrivals(std::size_t row) const {
    return static_cast<std::int64_t>(requests_.tokens_of(row).size()) == num_tokens(row);
  }

  // Whether the times allow the division.
  bool is_in_order(std::size_t row, const SlotShare& share) const {
    const std::int64_t shift_ns = times_.offset_ns + times_.slack_ns;
    if (end_ns(share.prefill.back()) > requests_.first_token_ns[row] + shift_ns) {
      return false;
    }
    const std::int64_t done_ns = requests_.done_ns[row];
    if (done_ns != kNoTime) {
      const bool is_over = done_ns + times_.offset_ns - times_.slack_ns < loop_.steps.back().end_ns;
      if (end_ns(share.makers.back()) > done_ns + shift_ns || (share.is_cut && is_over)) {
        return false;
      }
    }
    const auto arrivals = requests_.tokens_of(row);
    for (std::size_t i = 0; has_all_arrivals(row) && i < share.makers.size(); ++i) {
      if (end_ns(share.makers[i]) > arrivals[i] + shift_ns) {
        return false;
      }
    }
    return true;
  }

  // Chunks of several tokens have no step of their own, so only equal counts are joined.
  void set_tokens(std::size_t row, const SlotShare& share, RequestJoin& join) const {
    const std::uint64_t begin = requests_.token_begin[row];
    for (std::size_t i = 0; has_all_arrivals(row) && i < share.makers.size(); ++i) {
      join.token_step[begin + i] = share.makers[i];
    }
  }

  const Requests& requests_;
  const EngineLoop& loop_;
  const JoinTimes& times_;
  const std::vector<SlotEntry>& entries_;
  std::vector<std::size_t> next_wide_;  // by entry: the first from there with several tokens
  std::size_t next_ = 0;
};

}  // namespace

void join_by_slots(const Requests& requests, const EngineLoop& loop, const JoinTimes& times,
                   RequestJoin& join) {
  std::unordered_map<std::int64_t, std::vector<SlotEntry>> entries;
  for (std::uint32_t i = 0; i < loop.steps.size(); ++i) {
    for (const SlotTokens& one : loop.slots_of(loop.steps[i])) {
      entries[one.slot].push_back({i, one.tokens});
    }
  }
  std::vector<std::uint32_t> order;
  for (std::uint32_t row = 0; row < requests.size(); ++row) {
    if (requests.is_failed[row] != 0 || requests.first_token_ns[row] == kNoTime) {
      join.refuse(row, "it has no first token");
    } else if (requests.slot[row] == kNoCount || requests.prompt_tokens[row] <= 0) {
      join.refuse(row, "the file does not tell its slot or the length of its prompt");
    } else if (requests.sent_ns[row] + times.offset_ns + times.slack_ns < times.start_ns) {
      join.refuse(row, "it was sent before the recording began");
    } else if (!entries.contains(requests.slot[row])) {
      join.refuse(row, "no step of the recording names its slot");
    } else {
      order.push_back(row);
    }
  }
  std::ranges::sort(order, {}, [&](std::uint32_t one) {
    return std::tuple(requests.slot[one], requests.first_token_ns[one], requests.sent_ns[one],
                      std::string_view(requests.id[one]));
  });
  for (std::size_t i = 0; i < order.size();) {
    const std::int64_t slot = requests.slot[order[i]];
    SlotReader reader(requests, loop, times, entries.at(slot));
    for (; i < order.size() && requests.slot[order[i]] == slot; ++i) {
      reader.claim(order[i], join);
    }
  }
}

}  // namespace gpuwhy
