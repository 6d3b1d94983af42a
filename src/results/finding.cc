// SPDX-License-Identifier: Apache-2.0
//
// Texts of bounds, advice and verdicts in files: written and read here alone.
#include "results/finding.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"

namespace gpuwhy {
namespace {

constexpr std::string_view kAlsoFixed = "also fixed by ";
constexpr std::string_view kAfter = " (after ";

// A text of each kind of bound.
struct BoundText {
  std::string operator()(std::monostate /*nothing*/) const { return ""; }
  std::string operator()(const std::string& of_file) const { return of_file; }
  std::string operator()(const AllOf& all) const {
    return fmt::format("all of {}: {}", all.what, format_duration_ns(all.time_ns));
  }
  std::string operator()(const Difference& one) const {
    return fmt::format("{} {} - {} {} = {}", format_duration_ns(one.whole_ns), one.what,
                       format_duration_ns(one.rest_ns), one.which,
                       format_duration_ns(one.whole_ns - one.rest_ns));
  }
  std::string operator()(const Product& one) const {
    const double product_ns = static_cast<double>(one.time_ns) * one.factor;
    return fmt::format("{} {} x {:.3g} ({}) = {}", format_duration_ns(one.time_ns), one.what,
                       one.factor, one.why,
                       format_duration_ns(static_cast<std::int64_t>(product_ns)));
  }
  std::string operator()(const BeyondLongerChain& one) const {
    return fmt::format(
        "{} from the first work to the last - {}, the longer of the CPU's own work and the GPU's = "
        "{}",
        format_duration_ns(one.window_ns), format_duration_ns(one.longer_ns),
        format_duration_ns(std::max<std::int64_t>(0, one.window_ns - one.longer_ns)));
  }
};

}  // namespace

FindingId finding_id(std::string_view word) {
  const auto* found = std::ranges::find(kFindingInfo, word, &FindingInfo::word);
  return found == kFindingInfo.end() ? FindingId::kUnknown : found->id;
}

bool is_same_fix(Fix one, Fix other) {
  const auto compiles = [](Fix fix) {
    return fix == Fix::kCompile || fix == Fix::kCompileWithGraphs;
  };
  return one != Fix::kNoFix && (one == other || (compiles(one) && compiles(other)));
}

std::string_view fix_words(Fix fix) {
  constexpr std::string_view kWords[] = {
      "", "torch.compile", "torch.compile(mode=\"reduce-overhead\")", "pin the host memory"};
  return kWords[static_cast<std::size_t>(fix)];
}

std::optional<double> Finding::saving_fraction() const {
  return window_ns == 0 ? std::nullopt : std::optional(fraction_of(saving_ns, window_ns));
}

std::optional<double> Finding::speedup() const {
  const double saved = saving_fraction().value_or(0);
  return saved < 0.01 || saved > 0.95 ? std::nullopt : std::optional(1 / (1 - saved));
}

std::string text_of_member(const Bound& bound) {
  return std::visit(BoundText(), bound);
}

std::string text_of_member(const Advice& advice) {
  return (advice.same_as ? fmt::format("{}{}: ", kAlsoFixed, word_of(*advice.same_as)) : "") +
         advice.words() +
         (advice.after ? fmt::format("{}{})", kAfter, word_of(*advice.after)) : "");
}

std::string text_of_member(const Verdict& verdict) {
  return verdict.words() + (verdict.top ? fmt::format("{}{}{}", kTopOpportunity,
                                                      word_of(verdict.top->id), verdict.top->gain)
                                        : "");
}

void read_member(const std::string& text, Bound& bound) {
  bound = text;
}

void read_member(const std::string& text, Advice& advice) {
  std::string_view rest = text;
  const auto known = [](std::string_view word) {
    const FindingId id = finding_id(word);
    return id == FindingId::kUnknown ? std::nullopt : std::optional(id);
  };
  if (const std::size_t end = rest.find(": "); rest.starts_with(kAlsoFixed) && end != rest.npos) {
    advice.same_as = known(rest.substr(kAlsoFixed.size(), end - kAlsoFixed.size()));
    rest.remove_prefix(advice.same_as ? end + 2 : 0);
  }
  if (const std::size_t begin = rest.rfind(kAfter); rest.ends_with(')') && begin != rest.npos) {
    const std::size_t word = begin + kAfter.size();
    advice.after = known(rest.substr(word, rest.size() - word - 1));
    rest = advice.after ? rest.substr(0, begin) : rest;
  }
  advice.text = rest;
}

void read_member(const std::string& text, Verdict& verdict) {
  const std::size_t begin = std::min(text.rfind(kTopOpportunity), text.size());
  const std::size_t word = std::min(begin + kTopOpportunity.size(), text.size());
  const std::size_t end = std::min(text.find_first_of(",.", word), text.size());
  const FindingId top = finding_id(std::string_view(text).substr(word, end - word));
  verdict.sentence = top == FindingId::kUnknown ? text : text.substr(0, begin);
  if (top != FindingId::kUnknown) {
    verdict.top = {top, text.substr(end)};
  }
}

}  // namespace gpuwhy
