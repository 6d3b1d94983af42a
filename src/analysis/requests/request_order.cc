// SPDX-License-Identifier: Apache-2.0
//
// Requests joined to steps by the number of prompt tokens: inferred, and only where two ways agree.
//
// Engines read prompts first come, first served: the prompt tokens of the steps, in order, belong
// to the requests in the order in which they came. That says which steps are a request's own,
// and which one finishes its prompt. The arrival of the first token says the latter too: the last
// step with prompts that ended before, as only such a step makes first tokens. A request is claimed
// only if both name the same step, its steps read as many prompts as they are marked with, and none
// began before it was sent. A cached prefix, a request that is not in the file or another order of
// the scheduler break one of these. From then on counting is not believed, until a step reads no
// prompt while none is waiting.
//
// Besides, a request during which only one step read prompts has that step as its only one.
//
// After a step that made the first token, a request is in every step until it is preempted. So the
// i-th token is of the i-th step after it, as long as that is also the last to end before its
// arrival.
#include <algorithm>
#include <deque>
#include <tuple>

#include "analysis/requests/request_join.h"

namespace gpuwhy {
namespace {

// A request whose prompt is being read, as far as counting knows.
struct Reading {
  std::uint32_t row = 0;
  std::int64_t left = 0;  // tokens
  std::vector<std::uint32_t> steps;
  bool is_counted = true;  // its steps have as many prompts as they are marked with
};

class OrderReader {
 public:
  OrderReader(const Requests& requests, const EngineLoop& loop, const JoinTimes& times,
              RequestJoin& join)
      : requests_(requests), loop_(loop), times_(times), join_(join) {
    num_context_.push_back(0);
    for (const LoopStep& step : loop.steps) {
      num_context_.push_back(num_context_.back() + (step.context_tokens > 0 ? 1 : 0));
      if (step.context_tokens > 0) {
        context_steps_.push_back(static_cast<std::uint32_t>(num_context_.size()) - 2);
      }
    }
  }

  // `order` are rows in the order in which their prompts were finished.
  void run(const std::vector<std::uint32_t>& order) {
    std::size_t next = 0;
    for (std::uint32_t i = 0; i < loop_.steps.size(); ++i) {
      const LoopStep& step = loop_.steps[i];
      for (; next < order.size() && sent_ns(order[next]) <= step.begin_ns + times_.slack_ns;
           ++next) {
        waiting_.push_back({order[next], requests_.prompt_tokens[order[next]], {}, is_in_step_});
      }
      drop_answered(step.begin_ns);
      if (step.context_tokens > 0) {
        read_step(i, step);
      } else if (waiting_.empty()) {
        is_in_step_ = true;
      }
    }
    for (const Reading& reading : waiting_) {
      judge_alone(reading.row);
    }
    for (; next < order.size(); ++next) {
      join_.refuse(order[next], "the recording ended before its first step");
    }
  }

  // A request during which only one step read prompts. True: it was claimed.
  bool judge_alone(std::uint32_t row) {
    const std::int64_t margin_ns = std::max(times_.slack_ns, times_.margin_ns);
    const std::uint32_t from = loop_.first_begun(sent_ns(row) - margin_ns);
    const std::uint32_t last = loop_.last_ended(arrival_ns(row) + margin_ns);
    const bool is_alone =
        last != kNone && last >= from && num_context_[last + 1] - num_context_[from] == 1;
    const auto found =
        std::upper_bound(num_context_.begin() + from, num_context_.end(), num_context_[from]);
    const auto step = static_cast<std::uint32_t>(found - num_context_.begin()) - 1;
    if (!is_alone || loop_.steps[step].end_ns > arrival_ns(row) + times_.slack_ns) {
      join_.refuse(row, "the order of prompts does not tell its steps");
      return false;
    }
    join_.claim(row, RequestTold::kInferred, {&step, 1});
    set_tokens(row, step);
    return true;
  }

  // The last step that ended by then and read prompts; kNone: there is none.
  std::uint32_t last_prompts_before(std::int64_t time_ns) const {
    const std::uint32_t last = loop_.last_ended(time_ns);
    const std::uint32_t num = last == kNone ? 0 : num_context_[last + 1];
    return num == 0 ? kNone : context_steps_[num - 1];
  }

 private:
  std::int64_t sent_ns(std::uint32_t row) const {
    return requests_.sent_ns[row] + times_.offset_ns;
  }
  std::int64_t arrival_ns(std::uint32_t row) const {
    return requests_.first_token_ns[row] + times_.offset_ns;
  }

  // Requests that had their first token before this step: counting went wrong for them.
  void drop_answered(std::int64_t begin_ns) {
    while (!waiting_.empty() && arrival_ns(waiting_.front().row) <= begin_ns - times_.slack_ns) {
      judge_alone(waiting_.front().row);
      waiting_.pop_front();
      lose_step();
    }
  }

