// SPDX-License-Identifier: Apache-2.0
//
// Recognition of secrets: by the name before them and by their own format.
#pragma once

#include <string_view>

namespace llmprof {

// ASCII only, whatever the locale.
inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
inline bool is_alnum(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Characters of names and keys. '+', '/' and '=' occur in base64 keys only after the first
// characters.
inline bool is_name_char(char c) {
  return is_alnum(c) || c == '_' || c == '-' || c == '.';
}
inline bool is_key_char(char c) {
  return is_name_char(c) || c == '+' || c == '/' || c == '~' || c == '=';
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

}  // namespace llmprof
