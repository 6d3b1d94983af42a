// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gpuwhy {

// Texts that a program registered: domains and strings. They live as long as the process, also in a
// forked child.

constexpr std::size_t kMaxDomains = 1024;
constexpr std::size_t kMaxRegisteredNames = 1 << 18;  // plain names are numbered from here

// A plain struct, so that a table of a million entries is all zeros and needs no constructor.
// Threads access it through atomic_ref.
struct RegisteredText {
  const char* text;  // nullptr: not registered
  std::uint32_t num_bytes;
  std::uint32_t written_to;  // range_file_number() of the file that has it
};

RegisteredText& domain_text(std::uint16_t number);  // below kMaxDomains
RegisteredText& name_text(std::uint32_t number);    // below kMaxRegisteredNames

// Zeroed memory, or nullptr. Not malloc: a program may mark ranges inside its own malloc.
void* zeroed_memory(std::size_t bytes);

// Must precede the first registration; may be called repeatedly.
void reserve_texts();

// Domains with the same text are the same domain. 0 if the table is full.
std::uint16_t register_domain(const char* text, std::size_t num_bytes);
std::uint32_t register_name(const char* text, std::size_t num_bytes);
bool is_domain(std::uintptr_t number);
bool is_registered_name(std::uintptr_t number);

}  // namespace gpuwhy
