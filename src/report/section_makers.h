// SPDX-License-Identifier: Apache-2.0
//
// The sections of reports, one function each.
#pragma once

#include "report/metrics.h"
#include "report/sections.h"

namespace gpuwhy {

// "Hopper (sm_90)" of a GPU without a name, where its kernels prove it; else empty.
std::string generation_of(const Metrics& metrics, const DeviceRow& device);

// The tool that recorded; metrics.json of older versions does not name it.
std::string tool_of(const Metrics& metrics);

// A section without data has `missing` set to the reason and what to do about it.
Section summary_section(const Metrics& metrics, const SectionOptions& options);
Section findings_section(const Metrics& metrics, const SectionOptions& options);
Section environment_section(const Metrics& metrics, const SectionOptions& options);
Section aggregates_section(const Metrics& metrics, const SectionOptions& options);
Section baseline_section(const Metrics& metrics, const SectionOptions& options);
Section requests_section(const Metrics& metrics, const SectionOptions& options);
Section stages_section(const Metrics& metrics, const SectionOptions& options);
Section overhead_section(const Metrics& metrics, const SectionOptions& options);
Section host_phases_section(const Metrics& metrics, const SectionOptions& options);
Section ledger_section(const Metrics& metrics, const SectionOptions& options);
Section efficiency_section(const Metrics& metrics, const SectionOptions& options);
Section takeaways_section(const Metrics& metrics, const SectionOptions& options);
Section operators_section(const Metrics& metrics, const SectionOptions& options);
Section gemm_rates_section(const Metrics& metrics, const SectionOptions& options);
Section model_section(const Metrics& metrics, const SectionOptions& options);
Section families_section(const Metrics& metrics, const SectionOptions& options);
Section ranges_section(const Metrics& metrics, const SectionOptions& options);
Section kernels_section(const Metrics& metrics, const SectionOptions& options);
Section counters_section(const Metrics& metrics, const SectionOptions& options);
Section recommendations_section(const Metrics& metrics, const SectionOptions& options);
Section quality_section(const Metrics& metrics, const SectionOptions& options);
Section files_section(const Metrics& metrics, const SectionOptions& options);

}  // namespace gpuwhy
