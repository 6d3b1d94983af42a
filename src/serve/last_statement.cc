// SPDX-License-Identifier: Apache-2.0
//
// The line of a failed program's output that says why.
#include "serve/last_statement.h"

#include "base/text.h"

namespace gpuwhy {

std::string last_statement(const ProcessResult& ended) {
  constexpr std::size_t kMostShown = 300;
  const std::string& said = trim(ended.err).empty() ? ended.out : ended.err;
  std::string_view found = last_line(said);
  for (const std::string_view line : split(said, '\n')) {
    if (!trim(line).empty() && line.front() != ' ' && line.front() != '\t') {
      found = line;
    }
  }
  return printable(last_line(found).substr(0, kMostShown));  // a progress bar overwrites its line
}

}  // namespace gpuwhy
