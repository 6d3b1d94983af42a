// SPDX-License-Identifier: Apache-2.0
//
// Recording of NVTX ranges, with a few stores per range and no locks.
//
// Each thread fills its own chunk of the file. Starting a range takes a few stores and one clock
// read; ending it takes one store into the same record. The clock is read last at the start and
// first at the end, so the recorder's own time is excluded.
//
// A range is written once, when it starts, rather than as two events: half the bytes, nothing to
// match later, and a range that was open when the process died is recognizable.
//
// A registered string is identified by its number (texts.cc); its text is written to the file at
// its first use. Plain strings are identified by their contents, because addresses are reused: each
// thread keeps a small table of hashes and the texts it has written. A program that keeps inventing
// names writes new texts up to the file's limit.
//
// When a thread ends, its state goes to a shelf and serves the next thread, with the rest of its
// chunk: a program with many short threads must not use a chunk for each. The shelf and everything
// else is lock-free, because a forked child would inherit locks in the locked state.
//
// What it gets wrong: a fork that bypasses the C library (a bare clone system call) is not noticed,
// and such a child writes into its parent's file. A signal handler that marks ranges may damage the
// range whose start it interrupts.
#include "nvtx/recorder.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>

#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nvtx/call_filter.h"
#include "nvtx/mapped_file.h"
#include "nvtx/range_file.h"
#include "nvtx/texts.h"

