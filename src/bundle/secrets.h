// SPDX-License-Identifier: Apache-2.0
//
// Recognition of secrets: by the name before them and by their own format.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpuwhy {

// ASCII only, whatever the locale.
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_alnum(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Classes of all characters, in one table: every byte of every log is looked up in it.
enum CharClass : std::uint8_t {
  kNameChar = 1,
  kKeyChar = 2,
  kTextChar = 4,   // printable ASCII, or a tab
  kAfterName = 8,  // may stand between a name and its value
};
inline constexpr std::array<std::uint8_t, 256> kCharClasses = [] {
  std::array<std::uint8_t, 256> classes{};
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto c = static_cast<char>(i);
    const bool is_name = is_alnum(c) || c == '_' || c == '-' || c == '.';
    // These occur in base64 keys only after the first characters.
    const bool is_key = is_name || c == '+' || c == '/' || c == '~' || c == '=';
    const bool is_text = (c >= ' ' && c <= '~') || c == '\t';
    const bool is_after = std::string_view("\\\"'] \t=:").find(c) != std::string_view::npos;
    classes[i] = static_cast<std::uint8_t>((is_name ? kNameChar : 0) | (is_key ? kKeyChar : 0) |
                                           (is_text ? kTextChar : 0) | (is_after ? kAfterName : 0));
  }
  return classes;
}();
inline bool is_of_class(char c, CharClass wanted) {
  return (kCharClasses[static_cast<unsigned char>(c)] & wanted) != 0;
}

// Characters of names and keys.
inline bool is_name_char(char c) {
  return is_of_class(c, kNameChar);
}
inline bool is_key_char(char c) {
  return is_of_class(c, kKeyChar);
}

// True for HF_TOKEN, --api-key, aws.secretAccessKey; false for max_tokens, eos_token, tokenizer.
bool is_secret_name(std::string_view name);

// Whether a value under this name must be removed: not counts called token, and not a working
// directory.
bool is_secret_value(std::string_view name, std::string_view value);

// A run of key characters that begins like the keys of some service, and is as long and as random.
bool starts_like_key(std::string_view run);

// The same, also after a prefix: "my-ghp_...".
bool is_key_shape(std::string_view run);

// --use-auth-token and similar flags are switches: the next argument is not their value.
bool takes_no_value(std::string_view flag);

}  // namespace gpuwhy
