// SPDX-License-Identifier: Apache-2.0
//
// Parser of key=value overrides: the part of Hydra's grammar that people type.
//
// No interpolation, no functions, no sweeps; the rest fits on one line of help.
//
// Only a value that opens like a list, a mapping or a quotation is parsed as YAML. Parsing every
// value would turn `note=a: b` into a mapping, which nobody who types it expects.
#include "config/override.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "base/yaml.h"

namespace gpuwhy {
namespace {

bool is_key(std::string_view text) {
  constexpr std::string_view kCharacters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
  const auto pieces = split(text, '.');
  return text.find_first_not_of(kCharacters) == std::string_view::npos &&
         std::none_of(pieces.begin(), pieces.end(),
                      [](std::string_view piece) { return piece.empty(); });
}

}  // namespace

Override parse_override(const std::string& argument) {
  Override parsed;
  parsed.argument = argument;
  std::string_view rest = argument;
  // "+" and "++" are both accepted, as in Hydra; here they mean the same.
  if (rest.starts_with('~')) {
    parsed.action = Override::Action::kRemove;
    rest.remove_prefix(1);
  } else if (rest.starts_with('+')) {
    parsed.action = Override::Action::kAdd;
    rest.remove_prefix(rest.starts_with("++") ? 2 : 1);
  }
  const std::size_t equals = rest.find('=');
  const bool has_value = equals != std::string_view::npos;
  parsed.key = rest.substr(0, equals);
  parsed.value = has_value ? rest.substr(equals + 1) : "";
  // A removal must not have a value, everything else must.
  if (!is_key(parsed.key) || has_value == (parsed.action == Override::Action::kRemove)) {
    throw Error(ErrorKind::kUsage, fmt::format("'{}' is not an override", printable(argument)),
                "write key.sub=value, +new.key=value, ~key or group/name=preset");
  }
  return parsed;
}

Json parse_value(const Override& given) {
  if (given.value.empty()) {
    return "";
  }
  if (std::string_view("[{\"'").find(given.value.front()) == std::string_view::npos) {
    return resolve_yaml_scalar(given.value);
  }
  try {
    return parse_yaml(given.value, "value");
  } catch (const Error& error) {
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}' is not YAML ({})", printable(given.argument), error.message()),
                "quote the whole argument for the shell, as in 'pipeline.nsys.trace=[cuda, nvtx]'");
  }
}

}  // namespace gpuwhy
