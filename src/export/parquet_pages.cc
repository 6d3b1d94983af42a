// SPDX-License-Identifier: Apache-2.0
//
// Encoders of Parquet pages.
//
// All are little-endian and begin with the lowest bit of a byte.
#include "export/parquet_pages.h"

#include <algorithm>
#include <array>
#include <bit>

#include "export/thrift_writer.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kGroup = 8;  // values that bit-packing writes together

void append_le(std::uint64_t value, unsigned num_bytes, std::string& out) {
  for (unsigned i = 0; i < num_bytes; ++i) {
    out.push_back(static_cast<char>(value >> (8 * i)));
  }
}

// Numbers of `width` bits one after another, the lowest bit first.
class BitPacker {
 public:
  BitPacker(unsigned width, std::string& out) : width_(width), out_(out) {}

  void add(std::uint64_t value) {
    for (unsigned left = width_; left > 0;) {
      const unsigned taken = std::min(left, 8 - used_);
      const std::uint64_t mask = (std::uint64_t{1} << taken) - 1;
      byte_ |= static_cast<unsigned>(value & mask) << used_;
      value >>= taken;
      used_ += taken;
      left -= taken;
      if (used_ == 8) {
        flush();
      }
    }
  }
  // Fills up the last byte.
  void flush() {
    if (used_ > 0) {
      out_.push_back(static_cast<char>(byte_));
      byte_ = used_ = 0;
    }
  }

 private:
  unsigned width_;
  std::string& out_;
  unsigned byte_ = 0;
  unsigned used_ = 0;
};

// Values in whole groups; the last group is filled up with zeros.
void append_packed(std::span<const std::uint32_t> values, unsigned width, std::string& out) {
  if (values.empty()) {
    return;
  }
  const std::size_t num_groups = (values.size() + kGroup - 1) / kGroup;
  append_varint((num_groups << 1) | 1, out);
  BitPacker packer(width, out);
  for (std::size_t i = 0; i < num_groups * kGroup; ++i) {
    packer.add(i < values.size() ? values[i] : 0);
  }
}

}  // namespace

unsigned bits_for(std::uint64_t largest) {
  return std::max(1U, static_cast<unsigned>(std::bit_width(largest)));
}

std::string plain_numbers(std::span<const std::int64_t> values) {
  constexpr unsigned kBytes = 8;
  std::string out;
  out.reserve(values.size() * kBytes);
  for (const std::int64_t value : values) {
    append_le(static_cast<std::uint64_t>(value), kBytes, out);
  }
  return out;
}

std::string plain_flags(std::span<const std::int64_t> values) {
  std::string out;
  BitPacker packer(1, out);
  for (const std::int64_t value : values) {
    packer.add(value != 0 ? 1 : 0);
  }
  packer.flush();
  return out;
}

// Header, then blocks: the smallest difference of the block, four widths, four miniblocks of 32
// differences above the smallest. Miniblocks after the last value are left out, their widths are
// 0.
std::string delta_numbers(std::span<const std::int64_t> values) {
  constexpr std::size_t kBlock = 128;
  constexpr std::size_t kMiniblocks = 4;
  constexpr std::size_t kMiniblock = kBlock / kMiniblocks;
  std::string out;
  append_varint(kBlock, out);
  append_varint(kMiniblocks, out);
  append_varint(values.size(), out);
  append_varint(zigzag(values.empty() ? 0 : values[0]), out);
  std::array<std::uint64_t, kBlock> deltas{};
  for (std::size_t begin = 1; begin < values.size(); begin += kBlock) {
    const std::size_t size = std::min(kBlock, values.size() - begin);
    // Differences wrap around, as readers add them.
    auto least = INT64_MAX;
    for (std::size_t i = 0; i < size; ++i) {
      deltas[i] = static_cast<std::uint64_t>(values[begin + i]) -
                  static_cast<std::uint64_t>(values[begin + i - 1]);
      least = std::min(least, static_cast<std::int64_t>(deltas[i]));
    }
    append_varint(zigzag(least), out);
    std::array<unsigned, kMiniblocks> widths{};
    for (std::size_t i = 0; i < size; ++i) {
      deltas[i] -= static_cast<std::uint64_t>(least);
      unsigned& width = widths[i / kMiniblock];
      width = std::max(width, static_cast<unsigned>(std::bit_width(deltas[i])));
    }
    std::fill(deltas.begin() + static_cast<std::ptrdiff_t>(size), deltas.end(), 0);
    for (const unsigned width : widths) {
      out.push_back(static_cast<char>(width));
    }
    for (std::size_t m = 0; m * kMiniblock < size; ++m) {
      BitPacker packer(widths[m], out);
      for (std::size_t i = 0; i < kMiniblock; ++i) {
        packer.add(deltas[m * kMiniblock + i]);
      }
      packer.flush();
    }
  }
  return out;
}

// A run of at least eight values becomes a count and the value; everything between such runs is
// packed in groups of eight. A shorter run costs less packed.
std::string hybrid_runs(std::span<const std::uint32_t> values, unsigned width) {
  std::string out;
  std::size_t packed_from = 0;  // values from here to `at` are not written yet
  std::size_t at = 0;
  while (at < values.size()) {
    std::size_t end = at + 1;
    while (end < values.size() && values[end] == values[at]) {
      ++end;
    }
    // What is packed before a run must fill its groups: the run gives what is missing.
    const std::size_t given = (kGroup - (at - packed_from) % kGroup) % kGroup;
    if (end - at >= given + kGroup) {
      append_packed(values.subspan(packed_from, at + given - packed_from), width, out);
      append_varint((end - at - given) << 1, out);
      append_le(values[at], (width + 7) / 8, out);
      packed_from = end;
    }
    at = end;
  }
  append_packed(values.subspan(packed_from), width, out);
  return out;
}

}  // namespace gpuwhy