// glibc's mechanism for thread_local destructors; the C++ one would need libstdc++.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): names of the C library
extern "C" int __cxa_thread_atexit_impl(void (*function)(void*), void* object, void* library);
extern "C" void* __dso_handle;
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace gpuwhy {
namespace {

constexpr std::size_t kMaxOpen = 8192;  // push/pop ranges open at once, by thread
constexpr std::size_t kNameSlots = 512;
constexpr std::size_t kShelfSlots = 64;
constexpr std::uint32_t kRetryAfter = 4096;  // lost ranges, then the disk is asked again

struct OpenRange {
  RangeRecord* record;  // nullptr: lost
  std::uint32_t below;  // the one around it, of its domain
  std::uint32_t level;
};

struct NameSlot {
  std::uint64_t hash;
  const RangeTextRecord* text;  // in the file; nullptr: free
};

// Valid when all zero. Open range number 0 means none.
struct ThreadState {
  char* next;  // the rest of its chunk
  char* end;
  std::uint64_t end_offset;  // of `end` in the file
  std::uint32_t id;
  std::uint32_t retry_in;
  std::uint32_t free_open;  // a list by `below`
  std::uint32_t num_open_used;
  std::uint32_t num_over;  // pushes beyond kMaxOpen
  std::uint32_t top[kMaxDomains];
  NameSlot names[kNameSlots];
  OpenRange open[kMaxOpen];
};

std::atomic<std::uint32_t> g_next_plain_name{kMaxRegisteredNames};
std::atomic<ThreadState*> g_shelf[kShelfSlots];
std::atomic<bool> g_handles_fork{false};
thread_local ThreadState* t_state = nullptr;
thread_local bool t_has_ended = false;

// The program may call NVTX between a failed call and its check of errno.
class KeptErrno {
 public:
  KeptErrno() : value_(errno) {}
  ~KeptErrno() { errno = value_; }
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;

 private:
  int value_;
};

// From here on the record is valid.
void commit(RangeRecordHead& to, RangeRecordHead head) {
  static_assert(sizeof(head) == sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &head, sizeof(bits));
  std::atomic_ref(reinterpret_cast<std::uint64_t&>(to)).store(bits, std::memory_order_release);
}

void commit_thread(char* at, std::uint32_t id) {
  commit(*reinterpret_cast<RangeRecordHead*>(at), {RangeRecordType::kThread, 0, 0, id});
}

__attribute__((noinline)) char* take_from_new_chunk(ThreadState& state, std::size_t bytes) {
  if (state.retry_in > 0) {
    --state.retry_in;
    return nullptr;
  }
  const KeptErrno kept;
  const RangeChunk chunk = claim_range_chunk();
  if (chunk.start == nullptr) {
    state.retry_in = kRetryAfter;
    return nullptr;
  }
  commit_thread(chunk.start, state.id);
  state.next = chunk.start + kRangeRecordBytes + bytes;
  state.end = chunk.start + kRangeChunkBytes;
  state.end_offset = chunk.offset + kRangeChunkBytes;
  return chunk.start + kRangeRecordBytes;
}

inline char* take(ThreadState& state, std::size_t bytes) {
  if (static_cast<std::size_t>(state.end - state.next) < bytes) {
    return take_from_new_chunk(state, bytes);
  }
  char* const start = state.next;
  state.next += bytes;
  return start;
}

// The rest of the chunk goes to the next thread; this thread's open ranges stay open. What it marks
// from here on (in destructors of its keys) is not recorded: nobody would take the state back.
void release_state(void* /*unused*/) {
  ThreadState* const state = t_state;
  t_state = nullptr;
  t_has_ended = true;
  if (state == nullptr) {
    return;
  }
  for (std::atomic<ThreadState*>& slot : g_shelf) {
    ThreadState* empty = nullptr;
    if (slot.compare_exchange_strong(empty, state)) {
      return;
    }
  }
  munmap(state, sizeof(ThreadState));
  give_address_space(sizeof(ThreadState));
}

ThreadState* state_from_shelf() {
  for (std::atomic<ThreadState*>& slot : g_shelf) {
    if (slot.load(std::memory_order_relaxed) == nullptr) {
      continue;
    }
    if (ThreadState* const state = slot.exchange(nullptr); state != nullptr) {
      std::memset(state->top, 0, sizeof(state->top));
      state->free_open = state->num_open_used = state->num_over = state->retry_in = 0;
      return state;
    }
  }
  return nullptr;
}

// The slow path of a thread's first range, out of line so that the fast path stays small.
__attribute__((noinline)) ThreadState* new_thread_state() {
  const KeptErrno kept;
  // Order: file, state, thread record. A thread that has no state loses its ranges, and the loss is
  // counted; the application does not notice.
  if (!open_range_file()) {
    return nullptr;
  }
  if (t_has_ended) {
    count_lost_range();
    return nullptr;
  }
  ThreadState* state = state_from_shelf();
  if (state == nullptr && take_address_space(sizeof(ThreadState))) {
    state = static_cast<ThreadState*>(zeroed_memory(sizeof(ThreadState)));
  }
  if (state == nullptr) {
    count_lost_range();
    return nullptr;
  }
  state->id = static_cast<std::uint32_t>(syscall(SYS_gettid));
  if (state->end - state->next >= static_cast<std::ptrdiff_t>(kRangeRecordBytes)) {
    commit_thread(take(*state, kRangeRecordBytes), state->id);
  }
  t_state = state;
  __cxa_thread_atexit_impl(release_state, nullptr, &__dso_handle);
  return state;
}

inline ThreadState* thread_state() {
  ThreadState* const state = t_state;
  return __builtin_expect(state != nullptr, 1) ? state : new_thread_state();
}

void before_fork() {
  const KeptErrno kept;
  note_filters_before_fork();
}

// Runs in the child, in its only thread.
void after_fork() {
  const KeptErrno kept;
  note_filters_after_fork();
  forget_range_file();
  for (std::atomic<ThreadState*>& slot : g_shelf) {
    slot.store(nullptr);
  }
  t_state = nullptr;
}

const RangeTextRecord* write_text(ThreadState& state, RangeRecordHead head, const char* text,
                                  std::size_t num_bytes) {
  char* const at = take(state, range_text_record_bytes(num_bytes));
  if (at == nullptr) {
    return nullptr;
  }
  auto* const record = reinterpret_cast<RangeTextRecord*>(at);
  record->num_bytes = static_cast<std::uint32_t>(num_bytes);
  std::memcpy(at + sizeof(RangeTextRecord), text, num_bytes);
  commit(record->head, head);
  return record;
}

// Two threads may both write it, which is harmless.
__attribute__((noinline)) bool write_registered(ThreadState& state, RegisteredText& entry,
                                                RangeRecordHead head) {
  const char* const text = std::atomic_ref(entry.text).load(std::memory_order_acquire);
  if (text == nullptr || write_text(state, head, text, entry.num_bytes) == nullptr) {
    return false;
  }
  std::atomic_ref(entry.written_to).store(range_file_number(), std::memory_order_relaxed);
  return true;
}

inline bool is_written(RegisteredText& entry) {
  return std::atomic_ref(entry.written_to).load(std::memory_order_relaxed) == range_file_number();
}

// Eight bytes per step. Multiply and shift mix well enough, since the table compares texts too.
std::uint64_t hash_of(const char* text, std::size_t num_bytes) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio
  std::uint64_t hash = num_bytes * kOdd;
  for (std::size_t i = 0; i < num_bytes; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text + i, num_bytes - i < 8 ? num_bytes - i : 8);
    hash = (hash ^ word) * kOdd;
    hash ^= hash >> 32;
  }
  return hash;
}

