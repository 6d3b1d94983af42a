// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "bundle/secret_values.h"

namespace gpuwhy {

// Scrubs a text line by line and tracks what spans several lines: a private key and, in YAML, a
// block under a revealing name.
class LineScrubber {
 public:
  enum class Form { kText, kYaml };
  explicit LineScrubber(Form form) : form_(form) {}

  // The next line, without its line end. Keeps the indentation.
  std::string clean(std::string_view line, const SecretValues& values);

 private:
  bool is_in_private_key(std::string_view line);
  bool is_in_yaml_block(std::string_view line);
  bool is_value_of_name(std::string_view line);

  Form form_;
  std::size_t key_lines_left_ = 0;
  bool is_in_block_ = false;
  std::size_t block_indent_ = 0;
  bool is_after_name_ = false;  // - name: HF_TOKEN
  std::size_t name_indent_ = 0;
};

}  // namespace gpuwhy
