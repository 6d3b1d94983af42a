// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llmprof {

// What became of a request below HTTP. Whoever asks again does so after each of them but kTls,
// kTooLarge and kMalformed.
enum class HttpFailure { kNothing, kUnreachable, kTimeout, kCut, kTls, kTooLarge, kMalformed };

struct HttpAnswer {
  HttpFailure failure = HttpFailure::kNothing;
  std::string reason;  // of the failure, in the library's words
  int status = 0;
  std::string content_type;
  std::string body;            // whole, or there is a failure
  bool is_clickhouse = false;  // has a header that ClickHouse puts on each of its answers
};

struct HttpOptions {
  std::string ca_file;  // PEM; empty: the machine's own. Certificates are checked always.
  int timeout_s = 60;   // for a whole request
  std::uint64_t limit_bytes = 256ULL << 20;  // of an answer
};

// Keeps its connection between requests. Follows no redirect and speaks http and https alone. One
// thread at a time.
class HttpClient {
 public:
  explicit HttpClient(HttpOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // `headers` are lines, as "X-ClickHouse-User: me". Throws kEnvironment where this program was
  // built without HTTP.
  HttpAnswer post(const std::string& url, const std::vector<std::string>& headers,
                  std::string_view body);

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

// `text` as the value of a URL's parameter.
std::string url_escaped(std::string_view text);

}  // namespace llmprof
