// SPDX-License-Identifier: Apache-2.0
//
// Bytes made small, and bytes made text: what a page carries inside itself. zlib's own gzip framing
// leaves time, name and system empty, so equal input gives equal files.
#include "base/packed.h"

#include <algorithm>
#include <cstdint>

#include <zlib.h>

#include "base/error.h"

namespace llmprof {

std::string gzipped(std::string_view bytes, int level) {
  constexpr int kGzipWindow = 15 + 16;  // zlib.h, deflateInit2: + 16 writes a gzip header
  constexpr int kMemory = 8;            // its default
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw Error(ErrorKind::kFailure, "zlib cannot compress");
  }
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  std::size_t taken = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    const std::size_t piece = std::min(kMostAtOnce, bytes.size() - taken);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + taken));
    stream.avail_in = static_cast<uInt>(piece);
    stream.next_out = reinterpret_cast<Bytef*>(packed.data() + stream.total_out);
    stream.avail_out =
        static_cast<uInt>(std::min<std::size_t>(packed.size() - stream.total_out, UINT32_MAX));
    status = deflate(&stream, taken + piece == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    taken += piece - stream.avail_in;
  }
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) {
    throw Error(ErrorKind::kFailure, "zlib cannot compress");
  }
  return packed;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto byte = [&](std::size_t i) -> std::uint32_t {
    return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U;
  };
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::uint32_t three = byte(i) << 16U | byte(i + 1) << 8U | byte(i + 2);
    text += kDigits[three >> 18U];
    text += kDigits[three >> 12U & 63U];
    text += i + 1 < bytes.size() ? kDigits[three >> 6U & 63U] : '=';
    text += i + 2 < bytes.size() ? kDigits[three & 63U] : '=';
  }
  return text;
}

}  // namespace llmprof
