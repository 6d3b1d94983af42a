// SPDX-License-Identifier: Apache-2.0
//
// ClickHouse client over HTTP: retries, error classes and checked acknowledgements.
//
// An acknowledgement deletes the only other copy of the rows, so it must come from ClickHouse and
// be empty: a proxy's login page with status 200 does not count, and neither does a truncated body.
// A server may notice an error after it has sent status 200. It then adds a header or writes the
// exception into the body; both are looked for.
//
// Only errors that are about the rows by their kind make a batch unacceptable. All others,
// including those of releases to come, may pass: the batch is kept.
//
// Every response of ClickHouse has a header X-ClickHouse-Server-Display-Name (18.16 and later),
// which is checked.
//
// Delays double from a quarter of a second to five, each with a random factor: a thousand nodes
// must not retry at the same moment when their server comes back. The delay comes after a round
// through all nodes, because the next node may well be up.
//
// Credentials are sent in headers: URLs end up in logs.
#include "fleet/history/clickhouse.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <thread>

#include <fmt/format.h>

#include "base/text.h"

namespace gpuwhy {
namespace {

using Clock = std::chrono::steady_clock;

// Kinds of errors, from src/Common/ErrorCodes.cpp of ClickHouse. What is in none of these lists may
// pass, but perhaps not for these rows.
constexpr std::array<int, 35> kLaterCodes = {
    3,     // unexpected end of file: a node of the cluster went away
    32,    // attempt to read after eof: the same
    74,    // cannot read from a file descriptor
    75,    // cannot write to it
    76,    // cannot open a file: too many are open
    159,   // timeout exceeded
    160,   // too slow
    173,   // cannot allocate memory
    198,   // DNS error
    201,   // quota exceeded
    202,   // too many simultaneous queries
    203,   // no free connection
    209,   // socket timeout
    210,   // network error
    218,   // table is being dropped
    225,   // no ZooKeeper
    236,   // aborted
    241,   // memory limit
    242,   // table is read only: its ZooKeeper is away
    243,   // not enough space
    244,   // unexpected ZooKeeper error
    246,   // corrupted data: of a packet between nodes
    252,   // too many parts
    279,   // all connection tries failed
    285,   // too few live replicas
    286,   // unsatisfied quorum for the previous write
    290,   // limit exceeded
    305,   // cannot assign the block to a replica
    319,   // unknown status of insert
    394,   // query was cancelled
    425,   // system error
    439,   // cannot schedule a task
    499,   // the object store's
    999,   // Keeper's
    1000,  // a network exception of Poco
};
// The rows themselves cannot be read or stored.
constexpr std::array<int, 14> kBadRowsCodes = {
    6,    // cannot parse text
    26,   // cannot parse a quoted string
    27,   // input is not what the format wants
    33,   // cannot read all data
    38,   // cannot parse a date
    41,   // cannot parse a time
    70,   // cannot convert the type
    72,   // cannot parse a number
    117,  // incorrect data
    128,  // array too large
    131,  // string too large
    321,  // value is out of range of its type
    349,  // NULL in a column without
    469,  // violated constraint
};
constexpr int kReadOnly = 164;
constexpr int kReplicaExists = 253;
// Users, tables or statements do not fit this server; waiting does not help, and the rows are good.
constexpr std::array<int, 17> kNotThereCodes = {
    16,              // no such column
    20,              // number of columns does not match
    46,              // unknown function
    47,              // unknown identifier
    53,              // type mismatch
    60,              // unknown table
    62,              // syntax error
    73,              // unknown format
    81,              // unknown database
    115,             // unknown setting
    kReadOnly,       // the user may only read, or the server does for now
    kReplicaExists,  // another server's, or one that is gone
    192,
    193,
    194,
    516,  // users and passwords
    497,  // not enough privileges
};

template <std::size_t N>
bool contains(const std::array<int, N>& codes, int code) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

constexpr int kSomeCode = -1;  // an exception whose code cannot be read

// The code of the exception that a body tells of; 0 if it tells of none. Rows are tab-separated and
// start with a number, so that none of their lines looks like "Code: 241. DB::Exception: ...".
int exception_in(std::string_view body) {
  constexpr std::string_view kMark = "Code: ";
  if (body.find("__exception__\r\n") != std::string_view::npos) {  // since 25.11
    return kSomeCode;
  }
  for (std::size_t at = body.find(kMark); at != std::string_view::npos;
       at = body.find(kMark, at + 1)) {
    const std::string_view line = body.substr(at, std::min(body.find('\n', at), body.size()) - at);
    if ((at == 0 || body[at - 1] == '\n') && line.find("DB::Exception") != std::string_view::npos) {
      int code = 0;
      std::from_chars(line.data() + kMark.size(), line.data() + line.size(), code);
      return code > 0 ? code : kSomeCode;
    }
  }
  return 0;
}

// The first line of a server's message, safe to print.
std::string said(std::string_view body) {
  const std::string_view text = trim(body);
  const std::string line = printable(text.substr(0, std::min<std::size_t>(text.find('\n'), 300)));
  return line.empty() ? "nothing" : line;
}

// The same of an error, whose code may be in a header alone.
std::string said(const HttpAnswer& answer, int code) {
  const std::string text = said(answer.body);
  return code == 0 || text.starts_with("Code: ")
             ? text
             : fmt::format("HTTP {} with exception code {}: {}", answer.status, code, text);
}

std::string hint_for(int code, const std::string& database) {
  if (code == kReplicaExists) {
    return "a replica of this name was there before: SYSTEM DROP REPLICA 'NAME' on another node, or "
           "remove its path in ZooKeeper, then init again (docs/fleet.md)";
  }
  if (code == kReadOnly) {
    return "this user may only read, or the server does for now; push and init must write";
  }
  const bool is_of_user = (code >= 192 && code <= 194) || code == 497 || code == 516;
  if (!is_of_user) {
    return fmt::format(
        "gpuwhy fleet init --to URL makes the tables, and updates older ones (database {})",
        database);
  }
  return "credentials: GPUWHY_CLICKHOUSE_USER and GPUWHY_CLICKHOUSE_PASSWORD, or --credentials "
         "FILE";
}

// `text` as the value of a URL parameter.
std::string url_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    escaped += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return escaped;
}

ServerError failed_below_http(const std::string& url, const HttpAnswer& answer) {
  const std::string message = fmt::format("{}: {}", url, printable(answer.reason));
  switch (answer.failure) {
    case HttpFailure::kTls:
      return {Refusal::kNotThere, message,
              "--ca FILE names the authority that signed its certificate"};
    case HttpFailure::kTooLarge:
      return {Refusal::kNotThere, message, "ask for less: one run, fewer days"};
    case HttpFailure::kMalformed:
      return {Refusal::kNotThere, message, "is this the HTTP port of ClickHouse?"};
    default:
      return {Refusal::kNotNow, message};
  }
}

}  // namespace

