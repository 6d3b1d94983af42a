// SPDX-License-Identifier: Apache-2.0
//
// What a command prints: the document that it made, in a form of the user's choice.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cli/command.h"
#include "report/document/document.h"

namespace gpuwhy {

// --max-tokens and --page: JSON in pages (base/json_page.h).
struct JsonPages {
  std::optional<std::int64_t> max_tokens;  // nullopt: the whole document
  std::string after;
};

void add_page_options(Command& command, JsonPages& target);

// The document, or the page of it that was asked for.
std::string paged(std::string json, const JsonPages& pages);

// Throws kUsage if pages are asked for of an output that is not JSON.
void check_pages(const JsonPages& pages, bool is_json);

// --format, --json and pages, of commands whose JSON is not that of their document.
struct OutputForm {
  std::string format = "text";
  bool has_json_flag = false;
  JsonPages pages = {};

  bool is_json() const { return has_json_flag || format == "json"; }
};
void add_output_options(Command& command, OutputForm& target);

// Only what is asked for is made.
void print_answer(const OutputForm& form, const std::function<Document()>& document,
                  const std::function<std::string()>& json, Console& console);

}  // namespace gpuwhy
