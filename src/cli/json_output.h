// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/command.h"

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

}  // namespace gpuwhy
