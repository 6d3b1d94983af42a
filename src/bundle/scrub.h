// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "bundle/secret_values.h"

namespace llmprof {

// What stands in a bundle where a secret stood.
inline constexpr std::string_view kScrubbed = "[scrubbed]";

// `text` with every part replaced that is a secret by its shape (hf_..., sk-..., a JSON web token,
// a private key, the password of a URL) or by the name before it (token=..., "api_key": "...",
// Authorization: Bearer ...).
std::string scrub_text(std::string_view text);

// Values of variables whose names say "secret", eight characters and more: what a program may print
// without their names.
std::vector<std::string> secret_values(const std::map<std::string, std::string>& environment);

// scrub_text(), and every occurrence of `values` replaced too.
std::string scrub_text(std::string_view text, const SecretValues& values);

// Whether a private key begins in `text` and goes on behind its end.
bool ends_in_private_key(std::string_view text);

// Adds to `removed` what of `text` is not in `clean`, which is `text` with parts replaced by
// kScrubbed. Short ones are left out: they occur in other words.
void add_removed(std::string_view text, std::string_view clean, SecretValues& removed);

// An argument list; the value that follows a flag like --token is replaced too.
std::vector<std::string> scrub_arguments(const std::vector<std::string>& arguments);

// A tree of values, by key and by shape.
Json scrub_tree(const Json& tree);

// The variables that explain how a program ran, scrubbed. All others stay out: an environment holds
// whatever its owner put there, and no list of secrets is complete.
std::map<std::string, std::string> scrub_environment(
    const std::map<std::string, std::string>& environment);

}  // namespace llmprof
