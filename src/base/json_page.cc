// SPDX-License-Identifier: Apache-2.0
//
// Division of a JSON document into pages.
//
// A page is the document itself with everything before `from` and after `next` left out, so pages
// put together give the document again.
#include "base/json_page.h"

#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/parse_number.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

using Place = std::vector<std::size_t>;  // which child at each depth

// The child of that number with its key; of an array the key is empty.
std::pair<std::string, const Json*> child_of(const Json& value, std::size_t number) {
  if (value.is_array()) {
    return {"", &value[number]};
  }
  const auto first = value.get_ref<const Json::object_t&>().begin();
  const auto& [key, child] = first[static_cast<std::ptrdiff_t>(number)];
  return {key, &child};
}

// A key in an address: "~" and "/" are written as ~0 and ~1.
std::string escaped_key(const std::string& key) {
  std::string escaped;
  for (const char c : key) {
    escaped += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return escaped;
}

std::string address_of(const Json& document, const Place& place) {
  std::string address;
  const Json* value = &document;
  for (const std::size_t number : place) {
    const auto [key, child] = child_of(*value, number);
    address += "/" + (value->is_array() ? fmt::to_string(number) : escaped_key(key));
    value = child;
  }
  return address;
}

// An address of another document, or of this one before its recording changed.
[[noreturn]] void fail_address(const std::string& address) {
  throw Error(ErrorKind::kUsage,
              fmt::format("the document has no address '{}'", printable(address)),
              "take it from `next` of the page before, of the same document");
}

// The place of an address. Numbers of rows have no sign and no leading blanks.
Place place_of(const Json& document, const std::string& address) {
  Place place;
  const Json* value = &document;
  if (!address.empty() && address[0] != '/') {
    fail_address(address);
  }
  std::vector<std::string_view> words = split(address, '/');
  words.erase(words.begin());  // before the first "/"
  for (const std::string_view word : words) {
    std::size_t number = 0;
    if (value->is_array()) {
      const auto row = parse_whole(word);
      if (!row || *row < 0 || static_cast<std::size_t>(*row) >= value->size()) {
        fail_address(address);
      }
      number = static_cast<std::size_t>(*row);
    } else {
      const std::size_t size = value->is_object() ? value->size() : 0;
      while (number < size && escaped_key(child_of(*value, number).first) != word) {
        ++number;
      }
      if (number == size) {
        fail_address(address);
      }
    }
    place.push_back(number);
    value = child_of(*value, number).second;
  }
  return place;
}

// Fills a page. Sizes are those of the JSON on one line.
//
// Brackets, keys, colons and commas are subtracted from the room before what they belong to. A
// comma is counted for the last child too, so a page may be some bytes smaller than it could be.
class PageFiller {
 public:
  explicit PageFiller(std::size_t room_bytes) : page_bytes_(room_bytes), room_(room_bytes) {}

  // As much of `value` as there is room for, from `from` on; nullopt: none of it. `stop` learns
  // the first place that is not in, in the order of the document; empty: all is in.
  std::optional<Json> take(const Json& value, const Place& from, std::size_t depth, Place& stop) {
    if (depth >= from.size()) {
      const std::size_t size = to_json_line(value).size();
      if (size <= room_) {
        room_ -= size;
        return value;
      }
      // It waits for the next page, unless that could not hold it either.
      if (has_any_ && size <= page_bytes_) {
        return std::nullopt;
      }
      if (!value.is_structured()) {
        return has_any_ ? std::nullopt : std::optional<Json>(cut(value));
      }
    }
    return take_children(value, from, depth, stop);
  }

 private:
  // Children one after the other, until one does not fit. A container of which nothing fits is not
  // taken either: an empty list would say that there are no rows.
  std::optional<Json> take_children(const Json& value, const Place& from, std::size_t depth,
                                    Place& stop) {
    constexpr std::size_t kBrackets = 2;
    if (room_ < kBrackets) {
      return std::nullopt;
    }
    room_ -= kBrackets;
    Json taken = value.is_array() ? Json::array() : Json::object();
    std::size_t number = depth < from.size() ? from[depth] : 0;
    const Place whole;  // children after the first are taken from their start
    for (bool is_first = true; number < value.size(); ++number, is_first = false) {
      const auto [key, child] = child_of(value, number);
      // The key as JSON writes it, its colon, and a comma.
      const std::size_t extra = (value.is_array() ? 0 : to_json_line(key).size() + 1) + 1;
      std::optional<Json> part;
      Place inner;
      if (room_ > extra) {
        room_ -= extra;
        const bool continues = is_first && depth + 1 < from.size();
        part = take(*child, continues ? from : whole, continues ? depth + 1 : 0, inner);
        room_ += part ? 0 : extra;
      }
      if (part) {
        has_any_ = true;
        if (value.is_array()) {
          taken.push_back(std::move(*part));
        } else {
          taken[key] = std::move(*part);
        }
      }
      if (!part || !inner.empty()) {
        stop.assign(1, number);
        stop.insert(stop.end(), inner.begin(), inner.end());
        break;
      }
    }
    if (taken.empty() && !stop.empty()) {
      room_ += kBrackets;
      stop.clear();
      return std::nullopt;
    }
    return taken;
  }

  // A text that no page holds: its beginning, and how long it is. Half as much is tried each time,
  // because escapes make its length in JSON hard to foresee.
  Json cut(const Json& value) {
    const std::string text = value.is_string() ? value.get<std::string>() : to_json_line(value);
    const std::string end = fmt::format("... ({} bytes)", text.size());
    std::size_t kept = text.size();
    Json shown;
    do {
      kept /= 2;
      while (kept > 0 && (static_cast<unsigned char>(text[kept]) & 0xC0U) == 0x80U) {
        --kept;  // not inside a character
      }
      shown = text.substr(0, kept) + end;
    } while (kept > 0 && to_json_line(shown).size() > room_);
    room_ -= std::min(room_, to_json_line(shown).size());
    return shown;
  }

  std::size_t page_bytes_;
  std::size_t room_;
  bool has_any_ = false;  // a value is in
};

}  // namespace

std::string json_page(const Json& document, const PageRequest& request) {
  if (request.max_tokens < kLeastTokens) {
    throw Error(ErrorKind::kUsage,
                fmt::format("a page of {} tokens is too small", request.max_tokens),
                fmt::format("at least {}", kLeastTokens));
  }
  const Place from = place_of(document, request.after);
  Json page = json_document("page", 1);
  page["from"] = address_of(document, from);
  page["next"] = nullptr;
  page["value"] = nullptr;
  const auto whole = static_cast<std::size_t>(request.max_tokens) * kBytesPerToken;
  std::size_t head = to_json_line(page).size();
  std::string text;
  do {
    PageFiller filler(whole > head ? whole - head : 0);
    Place stop;
    auto value = filler.take(document, from, 0, stop);
    if (!value) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("a page of {} tokens is too small for '{}'", request.max_tokens,
                              printable(address_of(document, from))),
                  "ask for more tokens");
    }
    page["value"] = std::move(*value);
    page["next"] = stop.empty() ? Json(nullptr) : Json(address_of(document, stop));
    text = to_json_line(page);
    head += text.size() > whole ? text.size() - whole : 0;  // the address took room
  } while (text.size() > whole);
  return text;
}

std::string json_page(std::string_view text, const PageRequest& request) {
  return json_page(parse_json(text, "the document"), request);
}

}  // namespace gpuwhy
