// SPDX-License-Identifier: Apache-2.0
//
// Upload of summaries, as gpuwhy fleet push and gpuwhy watch do it.
#include "cli/commands/fleet_push.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "base/units.h"
#include "fleet/history/push.h"
#include "fleet/history/summary_folder.h"

namespace gpuwhy {
namespace {

// A relay may find thousands of damaged files; the first few tell what is wrong.
void say_skipped(const std::vector<std::string>& files, Console& console) {
  constexpr std::size_t kMostShown = 10;
  for (std::size_t i = 0; i < std::min(files.size(), kMostShown); ++i) {
    console.err(fmt::format("not sent: {}\n", printable(files[i])));
  }
  if (files.size() > kMostShown) {
    console.err(
        fmt::format("not sent: {} more\n",
                    count_of(static_cast<std::int64_t>(files.size() - kMostShown), "file")));
  }
}

}  // namespace

int push_summaries(const PushRequest& options, Context& context) {
  const ServerOptions settings = server_options(options.target, context.system, options.wait_s);
  ClickHouse server(settings);
  std::vector<std::filesystem::path> files;
  for (const std::string& path : options.files) {
    const std::vector<std::filesystem::path> found = summaries_in(path);
    files.insert(files.end(), found.begin(), found.end());
  }
  Spool spool(spool_folder(options.spool, settings, context.system));
  for (const std::string& sentence :
       spool.set_target({settings.database, settings.urls}, options.spool.empty())) {
    context.console.err(fmt::format("note: {}\n", printable(sentence)));
  }
  if (options.retries_failed) {
    const auto num = static_cast<std::int64_t>(spool.retry_failed());
    context.console.err(fmt::format("{} sent again\n", count_of(num, "refused batch")));
  }
  DrainedCounts sent;
  SpooledCounts spooled;
  try {
    SpoolRules rules;
    rules.batch_rows = static_cast<std::uint64_t>(options.batch_rows);
    rules.sends_again = options.sends_again;
    // Batches are sent by another thread while later files are read. It alone uses the server then.
    // While the server is away, batches only pile up.
    std::optional<ServerError> away;
    const auto unless_away = [&](const std::function<void()>& ask) {
      try {
        if (!away) {
          ask();
        }
      } catch (const ServerError& error) {
        away = error;
      }
    };
    if (!files.empty()) {
      unless_away([&] { rules.first_kept_day = first_kept_day(server); });
    }
    std::future<void> sender;
    rules.on_batch = [&] {
      if (sender.valid()) {
        if (sender.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
          return;  // it is busy; this batch is among the next
        }
        sender.get();
      }
      sender =
          std::async(std::launch::async, [&] { unless_away([&] { drain(spool, server, sent); }); });
    };
    spooled = spool_summaries(files, rules, spool);
    if (sender.valid()) {
      sender.get();
    }
    // A server that was waited for is not waited for again. One that refused a batch may take
    // others.
    if (away && away->refusal() != Refusal::kUnknown) {
      throw ServerError(*away);
    }
    drain(spool, server, sent);
  } catch (const ServerError& error) {
    // Which addresses and why is the error's; that nothing is lost is what a user must know first.
    throw Error(error.kind(),
                fmt::format("{} batches wait in {}: {}", spool.waiting().size(),
                            spool.folder().string(), error.what()),
                error.hint().empty() ? "nothing is lost: gpuwhy fleet push --to URL sends them"
                                     : error.hint());
  }
  for (const std::string& sentence : sent.set_aside) {
    context.console.err(fmt::format("the server refuses {}\n", printable(sentence)));
  }
  say_skipped(spooled.skipped, context.console);
  const std::int64_t num_sealed = seal_runs(server, sent.run_keys, sent.ranks);
  context.console.out(
      fmt::format("sent {} ranks, {} rows in {} batches ({} retries); {} runs sealed\n", sent.ranks,
                  sent.rows, sent.batches, server.num_retries(), num_sealed));
  if (spooled.sent_before > 0) {
    context.console.out(
        fmt::format("{} sent before (--again sends them once more)\n",
                    count_of(static_cast<std::int64_t>(spooled.sent_before), "rank")));
  }
  return !sent.set_aside.empty()    ? kExitFailure
         : !spooled.skipped.empty() ? kExitIncomplete
                                    : kExitOk;
}

}  // namespace gpuwhy
