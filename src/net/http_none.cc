// SPDX-License-Identifier: Apache-2.0
//
// HTTP client of a build without libcurl (GPUWHY_HISTORY=OFF): it cannot be made.
#include "base/error.h"
#include "net/http.h"
#include "net/http_streams.h"

namespace gpuwhy {

struct HttpClient::Connection {};

HttpClient::HttpClient(HttpOptions /*options*/) {
  throw Error(ErrorKind::kEnvironment, "this build of gpuwhy cannot talk to servers",
              "build with -DGPUWHY_HISTORY=ON");
}

HttpClient::~HttpClient() = default;

HttpAnswer HttpClient::get(const std::string& /*url*/) {
  return {};
}

HttpAnswer HttpClient::post(const std::string& /*url*/, const std::vector<std::string>& /*headers*/,
                            std::string_view /*body*/) {
  return {};
}

struct HttpStreams::Connections {};

HttpStreams::HttpStreams(HttpOptions /*options*/) {
  HttpClient{{}};
}

HttpStreams::~HttpStreams() = default;

void HttpStreams::start(const std::string& /*url*/, std::string /*body*/, StreamEvents /*events*/) {
}

void HttpStreams::wait(std::chrono::milliseconds /*most*/) {}

std::size_t HttpStreams::num_open() const {
  return 0;
}

}  // namespace gpuwhy
