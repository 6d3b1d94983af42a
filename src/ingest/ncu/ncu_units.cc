// SPDX-License-Identifier: Apache-2.0
//
// Units of Nsight Compute metrics, in printed tables and in reports.
//
// Tables scale each cell or column for reading (2.33 Mbyte next to 0 byte) and spell units
// differently by release (usecond, us). Reports contain base units and no unit names. Here prefixes
// are removed from printed units, and the unit of a report's metric is derived from its name, whose
// grammar NVIDIA documents (unit__quantity.rollup.submetric). A name that does not follow the
// grammar gets no unit rather than a guess.
#include "ingest/ncu/ncu_units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace gpuwhy {
namespace {

// Powers of ten by prefix; decimal for bytes too (a raw page in both units shows it).
constexpr std::array<std::pair<char, double>, 9> kPrefixes = {{{'n', 1e-9},
                                                               {'u', 1e-6},
                                                               {'m', 1e-3},
                                                               {'K', 1e3},
                                                               {'k', 1e3},
                                                               {'M', 1e6},
                                                               {'G', 1e9},
                                                               {'T', 1e12},
                                                               {'P', 1e15}}};

// What may follow a prefix: spelling -> base unit and factor.
struct Stem {
  std::string_view spelling;
  std::string_view base;
  double factor;
};
constexpr Stem kStems[] = {
    {"byte", "byte", 1},   {"bit", "bit", 1},         {"second", "nsecond", 1e9},
    {"s", "nsecond", 1e9}, {"hz", "cycle/second", 1}, {"Hz", "cycle/second", 1},
    {"cycle", "cycle", 1}, {"inst", "inst", 1},
};

// The whole spelling first, then one prefix letter: "msecond" is milli, "second" is none.
UnitScale scale_of_part(std::string_view part) {
  for (const Stem& stem : kStems) {
    if (part == stem.spelling) {
      return {std::string(stem.base), stem.factor};
    }
    if (part.size() == stem.spelling.size() + 1 && part.substr(1) == stem.spelling) {
      for (const auto& [prefix, power] : kPrefixes) {
        if (part[0] == prefix) {
          return {std::string(stem.base), stem.factor * power};
        }
      }
    }
  }
  return {std::string(part), 1};
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Whether commas separate thousands: "1,024.00", not "1,2".
bool has_thousands_separators(std::string_view text) {
  const std::size_t point = std::min(text.find('.'), text.size());
  std::size_t since = 0;
  bool seen = false;
  for (std::size_t i = text[0] == '-' ? 1 : 0; i < point; ++i) {
    if (text[i] == ',') {
      if ((seen && since != 3) || since == 0 || since > 3) {
        return false;
      }
      seen = true;
      since = 0;
    } else if (is_digit(text[i])) {
      ++since;
    } else {
      return false;
    }
  }
  return seen && since == 3;
}

std::string_view quantity_unit(std::string_view quantity) {
  if (quantity.find("bytes") != std::string_view::npos) {
    return "byte";
  }
  if (quantity.find("time_duration") != std::string_view::npos) {
    return "nsecond";
  }
  if (quantity.starts_with("cycles_") || quantity.ends_with("_cycles")) {
    return "cycle";
  }
  if (quantity.starts_with("inst_executed") || quantity.starts_with("inst_issued") ||
      quantity.starts_with("sass_thread_inst_executed")) {
    return "inst";
  }
  return "";
}

}  // namespace

UnitScale unit_scale(std::string_view unit) {
  const std::size_t slash = unit.find('/');
  if (slash == std::string_view::npos) {
    return scale_of_part(unit);
  }
  const UnitScale above = scale_of_part(unit.substr(0, slash));
  const UnitScale below = scale_of_part(unit.substr(slash + 1));
  // Rates are per second, although durations are in nanoseconds.
  if (below.base == "nsecond") {
    return {above.base + "/second", above.factor / (below.factor / 1e9)};
  }
  return {above.base + "/" + below.base, above.factor / below.factor};
}

// No locale: ncu writes a decimal point, with or without thousands separators.
std::optional<double> parse_number(std::string_view text) {
  constexpr std::size_t kLongest = 64;  // digits and separators; ncu prints nothing longer
  if (text.empty() || text.size() > kLongest) {
    return std::nullopt;
  }
  char plain[kLongest];
  std::size_t size = 0;
  const bool skip_commas = has_thousands_separators(text);
  for (const char c : text) {
    if (c != ',' || !skip_commas) {
      plain[size++] = c;
    }
  }
  double value = 0;
  const auto [end, failure] = std::from_chars(plain, plain + size, value);
  if (failure != std::errc() || end != plain + size || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::string_view unit_of_metric(std::string_view metric) {
  // Defined by a section file, or per instruction: the words of the name are not the unit.
  if (metric.starts_with("derived__") || metric.starts_with("sass__") ||
      metric.find("__") == std::string_view::npos) {
    return "";
  }
  if (metric.starts_with("launch__shared_mem_per_block")) {
    return "byte/block";
  }
  if (metric.starts_with("launch__registers_per_thread")) {
    return "register/thread";
  }
  if (metric.find("pct_of_peak") != std::string_view::npos || metric.ends_with(".pct")) {
    return "%";
  }
  // The quantity gives the unit, the rollup turns it into a rate.
  const std::string_view rest = metric.substr(metric.find("__") + 2);
  const std::size_t point = std::min(rest.find('.'), rest.size());
  const std::string_view unit = quantity_unit(rest.substr(0, point));
  const std::string_view rollup = rest.substr(point);
  static constexpr std::pair<std::string_view, std::string_view> kRates[] = {
      {"byte", "byte/second"}, {"cycle", "cycle/second"}, {"inst", "inst/second"}};
  static constexpr std::pair<std::string_view, std::string_view> kPerCycle[] = {
      {"byte", "byte/cycle"}, {"cycle", ""}, {"inst", "inst/cycle"}};
  if (rollup.ends_with(".ratio") || rollup.find("max_rate") != std::string_view::npos) {
    return "";
  }
  if (rollup.find("per_second") != std::string_view::npos) {
    const auto* at =
        std::ranges::find_if(kRates, [&](const auto& row) { return row.first == unit; });
    return at == std::end(kRates) ? "" : at->second;
  }
  if (rollup.find("peak_sustained") != std::string_view::npos ||
      rollup.find("per_cycle") != std::string_view::npos) {
    const auto* at =
        std::ranges::find_if(kPerCycle, [&](const auto& row) { return row.first == unit; });
    return at == std::end(kPerCycle) ? "" : at->second;
  }
  return unit;
}

}  // namespace gpuwhy
