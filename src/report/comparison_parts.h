// SPDX-License-Identifier: Apache-2.0
//
// Sections of a comparison, one function each, derived from its JSON. Keys of values are paths in
// that JSON.
#pragma once

#include <functional>
#include <string>

#include "report/document.h"

namespace llmprof {

// A cell of our own words, which has no key.
ReportValue text_value(std::string text);
Unit metric_unit(const Json& metric_row);
// A change within noise is described in words, never shown as a change.
std::string metric_judgement(const Json& metric_row);

using MetricFilter = std::function<bool(const Json& metric_row)>;
ReportTable metrics_table(const Json& comparison, const MetricFilter& keep);
// Whether it decides, or changed significantly.
bool is_told_metric(const Json& metric_row);

// The sections of a comparison, in the order of the page.
Section fingerprint_section(const Json& comparison);
Section metrics_section(const Json& comparison, bool has_all);
Section families_section(const Json& comparison);
Section buckets_section(const Json& comparison);
Section moved_section(const Json& comparison, std::size_t top);
// Whether both sides name operators, or there is nothing else to break down.
bool has_operators(const Json& comparison);
Section operator_moves_section(const Json& comparison, std::size_t top);
// Every run, by side.
Section runs_section(const Json& comparison);

}  // namespace llmprof
