// SPDX-License-Identifier: Apache-2.0
//
// Memory of Arrow structs that Python's capsules own, and their destructors.
//
// A destructor written in Python could run after the interpreter has taken it apart; these are
// plain functions. The library is not linked with Python, which tells it the one function needed.
#include <atomic>
#include <cstdlib>

#include <gpuwhy/c.h>

namespace gpuwhy {
namespace {

using GetPointer = void* (*)(void* capsule, const char* name);
std::atomic<GetPointer> capsule_pointer = nullptr;

// Called by Python when a capsule goes, with its lock held. A receiver that took the struct out of
// it has set its release to null.
template <typename Struct>
void end_capsule(void* capsule, const char* name) {
  const GetPointer get = capsule_pointer.load();
  auto* const held = get == nullptr ? nullptr : static_cast<Struct*>(get(capsule, name));
  if (held != nullptr) {
    if (held->release != nullptr) {  // nobody took it
      held->release(held);
    }
    std::free(held);
  }
}

// All zero: a struct without a release, which is an empty one.
template <typename Struct>
Struct* new_struct() {
  return static_cast<Struct*>(std::calloc(1, sizeof(Struct)));
}

}  // namespace
}  // namespace gpuwhy

void gpuwhy_python(void* capsule_get_pointer) {
  gpuwhy::capsule_pointer = reinterpret_cast<gpuwhy::GetPointer>(capsule_get_pointer);
}

ArrowSchema* gpuwhy_new_schema(void) {
  return gpuwhy::new_struct<ArrowSchema>();
}

ArrowArray* gpuwhy_new_array(void) {
  return gpuwhy::new_struct<ArrowArray>();
}

ArrowArrayStream* gpuwhy_new_stream(void) {
  return gpuwhy::new_struct<ArrowArrayStream>();
}

void gpuwhy_end_schema(void* capsule) {
  gpuwhy::end_capsule<ArrowSchema>(capsule, "arrow_schema");
}

void gpuwhy_end_array(void* capsule) {
  gpuwhy::end_capsule<ArrowArray>(capsule, "arrow_array");
}

void gpuwhy_end_stream(void* capsule) {
  gpuwhy::end_capsule<ArrowArrayStream>(capsule, "arrow_array_stream");
}
