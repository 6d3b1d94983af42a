// SPDX-License-Identifier: Apache-2.0
//
// Marks of a recording in the form that gates need.
#include "session/reading/nvtx_marks.h"

#include <algorithm>
#include <map>

#include "results/stage_role.h"

namespace gpuwhy {

std::vector<SeenMark> seen_marks(const Trace& trace) {
  std::map<std::pair<StringId, StringId>, SeenMark> marks;
  const Ranges& ranges = trace.ranges;
  for (std::size_t row = 0; row < ranges.size(); ++row) {
    if (ranges.kind[row] == RangeKind::kMark) {
      continue;
    }
    // A name may be used for both kinds of ranges; gates need to know.
    SeenMark& seen = marks[{ranges.domain[row], ranges.text[row]}];
    ++seen.count;
    seen.is_push_pop = seen.is_push_pop || ranges.kind[row] == RangeKind::kPushPop;
    seen.is_start_end = seen.is_start_end || ranges.kind[row] == RangeKind::kStartEnd;
  }
  std::vector<SeenMark> result;
  for (auto& [key, seen] : marks) {
    seen.mark = {std::string(trace.strings[key.first]), std::string(trace.strings[key.second])};
    result.push_back(std::move(seen));
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const SeenMark& a, const SeenMark& b) { return a.count > b.count; });
  return result;
}

std::optional<std::vector<SeenMark>> marks_of_stages(const std::vector<std::string>& stages,
                                                     const std::vector<SeenMark>& seen) {
  std::vector<SeenMark> marks;
  for (const std::string& stage : stages) {
    const SeenMark* found = nullptr;
    for (const char* domain : {"LLM", ""}) {
      const bool is_loop = role_of(row_name(stage)) == StageRole::kDecode;
      for (const std::string& name : {is_loop ? "decode_all" : stage, stage}) {
        for (const SeenMark& mark : seen) {
          if (found == nullptr && mark.mark == StageMark{domain, name}) {
            found = &mark;
          }
        }
      }
    }
    if (found == nullptr) {
      return std::nullopt;
    }
    marks.push_back(*found);
  }
  return marks;
}

}  // namespace gpuwhy
