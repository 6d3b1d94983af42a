// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "bundle/secret_values.h"

namespace gpuwhy {

// The replacement for a secret.
inline constexpr std::string_view kScrubbed = "[scrubbed]";

// `text` with all secrets replaced: by format (hf_..., sk-..., a JSON web token, a private key, the
// password of a URL) or by the name before them (token=..., "api_key": "...", Authorization: Bearer
// ...).
std::string scrub_text(std::string_view text);

// Values of variables whose names say "secret", if they have eight or more characters: programs may
// print them without their names.
std::vector<std::string> secret_values(const std::map<std::string, std::string>& environment);

// scrub_text(), and every occurrence of `values` replaced too.
std::string scrub_text(std::string_view text, const SecretValues& values);

// Whether a private key begins in `text` and continues after its end.
bool ends_in_private_key(std::string_view text);

// Adds to `removed` the parts of `text` that are missing in `clean`, which is `text` with parts
// replaced by kScrubbed. Short ones are skipped, because they occur in other words.
void add_removed(std::string_view text, std::string_view clean, SecretValues& removed);

// One argument or environment entry: the value after a revealing name is all of the rest.
std::string scrub_argument(const std::string& argument);

// An argument list; the value after a flag such as --token is replaced too.
std::vector<std::string> scrub_arguments(const std::vector<std::string>& arguments);

// A JSON tree, by key and by format.
Json scrub_tree(const Json& tree);

// A tree without the values: every text of it as scrub_text() gives it, including keys.
Json without_values(const Json& tree, const SecretValues& values);

// The variables that explain how a program ran, without secrets. All others are dropped: an
// environment contains anything, and no list of secrets is complete.
std::map<std::string, std::string> scrub_environment(
    const std::map<std::string, std::string>& environment);

}  // namespace gpuwhy
