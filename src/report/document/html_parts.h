// SPDX-License-Identifier: Apache-2.0
//
// Parts of pages other than sections.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/document/document.h"

namespace gpuwhy {

// Untrusted text, safe as text or as an attribute's value.
std::string html_words(std::string_view text);
// A value as text, with its key and itself as attributes.
std::string html_value(const ReportValue& value);

// A file of web/; empty if there is none.
std::string_view web_file(std::string_view path);
// 'sha256-...' of a script or style, as used in a policy.
std::string source_hash(std::string_view text);

// A place in a page template, and what goes there.
struct PagePart {
  std::string_view name;
  std::string_view text;
};
// Replaces {{name}} in the template, each once, from left to right; inserted text is not scanned
// again.
std::string filled_page(std::string_view page, const std::vector<PagePart>& parts);

}  // namespace gpuwhy
