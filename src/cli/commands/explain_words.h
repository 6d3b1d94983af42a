// SPDX-License-Identifier: Apache-2.0
//
// Texts of `gpuwhy explain` on words of the glossary and on findings.
#pragma once

#include <functional>
#include <string>

#include "report/words/glossary.h"
#include "results/finding.h"

namespace gpuwhy {

// Meaning, how it is found, what to do.
std::string term_text(const Term& term, std::size_t width);

// Where the saving of a finding comes from: its evidence and its bucket, each with its value.
std::string finding_text(const Finding& finding,
                         const std::function<std::string(const std::string& key)>& value_of,
                         std::size_t width);

}  // namespace gpuwhy
