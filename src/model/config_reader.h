// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"

namespace gpuwhy {

// Typed access to an untrusted configuration. A key with a wrong type, or with a size outside
// 1..2^31, throws kInput with its name. A null counts as absent.
class ConfigReader {
 public:
  // `where` is the name of the mapping, for messages; empty for the root. `config` must outlive it.
  ConfigReader(const Json& config, std::string where);

  // The first of `keys` that is present. If none is: throws, or returns `otherwise`.
  std::int64_t size(std::initializer_list<const char*> keys) const;
  std::int64_t size(std::initializer_list<const char*> keys, std::int64_t otherwise) const;
  std::optional<std::int64_t> find_size(std::initializer_list<const char*> keys) const;
  // The same, but 0 is allowed.
  std::int64_t count(const char* key, std::int64_t otherwise) const;

  bool has(const char* key) const;
  // Keys whose value is not null, zero, false or empty.
  std::vector<std::string> set_keys() const;
  bool has_object(const char* key) const;
  bool has_list(const char* key) const;
  std::string text(const char* key, const std::string& otherwise) const;
  bool flag(const char* key, bool otherwise) const;
  std::optional<bool> find_flag(const char* key) const;
  // A list of counts; at most a few thousand.
  std::vector<std::int64_t> sizes(const char* key, std::vector<std::int64_t> otherwise) const;
  std::vector<std::string> texts(const char* key) const;
  // The mapping at `key`; empty if absent.
  const Json& object(const char* key) const;

 private:
  const Json* find(const char* key) const;
  [[noreturn]] void fail(const char* key, const Json& value, const char* wanted) const;
  std::int64_t whole(const char* key, const Json& value, std::int64_t least) const;

  const Json& config_;
  std::string where_;
};

}  // namespace gpuwhy
