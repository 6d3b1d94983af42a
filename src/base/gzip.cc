// SPDX-License-Identifier: Apache-2.0
//
// gzip in one piece, for what fits into memory anyway. zlib writes no name and no time into the
// header, so that a file depends on its contents alone.
#include "base/gzip.h"

#include <algorithm>
#include <climits>
#include <new>

#include <zlib.h>

namespace llmprof {

std::string gzip(std::string_view bytes) {
  constexpr int kGzipWindow = 15 + 16;  // the largest window; 16 asks for gzip's header
  constexpr int kMemoryLevel = 8;       // zlib's default
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();  // the only reason there is for these arguments
  }
  std::string packed;
  std::string block(1 << 16, '\0');
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    const std::string_view piece = bytes.substr(0, std::min<std::size_t>(bytes.size(), INT_MAX));
    // zlib's interface is older than const.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream.avail_in = static_cast<uInt>(piece.size());
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    state = deflate(&stream, piece.size() == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    packed.append(block.data(), block.size() - stream.avail_out);
    bytes.remove_prefix(piece.size() - stream.avail_in);
  }
  deflateEnd(&stream);
  return packed;
}

}  // namespace llmprof
