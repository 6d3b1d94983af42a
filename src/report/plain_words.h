// SPDX-License-Identifier: Apache-2.0
//
// Verdict and advice for a reader who has never seen a trace: without ids of rules and without
// names of functions inside a library.
#pragma once

#include <string>

namespace gpuwhy {

struct Finding;
struct Metrics;

// PyTorch's profiler calls its DataLoader by the name of a class: the plain name instead.
std::string with_plain_names(std::string text);

// The verdict, its top opportunity in words instead of its id.
std::string verdict_in_words(const Metrics& metrics);

// What to do, the finding that comes before it in words instead of its id.
std::string advice_in_words(const Finding& finding);

}  // namespace gpuwhy
