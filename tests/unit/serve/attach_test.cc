// SPDX-License-Identifier: Apache-2.0
#include "serve/attach.h"

#include <chrono>

#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

// Neither the rest of the window nor a client is waited for.
TEST(Attach, AServerThatOpensNoWindowIsToldOfAtOnce) {
  const TemporaryDirectory directory;
  AttachOptions options;
  options.url = "http://127.0.0.1:9";
  options.traces = directory.path();
  options.wish.after_s = 1;
  options.window = std::chrono::seconds(60);
  for (const bool has_client : {false, true}) {
    if (has_client) {
      options.client = {directory.add_script("client", "exec sleep 60\n").string()};
      options.environment = {{"PATH", "/usr/bin:/bin"}};
    }
    const auto start = std::chrono::steady_clock::now();
    expect_error([&] { record_window(options, [] { return false; }); }, ErrorKind::kEnvironment,
                 HasSubstr("POST http://127.0.0.1:9/start_profile"), "");
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30)) << has_client;
  }
}

}  // namespace
}  // namespace gpuwhy
