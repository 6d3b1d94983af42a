// SPDX-License-Identifier: Apache-2.0
//
// Tables of the domains and strings that a program registered with NVTX.
//
// Handles are indexes into tables that only grow: an invalid one is detected, a valid one is found
// without a lock. The tables have a fixed size, but the kernel provides memory only for the used
// part. A string registered twice is stored twice: programs that register the same string endlessly
// are rare, and get no names once the tables are full.
#include "nvtx/texts.h"

#include <cstring>

#include <sys/mman.h>

#include "nvtx/mapped_file.h"

namespace gpuwhy {

namespace {

constexpr std::size_t kMostTextsBytes = std::size_t{64} << 20;
constexpr std::size_t kLeastTextsBytes = std::size_t{64} << 10;

RegisteredText g_domains[kMaxDomains];        // 0: the default domain, which has no text
RegisteredText g_names[kMaxRegisteredNames];  // 0: none
std::atomic<std::uint32_t> g_num_domains{1};
std::atomic<std::uint32_t> g_num_names{1};
std::atomic<char*> g_texts{nullptr};
std::atomic<std::size_t> g_texts_used{sizeof(std::size_t)};  // it begins with its own size

// Copies a text; nullptr if the table is full.
const char* keep_text(const char* text, std::size_t num_bytes) {
  char* const texts = g_texts.load(std::memory_order_acquire);
  if (texts == nullptr) {
    return nullptr;
  }
  std::size_t size = 0;
  std::memcpy(&size, texts, sizeof(size));
  if (g_texts_used.load(std::memory_order_relaxed) + num_bytes > size) {
    return nullptr;
  }
  const std::size_t at = g_texts_used.fetch_add(num_bytes, std::memory_order_relaxed);
  if (at + num_bytes > size) {
    return nullptr;
  }
  std::memcpy(texts + at, text, num_bytes);
  return texts + at;
}

std::uint32_t add_text(RegisteredText* table, std::atomic<std::uint32_t>& count, std::size_t limit,
                       const char* text, std::size_t num_bytes) {
  const char* const kept = keep_text(text, num_bytes);
  std::uint32_t number = count.load(std::memory_order_relaxed);
  do {
    if (kept == nullptr || number >= limit) {
      return 0;
    }
  } while (!count.compare_exchange_weak(number, number + 1));
  table[number].num_bytes = static_cast<std::uint32_t>(num_bytes);
  std::atomic_ref(table[number].text).store(kept, std::memory_order_release);
  return number;
}

}  // namespace

RegisteredText& domain_text(std::uint16_t number) {
  return g_domains[number];
}
RegisteredText& name_text(std::uint32_t number) {
  return g_names[number];
}

void* zeroed_memory(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void reserve_texts() {
  if (g_texts.load(std::memory_order_acquire) != nullptr) {
    return;
  }
  // Twice the size is asked for: at most half of the recorder's share is for texts.
  std::size_t size = kMostTextsBytes;
  while (size >= kLeastTextsBytes && !take_address_space(2 * size)) {
    size /= 2;
  }
  if (size < kLeastTextsBytes) {
    return;
  }
  give_address_space(size);
  void* const memory = zeroed_memory(size);
  if (memory != nullptr) {
    std::memcpy(memory, &size, sizeof(size));
  }
  char* none = nullptr;
  if (memory == nullptr || !g_texts.compare_exchange_strong(none, static_cast<char*>(memory))) {
    if (memory != nullptr) {
      munmap(memory, size);
    }
    give_address_space(size);
  }
}

std::uint16_t register_domain(const char* text, std::size_t num_bytes) {
  const std::uint32_t count = g_num_domains.load(std::memory_order_acquire);
  for (std::uint32_t i = 1; i < count && i < kMaxDomains; ++i) {
    const char* const known = std::atomic_ref(g_domains[i].text).load(std::memory_order_acquire);
    if (known != nullptr && g_domains[i].num_bytes == num_bytes &&
        std::memcmp(known, text, num_bytes) == 0) {
      return static_cast<std::uint16_t>(i);
    }
  }
  return static_cast<std::uint16_t>(
      add_text(g_domains, g_num_domains, kMaxDomains, text, num_bytes));
}

std::uint32_t register_name(const char* text, std::size_t num_bytes) {
  return add_text(g_names, g_num_names, kMaxRegisteredNames, text, num_bytes);
}

bool is_domain(std::uintptr_t number) {
  return number == 0 ||
         (number < kMaxDomains &&
          std::atomic_ref(g_domains[number].text).load(std::memory_order_relaxed) != nullptr);
}

bool is_registered_name(std::uintptr_t number) {
  return number < kMaxRegisteredNames &&
         std::atomic_ref(g_names[number].text).load(std::memory_order_relaxed) != nullptr;
}

}  // namespace gpuwhy
