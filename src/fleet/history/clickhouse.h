// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/history/clickhouse_schema.h"
#include "net/http.h"

namespace gpuwhy {

// How to log in. Sent as headers, never as part of a URL.
struct ServerCredentials {
  std::string user;  // empty: the server's default user
  std::string password;
};

// How to reach a server, and how long to try.
struct ServerOptions {
  std::vector<std::string> urls;  // equivalent nodes of one server or cluster
  std::string database = "gpuwhy";
  ServerCredentials credentials;
  HttpOptions http;
  int patience_s = 15;  // how long to retry
};

// Checks the URL of a server: http or https, a host, no credentials. Returns it without a trailing
// slash. Throws kUsage.
std::string checked_server_url(const std::string& url);

// Why a statement failed. Sent rows must be kept, unless kBadRows.
enum class Refusal {
  kNotNow,    // may succeed later, or through another node
  kUnknown,   // as kNotNow, but other rows may be accepted meanwhile
  kNotThere,  // credentials, tables or the server itself are wrong
  kBadRows,   // the server will never accept these rows
};

// An Error with its reason: kInput for kBadRows, kEnvironment for all others.
class ServerError : public Error {
 public:
  ServerError(Refusal refusal, std::string message, std::string hint = {}, int code = 0)
      : Error(refusal == Refusal::kBadRows ? ErrorKind::kInput : ErrorKind::kEnvironment,
              std::move(message), std::move(hint)),
        refusal_(refusal),
        code_(code) {}
  Refusal refusal() const { return refusal_; }
  int code() const { return code_; }  // of ClickHouse's exception, where a caller needs it; or 0

 private:
  Refusal refusal_;
  int code_;
};

// A server by its HTTP interface. Each request tries one node after the other, with growing delays,
// until there is a response or the patience ends; then it throws ServerError.
class ClickHouse {
 public:
  explicit ClickHouse(ServerOptions options);

  const std::string& database() const { return options_.database; }
  const Dialect& dialect();  // queried once

  // A read-only query. Without a FORMAT in `sql` the result is tab-separated text. It is complete.
  std::string ask(std::string_view sql);

  void execute(std::string_view sql);

  // Inserts rows in RowBinary, whose columns are `columns`. When it returns they are stored.
  // Sending them again changes nothing.
  void insert(std::string_view table, std::string_view columns, std::string_view sha256,
              std::string_view rows);

  std::int64_t num_retries() const { return num_retries_; }

 private:
  std::string send(const std::string& parameters, std::string_view body);
  std::string send_once(const std::string& url, const std::string& parameters,
                        std::string_view body);
  bool is_read_only_user();

  ServerOptions options_;
  HttpClient http_;
  std::vector<std::string> headers_;
  std::optional<Dialect> dialect_;
  std::optional<bool> is_read_only_user_;
  std::size_t node_ = 0;
  std::int64_t num_retries_ = 0;
  std::mt19937 random_;
};

// Tab-separated text as ClickHouse writes it, unescaped. Throws kInput unless every line has
// `num_columns`.
std::vector<std::vector<std::string>> tab_separated(std::string_view text, std::size_t num_columns);

// Numbers in such a text. Throw kInput.
std::uint64_t server_number(std::string_view text);
std::vector<std::uint64_t> server_numbers(std::string_view text);  // "[1,2]"

}  // namespace gpuwhy
