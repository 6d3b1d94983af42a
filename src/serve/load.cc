// SPDX-License-Identifier: Apache-2.0
//
// Load for a server: streamed completions, a number of them at once or arriving at random.
//
// Prompts are random token ids, so their length is exact and no prefix cache helps. Times are of
// the clock that recordings are joined by: the time of day, when bytes are read.
#include "serve/load.h"

#include <chrono>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json_fwd.h"
#include "net/http.h"
#include "net/http_streams.h"
#include "serve/stream_reader.h"

namespace gpuwhy {
namespace {

using Clock = std::chrono::steady_clock;

// Small numbers are in every vocabulary; the first ones control.
constexpr int kLeastToken = 100;
constexpr int kMostToken = 999;
constexpr std::int64_t kMostOpen = 4096;  // requests at once in an open loop
constexpr std::chrono::milliseconds kLongestWait{50};

// One request from its start to its end.
struct LoadedRequest {
  std::int64_t number = 0;
  std::int64_t sent_ns = 0;
  std::vector<std::int64_t> token_ns;
  std::int64_t prompt_tokens = 0;
  std::optional<std::int64_t> output_tokens;
  std::optional<std::int64_t> slot;
  std::string error;
  EventLines lines;
};

std::string line_of(const LoadedRequest& request, std::int64_t done_ns, bool is_local) {
  std::string line =
      fmt::format(R"({{"id":"load-{}","sent_ns":{})", request.number, request.sent_ns);
  if (is_local) {
    line += R"(,"local":true)";
  }
  if (!request.token_ns.empty()) {
    line += fmt::format(R"(,"first_token_ns":{},"token_ns":[{}])", request.token_ns.front(),
                        fmt::join(request.token_ns, ","));
  }
  line += fmt::format(R"(,"done_ns":{},"prompt_tokens":{})", done_ns, request.prompt_tokens);
  if (request.output_tokens) {
    line += fmt::format(R"(,"output_tokens":{})", *request.output_tokens);
  }
  if (request.slot) {
    line += fmt::format(R"(,"slot":{})", *request.slot);
  }
  if (!request.error.empty()) {
    const std::string error = json_object_line({{"error", request.error}});
    line += "," + error.substr(1, error.size() - 2);
  }
  return line + "}\n";
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Sends requests and keeps what came of them.
class Load {
 public:
  Load(const LoadOptions& options, const std::function<void(const std::string&)>& write)
      : options_(options),
        write_(write),
        streams_(http_options(options)),
        random_(static_cast<std::uint64_t>(options.seed)) {
    ask_server();
  }

  LoadResult run(const std::function<bool()>& is_stopped) {
    const Clock::time_point start = Clock::now();
    Clock::time_point due = start;
    while ((result_.num_sent < options_.num_requests || streams_.num_open() > 0) && !is_stopped()) {
      while (result_.num_sent < options_.num_requests && may_send(due)) {
        send();
        due += until_next();
      }
      streams_.wait(kLongestWait);
    }
    result_.duration_ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
    return result_;
  }

 private:
  static HttpOptions http_options(const LoadOptions& options) {
    HttpOptions http;
    http.timeout_s = static_cast<int>(options.timeout_s);
    return http;
  }

  // Which API it speaks, and the name of its model.
  void ask_server() {
    if (options_.url.find("://") == std::string::npos) {
      throw Error(ErrorKind::kUsage, fmt::format("'{}' is not an address", options_.url),
                  "give it as http://127.0.0.1:8000");
    }
    while (options_.url.ends_with('/')) {
      options_.url.pop_back();
    }
    HttpOptions brief;
    brief.timeout_s = 30;
    HttpClient client(brief);
    const HttpAnswer answer = client.get(options_.url + "/v1/models");
    if (answer.status == 0) {
      throw Error(ErrorKind::kEnvironment,
                  fmt::format("{} does not answer: {}", options_.url, answer.reason),
                  "is the server running? run --ready waits for it");
    }
    if (options_.api == "auto") {
      // Only llama.cpp says what its slots do.
      options_.api = client.get(options_.url + "/props").status == 200 ? "llama" : "openai";
    }
    if (options_.model.empty()) {
      options_.model = reader_.first_model(answer.body);
    }
  }

  // Closed loop: as many as there are streams. Open loop: when it is due.
  bool may_send(Clock::time_point due) const {
    const auto open = static_cast<std::int64_t>(streams_.num_open());
    return options_.rate_per_min ? Clock::now() >= due && open < kMostOpen
                                 : open < options_.num_streams;
  }

  std::chrono::nanoseconds until_next() {
    if (!options_.rate_per_min) {
      return {};
    }
    const double uniform = (static_cast<double>(random_() >> 11U) + 1) / 9007199254740993.0;
    const double minutes = -std::log(uniform) / static_cast<double>(*options_.rate_per_min);
    return std::chrono::nanoseconds(static_cast<std::int64_t>(minutes * 60e9));
  }

  std::string prompt() {
    std::vector<int> tokens;
    tokens.reserve(static_cast<std::size_t>(options_.prompt_tokens));
    for (std::int64_t i = 0; i < options_.prompt_tokens; ++i) {
      tokens.push_back(kLeastToken + static_cast<int>(random_() % (kMostToken - kLeastToken + 1)));
    }
    return fmt::format("{}", fmt::join(tokens, ","));
  }

  std::string body_of() {
    if (options_.api == "llama") {
      return fmt::format(
          R"({{"prompt":[{}],"n_predict":{},"stream":true,"ignore_eos":true,"temperature":0,"cache_prompt":false}})",
          prompt(), options_.output_tokens);
    }
    const std::string model = json_object_line({{"model", options_.model}});
    return fmt::format(
        R"({{{},"prompt":[{}],"max_tokens":{},"stream":true,"ignore_eos":true,"temperature":0,"stream_options":{{"include_usage":true}}}})",
        model.substr(1, model.size() - 2), prompt(), options_.output_tokens);
  }

  void send() {
    auto request = std::make_shared<LoadedRequest>();
    request->number = result_.num_sent++;
    request->prompt_tokens = options_.prompt_tokens;
    std::string body = body_of();
    request->sent_ns = now_ns();
    StreamEvents events;
    events.on_bytes = [this, request](std::string_view bytes, std::int64_t at_ns) {
      request->lines.add(bytes, [&](std::string_view data) { take(data, at_ns, *request); });
    };
    events.on_end = [this, request](const HttpAnswer& answer, std::int64_t at_ns) {
      request->lines.add("\n", [&](std::string_view data) { take(data, at_ns, *request); });
      finish(answer, at_ns, *request);
    };
    const char* path = options_.api == "llama" ? "/completion" : "/v1/completions";
    streams_.start(options_.url + path, std::move(body), std::move(events));
  }

  void take(std::string_view data, std::int64_t at_ns, LoadedRequest& request) {
    const StreamedEvent event = reader_.read(data);
    if (event.has_token) {
      request.token_ns.push_back(at_ns);
    }
    request.prompt_tokens = event.prompt_tokens.value_or(request.prompt_tokens);
    request.output_tokens = event.output_tokens ? event.output_tokens : request.output_tokens;
    request.slot = event.slot ? event.slot : request.slot;
    if (!event.error.empty()) {
      request.error = event.error;
    }
  }

  void finish(const HttpAnswer& answer, std::int64_t at_ns, LoadedRequest& request) {
    if (request.error.empty() && answer.failure != HttpFailure::kNothing) {
      request.error = answer.reason;
    } else if (request.error.empty() && answer.status != 200) {
      request.error = fmt::format("HTTP status {}", answer.status);
    } else if (request.error.empty() && request.token_ns.empty()) {
      request.error = "no token was streamed";
    }
    if (!request.error.empty()) {
      ++result_.num_failed;
      result_.first_error = result_.first_error.empty() ? request.error : result_.first_error;
    }
    result_.output_tokens +=
        request.output_tokens.value_or(static_cast<std::int64_t>(request.token_ns.size()));
    write_(line_of(request, at_ns, is_loopback(options_.url)));
  }

  LoadOptions options_;
  const std::function<void(const std::string&)>& write_;
  HttpStreams streams_;
  StreamReader reader_;
  std::mt19937_64 random_;
  LoadResult result_;
};

}  // namespace

bool is_loopback(std::string_view url) {
  const std::size_t scheme = url.find("://");
  std::string_view host = url.substr(scheme == std::string_view::npos ? 0 : scheme + 3);
  host = host.substr(0, host.find('/'));
  const std::size_t user = host.rfind('@');
  host.remove_prefix(user == std::string_view::npos ? 0 : user + 1);
  if (host.starts_with('[')) {
    return host.starts_with("[::1]");
  }
  host = host.substr(0, host.find(':'));
  const bool is_number = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return host == "localhost" || (is_number && host.starts_with("127."));
}

LoadResult run_load(const LoadOptions& options,
                    const std::function<void(const std::string& line)>& write,
                    const std::function<bool()>& is_stopped) {
  return Load(options, write).run(is_stopped);
}

}  // namespace gpuwhy
