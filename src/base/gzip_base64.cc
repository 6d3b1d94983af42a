// SPDX-License-Identifier: Apache-2.0
//
// Gzip and base64 encoding, for the data that an HTML report carries inside itself.
//
// zlib's gzip header leaves time, name and system empty, so equal input gives equal files.
#include "base/gzip_base64.h"

#include <algorithm>
#include <cstdint>

#include <zlib.h>

#include "base/error.h"

namespace gpuwhy {
namespace {

constexpr int kGzipFraming = 15 + 16;  // zlib.h: the largest window, + 16 for gzip's header
constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string gzipped(std::string_view bytes, int level) {
  constexpr int kMemory = 8;  // its default
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, kGzipFraming, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw Error(ErrorKind::kFailure, "zlib cannot compress");
  }
  // deflateBound makes room for the worst case, so one buffer is enough.
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  std::size_t taken = 0;
  int status = Z_OK;
  // zlib counts in 32 bits: longer input is passed in pieces.
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

std::string gunzipped(std::string_view packed, std::size_t limit_bytes) {
  z_stream stream{};
  if (packed.size() > UINT32_MAX || inflateInit2(&stream, kGzipFraming) != Z_OK) {
    throw Error(ErrorKind::kInput, "zlib cannot expand this");
  }
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string bytes;
  // The size in the trailer is not trusted; the result grows piece by piece up to the limit.
  std::string piece(std::size_t{1} << 16, '\0');
  int status = Z_OK;
  while (status == Z_OK && bytes.size() <= limit_bytes) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    status = inflate(&stream, Z_NO_FLUSH);
    bytes.append(piece, 0, piece.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || bytes.size() > limit_bytes) {
    throw Error(ErrorKind::kInput, "its gzip is damaged, or holds too much");
  }
  return bytes;
}

std::string base64(std::string_view bytes) {
  const auto byte = [&](std::size_t i) -> std::uint32_t {
    return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U;
  };
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::uint32_t three = byte(i) << 16U | byte(i + 1) << 8U | byte(i + 2);
    text += kBase64Digits[three >> 18U];
    text += kBase64Digits[three >> 12U & 63U];
    text += i + 1 < bytes.size() ? kBase64Digits[three >> 6U & 63U] : '=';
    text += i + 2 < bytes.size() ? kBase64Digits[three & 63U] : '=';
  }
  return text;
}

std::string from_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : text) {
    const std::size_t digit = kBase64Digits.find(c);
    if (digit == std::string_view::npos) {
      break;
    }
    bits = (bits << 6U | static_cast<std::uint32_t>(digit)) & 0xFFFFU;
    num_bits += 6;
    if (num_bits >= 8) {
      num_bits -= 8;
      bytes += static_cast<char>(bits >> static_cast<unsigned>(num_bits) & 0xFFU);
    }
  }
  return bytes;
}

}  // namespace gpuwhy
