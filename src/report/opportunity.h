// SPDX-License-Identifier: Apache-2.0
//
// Findings in the words of a reader who has never seen a trace.
#pragma once

#include <string>
#include <string_view>

namespace gpuwhy {

struct Finding;

// A finding whose gain can be estimated.
struct Opportunity {
  std::string_view id;
  std::string_view problem;
  std::string_view effort;
  std::string_view risk;
};

// nullptr: not one of them.
const Opportunity* find_opportunity(std::string_view id);

// The opportunity whose change solves a finding, which may be that of a finding above: effort and
// risk are those of the change. nullptr: not one of them.
const Opportunity* find_change(const Finding& finding);

// What a finding says, in a few words; empty: an id that is not known.
std::string_view problem_words(std::string_view id);

// By what findings are sorted, and that their gains are not a sum.
std::string order_words();

}  // namespace gpuwhy
