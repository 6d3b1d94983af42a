// SPDX-License-Identifier: Apache-2.0
//
// Programs that a range timer could harm, each by the name given as argument. What they print and
// how they end must be the same with and without libgpuwhy_nvtx.so.
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

void mark(int count, const char* name = "marked") {
  for (int i = 0; i < count; ++i) {
    nvtxRangePushA(name);
    nvtxRangePop();
  }
}

// Memory by /proc/self/status, on standard error: the only thing that may differ.
void tell_memory() {
  std::FILE* const status = std::fopen("/proc/self/status", "r");
  char line[256];
  while (status != nullptr && std::fgets(line, sizeof(line), status) != nullptr) {
    if (std::strncmp(line, "VmPeak", 6) == 0 || std::strncmp(line, "VmHWM", 5) == 0) {
      std::fputs(line, stderr);
    }
  }
  if (status != nullptr) {
    std::fclose(status);
  }
}

// Takes as much as `ulimit -v 1500000` leaves to a program of this size.
int allocate() {
  mark(10);
  std::vector<void*> blocks;
  for (int i = 0; i < 40; ++i) {
    void* const block = std::malloc(std::size_t{32} << 20);
    if (block == nullptr) {
      std::printf("malloc failed after %d MiB\n", 32 * i);
      return 1;
    }
    blocks.push_back(block);
    mark(1000);
  }
  std::printf("allocated %zu blocks\n", blocks.size());
  for (void* const block : blocks) {
    std::free(block);
  }
  return 0;
}

// No file may be opened any more: a process that tries is killed.
bool forbid_opening() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_openat, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  sock_fprog program = {sizeof(rules) / sizeof(rules[0]), rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

// How a child ends that marks ranges.
int end_of_marking_child(bool is_filtered_later) {
  const pid_t child = fork();
  if (child == 0) {
    if (is_filtered_later && !forbid_opening()) {
      _exit(4);
    }
    mark(1000, "in a child");
    _exit(3);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int filter_calls() {
  mark(10);
  std::printf("a child ended with %d\n", end_of_marking_child(false));
  std::printf("one that was filtered itself ended with %d\n", end_of_marking_child(true));
  if (!forbid_opening()) {
    std::puts("no filter here");
    return 0;
  }
  mark(20000);
  for (int i = 0; i < 8; ++i) {
    std::thread([] { mark(20000, "in a thread"); }).join();
  }
  std::printf("a child of a filtered one ended with %d\n", end_of_marking_child(false));
  std::puts("filtered");
  return 0;
}

// A sandbox: nothing is open, and nothing can be opened.
int close_and_filter() {
  mark(10);
  for (int fd = 3; fd < 1024; ++fd) {
    close(fd);
  }
  if (!forbid_opening()) {
    std::puts("no filter here");
    return 0;
  }
  mark(100000);
  std::printf("closed and filtered, a child ended with %d\n", end_of_marking_child(false));
  return 0;
}

// Few descriptors are allowed.
int few_descriptors() {
  const rlimit few = {16, 16};
  setrlimit(RLIMIT_NOFILE, &few);
  mark(100000);
  const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
  std::printf("the next descriptor is %d\n", next);
  close(next);
  return 0;
}

// Ranges in destructors of keys, which run after those of thread_local variables.
int end_threads(int num_threads) {
  static pthread_key_t key;
  pthread_key_create(&key, [](void*) { mark(1, "at the end"); });
  for (int i = 0; i < num_threads; ++i) {
    std::thread([] {
      pthread_setspecific(key, &key);
      mark(1, "in a thread");
    }).join();
  }
  tell_memory();
  std::printf("%d threads\n", num_threads);
  return 0;
}

// The files of the timer, cut under it.
int truncate_files() {
  mark(10);
  const nvtxRangeId_t open = nvtxRangeStartA("open");
  if (const char* const folder = std::getenv("GPUWHY_NVTX_DIR"); folder != nullptr) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (truncate(entry.path().c_str(), 0) != 0) {
        return 1;
      }
    }
  }
  nvtxRangeEnd(open);
  mark(100000);
  for (int i = 0; i < 8; ++i) {
    std::thread([] { mark(10000); }).join();
  }
  std::puts("truncated");
  return 0;
}

// An error of its own ends it as ever.
int bus_error() {
  mark(10);
  char name[] = "/tmp/gpuwhy-harm-XXXXXX";
  const int fd = mkstemp(name);
  unlink(name);
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  auto* const mapped =
      static_cast<volatile char*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  std::puts("now");
  std::fflush(stdout);
  mapped[0] = 1;  // beyond the end of the file
  return 0;
}

int bus_signal() {
  mark(10);
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  std::puts("now");
  std::fflush(stdout);
  raise(SIGBUS);
  std::puts("still here");
  return 0;
}

// A daemon closes all descriptors, and the next file gets one of these numbers.
int close_all() {
  mark(10);
  for (int fd = 3; fd < 1024; ++fd) {
    close(fd);
  }
  std::FILE* const own = std::tmpfile();
  for (int fd = 3; fd < 1024; ++fd) {
    if (fd != fileno(own)) {
      dup2(fileno(own), fd);
    }
  }
  mark(100000);
  std::fseek(own, 0, SEEK_END);
  std::printf("the file has %ld bytes\n", std::ftell(own));
  return 0;
}

// A child that shares everything until it is another program.
int start_children() {
  mark(10);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = vfork();
    if (child == 0) {
      execl("/bin/true", "true", nullptr);
      _exit(9);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (const int copy = end_of_marking_child(false); status != 0 || copy != 3) {
      std::printf("children ended with %d, %d\n", status, copy);
    }
    mark(100);
  }
  // A daemon: its parent is gone before it marks.
  int ends[2] = {};
  if (pipe(ends) != 0) {
    return 1;
  }
  const pid_t between = fork();
  if (between == 0) {
    if (fork() == 0) {
      close(ends[1]);
      char byte = 0;
      (void)!read(ends[0], &byte, 1);  // ends when its parent and the first process have closed it
      mark(1000, "in a daemon");
      _exit(0);
    }
    _exit(0);
  }
  close(ends[0]);
  waitpid(between, nullptr, 0);
  close(ends[1]);
  std::puts("20 children");
  return 0;
}

int drop_rights() {
  mark(10);
  if (geteuid() == 0 && setuid(65534) != 0) {
    return 1;
  }
  mark(100000);
  std::printf("user %d\n", geteuid() == 0 ? 0 : 1);
  return 0;
}

int mark_much(int num_ranges) {
  mark(num_ranges);
  tell_memory();
  std::printf("%d ranges\n", num_ranges);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? std::atoi(argv[2]) : 0;
  return what == "allocate"     ? allocate()
         : what == "filter"     ? filter_calls()
         : what == "sandbox"    ? close_and_filter()
         : what == "few"        ? few_descriptors()
         : what == "keys"       ? end_threads(number)
         : what == "truncate"   ? truncate_files()
         : what == "bus_error"  ? bus_error()
         : what == "bus_signal" ? bus_signal()
         : what == "close_all"  ? close_all()
         : what == "children"   ? start_children()
         : what == "setuid"     ? drop_rights()
         : what == "ranges"     ? mark_much(number)
                                : 2;
}
