// SPDX-License-Identifier: Apache-2.0
//
// Changes of inputs that keep their form: what comes out is still SQLite, JSON, YAML or GGUF, with
// another schema, other keys or other values. Random bytes are nearly always refused by the first
// parser, so the code behind it is hardly ever tried.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/random.h"

namespace gpuwhy {

// A changed copy of `bytes`, of at most `most_bytes`; none where they are not of this form.
std::optional<std::string> changed_sqlite(std::string_view bytes, std::size_t most_bytes,
                                          Random& random);
std::optional<std::string> changed_kineto(std::string_view bytes, std::size_t most_bytes,
                                          Random& random);
std::optional<std::string> changed_json(std::string_view bytes, std::size_t most_bytes,
                                        Random& random);
std::optional<std::string> changed_json_lines(std::string_view bytes, std::size_t most_bytes,
                                              Random& random);
std::optional<std::string> changed_yaml(std::string_view bytes, std::size_t most_bytes,
                                        Random& random);
std::optional<std::string> changed_safetensors(std::string_view bytes, std::size_t most_bytes,
                                               Random& random);
std::optional<std::string> changed_gguf(std::string_view bytes, std::size_t most_bytes,
                                        Random& random);

// A copy that repeats rows, events or members until it has about `wanted_bytes`, one after the
// other in time; with chance one of their values differs in every copy.
std::optional<std::string> grown_sqlite(std::string_view bytes, std::size_t wanted_bytes,
                                        Random& random);
std::optional<std::string> grown_kineto(std::string_view bytes, std::size_t wanted_bytes,
                                        Random& random);

std::optional<std::string> grown_json(std::string_view bytes, std::size_t wanted_bytes,
                                      Random& random);
std::optional<std::string> grown_yaml(std::string_view bytes, std::size_t wanted_bytes,
                                      Random& random);

}  // namespace gpuwhy
