// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy fleet: what many ranks of many runs have measured, kept and asked. Questions go to a
// folder of summaries or to ClickHouse with the same words and the same answers.
#include <algorithm>
#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/commands/fleet_push.h"
#include "cli/commands/fleet_target.h"
#include "cli/commands/fleet_text.h"
#include "cli/json_output.h"
#include "fleet/history/push.h"
#include "fleet/history/queries.h"
#include "session/writing/history_tables.h"

namespace gpuwhy {
namespace {

struct FleetCommandOptions {
  FleetTargetOptions target;
  PushRequest push;
  std::string cluster;
  std::optional<std::int64_t> keep_days;
  std::string out;
  std::string folder;
  std::string format = "parquet";
  bool is_dry = false;
  FleetFilter filter;
  std::optional<std::int64_t> num_days;
  RowLimit top{20};
  std::string query;
  bool is_json = false;
  JsonPages pages;
};

using FleetFunction = int (*)(FleetCommandOptions&, Context&);
using FleetQuestion = Json (*)(HistorySource&, const FleetFilter&);

int run_init(FleetCommandOptions& options, Context& context) {
  ClickHouse server(server_options(options.target, context.system));
  const Dialect dialect = server.dialect();
  const ExistingTables existing = existing_tables(server);
  // A table that is new keeps its rows as long as those that are there.
  const SchemaOptions schema{
      options.target.database, options.cluster,
      static_cast<int>(options.keep_days.value_or(existing.keep_days.value_or(0)))};
  const auto execute = [&](const std::vector<std::string>& statements) {
    for (const std::string& statement : statements) {
      if (options.is_dry) {
        context.console.out(statement + ";\n");
      } else {
        server.execute(statement);
      }
    }
  };
  // Whether a newer gpuwhy or a cluster has made the tables is known before anything is made.
  const std::vector<std::string> creation = schema_statements(dialect, schema);
  migration_statements(dialect, schema, existing);
  execute(creation);
  const std::vector<std::string> migration =
      migration_statements(dialect, schema, existing_tables(server));
  execute(migration);
  if (!options.is_dry) {
    store_schema_version(server);
    context.console.out(
        fmt::format("database {} is ready on ClickHouse {}.{} (version {} of the tables{})\n",
                    schema.database, dialect.major, dialect.minor, kSchemaVersion,
                    migration.empty()
                        ? ""
                        : ", " + count_of(static_cast<std::int64_t>(migration.size()), "change")));
  }
  return kExitOk;
}

std::int64_t today() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::days>(now).count();
}

int run_push(FleetCommandOptions& options, Context& context) {
  PushRequest& push = options.push;
  push.target = options.target;
  return push_summaries(push, context);
}

int run_question(FleetCommandOptions& options, Context& context, FleetQuestion question) {
  check_pages(options.pages, options.is_json);
  options.filter.top = options.top.rows;
  if (options.num_days) {
    options.filter.since_day = std::max<std::int64_t>(today() - *options.num_days + 1, 0);
  }
  const FleetHistory history = open_history(options.target, context.system);
  const Json answer = question(*history.source, options.filter);
  if (options.is_json) {
    context.console.out(paged(to_json_text(answer), options.pages));
    return kExitOk;
  }
  context.console.out(fleet_text(answer, context.console.width()));
  for (const Json& note : answer["notes"]) {
    context.console.err(fmt::format("note: {}\n", note.get<std::string>()));
  }
  return kExitOk;
}

int run_sql(FleetCommandOptions& options, Context& context) {
  check_pages(options.pages, options.is_json);
  ClickHouse server(server_options(options.target, context.system));
  const std::string answer =
      server.ask(options.is_json ? options.query + "\nFORMAT JSON" : options.query);
  if (!options.out.empty()) {
    write_file(options.out, answer);
    return kExitOk;
  }
  if (options.is_json) {
    // Read and written again: what was stored is untrusted, and so is what a proxy adds.
    context.console.out(
        paged(to_json_text(parse_json(answer, "the server's answer")), options.pages));
    return kExitOk;
  }
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

int run_fleet_export(FleetCommandOptions& options, Context& context) {
  const std::string out = options.out.empty() ? "history" : options.out;
  const WrittenHistory written = write_history_tables(options.folder, out);
  for (const std::string& note : written.notes) {
    context.console.err(fmt::format("note: {}\n", printable(note)));
  }
  context.console.err(fmt::format("{}, {}, {}\n",
                                  count_of(static_cast<std::int64_t>(written.num_runs), "run"),
                                  count_of(static_cast<std::int64_t>(written.num_ranks), "rank"),
                                  count_of(static_cast<std::int64_t>(written.num_rows), "row")));
  context.console.out(out + "\n");
  return kExitOk;
}

// Parquet of a folder: no server, so none of its options.
Command fleet_export_command(const std::shared_ptr<FleetCommandOptions>& options) {
  Command command;
  command.name = "export";
  command.summary = "Write a folder of summaries as Parquet, for DuckDB, Spark or ClickHouse";
  command.options = {
      required({"FOLDER", "", "Folder of summaries, at any depth", &options->folder}),
      one_of({"parquet"}, {"--format", "FORMAT", "parquet: one folder per table, files per run",
                           &options->format}),
      {"-o,--out", "DIR", "Write there; runs that are there already are replaced (history)",
       &options->out},
  };
  command.run = [options](Context& context) { return run_fleet_export(*options, context); };
  return command;
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

void add_filters(Command& command, FleetCommandOptions& target) {
  command.add(OptionGroup::kHistory,
              {{"--run", "ID", "Only this run", &target.filter.run},
               {"--model", "NAME", "Only runs of this model", &target.filter.model},
               {"--engine-version", "VERSION", "Only runs of this version of the engine",
                &target.filter.engine_version},
               {"--label", "KEY=VALUE", "Only runs with this label", &target.filter.label},
               {"--days", "N", "Only runs of the last N days", &target.num_days}});
}

Command question_command(const char* name, const char* summary,
                         const std::shared_ptr<FleetCommandOptions>& options,
                         FleetQuestion question) {
  Command command = fleet_subcommand(name, summary, options, nullptr);
  add_filters(command, *options);
  command.options.push_back(json_option(options->is_json));
  add_page_options(command, options->pages);
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
      fleet_status);
  Command most =
      question_command("top", "Kernels by their time over all ranks", options, fleet_top);
  most.add({stage, top});
  Command layers = question_command("layers", "Parts of the model by their time over all ranks",
                                    options, fleet_layers);
  layers.options.push_back(top);
  Command stragglers = question_command(
      "stragglers", "Ranks of a run that compute longer than the median of its ranks", options,
      fleet_stragglers);
  stragglers.add({stage, over, top});
  Command regressions = question_command(
      "regressions", "Kernels that take longer a call than in another version or run", options,
      fleet_regressions);
  regressions.add(
      {{"--base", "WHICH", "A run or an engine version (the last but one)", &options->filter.base},
       {"--candidate", "WHICH", "What to compare with it (the last)", &options->filter.candidate},
       stage,
       over,
       top});
  Command trend =
      question_command("trend", "MFU, MBU and stage times over days", options, fleet_trend);
  trend.options.push_back(stage);
  return {status, most, layers, stragglers, regressions, trend};
}

}  // namespace

Command fleet_command() {
  auto options = std::make_shared<FleetCommandOptions>();
  Command init =
      fleet_subcommand("init", "Make the tables on a server; may be repeated", options, run_init);
  init.add(
      {{"--cluster", "NAME", "On all nodes of this cluster: replicated and distributed",
        &options->cluster},
       at_most(36500, {"--keep-days", "N",
                       "Drop rows of single ranks after N days (never); changes existing tables",
                       &options->keep_days}),
       {"--dry-run", "", "Print the statements, make nothing", &options->is_dry}});
  Command push =
      fleet_subcommand("push", "Upload summaries to ClickHouse, exactly once", options, run_push);
  push.add({{"SUMMARY", "", "Files *.gpuwhy, or folders of them; none: only what waits",
             &options->push.files},
            {"--spool", "DIR",
             "Where batches wait until the server has them (~/.local/state/gpuwhy/spool)",
             &options->push.spool},
            at_most(kMostRowsAtOnce, {"--batch-rows", "N", "Rows in one insert, at most 1000000",
                                      &options->push.batch_rows}),
            at_most(864000, {"--wait", "SECONDS", "How long to retry", &options->push.wait_s}),
            {"--failed", "", "Also send again what the server refused: failed/ in the spool",
             &options->push.retries_failed},
            {"--again", "", "Also send what the server has acknowledged before",
             &options->push.sends_again}});
  Command sql = fleet_subcommand("sql", "Run a query of your own, read only", options, run_sql);
  sql.options.insert(sql.options.begin(), required({"QUERY", "", "Its text", &options->query}));
  sql.add({{"-o,--out", "FILE", "Write the answer there byte by byte, as for FORMAT Parquet",
            &options->out},
           json_option(options->is_json)});
  add_page_options(sql, options->pages);
  Command command;
  command.name = "fleet";
  // For the help: each of its commands takes them itself.
  add_fleet_target(command, options->target);
  add_filters(command, *options);
  for (Option& option : command.options) {
    option.group = OptionGroup::kOwn;
    option.is_required = false;
  }
  command.summary = "Keep and query the history of runs, on a server or in a folder";
  command.subcommands = {init, push};
  for (Command& question : questions(options)) {
    command.subcommands.push_back(std::move(question));
  }
  command.subcommands.push_back(sql);
  command.subcommands.push_back(fleet_export_command(options));
  return command;
}

}  // namespace gpuwhy
