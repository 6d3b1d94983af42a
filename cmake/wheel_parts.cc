// SPDX-License-Identifier: Apache-2.0
//
// Parts of a recent C library that the wheel's library brings itself, so that it also loads where the C library is of
// 2021: Ubuntu 22.04, RHEL 9. The C++ library inside asks for them. All are hidden, and serve this library alone.
#include <cstdint>

#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#define HIDDEN extern "C" __attribute__((visibility("hidden")))

// Whether the process has one thread, which it then never has. Debian's archives look at it without the detour that a
// variable of another library needs.
HIDDEN char __libc_single_threaded;
char __libc_single_threaded = 0;

// Of 2.36, for std::random_device.
HIDDEN std::uint32_t arc4random() {
  std::uint32_t number = 0;
  while (::getrandom(&number, sizeof(number), 0) != sizeof(number)) {
  }
  return number;
}

namespace {

struct Search {
  ElfW(Addr) address;
  dl_find_object* found;
  bool is_found;
};

int look_into(dl_phdr_info* info, std::size_t /*size*/, void* data) {
  auto* const search = static_cast<Search*>(data);
  ElfW(Addr) unwind = 0;
  bool is_inside = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const ElfW(Addr) begin = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_EH_FRAME) {
      unwind = begin;
    } else if (part.p_type == PT_LOAD && search->address >= begin && search->address - begin < part.p_memsz) {
      is_inside = true;
      search->found->dlfo_map_start = reinterpret_cast<void*>(begin);
      search->found->dlfo_map_end = reinterpret_cast<void*>(begin + part.p_memsz);
    }
  }
  if (is_inside && unwind != 0) {
    search->found->dlfo_eh_frame = reinterpret_cast<void*>(unwind);
    search->is_found = true;
  }
  return is_inside ? 1 : 0;
}

}  // namespace

// Of 2.35, for exceptions: the file that holds an address, and where it says how to unwind.
HIDDEN int _dl_find_object(void* address, dl_find_object* result) {
  *result = {};
  Search search{reinterpret_cast<ElfW(Addr)>(address), result, false};
  dl_iterate_phdr(look_into, &search);
  return search.is_found ? 0 : -1;
}
