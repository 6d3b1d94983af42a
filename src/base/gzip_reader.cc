// SPDX-License-Identifier: Apache-2.0
//
// Sequential reader of a file's bytes, plain or gzip-compressed.
//
// The caller chooses the size of the pieces, so a trace of gigabytes is never in memory as a whole.
//
// Gzip can expand a thousandfold, so a small file could keep its reader busy for hours. Real traces
// shrink to a thirtieth at most (measured on PyTorch profiler traces). A file that expands more
// than two hundredfold, beyond a harmless size, is rejected.
#include "base/gzip_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include "base/error.h"
#include "base/units.h"

namespace gpuwhy {
namespace {

constexpr std::string_view kGzipMagic = "\x1f\x8b";
constexpr int kGzipWindow = 15 + 16;  // zlib: the largest window, gzip's framing
constexpr std::size_t kInputSize = 256 * kKiB;
constexpr std::uint64_t kHarmlessBytes = 256 * kMiB;
constexpr std::uint64_t kMostGrowth = 200;

}  // namespace

// zlib's state, and the piece of the file that it reads from.
struct GzipReader::Inflater {
  z_stream stream{};
  std::string input = std::string(kInputSize, '\0');
  bool is_member_done = false;
  bool is_done = false;

  Inflater() { inflateInit2(&stream, kGzipWindow); }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

GzipReader::GzipReader(const std::filesystem::path& path)
    : path_(path), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (file_ < 0) {
    throw Error(ErrorKind::kInput,
                fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
  }
  char magic[2] = {};
  if (pread(file_, magic, sizeof magic, 0) == sizeof magic &&
      std::string_view(magic, sizeof magic) == kGzipMagic) {
    inflater_ = std::make_unique<Inflater>();
  }
}

GzipReader::~GzipReader() {
  close(file_);
}

std::size_t GzipReader::read_file(char* out, std::size_t size) {
  ssize_t got = -1;
  do {
    got = ::read(file_, out, size);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    throw Error(ErrorKind::kInput,
                fmt::format("cannot read {}: {}", path_.string(), std::strerror(errno)));
  }
  num_read_ += static_cast<std::uint64_t>(got);
  return static_cast<std::size_t>(got);
}

std::size_t GzipReader::read(char* out, std::size_t size) {
  return inflater_ ? inflate_some(out, size) : read_file(out, size);
}

void GzipReader::check_growth() const {
  // Small outputs are exempt: a few kilobytes of zeros do expand a thousandfold.
  if (num_given_ > kHarmlessBytes && num_given_ / kMostGrowth > num_read_) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} expands to more than {} times its size, which no trace does",
                            path_.string(), kMostGrowth),
                "unpack it yourself (gunzip) if you trust it");
  }
}

// Reads more compressed bytes. False at the end of the file.
bool GzipReader::refill() {
  z_stream& stream = inflater_->stream;
  stream.avail_in = static_cast<uInt>(read_file(inflater_->input.data(), kInputSize));
  stream.next_in = reinterpret_cast<Bytef*>(inflater_->input.data());
  return stream.avail_in > 0;
}

// Concatenated members are inflated as one stream, as gunzip does.
std::size_t GzipReader::inflate_some(char* out, std::size_t size) {
  Inflater& inflater = *inflater_;
  z_stream& stream = inflater.stream;
  const auto wanted = static_cast<uInt>(std::min<std::size_t>(size, 1U << 30));
  stream.next_out = reinterpret_cast<Bytef*>(out);
  stream.avail_out = wanted;
  while (stream.avail_out > 0 && !inflater.is_done) {
    if (stream.avail_in == 0 && !refill()) {
      inflater.is_done = true;
      is_cut_off_ = !inflater.is_member_done;
      break;
    }
    if (inflater.is_member_done) {
      // After a member comes another one, or padding that gzip ignores too.
      inflater.is_done = *stream.next_in != static_cast<Bytef>(kGzipMagic[0]);
      inflater.is_member_done = inflater.is_done;
      inflateReset(&stream);
      continue;
    }
    const int result = inflate(&stream, Z_NO_FLUSH);
    inflater.is_member_done = result == Z_STREAM_END;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      inflater.is_done = true;
      is_cut_off_ = true;
    }
  }
  num_given_ += wanted - stream.avail_out;
  check_growth();
  return wanted - stream.avail_out;
}

// For recognising a file by its first bytes. A head is cut off by nature, so the status of inflate
// is not looked at: what came out is enough.
std::string inflated_head(std::string_view head) {
  if (!head.starts_with(kGzipMagic)) {
    return std::string(head);
  }
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) {
    return {};
  }
  std::string text(4 * head.size(), '\0');
  std::string input(head);
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  inflate(&stream, Z_SYNC_FLUSH);
  text.resize(text.size() - stream.avail_out);
  inflateEnd(&stream);
  return text;
}

}  // namespace gpuwhy
