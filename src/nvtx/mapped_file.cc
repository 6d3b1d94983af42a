// SPDX-License-Identifier: Apache-2.0
//
// The memory-mapped file that holds range records, designed to survive a process killed at any
// time.
//
// Records are stored directly into a shared mapping. Whatever was stored belongs to the kernel, so
// no flush is needed, whether the program ends by exit, _exit, a signal or exec.
//
// The file is mapped in windows of some MiB, as it grows, and all mappings together take at most a
// sixteenth of a limit on the address space: the rest is the program's. Within a window space is
// claimed one chunk at a time. A store into a page that the disk has no room for would be a SIGBUS,
// so each chunk is written with zeros first. The file size limit is checked before that, because
// the kernel answers a write beyond it with SIGXFSZ.
//
// The program may install a system call filter at any time, and a filter may kill. After the start
// only calls are made that a program cannot do without: mmap, munmap, madvise, pread, pwrite,
// fstat, getrlimit and gettid. In particular nothing is opened: the descriptor is kept, under a
// high number. A program that closes all descriptors and reuses the number must not have its own
// file grown, so it is compared before every use. Where it is gone, recording stops. A forked child
// needs a file of its own, and opens one only if no filter was installed since the start.
//
// If somebody truncates the file, or a copy-on-write file system (btrfs) fills up to the last
// block, a store is a SIGBUS after all. Unless the program handles that signal itself, a handler
// puts plain memory in place of the lost pages, and recording stops. Every other SIGBUS ends the
// program as it would without us.
//
// System calls go through syscall(): the libc wrappers are cancellation points, and a thread must
// not end inside an NVTX call. Nothing here takes a lock: a thread may die or be forked while
// inside.
//
// What it gets wrong: a program with a SIGBUS handler of its own gets that signal where the file is
// truncated. On a file system in memory, the chunks are memory that cannot be reclaimed.
#include "nvtx/mapped_file.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
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

#include "nvtx/call_filter.h"
#include "nvtx/kept_descriptor.h"

namespace gpuwhy {
namespace {

constexpr std::uint64_t kDefaultMaxBytes = std::uint64_t{1} << 30;
constexpr std::size_t kWindowChunks = 32;
constexpr std::size_t kWindowBytes = kWindowChunks * kRangeChunkBytes;
constexpr std::size_t kMaxWindows = kMaxRangeChunks / kWindowChunks;
constexpr std::uint64_t kShareOfLimit = 16;
constexpr int kMaxYields = 100000;

enum FileState : int { kNone, kOpening, kOpen, kFailed };

// State of the open file. Plain and constant-initialized, because ranges may start before main().
struct RangeFile {
  std::atomic<int> state{kNone};
  char* base = nullptr;  // of the header
  KeptDescriptor descriptor;
  std::atomic<std::size_t> next_chunk{0};
  std::atomic<bool> is_lost{false};  // it was truncated: nothing more is recorded
  std::uint32_t number = 1;
  char path[PATH_MAX] = {};
};

RangeFile g_file;
std::atomic<bool> g_has_chunk[kMaxRangeChunks];  // by chunk: may be stored to
std::atomic<char*> g_windows[kMaxWindows];       // where they are mapped
std::atomic<std::uint64_t> g_mapped_bytes{0};
char g_directory[PATH_MAX - 64];  // empty: not set
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
  const char* directory = secure_getenv("GPUWHY_NVTX_DIR");
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
  if (const char* text = secure_getenv("GPUWHY_NVTX_MAX_BYTES"); text != nullptr) {
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
  const long got = read_start("/proc/self/comm", command, bytes);
  if (got > 0 && command[got - 1] == '\n') {
    command[got - 1] = '\0';
  }
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

// What was mapped at `address`, replaced by plain memory.
bool replace(char* start, std::size_t bytes, const char* address) {
  if (start == nullptr || address < start || address >= start + bytes) {
    return false;
  }
  g_file.is_lost = true;
  return mmap(start, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
              0) != MAP_FAILED;
}

bool replace_lost_pages(const char* address) {
  if (replace(g_file.base, kRangeFileHeaderBytes, address)) {
    return true;
  }
  const std::size_t num_windows = g_file.next_chunk / kWindowChunks + 1;
  for (std::size_t i = 0; i < num_windows && i < kMaxWindows; ++i) {
    if (replace(g_windows[i], kWindowBytes, address)) {
      return true;
    }
  }
  return false;
}

void on_bus_error(int signal, siginfo_t* info, void* /*context*/) {
  const int kept = errno;
  const bool is_access = info->si_code > 0;
  if (!is_access || !replace_lost_pages(static_cast<const char*>(info->si_addr))) {
    // Not ours: the access is repeated, or the signal sent again, and ends the program.
    struct sigaction plain = {};
    plain.sa_handler = SIG_DFL;
    sigaction(signal, &plain, nullptr);
    if (!is_access) {
      syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid), signal);
    }
  }
  errno = kept;
}

void watch_bus_errors() {
  struct sigaction now = {};
  if (sigaction(SIGBUS, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 ||
      now.sa_handler != SIG_DFL) {
    return;  // the program's own
  }
  struct sigaction ours = {};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigaction(SIGBUS, &ours, nullptr);
}

bool map_header(long fd) {
  void* const base = mmap(nullptr, kRangeFileHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                          static_cast<int>(fd), 0);
  g_file.base = base == MAP_FAILED ? nullptr : static_cast<char*>(base);
  return g_file.base != nullptr;
}

bool make_file() {
  if (g_directory[0] == '\0') {
    if (!read_directory_variable()) {
      return false;
    }
    g_max_chunks = read_max_chunks();
    note_filters();
  } else if (!may_open_files()) {
    return false;
  }
  // Blocks are allocated before they are mapped: a full disk shows here as an error, not later as a
  // SIGBUS in the application.
  const long fd = create_file();
  if (fd < 0) {
    return false;
  }
  const bool is_made = allocate(fd, 0, kRangeFileHeaderBytes) && map_header(fd) &&
                       populate(g_file.base, kRangeFileHeaderBytes);
  if (is_made) {
    g_file.descriptor.keep(fd);
  }
  syscall(SYS_close, fd);
  if (!is_made) {
    syscall(SYS_unlinkat, AT_FDCWD, g_file.path, 0);
    return false;
  }
  watch_bus_errors();
  write_header();
  return true;
}

// The window's address; two threads may map it at once, and one of them is late.
char* map_window(int fd, std::size_t window) {
  char* known = g_windows[window].load(std::memory_order_acquire);
  if (known != nullptr) {
    return known;
  }
  if (!take_address_space(kWindowBytes)) {
    return nullptr;
  }
  void* const mapped =
      mmap(nullptr, kWindowBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
           static_cast<off_t>(chunk_offset(window * kWindowChunks)));
  if (mapped == MAP_FAILED) {
    give_address_space(kWindowBytes);
    return nullptr;
  }
  if (g_windows[window].compare_exchange_strong(known, static_cast<char*>(mapped))) {
    return static_cast<char*>(mapped);
  }
  munmap(mapped, kWindowBytes);
  give_address_space(kWindowBytes);
  return known;
}

char* allocate_chunk(std::size_t chunk) {
  const int fd = g_file.descriptor.get();
  if (fd < 0 || !allocate(fd, chunk_offset(chunk), kRangeChunkBytes)) {
    return nullptr;
  }
  char* const window = map_window(fd, chunk / kWindowChunks);
  if (window == nullptr) {
    return nullptr;
  }
  char* const start = window + chunk % kWindowChunks * kRangeChunkBytes;
  return populate(start, kRangeChunkBytes) ? start : nullptr;
}

void raise_to(std::uint64_t& value, std::uint64_t least) {
  const std::atomic_ref shared(value);
  std::uint64_t now = shared.load(std::memory_order_relaxed);
  while (now < least && !shared.compare_exchange_weak(now, least, std::memory_order_relaxed)) {
  }
}

}  // namespace

bool take_address_space(std::size_t bytes) {
  rlimit limit = {};
  const std::uint64_t before = g_mapped_bytes.fetch_add(bytes, std::memory_order_relaxed);
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      before + bytes > limit.rlim_cur / kShareOfLimit) {
    give_address_space(bytes);
    return false;
  }
  return true;
}

