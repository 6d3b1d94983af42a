// SPDX-License-Identifier: Apache-2.0
//
// libcurl, loaded at its first use. It brings 28 further libraries, whose loading would take longer
// than everything else that a start does, and few commands talk to a server.
//
// Each function of curl/curl.h that net/ calls is defined here and calls the one of libcurl.so.4.
// The static program has libcurl inside and does without this file.
#include <cstdarg>
#include <string>

#include <curl/curl.h>
#include <dlfcn.h>

#include "base/error.h"

// curl declares these functions with an enumeration before the dots, as C allows.
#pragma GCC diagnostic ignored "-Wvarargs"

#undef curl_easy_getinfo
#undef curl_easy_setopt

namespace {

void* library() {
  static void* const kLibrary = dlopen("libcurl.so.4", RTLD_LAZY | RTLD_LOCAL);
  if (kLibrary == nullptr) {
    throw gpuwhy::Error(gpuwhy::ErrorKind::kEnvironment, "libcurl.so.4 is not installed",
                         "install libcurl4 to talk to a server; everything else works without it");
  }
  return kLibrary;
}

template <typename Function>
Function* in_library(Function* /*like*/, const char* name) {
  void* const found = dlsym(library(), name);
  if (found == nullptr) {
    throw gpuwhy::Error(gpuwhy::ErrorKind::kEnvironment,
                         std::string("libcurl.so.4 has no ") + name);
  }
  return reinterpret_cast<Function*>(found);
}

}  // namespace

// The function of the same name in the library.
#define GPUWHY_REAL(name) \
  static auto* const kReal = in_library(static_cast<decltype(&name)>(nullptr), #name)

extern "C" {

CURLcode curl_global_init(long flags) {
  GPUWHY_REAL(curl_global_init);
  return kReal(flags);
}

CURL* curl_easy_init() {
  GPUWHY_REAL(curl_easy_init);
  return kReal();
}

// Numbers and pointers are passed alike after the dots wherever gpuwhy runs (x86-64, AArch64).
CURLcode curl_easy_setopt(CURL* handle, CURLoption option, ...) {
  GPUWHY_REAL(curl_easy_setopt);
  va_list values;
  va_start(values, option);
  void* const value = va_arg(values, void*);
  va_end(values);
  return kReal(handle, option, value);
}

CURLcode curl_easy_getinfo(CURL* handle, CURLINFO info, ...) {
  GPUWHY_REAL(curl_easy_getinfo);
  va_list values;
  va_start(values, info);
  void* const value = va_arg(values, void*);
  va_end(values);
  return kReal(handle, info, value);
}

CURLcode curl_easy_perform(CURL* handle) {
  GPUWHY_REAL(curl_easy_perform);
  return kReal(handle);
}

void curl_easy_reset(CURL* handle) {
  GPUWHY_REAL(curl_easy_reset);
  kReal(handle);
}

void curl_easy_cleanup(CURL* handle) {
  GPUWHY_REAL(curl_easy_cleanup);
  kReal(handle);
}

const char* curl_easy_strerror(CURLcode code) {
  GPUWHY_REAL(curl_easy_strerror);
  return kReal(code);
}

CURLM* curl_multi_init() {
  GPUWHY_REAL(curl_multi_init);
  return kReal();
}

CURLMcode curl_multi_add_handle(CURLM* all, CURL* handle) {
  GPUWHY_REAL(curl_multi_add_handle);
  return kReal(all, handle);
}

CURLMcode curl_multi_remove_handle(CURLM* all, CURL* handle) {
  GPUWHY_REAL(curl_multi_remove_handle);
  return kReal(all, handle);
}

CURLMcode curl_multi_perform(CURLM* all, int* num_running) {
  GPUWHY_REAL(curl_multi_perform);
  return kReal(all, num_running);
}

CURLMcode curl_multi_poll(CURLM* all, struct curl_waitfd* extra, unsigned int num_extra,
                          int timeout_ms, int* num_ready) {
  GPUWHY_REAL(curl_multi_poll);
  return kReal(all, extra, num_extra, timeout_ms, num_ready);
}

CURLMsg* curl_multi_info_read(CURLM* all, int* num_left) {
  GPUWHY_REAL(curl_multi_info_read);
  return kReal(all, num_left);
}

CURLMcode curl_multi_cleanup(CURLM* all) {
  GPUWHY_REAL(curl_multi_cleanup);
  return kReal(all);
}

struct curl_slist* curl_slist_append(struct curl_slist* list, const char* text) {
  GPUWHY_REAL(curl_slist_append);
  return kReal(list, text);
}

void curl_slist_free_all(struct curl_slist* list) {
  GPUWHY_REAL(curl_slist_free_all);
  kReal(list);
}

}  // extern "C"
