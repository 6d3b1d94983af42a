// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "bundle/secret_values.h"

namespace gpuwhy {

// Result of searching a file.
struct SecretSearch {
  bool has_found = false;
  SecretValues keys;       // secrets found by format or name
  std::string unsearched;  // why part of it was not searched; empty: complete
};

// Searches the bytes of any file for secrets by format and name, and for `values`: in plain text,
// UTF-16, gzip, and the data of our own pages. Memory is bounded. Throws kInput if the file cannot
// be read.
SecretSearch search_file(const std::filesystem::path& file, const SecretValues& values);

// The same for `values` only.
bool holds_value(const std::filesystem::path& file, const SecretValues& values);

// Whether a file that begins with `head` is an HTML page.
bool is_page(std::string_view head);

}  // namespace gpuwhy
