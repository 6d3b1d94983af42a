// SPDX-License-Identifier: Apache-2.0
//
// The glossary: findings, buckets and terms in plain words, for `gpuwhy explain WORD`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwhy {

// A word that gpuwhy prints or that its users ask about.
struct Term {
  std::string_view name;  // "launch_bound"
  std::string_view kind;  // "finding", "bucket", "term", "column" or "row"
  std::string_view meaning;
  std::string_view found;   // how it is measured or found
  std::string_view advice;  // what to do about it; empty: nothing
};

// Findings, then buckets of the ledger, then terms.
std::span<const Term> glossary();

// By name, whatever its case, with blanks or dashes for underscores; nullptr if there is none.
const Term* find_term(std::string_view word);
// The same of a heading of a table or a row, which may also be a key of metrics.json.
const Term* find_column(std::string_view word);
// A word as names of terms are written: "steady_mean" of "steady mean".
std::string term_name(std::string_view word);

// The labels of all buckets and their parts, as the screen shows them.
std::vector<std::string_view> bucket_labels();

// A bucket as people read it: "waiting for CPU launch" for launch_late.
std::string_view bucket_label(std::string_view bucket);

}  // namespace gpuwhy
