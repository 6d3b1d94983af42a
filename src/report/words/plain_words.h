// SPDX-License-Identifier: Apache-2.0
//
// Verdict and advice for a reader who has never seen a trace: without ids of rules and without
// names of functions inside a library.
#pragma once

#include <string>

#include "results/finding.h"

namespace gpuwhy {

// PyTorch's profiler calls its DataLoader by the name of a class: the plain name instead.
std::string with_plain_names(std::string text);

// The verdict, its top opportunity in words instead of its id.
std::string verdict_in_words(const Verdict& verdict);

// What to do, the finding that comes before it in words instead of its id.
std::string advice_in_words(const Advice& advice);

// Effort and risk of what solves a finding, which may be the change of a finding above.
const FindingInfo& change_of(const Finding& finding);

// By what findings are sorted, and that their gains are not a sum.
std::string order_words();

}  // namespace gpuwhy
