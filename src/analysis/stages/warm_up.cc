// SPDX-License-Identifier: Apache-2.0
//
// The warm-up of a program, by the ranges it marked as such.
#include "analysis/stages/warm_up.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "results/stage_role.h"

namespace gpuwhy {

bool is_warm_up_name(std::string_view name) {
  static constexpr std::string_view kFirst = "warm";
  static constexpr std::string_view kSecond = "up";
  static constexpr std::size_t kLongest = 512;  // texts of ranges can be of any length
  const std::string text = to_lower(name.substr(0, kLongest));
  const auto is_letter = [&](std::size_t at) {
    return at < text.size() && text[at] >= 'a' && text[at] <= 'z';
  };
  for (std::size_t at = text.find(kFirst); at != std::string::npos;
       at = text.find(kFirst, at + 1)) {
    std::size_t next = at + kFirst.size();
    next += next < text.size() && std::string_view("-_ ").find(text[next]) != std::string_view::npos
                ? 1
                : 0;
    const bool is_word = (at == 0 || !is_letter(at - 1)) && !is_letter(next + kSecond.size());
    if (is_word && text.compare(next, kSecond.size(), kSecond) == 0) {
      return true;
    }
  }
  return false;
}

std::int64_t warm_up_end_ns(const Trace& trace, const Stages& stages) {
  enum class Answer : std::uint8_t { kUnknown, kNo, kYes };
  std::vector<Answer> answers(trace.strings.size());  // each text is looked at once
  std::int64_t end_ns = INT64_MIN;
  const Ranges& ranges = trace.ranges;
  for (std::size_t row = 0; row < ranges.size(); ++row) {
    const StringId text = ranges.text[row];
    Answer& answer = answers[static_cast<std::size_t>(text)];
    if (answer == Answer::kUnknown) {
      answer = is_warm_up_name(trace.strings[text]) ? Answer::kYes : Answer::kNo;
    }
    if (answer == Answer::kYes && ranges.end_ns[row] != kOpenEnd) {
      end_ns = std::max(end_ns, ranges.end_ns[row]);
    }
  }
  for (const StageInstance& instance : stages.instances) {
    if (role_of(stages.names[instance.stage]) == StageRole::kWarmUp) {
      end_ns = std::max(end_ns, instance.end_ns);
    }
  }
  return end_ns;
}

}  // namespace gpuwhy