  // Counting went wrong: what waits began at an unknown step.
  void lose_step() {
    if (!is_in_step_) {
      return;  // nothing that waits is believed
    }
    is_in_step_ = false;
    for (Reading& reading : waiting_) {
      reading.is_counted = false;
    }
  }

  void read_step(std::uint32_t number, const LoopStep& step) {
    std::int64_t tokens = step.context_tokens;
    std::int64_t num_readers = 0;
    for (std::size_t i = 0; i < waiting_.size() && tokens > 0; ++i) {
      Reading& reading = waiting_[i];
      const std::int64_t taken = std::min(tokens, reading.left);
      tokens -= taken;
      reading.left -= taken;
      reading.steps.push_back(number);
      ++num_readers;
    }
    if (tokens > 0 || num_readers != step.context_requests) {
      lose_step();
    }
    while (!waiting_.empty() && waiting_.front().left == 0) {
      const Reading reading = std::move(waiting_.front());
      waiting_.pop_front();
      if (!judge(reading)) {
        lose_step();
      }
    }
  }

  // Whether counting and the arrival name the same step, whatever the error of the clock.
  bool judge(const Reading& reading) {
    const std::uint32_t row = reading.row;
    const std::uint32_t last = reading.steps.back();
    const bool agrees = last_prompts_before(arrival_ns(row) + times_.slack_ns) == last &&
                        last_prompts_before(arrival_ns(row) + times_.margin_ns) == last;
    const bool is_later =
        loop_.steps[reading.steps.front()].begin_ns >= sent_ns(row) - times_.slack_ns;
    if (agrees && is_later && reading.is_counted) {
      join_.claim(row, RequestTold::kInferred, reading.steps);
      set_tokens(row, last);
    } else if (!judge_alone(row) && agrees) {
      join_.claim(row, RequestTold::kLastStep, {&last, 1});
      join_.reason[row] = "steps have other prompts than first come, first served says";
    }
    return agrees && is_later;
  }

  void set_tokens(std::uint32_t row, std::uint32_t first) {
    const auto arrivals = requests_.tokens_of(row);
    const std::uint64_t begin = requests_.token_begin[row];
    const std::int64_t told = requests_.output_tokens[row];
    if (told > 0 && told != static_cast<std::int64_t>(arrivals.size())) {
      return;
    }
    for (std::uint32_t i = 0; i < arrivals.size() && first + i < loop_.steps.size(); ++i) {
      const std::int64_t arrival = arrivals[i] + times_.offset_ns;
      if (loop_.last_ended(arrival + times_.slack_ns) == first + i &&
          loop_.last_ended(arrival + times_.margin_ns) == first + i) {
        join_.token_step[begin + i] = first + i;
      }
    }
  }

  // What is read. All of it outlives the reader.
  const Requests& requests_;
  const EngineLoop& loop_;
  const JoinTimes& times_;
  RequestJoin& join_;
  bool is_in_step_ = false;                   // counting is right so far
  std::deque<Reading> waiting_;               // in order
  std::vector<std::uint32_t> num_context_;    // by step: steps before it that read prompts
  std::vector<std::uint32_t> context_steps_;  // the steps that read prompts
};

}  // namespace

void join_by_order(const Requests& requests, const EngineLoop& loop, const JoinTimes& times,
                   RequestJoin& join) {
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> unknown;  // the length of the prompt
  for (std::uint32_t row = 0; row < requests.size(); ++row) {
    if (requests.is_failed[row] != 0 || requests.first_token_ns[row] == kNoTime) {
      join.refuse(row, "it has no first token");
    } else if (requests.sent_ns[row] + times.offset_ns + times.slack_ns < times.start_ns) {
      join.refuse(row, "it was sent before the recording began");
    } else {
      (requests.prompt_tokens[row] > 0 ? order : unknown).push_back(row);
    }
  }
  const auto server_ns = [&](std::uint32_t row) {
    return requests.received_ns[row] == kNoTime ? requests.sent_ns[row] + times.offset_ns
                                                : requests.received_ns[row];
  };
  // Prompts that are read one after another are finished in the order in which they reached the
  // server, which on the way may differ from the order in which they were sent.
  OrderReader reader(requests, loop, times, join);
  std::vector<std::uint32_t> finished(requests.size());
  for (const std::uint32_t row : order) {
    finished[row] = reader.last_prompts_before(requests.first_token_ns[row] + times.offset_ns +
                                               times.slack_ns) +
                    1;
  }
  std::ranges::sort(order, {}, [&](std::uint32_t one) {
    return std::tuple(finished[one], server_ns(one), requests.first_token_ns[one],
                      std::string_view(requests.id[one]));
  });
  reader.run(order);
  for (const std::uint32_t row : unknown) {
    reader.judge_alone(row);
  }
}

}  // namespace gpuwhy
