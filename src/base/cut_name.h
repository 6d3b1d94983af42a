// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gpuwhy {

// A name for a page that people read: at most 200 bytes, then "...". Whole names are in
// metrics.json and in tables for other programs.
std::string cut_name(std::string_view name);

// The same as printable(): every name that becomes part of a sentence.
std::string printable_name(std::string_view name);

}  // namespace gpuwhy
