// SPDX-License-Identifier: Apache-2.0
//
// The memory-mapped file that holds range records, designed to survive a process killed at any
// time.
//
// Records are stored directly into a shared mapping. Whatever was stored belongs to the kernel, so
// no flush is needed, whether the program ends by exit, _exit, a signal or exec.
//
// Address space for the whole file is reserved once; the file grows under it, one chunk at a time.
// A store into a page that the disk has no room for would kill the program with SIGBUS, so each
// chunk is written with zeros first. The file size limit is checked before that, because the kernel
// answers a write beyond it with SIGXFSZ. The file is reopened for each chunk: a program that
// closes all descriptors and reuses the number would otherwise have its own file grown by us.
//
// System calls go through syscall(): the libc wrappers are cancellation points, and a thread must
// not end inside an NVTX call. Nothing here takes a lock: a thread may die or be forked while
// inside.
//
// What it gets wrong: truncating the file under a running program kills the program, and so may a
// copy-on-write file system (btrfs) that fills up to the last block. On a file system in memory,
// the chunks are memory that cannot be reclaimed.
#include "nvtx/mapped_file.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace llmprof {
namespace {

constexpr std::uint64_t kDefaultMaxBytes = std::uint64_t{1} << 30;
constexpr std::size_t kFewestChunks = 16;
constexpr int kMaxYields = 100000;

enum FileState : int { kNone, kOpening, kOpen, kFailed };

// State of the open file. Plain and constant-initialized, because ranges may start before main().
struct RangeFile {
  std::atomic<int> state{kNone};
  char* base = nullptr;
  std::size_t max_chunks = 0;
  std::atomic<std::size_t> next_chunk{0};
  std::uint32_t number = 1;
  char path[PATH_MAX] = {};
};

RangeFile g_file;
std::atomic<bool> g_has_chunk[kMaxRangeChunks];  // by chunk: may be stored to
char g_directory[PATH_MAX - 64];                 // empty: not set
std::size_t g_max_chunks = 0;

RangeFileHeader* header() {
  return reinterpret_cast<RangeFileHeader*>(g_file.base);
}

std::uint64_t chunk_offset(std::size_t chunk) {
  return kRangeFileHeaderBytes + chunk * kRangeChunkBytes;
}

std::int64_t clock_ns(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

// Absolute, because programs change their working directory.
bool read_directory_variable() {
  const char* directory = secure_getenv("LLMPROF_NVTX_DIR");
  if (directory == nullptr || directory[0] == '\0') {
    return false;
  }
  char current[PATH_MAX] = "";
  if (directory[0] != '/' && syscall(SYS_getcwd, current, sizeof(current)) <= 0) {
    return false;
  }
  const int length = std::snprintf(g_directory, sizeof(g_directory), "%s%s%s", current,
                                   directory[0] == '/' ? "" : "/", directory);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof(g_directory)) {
    g_directory[0] = '\0';
    return false;
  }
  return true;
}

std::size_t read_max_chunks() {
  std::uint64_t bytes = kDefaultMaxBytes;
  if (const char* text = secure_getenv("LLMPROF_NVTX_MAX_BYTES"); text != nullptr) {
    char* end = nullptr;
    const std::uint64_t value = std::strtoull(text, &end, 10);
    bytes = end != text && *end == '\0' ? value : bytes;
  }
  const std::uint64_t chunks =
      bytes < kRangeFileHeaderBytes ? 0 : (bytes - kRangeFileHeaderBytes) / kRangeChunkBytes;
  return chunks < kMaxRangeChunks ? chunks : kMaxRangeChunks;
}

// Reserves disk space by writing zeros: every file system can do that, and the pages are then ready
// to be mapped, unlike those of fallocate().
bool allocate(long fd, std::uint64_t offset, std::size_t bytes) {
  static char zeros[kRangeChunkBytes];
  rlimit limit = {};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
      (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < offset + bytes)) {
    return false;
  }
  return syscall(SYS_pwrite64, fd, zeros, bytes, offset) == static_cast<long>(bytes);
}

// Maps the pages now: faster than one fault each, and an error here would be a SIGBUS later.
// Kernels before 5.14 return EINVAL.
bool populate(char* start, std::size_t bytes) {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, linux/mman.h
  return madvise(start, bytes, kPopulateWrite) == 0 || errno == EINVAL;
}

void read_command(char* command, std::size_t bytes) {
  const long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/comm", O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) {
    return;
  }
  const long got = syscall(SYS_read, fd, command, bytes);
  if (got > 0 && command[got - 1] == '\n') {
    command[got - 1] = '\0';
  }
  syscall(SYS_close, fd);
}

void write_header() {
  RangeFileHeader& to = *header();
  to.version = kRangeFileVersion;
  to.chunk_bytes = kRangeChunkBytes;
  to.pid = static_cast<std::int32_t>(syscall(SYS_getpid));
  to.parent_pid = static_cast<std::int32_t>(syscall(SYS_getppid));
  to.start_monotonic_ns = clock_ns(CLOCK_MONOTONIC);
  to.start_realtime_ns = clock_ns(CLOCK_REALTIME);
  to.end_bytes = kRangeFileHeaderBytes;
  read_command(to.command, sizeof(to.command));
  std::uint64_t magic = 0;
  std::memcpy(&magic, kRangeFileMagic, sizeof(magic));
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(to.magic))
      .store(magic, std::memory_order_release);
}

