// SPDX-License-Identifier: Apache-2.0
#include "serve/load.h"

#include "testing.h"

namespace gpuwhy {
namespace {

TEST(Load, KnowsServersOfItsOwnMachine) {
  for (const char* url : {"http://127.0.0.1:8000", "http://127.1.2.3/v1", "https://localhost",
                          "http://localhost:80/", "http://[::1]:8000", "http://me:x@127.0.0.1:1"}) {
    EXPECT_TRUE(is_loopback(url)) << url;
  }
  for (const char* url :
       {"http://10.0.0.1:8000", "http://node1:8000", "http://127.0.0.1.example.com",
        "http://localhost.example.com", "http://[::2]:8000", "http://127.example",
        "http://127.0.0.1@node1:8000", ""}) {
    EXPECT_FALSE(is_loopback(url)) << url;
  }
}

}  // namespace
}  // namespace gpuwhy
