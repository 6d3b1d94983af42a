// SPDX-License-Identifier: Apache-2.0
//
// Functions shared by all history queries.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_fwd.h"
#include "fleet/history/queries.h"

namespace gpuwhy {

// An integer if JSON can represent it.
Json wide_json(const WideSum& sum);

// 0 if `count` is 0.
double mean_of(const WideSum& total, const WideSum& count);
Json ratio_or_null(const WideSum& part, const WideSum& whole);

std::vector<KnownRun> chosen_runs(HistorySource& history, const FleetFilter& filter);
Error no_runs(const std::string& what);

// Notes of `history`, and which of the runs are incomplete.
Json notes_of(const HistorySource& history, const std::vector<KnownRun>& runs);

// Names for the keys in a result; a name that has not arrived yet is shown as its number.
class ShownNames {
 public:
  void want(std::uint64_t key) { keys_.insert(key); }
  void look_up(HistorySource& history) { names_ = history.names(keys_); }
  std::string operator[](std::uint64_t key) const {
    const auto found = names_.find(key);
    return found == names_.end() ? fmt::format("#{:016x}", key) : found->second;
  }

 private:
  std::set<std::uint64_t> keys_;
  std::map<std::uint64_t, std::string> names_;
};

}  // namespace gpuwhy
