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
#include "session/recording.h"

namespace llmprof {
namespace {

struct FleetCommandOptions {
  FleetTargetOptions target;
  std::vector<std::string> files;
  std::string cluster;
  std::string keep_days;
  bool is_dry = false;
  std::string spool;
  std::string batch_rows = "200000";
  FleetFilter filter;
  std::string days;
  std::string top = "20";
  std::string over = "5";
  std::string base;
  std::string candidate;
  std::string query;
  bool is_json = false;
};

using FleetFunction = int (*)(FleetCommandOptions&, Context&);
using FleetQuestion = Json (*)(HistorySource&, const FleetCommandOptions&);

int run_init(FleetCommandOptions& asked, Context& context) {
  ClickHouse server(server_options(asked.target, context.system, "15"));
  const SchemaOptions schema{
      asked.target.database, asked.cluster,
      asked.keep_days.empty() ? 0
                              : static_cast<int>(positive_number("--keep-days", asked.keep_days))};
  const Dialect dialect = server.dialect();
  const std::vector<std::string> statements = schema_statements(dialect, schema);
  for (const std::string& statement : statements) {
    if (asked.is_dry) {
      context.console.out(statement + ";\n");
    } else {
      server.execute(statement);
    }
  }
  if (!asked.is_dry) {
    context.console.out(fmt::format("database {} is ready on ClickHouse {}.{}\n", schema.database,
                                    dialect.major, dialect.minor));
  }
  return kExitOk;
}

int run_push(FleetCommandOptions& asked, Context& context) {
  const ServerOptions options = server_options(asked.target, context.system, "60");
  const std::uint64_t batch_rows = positive_number("--batch-rows", asked.batch_rows);
  if (batch_rows > kMostRowsAtOnce) {
    throw Error(ErrorKind::kUsage, fmt::format("--batch-rows cannot be {}", batch_rows),
                fmt::format("a server stores {} rows at once", kMostRowsAtOnce));
  }
  ClickHouse server(options);
  std::vector<std::filesystem::path> files;
  for (const std::string& path : asked.files) {
    const std::vector<std::filesystem::path> found = summaries_in(path);
    files.insert(files.end(), found.begin(), found.end());
  }
  Spool spool(spool_folder(asked.spool, options, context.system));
  spool_summaries(files, batch_rows, spool);
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

int run_question(FleetCommandOptions& asked, Context& context, FleetQuestion question) {
  asked.filter.top = asked.top == "all" ? SIZE_MAX : positive_number("--top", asked.top);
  asked.filter.over_fraction = static_cast<double>(positive_number("--over", asked.over)) / 100;
  if (!asked.days.empty()) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const std::int64_t today = std::chrono::duration_cast<std::chrono::days>(now).count();
    const auto days = static_cast<std::int64_t>(positive_number("--days", asked.days));
    asked.filter.since_day = std::max<std::int64_t>(today - days + 1, 0);
  }
  const FleetHistory history = open_history(asked.target, context.system);
  const Json answer = question(*history.source, asked);
  if (asked.is_json) {
    context.console.out(to_json_text(answer));
    return kExitOk;
  }
  context.console.out(fleet_text(answer, context.console.width()));
  for (const Json& note : answer["notes"]) {
    context.console.err(fmt::format("note: {}\n", note.get<std::string>()));
  }
  return kExitOk;
}

int run_sql(FleetCommandOptions& asked, Context& context) {
  ClickHouse server(server_options(asked.target, context.system, "15"));
  const std::string answer = server.ask(asked.query);
  // Line by line: what was stored is strangers' text.
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
                         const std::shared_ptr<FleetCommandOptions>& asked, FleetFunction run) {
  Command command;
  command.name = name;
  command.summary = summary;
  add_fleet_target(command, asked->target);
  command.run = [asked, run](Context& context) { return run(*asked, context); };
  return command;
}

Command question_command(const char* name, const char* summary,
                         const std::shared_ptr<FleetCommandOptions>& asked,
                         FleetQuestion question) {
  Command command = fleet_subcommand(name, summary, asked, nullptr);
  const std::vector<Option> options = {
      {"--run", "ID", "Only this run", &asked->filter.run},
      {"--model", "NAME", "Only runs of this model", &asked->filter.model},
      {"--engine-version", "VERSION", "Only runs of this version of the engine",
       &asked->filter.engine_version},
      {"--days", "N", "Only runs of the last N days", &asked->days},
      json_option(asked->is_json),
  };
  command.options.insert(command.options.end(), options.begin(), options.end());
  command.run = [asked, question](Context& context) {
    return run_question(*asked, context, question);
  };
  return command;
}

std::vector<Command> questions(const std::shared_ptr<FleetCommandOptions>& asked) {
  const Option top = {"--top", "N", "Rows to show (20), or all", &asked->top};
  const Option over = {"--over", "PERCENT", "How much slower is worth telling (5)", &asked->over};
  const Option stage = {"--stage", "NAME", "Only this stage", &asked->filter.stage};
  Command status = question_command(
      "status", "Runs, how many of their ranks are there, and whether they are sealed", asked,
      [](HistorySource& history, const FleetCommandOptions& o) {
        return fleet_status(history, o.filter);
      });
  Command most = question_command("top", "Kernels by their time over all ranks", asked,
                                  [](HistorySource& history, const FleetCommandOptions& o) {
                                    return fleet_top(history, o.filter);
                                  });
  most.options.insert(most.options.end(), {stage, top});
  Command stragglers = question_command(
      "stragglers", "Ranks of a run that compute longer than the median of its ranks", asked,
      [](HistorySource& history, const FleetCommandOptions& o) {
        return fleet_stragglers(history, o.filter);
      });
  stragglers.options.insert(stragglers.options.end(), {stage, over, top});
  Command regressions = question_command(
      "regressions", "Kernels that take longer a call than in another version or run", asked,
      [](HistorySource& history, const FleetCommandOptions& o) {
        return fleet_regressions(history, o.filter, o.base, o.candidate);
      });
  regressions.options.insert(
      regressions.options.end(),
      {{"--base", "WHICH", "A run or an engine version (the last but one)", &asked->base},
       {"--candidate", "WHICH", "What to hold against it (the last)", &asked->candidate},
       stage,
       over,
       top});
  Command trend = question_command("trend", "MFU, MBU and stage times over days", asked,
                                   [](HistorySource& history, const FleetCommandOptions& o) {
                                     return fleet_trend(history, o.filter);
                                   });
  trend.options.push_back(stage);
  return {status, most, stragglers, regressions, trend};
}

}  // namespace

Command fleet_command() {
  auto asked = std::make_shared<FleetCommandOptions>();
  Command init =
      fleet_subcommand("init", "Make the tables on a server; may be repeated", asked, run_init);
  init.options.insert(
      init.options.end(),
      {{"--cluster", "NAME", "On all nodes of this cluster: replicated and distributed",
        &asked->cluster},
       {"--keep-days", "N", "Drop rows of single ranks after N days (never)", &asked->keep_days},
       {"--dry-run", "", "Print the statements, make nothing", &asked->is_dry}});
  Command push = fleet_subcommand("push", "Send summaries to a server, each once whatever breaks",
                                  asked, run_push);
  push.options.insert(
      push.options.end(),
      {{"SUMMARY", "", "Files *.llmprof, or folders of them; none: only what waits", &asked->files},
       {"--spool", "DIR",
        "Where batches wait until the server has them (~/.local/state/llmprof/spool)",
        &asked->spool},
       {"--batch-rows", "N", "Rows in one insert, at most 1000000 (200000)", &asked->batch_rows},
       {"--wait", "SECONDS", "How long to go on trying (60)", &asked->target.wait_s}});
  Command sql = fleet_subcommand("sql", "Run a query of your own, read only", asked, run_sql);
  sql.options.insert(sql.options.begin(),
                     {"QUERY", "", "Its text", &asked->query, {}, nullptr, true});
  Command command;
  command.name = "fleet";
  command.summary =
      "History of many ranks and runs: keep it on a server, ask it there or in a folder";
  command.subcommands = {init, push};
  for (Command& question : questions(asked)) {
    command.subcommands.push_back(std::move(question));
  }
  command.subcommands.push_back(sql);
  return command;
}

}  // namespace llmprof
