// SPDX-License-Identifier: Apache-2.0
//
// Pages of JSON documents: answers that fit a budget of tokens, for programs that read by language
// model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json_fwd.h"

namespace gpuwhy {

// The bytes that a token is counted as: JSON with numbers has three to four per token, so a page
// is rather smaller than its budget.
inline constexpr std::size_t kBytesPerToken = 3;

// The least budget: below it a page has no room for a row.
inline constexpr std::int64_t kLeastTokens = 200;

// Where a page begins: an address in the document, as /kernels/12 (RFC 6901). Empty: the start.
struct PageRequest {
  std::int64_t max_tokens = 0;
  std::string after;
};

// {"schema": "gpuwhy.page", "schema_version": 1, "from", "next", "value"} on one line, of at most
// max_tokens * kBytesPerToken bytes. `value` holds the part of `document` from the address
// `from` up to the address `next`, in the order of the document; `next` is null on the last page.
// Rows stay whole if a page can hold them, and a text that no page can hold is cut, ending in
// "... (N bytes)". Throws kUsage if the budget is too small or there is no such address.
std::string json_page(const Json& document, const PageRequest& request);

// The same of a document that is text already.
std::string json_page(std::string_view text, const PageRequest& request);

}  // namespace gpuwhy
