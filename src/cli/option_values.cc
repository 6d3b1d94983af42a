// SPDX-License-Identifier: Apache-2.0
//
// Values of options: one reading, one error and one form in help for each type of target.
#include "cli/option_values.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "base/units.h"

namespace gpuwhy {
namespace {

[[noreturn]] void refuse(const Option& option, const std::string& wanted, const std::string& text,
                         const char* hint = "") {
  throw Error(ErrorKind::kUsage,
              fmt::format("{} takes {}, not '{}'", option.long_name(), wanted, printable(text)),
              hint);
}

std::int64_t whole_number(const Option& option, const std::string& text, std::int64_t least,
                          std::int64_t most, const char* or_else = "") {
  const auto number = parse_whole(text);
  const bool is_digits = text.find_first_not_of("0123456789") == std::string::npos;
  if (number ? *number > most : is_digits) {
    refuse(option, fmt::format("at most {}", most), text);
  }
  if (!number || *number < least) {
    refuse(option, fmt::format("a whole number of at least {}{}", least, or_else), text);
  }
  return *number;
}

void read_value(const Option& /*option*/, const std::string& text, std::string& value) {
  value = text;
}

void read_value(const Option& option, const std::string& text, std::int64_t& value) {
  value = whole_number(option, text, 1, option.most);
}

void read_value(const Option& option, const std::string& text, std::uint32_t& value) {
  value = static_cast<std::uint32_t>(whole_number(option, text, 0, UINT32_MAX));
}

void read_value(const Option& option, const std::string& text, std::uint64_t& value) {
  const auto bytes = parse_bytes(text);
  if (!bytes) {
    refuse(option, "a size", text, "as 4GiB, 500MB or 1048576");
  }
  value = *bytes;
}

void read_value(const Option& option, const std::string& text, double& value) {
  const auto fraction = parse_percent(text);
  if (!fraction) {
    refuse(option, "a percentage above 0 and below 1000", text, "as 1, 2.5 or '5 %'");
  }
  value = *fraction;
}

void read_value(const Option& option, const std::string& text, RowLimit& value) {
  value = {SIZE_MAX, true};
  if (text != "all") {
    value.rows = static_cast<std::size_t>(whole_number(option, text, 1, option.most, ", or all"));
  }
}

void read_value(const Option& option, const std::string& text, std::chrono::nanoseconds& value) {
  const auto time_ns = parse_duration_ns(text);
  if (!time_ns) {
    refuse(option, "a time", text, "as 2s, 1.5s, 150ms, 40us or 900ns; a bare number is seconds");
  }
  value = std::chrono::nanoseconds(*time_ns);
}

void read_value(const Option& option, const std::string& text, StepSpan& value) {
  const std::optional<StepSpan> steps = parse_steps(text);
  if (!steps) {
    refuse(option, "numbers of steps", text, "as 10..20, 10.. or 10; the first step is 0");
  }
  value = *steps;
}

template <typename T>
void read_value(const Option& option, const std::string& text, std::optional<T>& value) {
  read_value(option, text, value.emplace());
}

// Flags and lists are CLI11's to fill in.
void read_value(const Option& /*option*/, const std::string& /*text*/, bool& /*value*/) {}
void read_value(const Option& /*option*/, const std::string& /*text*/,
                std::vector<std::string>& /*value*/) {}

std::string value_text(const std::string& value) {
  return value;
}

std::string value_text(std::int64_t value) {
  return fmt::format("{}", value);
}

std::string value_text(std::uint64_t bytes) {
  constexpr std::uint64_t kMB = 1'000'000;
  return bytes % kMB == 0 ? fmt::format("{}MB", bytes / kMB) : fmt::format("{}", bytes);
}

std::string value_text(double fraction) {
  return fmt::format("{:g} %", fraction * 100);
}

std::string value_text(const RowLimit& value) {
  return fmt::format("{}", value.rows);
}

// Flags, lists and what is optional have no default.
template <typename T>
std::string value_text(const T& /*value*/) {
  return "";
}

}  // namespace

void set_value(const Option& option, const std::string& text) {
  std::visit([&](auto* target) { read_value(option, text, *target); }, option.target);
}

std::string default_text(const Option& option) {
  return std::visit([](const auto* target) { return value_text(*target); }, option.target);
}

}  // namespace gpuwhy
