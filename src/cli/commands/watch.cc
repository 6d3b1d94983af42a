// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy watch: summaries of the recordings that profilers drop into a folder, one sweep after the
// other.
#include "session/reading/watch.h"

#include <chrono>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "capture/supervise.h"
#include "cli/command.h"
#include "cli/commands/fleet_push.h"
#include "session/record/rank_run.h"

namespace gpuwhy {
namespace {

struct WatchCommandOptions {
  std::string folder;
  std::string out = "gpuwhy-watch";
  std::string to;
  std::string database = "gpuwhy";
  std::string metrics;
  std::string keep_raw = "all";
  std::int64_t interval_s = 30;
  std::vector<std::string> labels;
  bool is_once = false;
  WatchOptions watch;
};

// What waits in the spool is sent after the next sweep, so a server that is away stops nothing.
void push_all(const WatchCommandOptions& options, const Sweeper& sweeper, Context& context) {
  PushRequest push;
  push.target.to = options.to;
  push.target.database = options.database;
  push.files = {sweeper.summaries().string()};
  push.spool = (std::filesystem::path(options.out) / "spool").string();
  try {
    push_summaries(push, context);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kEnvironment) {
      throw;
    }
    context.console.err(fmt::format("not sent: {}\n", printable(error.what())));
  }
}

// Sleeps, but not through a signal.
void wait_until(std::chrono::steady_clock::time_point time) {
  while (std::chrono::steady_clock::now() < time && InterruptCounter::count() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

int run_watch(WatchCommandOptions& options, Context& context) {
  const InterruptCounter interrupts;
  options.watch.folder = options.folder;
  options.watch.out = options.out;
  options.watch.keeps_outliers_only = options.keep_raw == "outliers";
  options.watch.labels = environment_labels(context.system);
  for (const std::string& label : options.labels) {
    add_labels(label, options.watch.labels);
  }
  Sweeper sweeper(options.watch, context.system);
  std::size_t num_failed = 0;
  bool is_first = true;
  while (InterruptCounter::count() == 0) {
    const auto next = std::chrono::steady_clock::now() + std::chrono::seconds(options.interval_s);
    const SweepCounts counts = sweeper.sweep(
        [] { return InterruptCounter::count() > 0; },
        [&](const std::string& line) { context.console.err(printable(line) + "\n"); });
    num_failed += counts.num_failed;
    if (counts.num_removed > 0) {
      context.console.err(fmt::format(
          "removed {} ({})\n", count_of(static_cast<std::int64_t>(counts.num_removed), "recording"),
          format_bytes(counts.removed_bytes)));
    }
    if (!options.metrics.empty()) {
      write_file(options.metrics, sweeper.metrics_text());
    }
    if (!options.to.empty() && (counts.num_new > 0 || is_first)) {
      push_all(options, sweeper, context);
    }
    is_first = false;
    if (options.is_once) {
      return num_failed > 0 ? kExitIncomplete : kExitOk;
    }
    wait_until(next);
  }
  return kExitOk;
}

}  // namespace

Command watch_command() {
  auto options = std::make_shared<WatchCommandOptions>();
  Command command;
  command.name = "watch";
  command.summary = "Summarise recordings that arrive in a folder, and send them";
  command.options = {
      required({"FOLDER", "", "Folder of recordings, at any depth; files of one job share a folder",
                &options->folder}),
      {"-o,--out", "DIR", "Folder for summaries and state; a restart goes on from there",
       &options->out},
      {"--to", "URL", "Also send summaries to this ClickHouse, as fleet push does", &options->to},
      {"--database", "NAME", "The server's database", &options->database},
      {"--metrics", "FILE", "Write counts and the last runs there, for scrapers of OpenMetrics",
       &options->metrics},
      {"--label", "KEY=VALUE", "Label of all summaries, as cluster=a; may be repeated",
       &options->labels},
      one_of({"all", "outliers"},
             {"--keep-raw", "WHICH",
              "outliers: remove recordings but those of late ranks and of one at the median",
              &options->keep_raw}),
      {"--disk-budget", "BYTES", "Remove the oldest summarised recordings beyond this size",
       &options->watch.disk_budget_bytes},
      at_most(86400, {"--settle", "SECONDS", "A recording is complete when unchanged for so long",
                      &options->watch.settle_s}),
      at_most(86400, {"--interval", "SECONDS", "Between two sweeps", &options->interval_s}),
      {"--memory-limit", "BYTES", "Recordings that need more are not read",
       &options->watch.recording.memory_limit_bytes},
      {"--once", "", "One sweep; exit 7 if a recording could not be read", &options->is_once},
  };
  command.examples =
      "  gpuwhy watch /shared/traces --out /shared/watch --metrics /var/lib/node_exporter/gpuwhy.prom\n"
      "  gpuwhy watch /shared/traces --to https://history:8443 --keep-raw outliers --disk-budget 200GiB\n";
  command.run = [options](Context& context) { return run_watch(*options, context); };
  return command;
}

}  // namespace gpuwhy
