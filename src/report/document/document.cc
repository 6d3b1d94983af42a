// SPDX-License-Identifier: Apache-2.0
//
// Formatting of report values, the same in every output.
#include "report/document/document.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/cut_name.h"
#include "base/text.h"
#include "base/units.h"
#include "report/words/glossary.h"

namespace gpuwhy {
namespace {

// 6.89e11 as "689 G": FLOPs are counted in thousands, not in powers of two.
std::string scaled_text(double number) {
  static constexpr const char* kPrefixes[] = {"", " k", " M", " G", " T", " P", " E", " Z"};
  constexpr double kStep = 1000;
  std::size_t i = 0;
  while (i + 1 < std::size(kPrefixes) && std::abs(number) >= kStep - 0.5) {
    number /= kStep;
    ++i;
  }
  return fmt::format("{:.3g}{}", number, kPrefixes[i]);
}

std::string number_text(double number, CellFormat unit) {
  // Untrusted numbers may be anything; an impossible duration is not shown as one.
  constexpr double kLargest = 9e18;
  if (!(std::abs(number) < kLargest) && unit != CellFormat::kFlops) {
    return "n/a";
  }
  switch (unit) {
    case CellFormat::kText:
    case CellFormat::kName:
    case CellFormat::kWholeName:
    case CellFormat::kShares:
      return fmt::format("{}", number);
    case CellFormat::kCount:
      return fmt::format("{:.0f}", number);
    case CellFormat::kDuration:
      return format_duration_ns(std::llround(number));
    case CellFormat::kMilliseconds:
      return fmt::format("{:.6f}", number / 1e6);
    case CellFormat::kFraction:
      return format_fraction(number);
    case CellFormat::kSmallRatio:
      return std::abs(number) < 0.01 ? fmt::format("{:.3g} %", number * 100)
                                     : format_fraction(number);
    case CellFormat::kRate:
      return fmt::format("{:.1f}", number);
    case CellFormat::kBytes:
      return number < 0 ? "n/a" : format_bytes(static_cast<std::uint64_t>(number));
    case CellFormat::kFlops:
      return scaled_text(number);
    case CellFormat::kTeraflops:
      return fmt::format("{:.1f}", number / 1e12);
    case CellFormat::kBytesPerSecond:
      return number < 1e12 ? fmt::format("{:.3g} GB/s", number / 1e9)
                           : fmt::format("{:.2f} TB/s", number / 1e12);
    case CellFormat::kDifference:
      return (number < 0 ? "-" : "+") + format_duration_ns(std::llround(std::abs(number)));
    case CellFormat::kRatio:
      return format_change(number - 1, 2);
  }
  return "";
}

// Parts with any time, largest first.
std::string shares_text(const TimeParts& parts) {
  double whole = 0;
  std::vector<std::pair<double, std::string>> rows;
  for (const auto& [name, part_ns] : parts) {
    if (part_ns > 0) {
      rows.emplace_back(static_cast<double>(part_ns), printable(bucket_label(name)));
      whole += static_cast<double>(part_ns);
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  constexpr double kLeastShare = 0.0005;  // what would be read as 0.0 % is left out
  for (const auto& [part, name] : rows) {
    if (part < kLeastShare * whole) {
      continue;
    }
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                        format_fraction(part / std::max(whole, 1.0)));
  }
  return text;
}

}  // namespace

bool is_number(CellFormat unit) {
  return unit != CellFormat::kText && unit != CellFormat::kName && unit != CellFormat::kWholeName &&
         unit != CellFormat::kShares;
}

const char* format_word(CellFormat unit) {
  switch (unit) {
    case CellFormat::kText:
    case CellFormat::kName:
    case CellFormat::kWholeName:
      return "text";
    case CellFormat::kCount:
      return "1";
    case CellFormat::kDuration:
    case CellFormat::kMilliseconds:
    case CellFormat::kShares:
    case CellFormat::kDifference:
      return "ns";
    case CellFormat::kRatio:
    case CellFormat::kFraction:
    case CellFormat::kSmallRatio:
      return "fraction";
    case CellFormat::kRate:
      return "1/s";
    case CellFormat::kBytes:
      return "bytes";
    case CellFormat::kFlops:
      return "FLOP";
    case CellFormat::kTeraflops:
      return "FLOP/s";
    case CellFormat::kBytesPerSecond:
      return "bytes/s";
  }
  return "";
}

std::optional<double> ReportValue::number() const {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return static_cast<double>(*integer);
  }
  const auto* real = std::get_if<double>(&value);
  return real == nullptr ? std::nullopt : std::optional(*real);
}

std::string shown(const ReportValue& value) {
  if (const auto* parts = std::get_if<TimeParts>(&value.value)) {
    return shares_text(*parts);
  }
  if (value.text() != nullptr) {
    return printable(value.unit == CellFormat::kText ? cut_name(*value.text()) : *value.text());
  }
  const auto* integer = std::get_if<std::int64_t>(&value.value);
  if (integer != nullptr && (value.unit == CellFormat::kCount || value.unit == CellFormat::kText)) {
    return std::to_string(*integer);
  }
  const std::optional<double> number = value.number();
  return number ? number_text(*number, value.unit) : "n/a";
}

std::string worth_text(const AdviceCell& advice, const char* blocker, const char* saving) {
  if (advice.is_blocker) {
    return blocker;
  }
  return advice.saving_ns ? saving + format_duration_ns(*advice.saving_ns) : "";
}

}  // namespace gpuwhy
