// SPDX-License-Identifier: Apache-2.0
//
// HTTP client of a build without libcurl (LLMPROF_HISTORY=OFF): it cannot be made.
#include "base/error.h"
#include "fleet/history/http.h"

namespace llmprof {

struct HttpClient::Connection {};

HttpClient::HttpClient(HttpOptions /*options*/) {
  throw Error(ErrorKind::kEnvironment, "this build of llmprof cannot talk to a history server",
              "use a folder of summaries, or build with -DLLMPROF_HISTORY=ON");
}

HttpClient::~HttpClient() = default;

HttpAnswer HttpClient::post(const std::string& /*url*/, const std::vector<std::string>& /*headers*/,
                            std::string_view /*body*/) {
  return {};
}

}  // namespace llmprof