// The name is unique among all processes, including earlier programs in this one.
long create_file() {
  for (int attempt = 0; attempt < 10; ++attempt) {
    std::snprintf(g_file.path, sizeof(g_file.path), "%s/%ld.%lld%s", g_directory,
                  syscall(SYS_getpid), static_cast<long long>(clock_ns(CLOCK_REALTIME)),
                  kRangeFileSuffix);
    const long fd = syscall(SYS_openat, AT_FDCWD, g_file.path,
                            O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 || errno != EEXIST) {
      return fd;
    }
  }
  return -1;
}

// With a limit on the address space, takes as much as there is.
bool map_file(long fd) {
  for (g_file.max_chunks = g_max_chunks;; g_file.max_chunks /= 2) {
    void* const base = mmap(nullptr, chunk_offset(g_file.max_chunks), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_NORESERVE, static_cast<int>(fd), 0);
    if (base != MAP_FAILED) {
      g_file.base = static_cast<char*>(base);
      return true;
    }
    if (g_file.max_chunks <= kFewestChunks) {
      return false;
    }
  }
}

bool make_file() {
  if (g_directory[0] == '\0') {
    if (!read_directory_variable()) {
      return false;
    }
    g_max_chunks = read_max_chunks();
  }
  // Blocks are allocated before they are mapped: a full disk shows here as an error, not later as a
  // SIGBUS in the application.
  const long fd = create_file();
  if (fd < 0) {
    return false;
  }
  const bool is_made = allocate(fd, 0, kRangeFileHeaderBytes) && map_file(fd) &&
                       populate(g_file.base, kRangeFileHeaderBytes);
  syscall(SYS_close, fd);
  if (!is_made) {
    syscall(SYS_unlinkat, AT_FDCWD, g_file.path, 0);
    return false;
  }
  write_header();
  return true;
}

bool allocate_chunk(std::uint64_t offset) {
  const long fd = syscall(SYS_openat, AT_FDCWD, g_file.path, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
  if (fd < 0) {
    return false;
  }
  const bool is_there = allocate(fd, offset, kRangeChunkBytes);
  syscall(SYS_close, fd);
  return is_there && populate(g_file.base + offset, kRangeChunkBytes);
}

void raise_to(std::uint64_t& value, std::uint64_t least) {
  const std::atomic_ref shared(value);
  std::uint64_t now = shared.load(std::memory_order_relaxed);
  while (now < least && !shared.compare_exchange_weak(now, least, std::memory_order_relaxed)) {
  }
}

}  // namespace

std::int64_t monotonic_ns() {
  return clock_ns(CLOCK_MONOTONIC);
}

bool open_range_file() {
  int state = g_file.state.load(std::memory_order_acquire);
  if (state == kNone && g_file.state.compare_exchange_strong(state, kOpening)) {
    const bool is_made = make_file();
    g_file.state.store(is_made ? kOpen : kFailed, std::memory_order_release);
    return is_made;
  }
  // Another thread is opening it. The wait is bounded, in case it is this thread, in a signal
  // handler.
  for (int i = 0; state == kOpening && i < kMaxYields; ++i) {
    sched_yield();
    state = g_file.state.load(std::memory_order_acquire);
  }
  return state == kOpen;
}

void forget_range_file() {
  if (g_file.base != nullptr) {
    munmap(g_file.base, chunk_offset(g_file.max_chunks));
    g_file.base = nullptr;
  }
  const std::size_t used = g_file.next_chunk.exchange(0);
  for (std::size_t i = 0; i < used && i < kMaxRangeChunks; ++i) {
    g_has_chunk[i].store(false, std::memory_order_relaxed);
  }
  ++g_file.number;
  g_file.state.store(kNone);
}

std::uint32_t range_file_number() {
  return g_file.number;
}

char* claim_range_chunk() {
  std::size_t chunk = g_file.next_chunk.load(std::memory_order_relaxed);
  do {
    if (chunk >= g_file.max_chunks) {
      return nullptr;
    }
  } while (!g_file.next_chunk.compare_exchange_weak(chunk, chunk + 1));
  const std::uint64_t offset = chunk_offset(chunk);
  if (!allocate_chunk(offset)) {
    return nullptr;  // and stays a hole, should a later one succeed
  }
  raise_to(header()->end_bytes, offset + kRangeChunkBytes);
  g_has_chunk[chunk].store(true, std::memory_order_release);
  return g_file.base + offset;
}

std::uint64_t range_record_offset(const RangeRecord* record) {
  return static_cast<std::uint64_t>(reinterpret_cast<const char*>(record) - g_file.base);
}

RangeRecord* range_record_at(std::uint64_t offset) {
  if (offset < kRangeFileHeaderBytes || offset % kRangeRecordBytes != 0) {
    return nullptr;
  }
  const std::size_t chunk = (offset - kRangeFileHeaderBytes) / kRangeChunkBytes;
  if (chunk >= g_file.max_chunks || !g_has_chunk[chunk].load(std::memory_order_acquire)) {
    return nullptr;
  }
  return reinterpret_cast<RangeRecord*>(g_file.base + offset);
}

void count_lost_range() {
  std::atomic_ref(header()->lost_ranges).fetch_add(1, std::memory_order_relaxed);
}

void count_unmatched_pop() {
  std::atomic_ref(header()->unmatched_pops).fetch_add(1, std::memory_order_relaxed);
}

}  // namespace llmprof
