// SPDX-License-Identifier: Apache-2.0
//
// Options of commands that print JSON in pages.
#include "cli/json_output.h"

#include "base/error.h"
#include "base/json_page.h"

namespace gpuwhy {

void add_page_options(Command& command, JsonPages& target) {
  command.add(OptionGroup::kOutput,
              {{"--max-tokens", "N",
                "Of JSON: one page of at most this size, on one line, with the address of the next",
                &target.max_tokens},
               {"--page", "ADDRESS",
                "Of JSON: the page that begins there, `next` of the one before", &target.after}});
}

std::string paged(std::string json, const JsonPages& pages) {
  return pages.max_tokens ? json_page(json, {*pages.max_tokens, pages.after}) + "\n" : json;
}

void check_pages(const JsonPages& pages, bool is_json) {
  if (pages.max_tokens && !is_json) {
    throw Error(ErrorKind::kUsage, "--max-tokens is for JSON", "add --json");
  }
  if (!pages.after.empty() && !pages.max_tokens) {
    throw Error(ErrorKind::kUsage, "--page requires --max-tokens", "add --max-tokens 2000");
  }
}

}  // namespace gpuwhy