// 0 if its text could not be written.
std::uint32_t plain_name(ThreadState& state, const char* text, std::size_t num_bytes) {
  const std::uint64_t hash = hash_of(text, num_bytes);
  NameSlot& slot = state.names[hash % kNameSlots];
  if (slot.hash == hash && slot.text != nullptr && slot.text->num_bytes == num_bytes &&
      std::memcmp(slot.text + 1, text, num_bytes) == 0) {
    return slot.text->head.id;
  }
  const std::uint32_t id = g_next_plain_name.fetch_add(1, std::memory_order_relaxed);
  const RangeTextRecord* const written =
      write_text(state, {RangeRecordType::kName, 0, 0, id}, text, num_bytes);
  if (written == nullptr) {
    return 0;
  }
  slot = {hash, written};
  return id;
}

// Writes the range with its clock running; nullptr, and counted as lost, if there is no room.
inline RangeRecord* begin_range(ThreadState& state, const BeginningRange& range,
                                std::uint8_t flags) {
  RangeRecordHead head = {RangeRecordType::kRange,
                          static_cast<std::uint8_t>(flags | range.payload_flags), range.domain, 0};
  RegisteredText& domain = domain_text(range.domain);
  bool has_texts = range.domain == 0 || is_written(domain) ||
                   write_registered(state, domain, {RangeRecordType::kDomain, 0, range.domain, 0});
  if (range.registered_name != 0) {
    RegisteredText& name = name_text(range.registered_name);
    head.id = range.registered_name;
    head.flags |= kRangeIsRegistered;
    has_texts =
        has_texts && (is_written(name) ||
                      write_registered(state, name, {RangeRecordType::kName, 0, 0, head.id}));
  } else if (range.name != nullptr) {
    head.id = plain_name(state, range.name, range.name_bytes);
    has_texts = has_texts && head.id != 0;
  }
  char* const at = has_texts ? take(state, sizeof(RangeRecord)) : nullptr;
  if (at == nullptr) {
    count_lost_range();
    return nullptr;
  }
  auto* const record = reinterpret_cast<RangeRecord*>(at);
  record->payload = range.payload;
  record->start_ns = monotonic_ns();
  commit(record->head, head);
  return record;
}

