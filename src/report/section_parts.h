// SPDX-License-Identifier: Apache-2.0
//
// What the makers of sections share. metrics.json may come from a stranger's bundle: whatever is
// read here may be missing or of another type, and is then not known.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "report/sections.h"

namespace llmprof {

// "a.b" of an object; null where it is not there.
const Json& field_of(const Json& value, std::string_view path);
// The rows of an array, or none.
const Json& rows_of(const Json& metrics, std::string_view path);
std::string text_of(const Json& value, std::string_view path);
std::int64_t integer_of(const Json& value, std::string_view path);
double number_of(const Json& value, std::string_view path);
// The tool that recorded; metrics.json of older versions does not name it.
std::string tool_of(const Json& metrics);

// A value with its home.
ReportValue value_at(const Json& metrics, const std::string& key, Unit unit);

using KeepRow = std::function<bool(const Json& row)>;
// A table of an array of metrics.json: a row for each that `keep` takes, `most` of them.
ReportTable table_of(const Json& metrics, const std::string& array,
                     const std::vector<ReportColumn>& columns, std::size_t most = SIZE_MAX,
                     const KeepRow& keep = {});

// The sections, one function each.
Section summary_section(const Json& metrics, const SectionOptions& options);
Section findings_section(const Json& metrics, const SectionOptions& options);
Section environment_section(const Json& metrics, const SectionOptions& options);
Section aggregates_section(const Json& metrics, const SectionOptions& options);
Section baseline_section(const Json& metrics, const SectionOptions& options);
Section stages_section(const Json& metrics, const SectionOptions& options);
Section overhead_section(const Json& metrics, const SectionOptions& options);
Section ledger_section(const Json& metrics, const SectionOptions& options);
Section efficiency_section(const Json& metrics, const SectionOptions& options);
Section takeaways_section(const Json& metrics, const SectionOptions& options);
Section operators_section(const Json& metrics, const SectionOptions& options);
Section kernels_section(const Json& metrics, const SectionOptions& options);
Section counters_section(const Json& metrics, const SectionOptions& options);
Section recommendations_section(const Json& metrics, const SectionOptions& options);
Section quality_section(const Json& metrics, const SectionOptions& options);
Section files_section(const Json& metrics, const SectionOptions& options);

}  // namespace llmprof
