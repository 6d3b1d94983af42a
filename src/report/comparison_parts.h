// SPDX-License-Identifier: Apache-2.0
//
// The sections of a comparison, one function each, all made of its JSON. Keys of values are places
// in that JSON.
#pragma once

#include <functional>
#include <string>

#include "report/document.h"

namespace llmprof {

ReportValue text_value(std::string text);
Unit metric_unit(const Json& metric_row);
// Within noise is said in words, never shown as a change.
std::string metric_judgement(const Json& metric_row);

using MetricFilter = std::function<bool(const Json& metric_row)>;
ReportTable metrics_table(const Json& comparison, const MetricFilter& keep);
// Decides, or changed beyond doubt.
bool is_told_metric(const Json& metric_row);

Section fingerprint_section(const Json& comparison);
Section metrics_section(const Json& comparison, bool has_all);
Section families_section(const Json& comparison);
Section buckets_section(const Json& comparison);
Section moved_section(const Json& comparison, std::size_t top);
// Both sides name operators, or there is nothing else to take apart.
bool has_operators(const Json& comparison);
Section operator_moves_section(const Json& comparison, std::size_t top);
// Every run, by its side.
Section runs_section(const Json& comparison);

}  // namespace llmprof
