// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "ingest/ncu/ncu_rows.h"

namespace gpuwhy {

using NcuVisit = std::function<void(const NcuRow&)>;

// Passes the rows of ncu's --csv output in text order, whose views are valid during the call:
// details, raw and summary pages of any release, with any other output around them. Returns the
// number of tables.
std::size_t each_ncu_csv_row(std::string_view text, const NcuVisit& visit);

// The same for output without --csv. Returns the number of launches.
std::size_t each_ncu_text_row(std::string_view text, const NcuVisit& visit);

// Launches with their metrics, from CSV rows or, if there is no CSV, from printed tables. Throws
// kInput if there is no ncu table at all.
Counters parse_ncu_output(std::string_view text);

}  // namespace gpuwhy
