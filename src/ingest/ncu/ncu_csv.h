// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "ingest/ncu/ncu_rows.h"

namespace gpuwhy {

// The rows of ncu's --csv output in text order: details, raw and summary pages of any release, with
// any other output around them.
class NcuCsv {
 public:
  explicit NcuCsv(std::string_view text) : text_(text) {}

  std::string_view text() const { return text_; }

  using Visit = std::function<void(const NcuRow&)>;

  // Passes all rows to `visit`, whose views are valid during the call. Returns the number of
  // tables.
  std::size_t each_row(const Visit& visit) const;

 private:
  std::string_view text_;
};

// `text` must outlive the result.
inline NcuCsv parse_ncu_csv(std::string_view text) {
  return NcuCsv(text);
}

// The same for output without --csv. Returns the number of launches.
std::size_t each_ncu_text_row(std::string_view text, const NcuCsv::Visit& visit);

// Launches with their metrics, from CSV rows or, if there is no CSV, from printed tables. Throws
// kInput if there is no ncu table at all.
Counters kernels_from_ncu_rows(const NcuCsv& rows);

}  // namespace gpuwhy
