// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy load: sends streamed requests to a server and writes when each token arrived.
#include "serve/load.h"

#include <memory>

#include <fmt/format.h>

#include "base/exit_code.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "capture/supervise.h"
#include "cli/command.h"

namespace gpuwhy {
namespace {

struct LoadCommandOptions {
  LoadOptions load;
  std::string out;
  bool quiet = false;
};

int run_load_command(const LoadCommandOptions& options, Context& context) {
  const InterruptCounter interrupts;
  std::unique_ptr<FileWriter> file;
  if (!options.out.empty()) {
    file = std::make_unique<FileWriter>(options.out);
  }
  const LoadResult result = run_load(
      options.load,
      [&](const std::string& line) {
        if (file) {
          file->write(line);
        } else if (!options.quiet) {
          context.console.out(line);
        }
      },
      [] { return InterruptCounter::count() > 0; });
  if (file) {
    file->commit();
  }
  const double seconds = static_cast<double>(result.duration_ns) * 1e-9;
  context.console.err(
      fmt::format("{} in {}, {} failed, {} ({:.1f} tokens/s)\n",
                  count_of(result.num_sent, "request"), format_duration_ns(result.duration_ns),
                  result.num_failed, count_of(result.output_tokens, "output token"),
                  seconds > 0 ? static_cast<double>(result.output_tokens) / seconds : 0));
  if (InterruptCounter::count() > 0) {
    return kExitInterrupted;
  }
  if (result.num_failed > 0) {
    context.console.err(fmt::format("first error: {}\n", printable(result.first_error)));
    return kExitFailure;
  }
  return kExitOk;
}

}  // namespace

Command load_command() {
  auto options = std::make_shared<LoadCommandOptions>();
  LoadOptions& load = options->load;
  Command command =
      command_of("load", "Send requests to a server and write when each token arrived", options,
                 run_load_command);
  command.options = {
      required({"URL", "", "Address of the server, as http://127.0.0.1:8000", &load.url}),
      at_most(1'000'000, {"--requests", "N", "Requests to send", &load.num_requests}),
      at_most(4096, {"--streams", "N", "Requests at once", &load.num_streams}),
      at_most(1'000'000,
              {"--rate", "N",
               "Requests per minute, arriving at random (Poisson), in place of --streams",
               &load.rate_per_min}),
      at_most(1'000'000, {"--prompt-tokens", "N", "Length of each prompt", &load.prompt_tokens}),
      at_most(1'000'000, {"--output-tokens", "N", "Tokens to ask for", &load.output_tokens}),
      {"--seed", "N", "Of prompts and arrivals", &load.seed},
      {"--model", "NAME", "Model, as the server calls it (default: its first)", &load.model},
      one_of({"auto", "openai", "llama"},
             {"--api", "API", "openai (/v1/completions), llama (/completion) or auto", &load.api}),
      {"--timeout", "SECONDS", "For one request", &load.timeout_s},
      {"-o,--out", "FILE", "Write the requests here (default: standard output)", &options->out},
      {"-q,--quiet", "", "Print no requests, only what came of them", &options->quiet},
  };
  command.examples =
      "  gpuwhy load http://127.0.0.1:8000 --streams 16 --requests 200 -o requests.jsonl\n"
      "  gpuwhy analyze run.sqlite --requests requests.jsonl\n";
  return command;
}

}  // namespace gpuwhy
