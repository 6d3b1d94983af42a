// SPDX-License-Identifier: Apache-2.0
//
// Parts shared by all history queries: selection of runs, and notes on gaps in a result.
#include "fleet/history/query_common.h"

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "fleet/history/history_rows.h"
#include "fleet/summary/labels.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kMostNotes = 20;

}  // namespace

Json wide_json(const WideSum& sum) {
  constexpr std::int64_t kMost = INT64_MAX / WideSum::kBillion - 1;
  return sum.billions <= kMost && sum.billions >= -kMost
             ? Json(sum.billions * WideSum::kBillion + sum.rest)
             : Json(sum.value());
}

double mean_of(const WideSum& total, const WideSum& count) {
  return count.value() > 0 ? total.value() / count.value() : 0;
}

Json ratio_or_null(const WideSum& part, const WideSum& whole) {
  return whole.value() > 0 ? Json(part.value() / whole.value()) : Json(nullptr);
}

std::vector<KnownRun> chosen_runs(HistorySource& history, const FleetFilter& filter) {
  RunFilter asked{filter.since_day, {}};
  if (!filter.run.empty()) {
    asked.run_keys = {key_of(filter.run)};
  }
  std::vector<KnownRun> runs = history.runs(asked);
  std::erase_if(runs, [&](const KnownRun& run) {
    return (!filter.run.empty() && run.run_id != filter.run) ||
           (!filter.model.empty() && run.model != filter.model) ||
           (!filter.engine_version.empty() && run.engine_version != filter.engine_version) ||
           (!filter.label.empty() && !has_label(run.labels, filter.label));
  });
  return runs;
}

Error no_runs(const std::string& what) {
  return {ErrorKind::kInput, fmt::format("no run of {} is known", printable(what)),
          "gpuwhy fleet status --to WHERE lists them"};
}

// The number of notes is limited: a fleet may have thousands of incomplete runs.
Json notes_of(const HistorySource& history, const std::vector<KnownRun>& runs) {
  Json notes = Json::array();
  std::size_t num_left_out = 0;
  const auto add = [&](const std::string& note) {
    if (notes.size() < kMostNotes) {
      notes.push_back(printable(note));
    } else {
      ++num_left_out;
    }
  };
  for (const std::string& note : history.notes()) {
    add(note);
  }
  for (const KnownRun& run : runs) {
    if (run.num_ranks > 0 && run.ranks < run.num_ranks) {
      add(fmt::format("run {}: {} of {} ranks", run.run_id, run.ranks, run.num_ranks));
    } else if (run.num_ranks == 0) {
      add(fmt::format("run {}: {} ranks of an unknown number", run.run_id, run.ranks));
    }
  }
  if (num_left_out > 0) {
    notes.push_back(fmt::format("{} more", num_left_out));
  }
  return notes;
}

}  // namespace gpuwhy
