// SPDX-License-Identifier: Apache-2.0
//
// llmprof fleet: what many ranks of many runs have measured, kept and asked. Questions go to a
// folder of summaries or to ClickHouse with the same words and the same answers.
#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands/fleet_target.h"
#include "cli/commands/fleet_text.h"
#include "fleet/history/push.h"
#include "fleet/history/queries.h"
#include "fleet/history/summary_folder.h"

namespace llmprof {
namespace {

struct FleetCommandOptions {
  FleetTargetOptions target;
  std::vector<std::string> files;
  std::string cluster;
  std::optional<std::int64_t> keep_days;
  bool is_dry = false;
  std::string spool;
  std::int64_t batch_rows = 200'000;
  std::int64_t wait_s = 60;
  FleetFilter filter;
  std::optional<std::int64_t> num_days;
  RowLimit top{20};
  std::string base;
  std::string candidate;
  std::string query;
  bool is_json = false;
};

using FleetFunction = int (*)(FleetCommandOptions&, Context&);
using FleetQuestion = Json (*)(HistorySource&, const FleetCommandOptions&);

int run_init(FleetCommandOptions& options, Context& context) {
  ClickHouse server(server_options(options.target, context.system));
  const SchemaOptions schema{options.target.database, options.cluster,
                             static_cast<int>(options.keep_days.value_or(0))};
  const Dialect dialect = server.dialect();
  const std::vector<std::string> statements = schema_statements(dialect, schema);
  for (const std::string& statement : statements) {
    if (options.is_dry) {
      context.console.out(statement + ";\n");
    } else {
      server.execute(statement);
    }
  }
  if (!options.is_dry) {
    context.console.out(fmt::format("database {} is ready on ClickHouse {}.{}\n", schema.database,
                                    dialect.major, dialect.minor));
  }
  return kExitOk;
}

int run_push(FleetCommandOptions& options, Context& context) {
  const ServerOptions settings = server_options(options.target, context.system, options.wait_s);
  ClickHouse server(settings);
  std::vector<std::filesystem::path> files;
  for (const std::string& path : options.files) {
    const std::vector<std::filesystem::path> found = summaries_in(path);
    files.insert(files.end(), found.begin(), found.end());
  }
  Spool spool(spool_folder(options.spool, settings, context.system));
  spool_summaries(files, static_cast<std::uint64_t>(options.batch_rows), spool);
  DrainedCounts sent;
  try {
    sent = drain(spool, server);
  } catch (const ServerError& error) {
    // Which addresses and why is the error's; that nothing is lost is what a user must know first.
    throw Error(error.kind(),
                fmt::format("{} batches wait in {}: {}", spool.waiting().size(),
                            spool.folder().string(), error.what()),
                error.hint().empty() ? "nothing is lost: llmprof fleet push --to URL sends them"
                                     : error.hint());
  }
  for (const std::string& sentence : sent.set_aside) {
    context.console.err(fmt::format("the server refuses {}\n", printable(sentence)));
  }
  const std::int64_t num_sealed = seal_runs(server, sent.run_keys);
  context.console.out(
      fmt::format("sent {} ranks, {} rows in {} batches ({} retries); {} runs sealed\n", sent.ranks,
                  sent.rows, sent.batches, server.num_retries(), num_sealed));
  return sent.set_aside.empty() ? kExitOk : kExitFailure;
}

int run_question(FleetCommandOptions& options, Context& context, FleetQuestion question) {
  options.filter.top = options.top.rows;
  if (options.num_days) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const std::int64_t today = std::chrono::duration_cast<std::chrono::days>(now).count();
    options.filter.since_day = std::max<std::int64_t>(today - *options.num_days + 1, 0);
  }
  const FleetHistory history = open_history(options.target, context.system);
  const Json answer = question(*history.source, options);
  if (options.is_json) {
    context.console.out(to_json_text(answer));
    return kExitOk;
  }
  context.console.out(fleet_text(answer, context.console.width()));
  for (const Json& note : answer["notes"]) {
    context.console.err(fmt::format("note: {}\n", note.get<std::string>()));
  }
  return kExitOk;
}

int run_sql(FleetCommandOptions& options, Context& context) {
  ClickHouse server(server_options(options.target, context.system));
  const std::string answer = server.ask(options.query);
  // Line by line: what was stored is untrusted text.
  for (std::string_view rest = answer; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string line;
    for (const std::string_view cell : split(rest.substr(0, end), '\t')) {
      line += (line.empty() ? "" : "\t") + printable(cell);
    }
    context.console.out(line + "\n");
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return kExitOk;
}

Command fleet_subcommand(const char* name, const char* summary,
                         const std::shared_ptr<FleetCommandOptions>& options, FleetFunction run) {
  Command command;
  command.name = name;
  command.summary = summary;
  add_fleet_target(command, options->target);
  command.run = [options, run](Context& context) { return run(*options, context); };
  return command;
}

Command question_command(const char* name, const char* summary,
                         const std::shared_ptr<FleetCommandOptions>& options,
                         FleetQuestion question) {
  Command command = fleet_subcommand(name, summary, options, nullptr);
  command.add({{"--run", "ID", "Only this run", &options->filter.run},
               {"--model", "NAME", "Only runs of this model", &options->filter.model},
               {"--engine-version", "VERSION", "Only runs of this version of the engine",
                &options->filter.engine_version},
               {"--days", "N", "Only runs of the last N days", &options->num_days},
               json_option(options->is_json)});
  command.run = [options, question](Context& context) {
    return run_question(*options, context, question);
  };
  return command;
}

std::vector<Command> questions(const std::shared_ptr<FleetCommandOptions>& options) {
  const Option top = {"--top", "N", "Rows to show, or all", &options->top};
  const Option over = {"--over", "PERCENT", "Smallest slowdown to report",
                       &options->filter.over_fraction};
  const Option stage = {"--stage", "NAME", "Only this stage", &options->filter.stage};
  Command status = question_command(
      "status", "Runs, how many of their ranks are there, and whether they are sealed", options,
      [](HistorySource& history, const FleetCommandOptions& o) {
        return fleet_status(history, o.filter);
      });
  Command most = question_command("top", "Kernels by their time over all ranks", options,
                                  [](HistorySource& history, const FleetCommandOptions& o) {
                                    return fleet_top(history, o.filter);
                                  });
  most.add({stage, top});
  Command stragglers = question_command(
      "stragglers", "Ranks of a run that compute longer than the median of its ranks", options,
      [](HistorySource& history, const FleetCommandOptions& o) {
        return fleet_stragglers(history, o.filter);
      });
  stragglers.add({stage, over, top});
  Command regressions = question_command(
      "regressions", "Kernels that take longer a call than in another version or run", options,
      [](HistorySource& history, const FleetCommandOptions& o) {
        return fleet_regressions(history, o.filter, o.base, o.candidate);
      });
  regressions.add(
      {{"--base", "WHICH", "A run or an engine version (the last but one)", &options->base},
       {"--candidate", "WHICH", "What to compare with it (the last)", &options->candidate},
       stage,
       over,
       top});
  Command trend = question_command("trend", "MFU, MBU and stage times over days", options,
                                   [](HistorySource& history, const FleetCommandOptions& o) {
                                     return fleet_trend(history, o.filter);
                                   });
  trend.options.push_back(stage);
  return {status, most, stragglers, regressions, trend};
}

}  // namespace

Command fleet_command() {
  auto options = std::make_shared<FleetCommandOptions>();
  Command init =
      fleet_subcommand("init", "Make the tables on a server; may be repeated", options, run_init);
  init.add({{"--cluster", "NAME", "On all nodes of this cluster: replicated and distributed",
             &options->cluster},
            at_most(36500, {"--keep-days", "N", "Drop rows of single ranks after N days (never)",
                            &options->keep_days}),
            {"--dry-run", "", "Print the statements, make nothing", &options->is_dry}});
  Command push =
      fleet_subcommand("push", "Upload summaries to ClickHouse, exactly once", options, run_push);
  push.add({{"SUMMARY", "", "Files *.llmprof, or folders of them; none: only what waits",
             &options->files},
            {"--spool", "DIR",
             "Where batches wait until the server has them (~/.local/state/llmprof/spool)",
             &options->spool},
            at_most(kMostRowsAtOnce, {"--batch-rows", "N", "Rows in one insert, at most 1000000",
                                      &options->batch_rows}),
            at_most(864000, {"--wait", "SECONDS", "How long to retry", &options->wait_s})});
  Command sql = fleet_subcommand("sql", "Run a query of your own, read only", options, run_sql);
  sql.options.insert(sql.options.begin(), required({"QUERY", "", "Its text", &options->query}));
  Command command;
  command.name = "fleet";
  command.summary = "Keep and query the history of many ranks and runs, on a server or in a folder";
  command.subcommands = {init, push};
  for (Command& question : questions(options)) {
    command.subcommands.push_back(std::move(question));
  }
  command.subcommands.push_back(sql);
  return command;
}

}  // namespace llmprof
