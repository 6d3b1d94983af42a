// SPDX-License-Identifier: Apache-2.0
//
// Values and tables from a JSON document, which is untrusted: what is missing or of another type is
// unknown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/document/document.h"

namespace gpuwhy {

// "a.b" of an object; null if absent.
const Json& field_of(const Json& value, std::string_view path);
// The rows of an array, or none.
const Json& rows_of(const Json& metrics, std::string_view path);
std::string text_of(const Json& value, std::string_view path);
std::int64_t integer_of(const Json& value, std::string_view path);
double number_of(const Json& value, std::string_view path);

// A text or a number as a cell; anything else is not known.
CellValue cell_of(const Json& value);

// A value with its key.
ReportValue value_at(const Json& metrics, const std::string& key, CellFormat unit);

// A table of an array: a row for each, `most` of them.
ReportTable table_of(const Json& document, const std::string& array,
                     const std::vector<ReportColumn>& columns, std::size_t most = SIZE_MAX);

}  // namespace gpuwhy
