// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace llmprof {

// `bytes` as a gzip file; the same bytes give the same file.
std::string gzip(std::string_view bytes);

}  // namespace llmprof
