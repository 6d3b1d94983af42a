// SPDX-License-Identifier: Apache-2.0
//
// What a reader meets first and last: the verdict, what to fix, where it was measured, how far to
// trust it.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "report/section_parts.h"

namespace llmprof {
namespace {

// The first findings. Of a few, none tells the time of another again.
std::vector<Json> first_findings(const Json& metrics, std::size_t most) {
  const Json& rows = rows_of(metrics, "findings");
  std::vector<Json> chosen(rows.begin(), rows.end());
  if (chosen.size() > most) {
    std::stable_partition(chosen.begin(), chosen.end(),
                          [](const Json& row) { return field_of(row, "overlaps") != Json(true); });
    chosen.resize(most);
  }
  return chosen;
}

// "2 more: ..." where a list is cut short.
void say_rest(const Json& metrics, std::size_t shown, const char* where, Section& section) {
  const std::size_t all = rows_of(metrics, "findings").size();
  if (shown < all) {
    section.notes.push_back(fmt::format("{} more: {}", all - shown, where));
  }
}

std::vector<Advice> advice_of(const Json& metrics, std::size_t most) {
  std::vector<Advice> advice;
  for (const Json& row : first_findings(metrics, most)) {
    Advice& made = advice.emplace_back();
    made.id = text_of(row, "id");
    made.sentence = text_of(row, "sentence");
    made.next = text_of(row, "next");
    made.confidence = text_of(row, "confidence");
    if (field_of(row, "blocker") == Json(true)) {
      made.worth = "first";
    } else if (integer_of(row, "saving_ns") > 0) {
      made.worth = "<= " + format_duration_ns(integer_of(row, "saving_ns"));
    }
    for (const Json& key : rows_of(row, "evidence")) {
      made.evidence.push_back(text_of({{"key", key}}, "key"));
    }
  }
  return advice;
}

void add_aggregate(const Json& metrics, const char* name, const char* label, Section& section) {
  const std::string key = std::string("aggregates.") + name;
  const std::string reason = text_of(metrics, key + ".reason");
  section.facts.push_back({std::string(label) + ", mean",
                           value_at(metrics, key + ".mean_ns", Unit::kDuration), reason});
  if (reason.empty()) {
    section.facts.push_back({std::string(label) + ", std",
                             value_at(metrics, key + ".std_ns", Unit::kDuration), "one value"});
    section.facts.push_back(
        {std::string(label) + ", p99", value_at(metrics, key + ".p99_ns", Unit::kDuration), ""});
    section.facts.push_back(
        {std::string(label) + ", values", value_at(metrics, key + ".n", Unit::kCount), ""});
  }
}

}  // namespace

Section summary_section(const Json& metrics, const SectionOptions& options) {
  Section section;
  section.paragraphs.push_back(text_of(metrics, "verdict"));
  if (options.is_terminal) {
    for (const Json& device : rows_of(metrics, "devices")) {
      const std::string name = text_of(device, "name");
      section.notes.push_back(
          fmt::format("{}  {}  {} kernels", text_of(device, "device"),
                      name.empty() ? "n/a (the recording does not name it)" : name,
                      integer_of(device, "kernels")));
    }
    return section;
  }
  if (!options.is_summary) {
    return section;
  }
  section.advice = advice_of(metrics, options.num_findings);
  say_rest(metrics, section.advice.size(), "report.md", section);
  if (section.advice.empty()) {
    section.paragraphs.emplace_back("No rule found anything worth fixing.");
  }
  return section;
}

Section findings_section(const Json& metrics, const SectionOptions& options) {
  Section section;
  section.advice = advice_of(metrics, options.is_terminal ? options.num_findings : SIZE_MAX);
  say_rest(metrics, section.advice.size(), "llmprof report FILE --format md", section);
  if (options.is_verbose) {
    for (const Json& rule : rows_of(metrics, "silent_rules")) {
      section.notes.push_back(
          fmt::format("{} could not be checked: {}", text_of(rule, "id"), text_of(rule, "reason")));
    }
  }
  if (section.advice.empty() && section.notes.empty()) {
    section.missing = fmt::format(
        "n/a (no rule found anything, {} could not be checked); llmprof analyze --verbose lists "
        "them",
        rows_of(metrics, "silent_rules").size());
  }
  return section;
}

Section recommendations_section(const Json& metrics, const SectionOptions& /*options*/) {
  constexpr std::size_t kMost = 5;
  Section section;
  std::set<std::string> told;  // two GPUs want the same thing done once
  for (const Advice& advice : advice_of(metrics, kMost)) {
    if (!told.insert(advice.next).second) {
      continue;
    }
    section.paragraphs.push_back(fmt::format(
        "{}: {}{}", advice.id, advice.next,
        advice.worth.starts_with("<=") ? fmt::format(" (saves at most {})", advice.worth.substr(3))
                                       : ""));
  }
  if (section.paragraphs.empty()) {
    section.missing = fmt::format(
        "n/a (no rule found anything worth fixing; {} lacked their evidence); counters and a model "
        "tell more: llmprof run on a GPU, llmprof analyze --model NAME",
        rows_of(metrics, "silent_rules").size());
  }
  return section;
}

Section environment_section(const Json& metrics, const SectionOptions& /*options*/) {
  Section section;
  struct Row {
    std::string label;
    const char* key;
    Unit unit;
    const char* reason;
  };
  constexpr const char* kNotNoted = "llmprof run notes it";
  const Row rows[] = {
      {"operating system", "environment.distribution", Unit::kText, kNotNoted},
      {"CPU", "environment.cpu", Unit::kText, kNotNoted},
      {"memory", "environment.memory_bytes", Unit::kBytes, kNotNoted},
      {"container", "environment.container", Unit::kText, "none was found"},
      {"NVIDIA driver", "environment.driver_version", Unit::kText, "none is loaded, or not noted"},
      {"recording", "capture.format", Unit::kText, "there is none"},
      {tool_of(metrics), "capture.tool_version", Unit::kText, "the recording does not say"},
      {"Nsight Compute", "counters.tool_version", Unit::kText, "needs an ncu capture"},
      {"model", "efficiency.model", Unit::kText, "none was named"}};
  for (const Row& row : rows) {
    ReportValue value = value_at(metrics, row.key, row.unit);
    if (value.value == Json("")) {
      value.value = nullptr;
    }
    section.facts.push_back({row.label, value, row.reason});
  }
  section.tables.push_back(table_of(metrics, "devices",
                                    {{"GPU", "device", Unit::kText},
                                     {"name", "name", Unit::kName},
                                     {"busy", "busy_ns", Unit::kDuration},
                                     {"of the capture", "busy_fraction", Unit::kFraction},
                                     {"kernels", "kernels", Unit::kCount}}));
  if (section.tables[0].rows.empty()) {
    section.notes.emplace_back("GPUs: n/a (none worked in the recording)");
  }
  return section;
}

Section aggregates_section(const Json& metrics, const SectionOptions& /*options*/) {
  Section section;
  const std::string source = text_of(metrics, "aggregates.source");
  if (!source.empty()) {
    section.paragraphs.push_back("Stage times are from " + source + ".");
  }
  add_aggregate(metrics, "ttft", "time to first token", section);
  add_aggregate(metrics, "tpot", "time per output token", section);
  section.facts.push_back({"tokens a second in decode",
                           value_at(metrics, "aggregates.decode_tokens_per_s", Unit::kRate),
                           "the marks carry no token counts"});
  const std::string reason = "no GPU activity was recorded";
  section.facts.push_back(
      {"recorded", value_at(metrics, "capture.duration_ns", Unit::kDuration), reason});
  section.facts.push_back(
      {"kernel time", value_at(metrics, "capture.kernel_ns", Unit::kDuration), reason});
  section.facts.push_back({"kernel time in no stage",
                           value_at(metrics, "capture.unattributed_kernel_ns", Unit::kDuration),
                           reason});
  return section;
}

Section quality_section(const Json& metrics, const SectionOptions& options) {
  Section section;
  for (const Json& row : rows_of(metrics, "data_quality")) {
    section.notes.push_back(text_of(row, "sentence"));
  }
  const Json& unmatched = rows_of(metrics, "unmatched_names");
  if (!unmatched.empty()) {
    std::string rule;
    for (const Json& name : unmatched) {
      rule +=
          (rule.empty() ? "\"" : ", \"") + text_of({{"name", name}}, "name").substr(0, 60) + "\"";
    }
    section.notes.push_back(
        "kernels without a family take more than 10 % of the time; a rule for "
        "conf/rules/kernels.yaml, from which llmprof is built: {family: NAME, words: [" +
        rule + "]}");
  }
  for (const Json& breach : rows_of(metrics, "contract")) {
    section.notes.push_back(fmt::format("{} ({}): {}", text_of(breach, "reason"),
                                        text_of(breach, "pass"), text_of(breach, "sentence")));
  }
  if (!options.is_terminal) {
    for (const Json& message : rows_of(metrics, "tool_messages")) {
      section.notes.push_back("the tool says: " + text_of({{"text", message}}, "text"));
    }
  }
  if (section.notes.empty()) {
    section.missing = "nothing to report: no reader or check found anything missing or odd";
  }
  return section;
}

Section files_section(const Json& /*metrics*/, const SectionOptions& options) {
  Section section;
  section.links = options.files;
  if (section.links.empty()) {
    section.missing = "n/a (the report stands alone); llmprof analyze --out DIR writes the others";
  }
  return section;
}

}  // namespace llmprof
