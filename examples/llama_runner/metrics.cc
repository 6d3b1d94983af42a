// SPDX-License-Identifier: Apache-2.0
#include "metrics.h"

#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

namespace llama_runner {
namespace {

using Json = nlohmann::ordered_json;

struct Spread {
  std::int64_t n = 0;
  double mean = 0;
  double std = 0;  // of the sample
};

Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  spread.n = static_cast<std::int64_t>(values.size());
  for (const double value : values) {
    spread.mean += value / static_cast<double>(values.size());
  }
  double squares = 0;
  for (const double value : values) {
    squares += (value - spread.mean) * (value - spread.mean);
  }
  if (spread.n > 1) {
    spread.std = std::sqrt(squares / static_cast<double>(spread.n - 1));
  }
  return spread;
}

// What can be said of all requests together. `tpot` is of steps: the time between two tokens of a
// sequence.
struct Aggregates {
  Spread ttft_ns, tpot_ns, prefill_tokens_per_s, decode_tokens_per_s;
};

Aggregates aggregates_of(const Options& options, const RunResult& result) {
  std::vector<double> ttft, steps, prefill_rates, decode_rates;
  for (const RequestTimes& request : result.requests) {
    ttft.push_back(static_cast<double>(request.ttft_ns));
    prefill_rates.push_back(static_cast<double>(options.batch * result.prompt_tokens) * 1e9 /
                            static_cast<double>(request.ttft_ns));
    for (const std::int64_t step : request.step_ns) {
      steps.push_back(static_cast<double>(step));
    }
    if (!request.step_ns.empty()) {
      const auto tokens =
          static_cast<double>(options.batch) * static_cast<double>(request.step_ns.size());
      decode_rates.push_back(tokens * 1e9 / static_cast<double>(request.decode_ns));
    }
  }
  return {spread_of(ttft), spread_of(steps), spread_of(prefill_rates), spread_of(decode_rates)};
}

Json spread_json(const Spread& spread) {
  if (spread.n == 0) {
    return nullptr;
  }
  return {{"n", spread.n},
          {"mean", spread.mean},
          {"std", spread.n > 1 ? Json(spread.std) : Json(nullptr)}};
}

}  // namespace

std::string metrics_json(const Options& options, const RunResult& result) {
  Json requests = Json::array();
  for (const RequestTimes& request : result.requests) {
    requests.push_back({{"ttft_ns", request.ttft_ns},
                        {"decode_ns", request.decode_ns},
                        {"step_ns", request.step_ns}});
  }
  const Aggregates all = aggregates_of(options, result);
  char hash[17] = {};
  std::snprintf(hash, sizeof(hash), "%016llx", static_cast<unsigned long long>(result.output_hash));
  const Json document = {{"model",
                          {{"file", options.model},
                           {"description", result.description},
                           {"params", result.params},
                           {"weight_bytes", result.weight_bytes}}},
                         {"batch", options.batch},
                         {"prompt_tokens", result.prompt_tokens},
                         {"new_tokens", options.new_tokens},
                         {"threads", options.threads},
                         {"load_ns", result.load_ns},
                         {"output_hash", hash},
                         {"aggregates",
                          {{"ttft_ns", spread_json(all.ttft_ns)},
                           {"tpot_ns", spread_json(all.tpot_ns)},
                           {"prefill_tokens_per_s", spread_json(all.prefill_tokens_per_s)},
                           {"decode_tokens_per_s", spread_json(all.decode_tokens_per_s)}}},
                         {"requests", requests}};
  return document.dump(2) + "\n";
}

std::string metrics_text(const Options& options, const RunResult& result) {
  const Aggregates all = aggregates_of(options, result);
  char text[512] = {};
  std::snprintf(text, sizeof(text),
                "%s, %.1f M parameters: %zu requests of %lld x %lld tokens\n"
                "ttft %.2f ms (std %.2f), tpot %.3f ms (std %.3f), %.1f tokens/s\n",
                result.description.c_str(), static_cast<double>(result.params) / 1e6,
                result.requests.size(), static_cast<long long>(options.batch),
                static_cast<long long>(result.prompt_tokens), all.ttft_ns.mean / 1e6,
                all.ttft_ns.std / 1e6, all.tpot_ns.mean / 1e6, all.tpot_ns.std / 1e6,
                all.decode_tokens_per_s.mean);
  return text;
}

}  // namespace llama_runner
