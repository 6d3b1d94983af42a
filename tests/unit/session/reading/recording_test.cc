// SPDX-License-Identifier: Apache-2.0
#include "session/reading/recording.h"

#include <fmt/format.h>

#include "analysis/profile.h"
#include "base/json.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

constexpr const char* kMyRules = "stages: [{domain: \"\", text: loop, stage: decode}]\n";

TEST(RecordingRules, OfTheUsersHomeAreRead) {
  const TemporaryDirectory home;
  const auto file = home.add(".config/gpuwhy/rules.yaml", kMyRules);
  System system;
  EXPECT_EQ(recording_rules("", system).num_user_stages, 0U);
  system.environment["HOME"] = home.path().string();
  const Rules rules = recording_rules("", system);
  EXPECT_EQ(rules.num_user_stages, 1U);
  EXPECT_EQ(rules.user_source, "rules of " + file.string());
  EXPECT_THAT(rules.notes[0].sentence, HasSubstr(file.string()));
  system.environment["XDG_CONFIG_HOME"] = (home.path() / "elsewhere").string();
  EXPECT_EQ(recording_rules("", system).num_user_stages, 0U);
  system.environment["XDG_CONFIG_HOME"] = ".config";
  EXPECT_EQ(recording_rules("", system).num_user_stages, 0U) << "a relative path is none";
}

TEST(RecordingRules, OfAFileTakeTheirPlace) {
  const TemporaryDirectory home;
  home.add("gpuwhy/rules.yaml", "not: rules\n");
  const auto given = home.add("mine.yaml", kMyRules);
  System system;
  system.environment["XDG_CONFIG_HOME"] = home.path().string();
  EXPECT_EQ(recording_rules(given.string(), system).user_source, "rules of " + given.string());
  expect_error([&] { recording_rules("", system); }, ErrorKind::kUsage,
               HasSubstr("gpuwhy/rules.yaml"), HasSubstr("conf/rules"));
}

TEST(Recording, MetricsOfAnEarlierFormAreReadAndOfALaterOneRefused) {
  const TemporaryDirectory bundle;
  const auto load = [&](int version) {
    bundle.add("metrics.json", fmt::format(R"({{"schema": "gpuwhy.metrics", "schema_version": {},
        "verdict": "as it was", "capture": {{"kernel_ns": 12}},
        "origins": [{{"keys": "capture.kernel_ns", "unit": "ns"}}]}})",
                                           version));
    return load_metrics({bundle.path().string()}, {}, System());
  };
  const LoadedMetrics loaded = load(1);
  EXPECT_EQ(loaded.metrics.verdict.sentence, "as it was");
  EXPECT_EQ(loaded.metrics.capture.kernel_ns, 12);
  EXPECT_EQ(loaded.json->at("schema_version"), 2);
  EXPECT_FALSE(loaded.json->contains("origins"));
  expect_error([&] { load(3); }, ErrorKind::kInput, HasSubstr("newer gpuwhy (schema_version 3)"),
               HasSubstr("analyze the bundle again"));
}

TEST(Recording, MetricsThatAreMadeCannotBeReadInAnotherWay) {
  const TemporaryDirectory bundle;
  bundle.add("metrics.json", "{}");
  const auto refused = [&](const char* option, const auto& set) {
    RecordingOptions options;
    set(options);
    expect_error([&] { load_metrics({bundle.path().string()}, options, System()); },
                 ErrorKind::kUsage, HasSubstr(std::string(option) + ": the metrics in"),
                 HasSubstr("make them again"));
  };
  refused("--rules", [](RecordingOptions& o) { o.rules = "x"; });
  refused("--mark", [](RecordingOptions& o) { o.marks = {"a=b"}; });
  refused("--step", [](RecordingOptions& o) { o.step_names = {"b"}; });
  refused("--steps", [](RecordingOptions& o) { o.window.steps = StepSpan{}; });
  refused("--trim", [](RecordingOptions& o) { o.window.is_trimmed = true; });
  refused("--gpu", [](RecordingOptions& o) { o.filter.device = 1; });
}

}  // namespace
}  // namespace gpuwhy
