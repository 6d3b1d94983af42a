// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "ingest/ncu_rows.h"

namespace llmprof {

// The rows of what ncu prints with --csv, in the order of the text: details, raw and summary pages,
// of any release, with whatever else stands around them.
class NcuCsv {
 public:
  explicit NcuCsv(std::string_view text) : text_(text) {}

  std::string_view text() const { return text_; }

  using Visit = std::function<void(const NcuRow&)>;

  // How many tables there were; their rows went to `visit`, whose views last during the call.
  std::size_t each_row(const Visit& visit) const;

 private:
  std::string_view text_;
};

// Text that must outlive the result.
inline NcuCsv parse_ncu_csv(std::string_view text) {
  return NcuCsv(text);
}

// The same for what ncu prints without --csv. How many launches there were.
std::size_t each_ncu_text_row(std::string_view text, const NcuCsv::Visit& visit);

// Launches with their metrics, made of rows; from the tables for the eye where there is
// no CSV. Throws kInput when there is no table of ncu's at all.
Counters kernels_from_ncu_rows(const NcuCsv& rows);

}  // namespace llmprof
