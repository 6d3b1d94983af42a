// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/http.h"

namespace gpuwhy {

// What happens to one response. `now_ns` is the time of day when the bytes were read.
struct StreamEvents {
  std::function<void(std::string_view bytes, std::int64_t now_ns)> on_bytes;
  // Once, at the end. The body is empty: it was delivered in pieces.
  std::function<void(const HttpAnswer& answer, std::int64_t now_ns)> on_end;
};

// Many POST requests at once, whose responses are read as they arrive. Not thread-safe.
class HttpStreams {
 public:
  // Throws kEnvironment in a build without libcurl.
  explicit HttpStreams(HttpOptions options);
  ~HttpStreams();
  HttpStreams(const HttpStreams&) = delete;
  HttpStreams& operator=(const HttpStreams&) = delete;

  // Sends a JSON body. Events come during wait().
  void start(const std::string& url, std::string body, StreamEvents events);
  // Reads and writes until something happened, `most` at the longest.
  void wait(std::chrono::milliseconds most);
  std::size_t num_open() const;

 private:
  struct Connections;
  std::unique_ptr<Connections> connections_;
};

}  // namespace gpuwhy