// A program linked statically loads this library with a second C library, whose thread-local
// variables do not work. What is not known for sure counts as one. Only a loader that was started
// by name, with the program as its argument, is another program without a loader.
bool is_static_program() {
  constexpr std::size_t kMostBytes = 1024;
  unsigned long vector[kMostBytes / sizeof(unsigned long)] = {};
  const long got = read_start("/proc/self/auxv", vector, sizeof(vector));
  if (got < 0) {
    return true;
  }
  for (long i = 0; (i + 2) * static_cast<long>(sizeof(*vector)) <= got && vector[i] != AT_NULL;
       i += 2) {
    if (vector[i] == AT_BASE && vector[i + 1] != 0) {
      return false;
    }
  }
  char path[PATH_MAX] = {};
  const long length = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, sizeof(path) - 1);
  const char* const name = length > 0 ? std::strrchr(path, '/') : nullptr;
  return name == nullptr || std::strncmp(name, "/ld", 3) != 0 ||
         std::strstr(name, ".so") == nullptr;
}

void close_record(RangeRecord& record, std::int64_t now_ns) {
  std::atomic_ref(record.end_ns).store(now_ns, std::memory_order_relaxed);
}

}  // namespace

bool start_recorder() {
  const KeptErrno kept;
  if (is_static_program() || !open_range_file()) {
    return false;
  }
  reserve_texts();
  if (!g_handles_fork.exchange(true)) {
    pthread_atfork(before_fork, nullptr, after_fork);
  }
  return true;
}

// Returns the level of the range within its domain, as NVTX prescribes, or -1 if it was not
// recorded.
int push_range(const BeginningRange& range) {
  ThreadState* const state = thread_state();
  if (state == nullptr) {
    return -1;
  }
  std::uint32_t number = state->free_open;
  if (number != 0) {
    state->free_open = state->open[number].below;
  } else if (state->num_open_used + 1 < kMaxOpen) {
    number = ++state->num_open_used;
  } else {
    // Too many open ranges: count them, so that their pops do not close others.
    ++state->num_over;
    count_lost_range();
    return -1;
  }
  OpenRange& open = state->open[number];
  open.below = state->top[range.domain];
  open.level = open.below == 0 ? 0 : state->open[open.below].level + 1;
  state->top[range.domain] = number;
  open.record = begin_range(*state, range, 0);
  return static_cast<int>(open.level);
}

// The time is taken first: the bookkeeping is not part of the range.
int pop_range(std::uint16_t domain) {
  const std::int64_t now_ns = monotonic_ns();
  ThreadState* const state = thread_state();
  if (state == nullptr) {
    return -1;
  }
  if (state->num_over > 0) {
    --state->num_over;
    return -1;
  }
  const std::uint32_t number = state->top[domain];
  if (number == 0) {
    count_unmatched_pop();
    return -1;
  }
  OpenRange& open = state->open[number];
  if (open.record != nullptr) {
    close_record(*open.record, now_ns);
  }
  state->top[domain] = open.below;
  open.below = state->free_open;
  state->free_open = number;
  return static_cast<int>(open.level);
}

// The number includes the file's number: a child may end a range that its parent started.
std::uint64_t start_range(const BeginningRange& range) {
  ThreadState* const state = thread_state();
  RangeRecord* const record =
      state == nullptr ? nullptr : begin_range(*state, range, kRangeIsStartEnd);
  if (record == nullptr) {
    return 0;
  }
  // It is in the thread's chunk, as every record that was just begun.
  const std::uint64_t offset =
      state->end_offset - static_cast<std::uint64_t>(state->end - reinterpret_cast<char*>(record));
  return std::uint64_t{range_file_number() & 0xffff} << 48 | offset;
}

void end_range(std::uint64_t number) {
  const std::int64_t now_ns = monotonic_ns();
  if (number >> 48 != (range_file_number() & 0xffff)) {
    return;
  }
  RangeRecord* const record = range_record_at(number & ((std::uint64_t{1} << 48) - 1));
  if (record != nullptr && record->head.type == RangeRecordType::kRange &&
      (record->head.flags & kRangeIsStartEnd) != 0 && record->end_ns == 0) {
    close_record(*record, now_ns);
  }
}

}  // namespace gpuwhy
