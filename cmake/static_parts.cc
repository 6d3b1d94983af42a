// SPDX-License-Identifier: Apache-2.0
//
// What the program lacks that is linked with nothing shared. {fmt} itself, of its own headers; of its templates those
// that the linker misses. And a C library that would load a machine's own modules to find the address of a server, of
// another C library perhaps: it asks the machine's files and DNS, which it holds itself.
#include <fmt/format-inl.h>
#ifndef GPUWHY_NO_MODULES
#include <nss.h>
#endif

namespace fmt::detail {
template char decimal_point_impl<char>(locale_ref);
template thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template std::locale locale_ref::get<std::locale>() const;
}  // namespace fmt::detail

#ifndef GPUWHY_NO_MODULES
namespace {

[[gnu::constructor]] void load_no_modules() {
  __nss_configure_lookup("hosts", "files dns");
  __nss_configure_lookup("passwd", "files");
}

}  // namespace
#endif
