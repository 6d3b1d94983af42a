// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwhy {

// Failures below HTTP. All of them are worth a retry except kTls, kTooLarge and kMalformed.
enum class HttpFailure { kNothing, kUnreachable, kTimeout, kCut, kTls, kTooLarge, kMalformed };

// A response, or the reason why there is none.
struct HttpAnswer {
  HttpFailure failure = HttpFailure::kNothing;
  std::string reason;  // of the failure, in the library's words
  int status = 0;
  std::string content_type;
  std::string body;            // complete, unless there is a failure
  bool is_clickhouse = false;  // has a header that every ClickHouse response has
  // Of a header X-ClickHouse-Exception-Code, whatever the status is. 0: none; -1: not a number.
  int exception_code = 0;
};

struct HttpOptions {
  std::string ca_file;  // PEM; empty: the system's. Certificates are always checked.
  int timeout_s = 60;   // for a whole request
  std::uint64_t limit_bytes = 256ULL << 20;  // of an answer
};

// Keeps its connection between requests. Follows no redirects and uses only http and https. Not
// thread-safe.
class HttpClient {
 public:
  // Throws kEnvironment in a build without libcurl.
  explicit HttpClient(HttpOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  HttpAnswer get(const std::string& url);
  // `headers` are lines such as "X-ClickHouse-User: me".
  HttpAnswer post(const std::string& url, const std::vector<std::string>& headers,
                  std::string_view body);

 private:
  struct Connection;
  // A GET where there is no body.
  HttpAnswer request(const std::string& url, const std::vector<std::string>& headers,
                     const std::string_view* body);
  std::unique_ptr<Connection> connection_;
};

}  // namespace gpuwhy
