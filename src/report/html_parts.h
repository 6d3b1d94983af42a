// SPDX-License-Identifier: Apache-2.0
//
// Pieces of pages that are no sections.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/document.h"

namespace llmprof {

// A stranger's words as text or as an attribute's value: nothing in them means anything to HTML.
std::string html_words(std::string_view text);
// A value in words, with its key and itself as attributes.
std::string html_value(const ReportValue& value);

// A file of web/; empty where there is none.
std::string_view web_file(std::string_view path);
// 'sha256-...' of a script or style, as a policy names it.
std::string source_hash(std::string_view text);

struct PagePart {
  std::string_view name;
  std::string_view text;
};
// {{name}} in the template, each once, from left to right; what is put in is not looked at again.
std::string filled_page(std::string_view page, const std::vector<PagePart>& parts);

}  // namespace llmprof
