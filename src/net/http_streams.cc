// SPDX-License-Identifier: Apache-2.0
//
// Concurrent HTTP requests with streamed responses, on libcurl's multi interface.
//
// One thread serves all streams, so that the order of events is the order in which they were read.
// Connections are kept and reused. A response is not limited in size: only its pieces are in
// memory.
#include "net/http_streams.h"

#include <algorithm>
#include <vector>

#include <curl/curl.h>

#include "base/error.h"

namespace gpuwhy {
namespace {

std::int64_t time_of_day_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

struct HttpStreams::Connections {
  // One request in flight. Its address is libcurl's, so it does not move.
  struct OpenStream {
    CURL* handle = nullptr;
    curl_slist* headers = nullptr;
    std::string body;
    StreamEvents events;
    std::string reason = std::string(CURL_ERROR_SIZE, '\0');

    OpenStream() = default;
    ~OpenStream() {
      curl_easy_cleanup(handle);
      curl_slist_free_all(headers);
    }
    OpenStream(const OpenStream&) = delete;
    OpenStream& operator=(const OpenStream&) = delete;
  };

  static std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* user) {
    const auto& stream = *static_cast<OpenStream*>(user);
    if (stream.events.on_bytes) {
      stream.events.on_bytes({bytes, size * count}, time_of_day_ns());
    }
    return size * count;
  }

  HttpOptions options;
  CURLM* multi = nullptr;
  std::vector<std::unique_ptr<OpenStream>> streams;

  void end(CURL* handle, CURLcode code) {
    const auto found =
        std::ranges::find_if(streams, [&](const auto& one) { return one->handle == handle; });
    curl_multi_remove_handle(multi, handle);
    const std::unique_ptr<OpenStream> stream = std::move(*found);
    streams.erase(found);
    HttpAnswer answer;
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    answer.status = static_cast<int>(status);
    if (code != CURLE_OK) {
      answer.failure = code == CURLE_OPERATION_TIMEDOUT ? HttpFailure::kTimeout : HttpFailure::kCut;
      answer.reason = stream->reason[0] == '\0' ? curl_easy_strerror(code) : stream->reason.c_str();
    }
    if (stream->events.on_end) {
      stream->events.on_end(answer, time_of_day_ns());
    }
  }
};

HttpStreams::HttpStreams(HttpOptions options) : connections_(std::make_unique<Connections>()) {
  const HttpClient starts_the_library({});
  connections_->options = std::move(options);
  connections_->multi = curl_multi_init();
  if (connections_->multi == nullptr) {
    throw Error(ErrorKind::kFailure, "libcurl cannot be started");
  }
}

HttpStreams::~HttpStreams() {
  for (const auto& stream : connections_->streams) {
    curl_multi_remove_handle(connections_->multi, stream->handle);
  }
  connections_->streams.clear();
  curl_multi_cleanup(connections_->multi);
}

void HttpStreams::start(const std::string& url, std::string body, StreamEvents events) {
  auto stream = std::make_unique<Connections::OpenStream>();
  stream->body = std::move(body);
  stream->events = std::move(events);
  stream->handle = curl_easy_init();
  if (stream->handle == nullptr) {
    throw Error(ErrorKind::kFailure, "libcurl cannot open another connection");
  }
  stream->headers = curl_slist_append(nullptr, "Content-Type: application/json");
  stream->headers = curl_slist_append(stream->headers, "Expect:");
  CURL* const handle = stream->handle;
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_TIMEOUT, static_cast<long>(connections_->options.timeout_s));
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, 10L);
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, stream->headers);
  curl_easy_setopt(handle, CURLOPT_POST, 1L);
  curl_easy_setopt(handle, CURLOPT_POSTFIELDS, stream->body.c_str());
  curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE,
                   static_cast<curl_off_t>(stream->body.size()));
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, Connections::on_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, stream.get());
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, stream->reason.data());
  if (!connections_->options.ca_file.empty()) {
    curl_easy_setopt(handle, CURLOPT_CAINFO, connections_->options.ca_file.c_str());
  }
  curl_multi_add_handle(connections_->multi, handle);
  connections_->streams.push_back(std::move(stream));
}

void HttpStreams::wait(std::chrono::milliseconds most) {
  int num_running = 0;
  curl_multi_perform(connections_->multi, &num_running);
  curl_multi_poll(connections_->multi, nullptr, 0, static_cast<int>(most.count()), nullptr);
  curl_multi_perform(connections_->multi, &num_running);
  int num_left = 0;
  while (const CURLMsg* message = curl_multi_info_read(connections_->multi, &num_left)) {
    if (message->msg == CURLMSG_DONE) {
      connections_->end(message->easy_handle, message->data.result);
    }
  }
}

std::size_t HttpStreams::num_open() const {
  return connections_->streams.size();
}

}  // namespace gpuwhy
