// SPDX-License-Identifier: Apache-2.0
//
// HTTP requests through libcurl, with strict rules on what counts as a complete response.
//
// libcurl handles TLS, proxies and timeouts. This file decides the rest: a response whose end
// cannot be distinguished from a lost connection (no length, not chunked) is treated as truncated,
// because a list of sums that ends early is a wrong result. The size of a body is limited.
// Redirects are not followed, because credentials would be sent along.
//
// Names are resolved by the C library, which may take longer than the timeout with a broken
// resolver.
#include "net/http.h"

#include <mutex>

#include <curl/curl.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "base/units.h"

namespace gpuwhy {
namespace {

// A response while it arrives.
struct Received {
  HttpAnswer answer;
  std::uint64_t limit_bytes = 0;
  bool has_end = false;  // the answer says where it ends
  bool is_too_large = false;
};

std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* user) {
  auto& received = *static_cast<Received*>(user);
  const std::size_t length = size * count;
  if (received.answer.body.size() + length > received.limit_bytes) {
    received.is_too_large = true;
    return 0;
  }
  received.answer.body.append(bytes, length);
  return length;
}

// A new status line starts over: interim responses have headers of their own.
std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* user) {
  auto& received = *static_cast<Received*>(user);
  const std::string line = to_lower(std::string_view(bytes, size * count));
  if (line.starts_with("http/")) {
    received.has_end = false;  // of an interim answer, as "100 Continue"
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string::npos) {
    return size * count;
  }
  const std::string name = line.substr(0, colon);
  const std::string_view value = trim(std::string_view(line).substr(colon + 1));
  if (name == "content-length" || (name == "transfer-encoding" && value.ends_with("chunked"))) {
    received.has_end = true;
  } else if (name == "content-type") {
    received.answer.content_type = value;
  } else if (name.starts_with("x-clickhouse-")) {
    received.answer.is_clickhouse = true;
    if (name == "x-clickhouse-exception-code") {
      const std::int64_t code = parse_whole(value).value_or(-1);
      received.answer.exception_code = code > 0 && code <= INT32_MAX ? static_cast<int>(code) : -1;
    }
  }
  return size * count;
}

// Grouped by what the user can do about it.
HttpFailure failure_of(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return HttpFailure::kUnreachable;
    case CURLE_OPERATION_TIMEDOUT:
      return HttpFailure::kTimeout;
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
      return HttpFailure::kCut;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_USE_SSL_FAILED:
      return HttpFailure::kTls;
    default:
      return HttpFailure::kMalformed;
  }
}

// Settings of every request.
void set_rules(CURL* handle, const HttpOptions& options) {
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_TIMEOUT, static_cast<long>(options.timeout_s));
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, 10L);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, on_header);
  if (!options.ca_file.empty()) {
    curl_easy_setopt(handle, CURLOPT_CAINFO, options.ca_file.c_str());
  }
}

HttpAnswer judged(Received received, CURLcode code, const std::string& told) {
  HttpAnswer answer = std::move(received.answer);
  if (received.is_too_large) {
    answer.failure = HttpFailure::kTooLarge;
    answer.reason = fmt::format("the answer is larger than {}", format_bytes(received.limit_bytes));
  } else if (code != CURLE_OK) {
    answer.failure = failure_of(code);
    answer.reason = told.empty() ? curl_easy_strerror(code) : told;
  } else if (!received.has_end && answer.status != 204) {
    answer.failure = HttpFailure::kCut;
    answer.reason = "the answer does not say where it ends";
  }
  return answer;
}

void start_library() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

}  // namespace

struct HttpClient::Connection {
  HttpOptions options;
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> handle{nullptr, curl_easy_cleanup};
};

HttpClient::HttpClient(HttpOptions options) : connection_(std::make_unique<Connection>()) {
  start_library();
  connection_->options = std::move(options);
  connection_->handle.reset(curl_easy_init());
  if (connection_->handle == nullptr) {
    throw Error(ErrorKind::kFailure, "libcurl cannot be started");
  }
}

HttpClient::~HttpClient() = default;

HttpAnswer HttpClient::get(const std::string& url) {
  return request(url, {}, nullptr);
}

HttpAnswer HttpClient::post(const std::string& url, const std::vector<std::string>& headers,
                            std::string_view body) {
  return request(url, headers, &body);
}

HttpAnswer HttpClient::request(const std::string& url, const std::vector<std::string>& headers,
                               const std::string_view* body) {
  CURL* const handle = connection_->handle.get();
  curl_easy_reset(handle);  // keeps the connection
  Received received;
  received.limit_bytes = connection_->options.limit_bytes;
  // "Expect:" would cost a round trip for each large body.
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> lines(
      curl_slist_append(nullptr, "Expect:"), curl_slist_free_all);
  for (const std::string& header : headers) {
    curl_slist_append(lines.get(), header.c_str());
  }
  std::string reason(CURL_ERROR_SIZE, '\0');
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, reason.data());
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, lines.get());
  if (body != nullptr) {
    curl_easy_setopt(handle, CURLOPT_POST, 1L);
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, body->data() == nullptr ? "" : body->data());
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body->size()));
  }
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &received);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &received);
  set_rules(handle, connection_->options);
  const CURLcode code = curl_easy_perform(handle);
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  received.answer.status = static_cast<int>(status);
  return judged(std::move(received), code, reason.c_str());
}

}  // namespace gpuwhy
