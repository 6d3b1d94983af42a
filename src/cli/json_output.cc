// SPDX-License-Identifier: Apache-2.0
//
// Forms of output: text, Markdown and CSV of a document, JSON whole or in pages.
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

void add_output_options(Command& command, OutputForm& target) {
  command.add({one_of({"text", "md", "csv", "json"},
                      {"--format", "FORMAT", "text, md, csv (the tables) or json", &target.format}),
               json_option(target.has_json_flag)});
  add_page_options(command, target.pages);
}

void print_answer(const OutputForm& form, const std::function<Document()>& document,
                  const std::function<std::string()>& json, Console& console) {
  console.out(form.is_json()         ? paged(json(), form.pages)
              : form.format == "md"  ? markdown_text(document())
              : form.format == "csv" ? document_csv(document())
                                     : terminal_text(document(), console.form()));
}

}  // namespace gpuwhy
