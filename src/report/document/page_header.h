// SPDX-License-Identifier: Apache-2.0
//
// Heading of report.html: what the page is about.
#pragma once

#include <string>
#include <vector>

namespace gpuwhy {

struct Results;

struct PageHeading {
  std::string title;               // file or model, plain text
  std::vector<std::string> facts;  // GPUs, time, tool and so on, those that are known
};

PageHeading page_heading(const Results& metrics);

}  // namespace gpuwhy
