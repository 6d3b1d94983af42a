// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy run --repeat N [--against ...]: one configuration, or two of them against each other.
//
// Clocks, temperature and neighbours drift. Runs of two sides one after the other, all of A and
// then all of B, measure the drift as well; in the order A B B A both sides have it alike, and what
// is straight in time cancels. The first run of a side fills caches and compiles kernels: it is
// made, and thrown away.
//
// Each run is a bundle as any other. What is left out of them is ncu: counters of every repeat cost
// much and are compared by nobody.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/json_fwd.h"
#include "base/text.h"
#include "base/units.h"
#include "bundle/artifacts.h"
#include "bundle/layout.h"
#include "capture/supervise.h"
#include "cli/commands/comparison_inputs.h"
#include "cli/commands/run.h"
#include "config/compose.h"
#include "report/comparison/comparison.h"
#include "results/results.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

struct Side {
  const char* name;  // of its folder
  RunCommandOptions options;
  std::vector<std::string> bundles;
};

bool is_file_name(const std::string& word) {
  return word.ends_with(".yaml") || word.ends_with(".yml");
}

// What --against changes is what is under test, and may differ.
std::vector<std::string> facts_under_test(const std::vector<std::string>& against) {
  std::vector<std::string> facts;
  for (const char* fact : {"model", "inputs"}) {
    const bool is_changed = std::any_of(
        against.begin(), against.end(),
        [&](const std::string& word) { return is_file_name(word) || word.starts_with(fact); });
    if (is_changed) {
      facts.emplace_back(fact);
    }
  }
  return facts;
}

RunCommandOptions one_run(RunCommandOptions options) {
  options.num_repeats.reset();
  options.against.clear();
  options.is_one_of_many = !options.dry_run;
  if (options.request.passes.empty()) {
    options.request.passes = "baseline,operators,nsys";
  }
  return options;
}

// The same run with what --against says laid over it.
RunCommandOptions other_run(const RunCommandOptions& options) {
  RunCommandOptions other = one_run(options);
  for (const std::string& word : options.against) {
    if (is_file_name(word)) {
      other.request.file = word;
    } else {
      other.request.overrides.push_back(word);
    }
  }
  return other;
}

// A run of a side into `folder`. Throws what a run throws.
RunOutcome run_into(const fs::path& folder, const Side& side, std::set<std::string>& told,
                    Context& context) {
  RunCommandOptions options = side.options;
  options.request.out = folder.string();
  options.told = &told;
  return run_once(options, context);
}

// The same, but a signal that came between two runs, or at the end of this one, is kept in mind.
RunOutcome run_unless_stopped(const fs::path& folder, const Side& side, std::set<std::string>& told,
                              Context& context) {
  RunOutcome outcome;
  if (InterruptCounter::count() == 0) {
    outcome = run_into(folder, side, told, context);
  }
  if (InterruptCounter::count() > 0) {
    InterruptCounter::acknowledge();
    outcome.code = kExitInterrupted;
  }
  return outcome;
}

struct RepeatedRuns {
  const RunCommandOptions& options;
  fs::path group;
  std::vector<Side> sides;
  std::size_t repeats = 1;
  std::set<std::string> told = {};  // what runs lack, printed for the first of them

  // The side of the n-th run: 0 1 1 0 0 1 1 0 ...
  std::size_t side_of(std::size_t n) const {
    return sides.size() == 1 ? 0 : static_cast<std::size_t>(((n + 1) / 2) % 2);
  }
};

void say(const RepeatedRuns& runs, Context& context, const std::string& sentence) {
  if (runs.options.progress == "auto" || runs.options.progress == "plain") {
    context.console.err(sentence + "\n");
  }
}

std::string in_words(const RunOutcome& outcome) {
  const auto median = [](const Latency& latency) {
    return latency.p50_ns ? format_duration_ns(*latency.p50_ns) : "n/a";
  };
  const Latencies& times = outcome.metrics.aggregates;
  if (outcome.code != kExitOk) {
    return fmt::format("exit {}", outcome.code);
  }
  // A program without marks has its length, and nothing else to tell runs apart.
  return times.ttft.p50_ns || times.tpot.p50_ns || !times.program_ns
             ? fmt::format("TTFT {}, TPOT {}", median(times.ttft), median(times.tpot))
             : fmt::format("program {}", format_duration_ns(*times.program_ns));
}