// Rejects what curl would interpret, and anything that could end up in a log.
std::string checked_server_url(const std::string& url) {
  const std::size_t scheme_end = url.find("://");
  const std::string scheme = to_lower(url.substr(0, scheme_end));
  if (scheme_end == std::string::npos || (scheme != "http" && scheme != "https")) {
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}' is not a server address", printable(url.substr(0, 200))),
                "as http://host:8123 or https://host:8443");
  }
  std::string rest = url.substr(scheme_end + 3);
  if (rest.find('@') != std::string::npos) {
    // Not shown, because it contains a password.
    throw Error(ErrorKind::kUsage, "the server's address holds credentials",
                "take them out: GPUWHY_CLICKHOUSE_USER and GPUWHY_CLICKHOUSE_PASSWORD, or "
                "--credentials FILE");
  }
  while (rest.ends_with('/')) {
    rest.pop_back();
  }
  const bool is_plain = !rest.empty() && std::all_of(rest.begin(), rest.end(), [](unsigned char c) {
    return c > 0x20 && c < 0x7f && c != '?' && c != '#' && c != '"' && c != '\\';
  });
  if (!is_plain) {
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}' is not a server address", printable(url.substr(0, 200))),
                "write it as http://host:8123, without a query or spaces");
  }
  return scheme + "://" + rest;
}

ClickHouse::ClickHouse(ServerOptions options)
    : options_(std::move(options)), http_(options_.http), random_(std::random_device{}()) {
  check_identifier("--database", options_.database);
  if (!options_.credentials.user.empty()) {
    headers_.push_back("X-ClickHouse-User: " + options_.credentials.user);
    headers_.push_back("X-ClickHouse-Key: " + options_.credentials.password);
  }
  headers_.emplace_back("Content-Type: application/octet-stream");
  // Nodes of a fleet must not all start with the first address.
  node_ = std::uniform_int_distribution<std::size_t>(0, options_.urls.size() - 1)(random_);
}

std::string ClickHouse::send_once(const std::string& url, const std::string& parameters,
                                  std::string_view body) {
  const HttpAnswer answer = http_.post(url + "/?wait_end_of_query=1" + parameters, headers_, body);
  if (answer.failure != HttpFailure::kNothing) {
    throw failed_below_http(url, answer);
  }
  const int code = answer.exception_code != 0 ? answer.exception_code : exception_in(answer.body);
  if (answer.is_clickhouse && answer.status == 200 && code == 0) {
    return answer.body;
  }
  const bool is_busy =
      answer.status == 408 || answer.status == 425 || answer.status == 429 || answer.status >= 500;
  if (!answer.is_clickhouse && code == 0) {
    const std::string type =
        answer.content_type.empty() ? "no type" : printable(answer.content_type.substr(0, 60));
    throw ServerError(
        is_busy ? Refusal::kNotNow : Refusal::kNotThere,
        fmt::format("{} does not answer like ClickHouse (HTTP {}, {})", url, answer.status, type),
        "is this the HTTP port of ClickHouse? 8123 is its usual one");
  }
  const std::string message = fmt::format("{}: {}", url, said(answer, code));
  if (contains(kNotThereCodes, code)) {
    throw ServerError(Refusal::kNotThere, message, hint_for(code, options_.database), code);
  }
  if (contains(kBadRowsCodes, code)) {
    throw ServerError(Refusal::kBadRows, message);
  }
  const bool is_later = contains(kLaterCodes, code) || (code == 0 && is_busy);
  throw ServerError(is_later ? Refusal::kNotNow : Refusal::kUnknown, message);
}

