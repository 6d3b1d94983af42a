// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "bundle/secret_values.h"

namespace llmprof {

// What a search of a file told.
struct SecretSearch {
  bool has_found = false;
  SecretValues keys;       // what was found by shape or name
  std::string unsearched;  // why a part of it could not be searched; empty: all of it was
};

// Looks for secrets by shape and name and for `values` in the bytes of any file: in its text, in
// text of two bytes a character, in what gzip and the data of our pages hold. Memory is bounded.
// Throws kInput where the file cannot be read.
SecretSearch search_file(const std::filesystem::path& file, const SecretValues& values);

// The same for `values` alone.
bool holds_value(const std::filesystem::path& file, const SecretValues& values);

// Whether a file that begins with `head` is a page of HTML.
bool is_page(std::string_view head);

}  // namespace llmprof
