// SPDX-License-Identifier: Apache-2.0
//
// Filling of the HTML templates in web/.
//
// They are filled from left to right, so that untrusted text never becomes a placeholder.
#include <algorithm>

#include "base/gzip_base64.h"
#include "base/sha256.h"
#include "report/document/embedded_web.h"
#include "report/document/html_parts.h"

namespace gpuwhy {

std::string_view web_file(std::string_view path) {
  for (const EmbeddedFile& file : embedded_web()) {
    if (file.path == path) {
      return file.text;
    }
  }
  return "";  // tests open the pages
}

std::string source_hash(std::string_view text) {
  return "'sha256-" + base64(sha256_bytes(text)) + "'";
}

std::string filled_page(std::string_view page, const std::vector<PagePart>& parts) {
  std::string text;
  while (true) {
    const std::size_t open = page.find("{{");
    const std::size_t close = page.find("}}", open);
    if (open == std::string_view::npos || close == std::string_view::npos) {
      return text += page;
    }
    text += page.substr(0, open);
    const std::string_view name = page.substr(open + 2, close - open - 2);
    const auto part = std::find_if(parts.begin(), parts.end(),
                                   [&](const PagePart& one) { return one.name == name; });
    text += part == parts.end() ? std::string_view() : part->text;
    page.remove_prefix(close + 2);
  }
}

}  // namespace gpuwhy
