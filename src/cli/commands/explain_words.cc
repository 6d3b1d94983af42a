// SPDX-License-Identifier: Apache-2.0
//
// Texts of `gpuwhy explain` on words of the glossary and on findings.
#include "cli/commands/explain_words.h"

#include <fmt/format.h>

#include "base/json_path.h"
#include "base/text.h"
#include "base/units.h"

namespace gpuwhy {
namespace {

// "  label   text", wrapped below the text.
std::string labelled(std::string_view label, std::string_view text, std::size_t width) {
  constexpr std::size_t kColumn = 14;
  return wrapped(fmt::format("  {:<{}}{}", label, kColumn - 2, text), width, kColumn) + "\n";
}

}  // namespace

std::string term_text(const Term& term, std::size_t width) {
  std::string text = fmt::format("{} ({})\n", term.name, term.kind);
  text += labelled("means", term.meaning, width);
  if (term.kind == "bucket") {
    text += labelled("shown as", bucket_label(term.name), width);
  }
  text += term.found.empty() ? "" : labelled("found by", term.found, width);
  return term.advice.empty() ? text : text + labelled("what to do", term.advice, width);
}

std::string finding_text(const Finding& finding,
                         const std::function<std::string(const std::string& key)>& value_of,
                         std::size_t width) {
  const auto shown_key = [&](std::string_view label, const std::string& key) {
    return labelled(label, fmt::format("{} = {}", printable(key), value_of(key)), width);
  };
  std::string text = fmt::format(
      "{}: {}{}{} confidence\n", word_of(finding.id), printable(finding.stage.text()),
      finding.device.empty() ? ", " : " on " + finding.device + ", ", word_of(finding.confidence));
  text += labelled("says", printable(finding.sentence), width);
  for (const std::string& key : finding.evidence) {
    text += shown_key("evidence", key);
  }
  if (finding.saving_ns > 0) {
    text +=
        labelled("saving",
                 fmt::format("at most {}, which is {} of {}", format_duration_ns(finding.saving_ns),
                             format_fraction(finding.saving_fraction().value_or(0)),
                             format_duration_ns(finding.window_ns)),
                 width);
  }
  if (const std::string bound = text_of_member(finding.bound); !bound.empty()) {
    text += labelled("arithmetic", printable(bound), width);
  }
  if (finding.saving_ns > 0 && finding.bucket && !finding.device.empty()) {
    text += shown_key("out of", fmt::format("ledgers[stage={},device={}].buckets_ns.{}",
                                            path_value(finding.stage.text()),
                                            path_value(finding.device), word_of(*finding.bucket)));
  }
  if (finding.overlaps) {
    text += labelled("overlaps", "a finding above saves time of the same bucket", width);
  }
  return text + labelled("what to do", printable(text_of_member(finding.advice)), width);
}

}  // namespace gpuwhy