// What may pass is tried again, until the patience ends.
std::string ClickHouse::send(const std::string& parameters, std::string_view body) {
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(options_.patience_s);
  double wait_s = 0.25;
  for (std::size_t tried = 1;; ++tried) {
    try {
      return send_once(options_.urls[node_], parameters, body);
    } catch (const ServerError& error) {
      const bool may_pass =
          error.refusal() == Refusal::kNotNow || error.refusal() == Refusal::kUnknown;
      if (!may_pass || Clock::now() >= deadline) {
        throw;
      }
    }
    ++num_retries_;
    node_ = (node_ + 1) % options_.urls.size();
    if (tried % options_.urls.size() == 0) {
      const double factor = std::uniform_real_distribution<double>(0.5, 1)(random_);
      std::this_thread::sleep_for(std::chrono::duration<double>(wait_s * factor));
      wait_s = std::min(wait_s * 2, 5.0);
    }
  }
}

const Dialect& ClickHouse::dialect() {
  if (!dialect_) {
    dialect_ = dialect_of(ask("SELECT version()"));
  }
  return *dialect_;
}

std::string ClickHouse::ask(std::string_view sql) {
  try {
    return send(is_read_only_user_.value_or(false) ? "" : "&readonly=1", sql);
  } catch (const ServerError& error) {
    // A user who may only read may not even ask for that. The server's own setting
    // distinguishes such a user from a statement that writes.
    if (error.code() != kReadOnly || is_read_only_user_ || !is_read_only_user()) {
      throw;
    }
  }
  return send("", sql);
}

bool ClickHouse::is_read_only_user() {
  const std::string value =
      send("", "SELECT value FROM system.settings WHERE name = 'readonly' FORMAT TabSeparated");
  is_read_only_user_ = trim(value) == "1" || trim(value) == "2";
  return *is_read_only_user_;
}

void ClickHouse::execute(std::string_view sql) {
  send("", sql);
}

void ClickHouse::insert(std::string_view table, std::string_view columns, std::string_view sha256,
                        std::string_view rows) {
  const std::string statement =
      fmt::format("INSERT INTO {}.{} ({}) FORMAT RowBinary", options_.database, table, columns);
  const std::string answer =
      send(insert_parameters(dialect(), sha256) + "&query=" + url_escaped(statement), rows);
  if (!answer.empty()) {
    throw ServerError(Refusal::kNotThere,
                      fmt::format("the server answered an insert with {}", said(answer)));
  }
}

std::vector<std::vector<std::string>> tab_separated(std::string_view text,
                                                    std::size_t num_columns) {
  const Error wrong(ErrorKind::kInput, "the server's answer is not what was asked for");
  std::vector<std::vector<std::string>> rows;
  while (!text.empty()) {
    // A line without its end is a truncated response.
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      throw wrong;
    }
    std::vector<std::string> row(1);
    for (std::size_t i = 0; i < end; ++i) {
      if (text[i] == '\t') {
        row.emplace_back();
        continue;
      }
      char c = text[i];
      if (c == '\\' && i + 1 < end) {
        constexpr std::string_view kLetters = "bfrnt0";
        constexpr std::string_view kMeanings("\b\f\r\n\t\0", 6);
        const std::size_t known = kLetters.find(text[++i]);
        c = known == std::string_view::npos ? text[i] : kMeanings[known];
      }
      row.back() += c;
    }
    if (row.size() != num_columns) {
      throw wrong;
    }
    rows.push_back(std::move(row));
    text.remove_prefix(end + 1);
  }
  return rows;
}

std::uint64_t server_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) {
    throw Error(ErrorKind::kInput,
                fmt::format("the server answered '{}' where a number was asked for",
                            printable(text.substr(0, 40))));
  }
  return number;
}

std::vector<std::uint64_t> server_numbers(std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') {
    throw Error(ErrorKind::kInput, "the server's answer is not what was asked for");
  }
  std::vector<std::uint64_t> numbers;
  const std::string_view inside = text.substr(1, text.size() - 2);
  if (!inside.empty()) {
    for (const std::string_view number : split(inside, ',')) {
      numbers.push_back(server_number(number));
    }
  }
  return numbers;
}

}  // namespace gpuwhy
