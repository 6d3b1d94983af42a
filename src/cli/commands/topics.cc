// SPDX-License-Identifier: Apache-2.0
//
// Topics of `gpuwhy explain`: a row each. A part of the program that has more to explain than lines
// of help adds a row here before it adds a command.
#include "cli/commands/topics.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/args.h"
#include "cli/json_output.h"
#include "cli/recording_options.h"
#include "report/words/glossary.h"
#include "session/reading/recording.h"

namespace gpuwhy {
namespace {

std::string recording_topic() {
  static RecordingOptions target;
  Command command;
  add_recording_options(command, target);
  command.add({ncu_option(target.ncu)});
  add_request_options(command, target);
  return option_rows(command.options);
}

std::string model_topic() {
  static ModelChoice target;
  static RecordingOptions recording;
  Command command;
  add_model_options(command, target, recording);
  return option_rows(command.options);
}

std::string output_topic() {
  static JsonPages pages;
  static bool flag = false;
  Command command;
  command.add({json_option(flag), quiet_option(flag)});
  add_page_options(command, pages);
  return option_rows(command.options);
}

// A line for each kind: findings, buckets, terms.
std::string words_topic() {
  std::string text;
  std::string_view kind;
  for (const Term& term : glossary()) {
    text +=
        term.kind == kind ? ", " : fmt::format("{}  {:<12}", kind.empty() ? "" : "\n", term.kind);
    text += term.name;
    kind = term.kind;
  }
  return text + "\n";
}

std::string topics_topic() {
  std::string text;
  for (const Topic& topic : all_topics()) {
    text += fmt::format("  {:<12}{}\n", topic.name, topic.summary);
  }
  return text +
         "\nA word, or a number of a recording:\n"
         "  gpuwhy explain launch_bound\n"
         "  gpuwhy explain run.sqlite capture.kernel_ns\n";
}

constexpr Topic kTopics[] = {
    {"topics", "The topics that gpuwhy explain TOPIC knows", topics_topic},
    {"recording", "Options of a recording: a part of it, marks, counters", recording_topic},
    {"model", "Options of its model: name, batch, context, parallelism", model_topic},
    {"output", "Options of output: JSON, pages of it, the verdict alone", output_topic},
    {"words", "The findings, buckets and terms that gpuwhy explain WORD knows", words_topic}};

}  // namespace

std::span<const Topic> all_topics() {
  return kTopics;
}

const Topic* find_topic(std::string_view name) {
  const auto* const found = std::ranges::find(kTopics, name, &Topic::name);
  return found == std::end(kTopics) ? nullptr : found;
}

}  // namespace gpuwhy
