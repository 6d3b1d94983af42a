// SPDX-License-Identifier: Apache-2.0
//
// What is a secret: by the name before it, and by the shape of the thing itself.
#pragma once

#include <string_view>

namespace llmprof {

// Of ASCII alone, whatever the locale.
inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
inline bool is_alnum(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Names and keys are made of these. '+', '/' and '=' occur in base64 keys only after their first
// characters.
inline bool is_name_char(char c) {
  return is_alnum(c) || c == '_' || c == '-' || c == '.';
}
inline bool is_key_char(char c) {
  return is_name_char(c) || c == '+' || c == '/' || c == '~' || c == '=';
}

// True for HF_TOKEN, --api-key, aws.secretAccessKey; false for max_tokens, eos_token, tokenizer.
bool is_secret_name(std::string_view name);

// Whether a value under this name is to go: counts that are called token are not, nor is a working
// directory.
bool is_secret_value(std::string_view name, std::string_view value);

// A run of key characters that begins as the keys of some service do, and is as long and as random.
bool starts_like_key(std::string_view run);

// The same, also behind a prefix: "my-ghp_...".
bool is_key_shape(std::string_view run);

// --use-auth-token and its like are switches: what follows is somebody else's.
bool takes_no_value(std::string_view flag);

}  // namespace llmprof
