// SPDX-License-Identifier: Apache-2.0
//
// The stage timer library, embedded in the program and written to disk when needed.
//
// NVTX can only load a library from a path, but the program should be a single file. So the
// assembler embeds the library's bytes in the program.
#include "capture/nvtx_library.h"

#include "base/file.h"

// GPUWHY_NVTX_LIBRARY is the path of the library that was just built.
asm(R"(
  .section .rodata
  .global kNvtxLibraryBegin
  .global kNvtxLibraryEnd
kNvtxLibraryBegin:
  .incbin ")" GPUWHY_NVTX_LIBRARY R"("
kNvtxLibraryEnd:
  .byte 0
  .text
)");
extern "C" const char kNvtxLibraryBegin[];
extern "C" const char kNvtxLibraryEnd[];

namespace gpuwhy {

std::string_view stage_timer_library() {
  return {kNvtxLibraryBegin, static_cast<std::size_t>(kNvtxLibraryEnd - kNvtxLibraryBegin)};
}

std::filesystem::path write_stage_timer_library(const std::filesystem::path& directory) {
  std::filesystem::path library = directory / kStageTimerLibrary;
  write_file(library, stage_timer_library());
  return library;
}

std::map<std::string, std::string> stage_timer_environment(
    const std::filesystem::path& library, const std::filesystem::path& ranges_directory) {
  return {{kNvtxInjection, library.string()}, {"GPUWHY_NVTX_DIR", ranges_directory.string()}};
}

}  // namespace gpuwhy