// The first of each side, made for what it leaves in caches.
int warm_up(RepeatedRuns& runs, Context& context) {
  const fs::path folder = runs.group / "warmup";
  for (const Side& side : runs.sides) {
    const RunOutcome outcome = run_unless_stopped(folder, side, runs.told, context);
    say(runs, context, fmt::format("warm-up of {}, not counted: {}", side.name, in_words(outcome)));
    if (outcome.code != kExitOk) {
      say(runs, context,
          fmt::format("the warm-up failed and is kept: {}", outcome.bundle.string()));
      return outcome.code;
    }
  }
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return kExitOk;
}

int repeat(RepeatedRuns& runs, Context& context) {
  const std::size_t whole = runs.repeats * runs.sides.size();
  for (std::size_t n = 0; n < whole; ++n) {
    Side& side = runs.sides[runs.side_of(n)];
    const RunOutcome outcome = run_unless_stopped(runs.group / side.name, side, runs.told, context);
    say(runs, context,
        fmt::format("run {} of {}, {}: {}", n + 1, whole, side.name, in_words(outcome)));
    if (outcome.code != kExitOk) {
      say(runs, context, fmt::format("run {} of {} failed, the others are not made", n + 1, whole));
      return outcome.code;
    }
    side.bundles.push_back(outcome.bundle.string());
  }
  return kExitOk;
}

int compare_sides(const RepeatedRuns& runs, Context& context) {
  const auto summaries = [&](const Side& side) {
    return summaries_of(load_compared(side.bundles, context.system));
  };
  CompareOptions options;
  options.allowed = facts_under_test(runs.options.against);
  const Comparison comparison =
      compare_runs(summaries(runs.sides[0]), summaries(runs.sides[1]), options);
  constexpr std::size_t kRows = 10;
  const Document document = comparison_document(comparison, kRows, false);
  write_file(runs.group / layout::kComparison, comparison_json(comparison));
  write_file(runs.group / layout::kComparisonText, markdown_text(document));
  ComparisonOutput output;
  output.page = (runs.group / layout::kComparisonPage).string();
  write_page(comparison, {}, output);
  if (runs.options.progress != "none" && runs.options.progress != "json") {
    context.console.err("\n" + terminal_text(document, context.console.error_form()));
  } else if (runs.options.progress == "json") {
    context.console.err(json_object_line({{"event", "verdict"},
                                          {"verdict", decision_name(comparison.verdict)},
                                          {"exit_code", exit_code_of(comparison)},
                                          {"sentence", printable(comparison.sentence())}}) +
                        "\n");
  } else {
    context.console.err(verdict_line(comparison) + "\n");
  }
  say(runs, context, fmt::format("\nReport: {}", (runs.group / layout::kComparisonPage).string()));
  return exit_code_of(comparison);
}

}  // namespace

int run_repeats(const RunCommandOptions& options, Context& context) {
  if (!options.request.plan.empty()) {
    throw Error(ErrorKind::kUsage, "--plan is for one run, not for --repeat or --against");
  }
  RepeatedRuns runs{options,
                    {},
                    {{"a", one_run(options), {}}},
                    static_cast<std::size_t>(options.num_repeats.value_or(5))};
  if (!options.against.empty()) {
    runs.sides.push_back({"b", other_run(options), {}});
  }
  if (options.dry_run) {
    for (const Side& side : runs.sides) {
      context.console.out(fmt::format("# side {}, {} times\n", side.name, runs.repeats));
      if (const int code = run_once(side.options, context).code; code != kExitOk) {
        return code;
      }
    }
    return kExitOk;
  }
  const fs::path folder =
      options.request.out.empty()
          ? common_options_of(compose(user_file(options.request.file), options.request.overrides))
                .artifacts_dir
          : fs::path(options.request.out);
  runs.group = make_run_folder(folder, std::chrono::system_clock::now(), "-repeats");
  for (const Side& side : runs.sides) {
    prepare_run(side.options.request, context.system);  // a mistake shows before anything runs
  }
  const InterruptCounter interrupts([] {});
  int code = warm_up(runs, context);
  if (code == kExitOk) {
    code = repeat(runs, context);
  }
  if (code == kExitOk && runs.sides.size() == 2) {
    code = compare_sides(runs, context);
  } else if (code == kExitOk) {
    say(runs, context,
        fmt::format("\n{} runs of one configuration; how far they are apart:\n  gpuwhy gate "
                    "{} --self-test",
                    runs.repeats, runs.group.string()));
  }
  context.console.out(runs.group.string() + "\n");
  return code;
}

}  // namespace gpuwhy
