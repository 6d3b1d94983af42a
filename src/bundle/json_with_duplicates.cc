// SPDX-License-Identifier: Apache-2.0
//
// JSON parser that keeps all values of duplicate keys.
//
// JSON allows a key to appear twice, and readers keep the last value. The first one is still in the
// file, so a search for secrets must see it. This parser builds a tree that has both.
#include "bundle/json_with_duplicates.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"

namespace gpuwhy {
namespace {

// Handler of nlohmann's parser events (json_sax_t). While a container is open it is the last
// element of its parent, so pointers to open containers stay valid.
class WholeJsonBuilder {
 public:
  bool null() { return add(nullptr) != nullptr; }
  bool boolean(bool value) { return add(value) != nullptr; }
  bool number_integer(Json::number_integer_t value) { return add(value) != nullptr; }
  bool number_unsigned(Json::number_unsigned_t value) { return add(value) != nullptr; }
  bool number_float(Json::number_float_t value, const std::string& /*text*/) {
    return add(value) != nullptr;
  }
  bool string(std::string& value) { return add(std::move(value)) != nullptr; }
  bool binary(Json::binary_t& /*value*/) { return false; }
  bool start_object(std::size_t /*size*/) { return open(Json::object()); }
  bool start_array(std::size_t /*size*/) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                   const Json::exception& /*error*/) {
    return false;
  }

  Json take() { return std::move(root_); }

 private:
  Json* add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& container = *open_.back();
    if (container.is_array()) {
      container.push_back(std::move(value));
      return &container.back();
    }
    append_key(container, std::move(key_), std::move(value));
    return &container.get_ref<Json::object_t&>().back().second;
  }

  bool open(Json container) {
    open_.push_back(add(std::move(container)));
    return open_.size() <= kDeepestJson;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Json*> open_;
  std::string key_;
};

}  // namespace

Json parse_whole_json(std::string_view text, const std::string& name) {
  WholeJsonBuilder builder;
  if (!Json::sax_parse(text, &builder)) {
    throw Error(ErrorKind::kInput, fmt::format("{} is not valid JSON, or nested too deep", name));
  }
  return builder.take();
}

void append_key(Json& object, std::string key, Json value) {
  object.get_ref<Json::object_t&>().Container::emplace_back(std::move(key), std::move(value));
}

}  // namespace gpuwhy
