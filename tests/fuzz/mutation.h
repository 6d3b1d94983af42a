// SPDX-License-Identifier: Apache-2.0
//
// Shared parts of tests with damaged files: reproducible random changes, and a count of allocated
// memory. Include it once per program, since it replaces operator new.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>

#include <malloc.h>

#include "fuzz/random.h"

namespace {

std::size_t live_bytes = 0;
std::size_t peak_bytes = 0;

}  // namespace

void* operator new(std::size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  live_bytes += malloc_usable_size(memory);
  peak_bytes = std::max(peak_bytes, live_bytes);
  return memory;
}

// Sorting asks for memory this way.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void operator delete(void* memory) noexcept {
  live_bytes -= malloc_usable_size(memory);
  std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
  operator delete(memory);
}

void operator delete(void* memory, const std::nothrow_t&) noexcept {
  operator delete(memory);
}

namespace gpuwhy {

// One change of a kind that parsers stumble over.
inline void mutate(std::string& bytes, const std::string& other, Random& random) {
  static constexpr std::string_view kWords[] = {std::string_view("\xff\xff\xff\xff", 4),
                                                std::string_view("\0\0\0\0", 4),
                                                std::string_view("\xff\xff\xff\x7f", 4),
                                                "\"",
                                                "\n",
                                                ",",
                                                "(",
                                                "==",
                                                "nan",
                                                "1e999",
                                                "::",
                                                "<",
                                                "{",
                                                "}",
                                                "[",
                                                "]",
                                                ":",
                                                "\\",
                                                "-1",
                                                "9223372036854775807",
                                                "3999999999999999",
                                                "null",
                                                "},{"};
  const std::size_t at = pick(random, bytes.size());
  const std::size_t length = std::min(pick(random, 64), bytes.size() - at);
  switch (pick(random, 8)) {
    case 0:
      if (!bytes.empty()) {
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << pick(random, 8)));
      }
      break;
    case 1:
      if (!bytes.empty()) {
        bytes[at] = static_cast<char>(random());
      }
      break;
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.erase(at, length);
      break;
    case 4:
      bytes.insert(at, bytes.substr(at, length));
      break;
    case 5:
      bytes.insert(at, kWords[pick(random, std::size(kWords))]);
      break;
    case 6: {
      const std::string_view word = kWords[pick(random, std::size(kWords))];
      bytes.replace(at, std::min(word.size(), bytes.size() - at), word);
      break;
    }
    default:
      bytes.replace(at, length, other.substr(pick(random, other.size()), 64));
  }
}

}  // namespace gpuwhy
