// SPDX-License-Identifier: Apache-2.0
//
// The files of a report.
//
// All of them are derived from the results, so none can show a figure that metrics.json does not
// have.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/pass_timer.h"
#include "report/sections/worth.h"
#include "results/results.h"

namespace gpuwhy {

struct JoinedRequests;
struct Timeline;

// Kernels in a file, where nobody says how many: that of run.top_n_kernels.
inline constexpr std::size_t kKernelRows = 20;

// The files of a report, in the order of writing: metrics.json itself, report.html, report.md,
// stakeholder_summary.md, kernels.md, operators.md.
std::vector<std::string> report_file_names();
// Names and contents. `beside` are other files that the reports link to. A
// timeline of zero length means that there is none. With a price of a GPU-hour they say
// what a saving is worth. report.md and kernels.md have as many kernels.
std::vector<std::pair<std::string, std::string>> report_files(
    const Results& metrics, const std::vector<std::string>& beside, const Timeline& timeline,
    PassTimer* timer = nullptr, const std::optional<GpuPrice>& price = {},
    std::size_t kernel_rows = kKernelRows);
// report.html alone, which links to no other file.
std::string report_page(const Results& metrics, const Timeline& timeline);

// One line per request with the parts of its time to first token, in file order; and one per late
// token.
std::string requests_csv(const JoinedRequests& joined);
std::string late_tokens_csv(const JoinedRequests& joined);

}  // namespace gpuwhy