void give_address_space(std::size_t bytes) {
  g_mapped_bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

long read_start(const char* path, void* to, std::size_t bytes) {
  const long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) {
    return -1;
  }
  const long got = syscall(SYS_read, fd, to, bytes);
  syscall(SYS_close, fd);
  return got;
}

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
    munmap(g_file.base, kRangeFileHeaderBytes);
    g_file.base = nullptr;
  }
  const std::size_t used = g_file.next_chunk.exchange(0);
  for (std::size_t i = 0; i < used && i < kMaxRangeChunks; ++i) {
    g_has_chunk[i].store(false, std::memory_order_relaxed);
  }
  for (std::size_t i = 0; i < kMaxWindows && i * kWindowChunks < used; ++i) {
    if (char* const window = g_windows[i].exchange(nullptr); window != nullptr) {
      munmap(window, kWindowBytes);
      give_address_space(kWindowBytes);
    }
  }
  g_file.descriptor.close();
  g_file.is_lost = false;
  ++g_file.number;
  g_file.state.store(kNone);
}

std::uint32_t range_file_number() {
  return g_file.number;
}

RangeChunk claim_range_chunk() {
  std::size_t chunk = g_file.next_chunk.load(std::memory_order_relaxed);
  do {
    if (chunk >= g_max_chunks || g_file.is_lost.load(std::memory_order_relaxed)) {
      return {};
    }
  } while (!g_file.next_chunk.compare_exchange_weak(chunk, chunk + 1));
  char* const start = allocate_chunk(chunk);
  if (start == nullptr) {
    return {};  // and stays a hole, should a later one succeed
  }
  const std::uint64_t offset = chunk_offset(chunk);
  raise_to(header()->end_bytes, offset + kRangeChunkBytes);
  g_has_chunk[chunk].store(true, std::memory_order_release);
  return {start, offset};
}

RangeRecord* range_record_at(std::uint64_t offset) {
  if (offset < kRangeFileHeaderBytes || offset % kRangeRecordBytes != 0) {
    return nullptr;
  }
  const std::size_t chunk = (offset - kRangeFileHeaderBytes) / kRangeChunkBytes;
  if (chunk >= g_max_chunks || !g_has_chunk[chunk].load(std::memory_order_acquire)) {
    return nullptr;
  }
  char* const window = g_windows[chunk / kWindowChunks].load(std::memory_order_acquire);
  return reinterpret_cast<RangeRecord*>(
      window + (offset - chunk_offset(chunk / kWindowChunks * kWindowChunks)));
}

void count_lost_range() {
  std::atomic_ref(header()->lost_ranges).fetch_add(1, std::memory_order_relaxed);
}

void count_unmatched_pop() {
  std::atomic_ref(header()->unmatched_pops).fetch_add(1, std::memory_order_relaxed);
}

}  // namespace gpuwhy
