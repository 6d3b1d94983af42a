// SPDX-License-Identifier: Apache-2.0
//
// Python modules that mark programs of known libraries, embedded in the program and written to disk
// when needed.
//
// A folder in PYTHONPATH reaches every Python process of a job, also those that a launcher starts.
// Its sitecustomize.py runs before the program and then runs the user's own. Refused: a wrapper
// around the command line (it does not reach child processes), and editing the user's
// site-packages.
#include "capture/mark_module.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "capture/embedded_marks.h"

// GPUWHY_MARKS_LIBRARY is the path of the library that was just built.
asm(R"(
  .section .rodata
  .global kMarksLibraryBegin
  .global kMarksLibraryEnd
kMarksLibraryBegin:
  .incbin ")" GPUWHY_MARKS_LIBRARY R"("
kMarksLibraryEnd:
  .byte 0
  .text
)");
extern "C" const char kMarksLibraryBegin[];
extern "C" const char kMarksLibraryEnd[];

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModulePrefix = "gpuwhy_mark_";
// Not Python: the library itself, preloaded, wraps llama.cpp.
constexpr const char* kLlamaModule = "llama_cpp";
constexpr const char* kMarksLibrary = "libgpuwhy_marks.so";
constexpr const char* kNotesFile = "notes.txt";
// A program that fills the file with notes is not believed.
constexpr std::size_t kMostNotes = 20;
constexpr std::uintmax_t kMostNoteBytes = 1 << 20;

std::string_view marks_library() {
  return {kMarksLibraryBegin, static_cast<std::size_t>(kMarksLibraryEnd - kMarksLibraryBegin)};
}

}  // namespace

std::vector<std::string> mark_modules() {
  std::vector<std::string> names = {kLlamaModule};
  for (const EmbeddedFile& file : embedded_marks()) {
    if (file.path.starts_with(kModulePrefix) && file.path.ends_with(".py")) {
      const std::string_view name = file.path.substr(kModulePrefix.size());
      names.emplace_back(name.substr(0, name.size() - 3));
    }
  }
  return names;
}

void check_mark_modules(const std::vector<std::string>& modules) {
  const std::vector<std::string> known = mark_modules();
  for (const std::string& name : modules) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("--mark {}: there is no module of this name; known: {}",
                              printable(name), fmt::join(known, ", ")),
                  fmt::format("--mark {}, or --mark STAGE=NAME for ranges that the program has",
                              known.back()));
    }
  }
}

void write_mark_modules(const fs::path& directory) {
  fs::create_directories(directory);
  for (const EmbeddedFile& file : embedded_marks()) {
    write_file(directory / file.path, file.text);
  }
  write_file(directory / kMarksLibrary, marks_library());
}

void add_mark_environment(const fs::path& directory, const std::vector<std::string>& modules,
                          std::map<std::string, std::string>& environment) {
  if (modules.empty()) {
    return;
  }
  if (std::find(modules.begin(), modules.end(), kLlamaModule) != modules.end()) {
    std::string& preload = environment["LD_PRELOAD"];
    const std::string library = (directory / kMarksLibrary).string();
    preload = preload.empty() ? library : library + ":" + preload;
  }
  std::string& path = environment["PYTHONPATH"];
  path = path.empty() ? directory.string() : directory.string() + ":" + path;
  environment["GPUWHY_MARK"] = fmt::format("{}", fmt::join(modules, ","));
  environment["GPUWHY_MARK_NOTES"] = (directory / kNotesFile).string();
}

MarkNotes take_mark_notes(const fs::path& directory) {
  MarkNotes notes;
  const fs::path file = directory / kNotesFile;
  std::error_code failure;
  const std::uintmax_t bytes = fs::file_size(file, failure);
  if (failure || bytes > kMostNoteBytes) {
    return notes;
  }
  const std::string text = read_file(file);
  for (const std::string_view line : split(text, '\n')) {
    notes.is_marked = notes.is_marked || line.starts_with("ok ");
    const std::string sentence(line.starts_with("no ") ? line.substr(3) : "");
    if (!sentence.empty() && notes.not_done.size() < kMostNotes &&
        std::find(notes.not_done.begin(), notes.not_done.end(), sentence) == notes.not_done.end()) {
      notes.not_done.push_back(sentence);
    }
  }
  fs::remove(file, failure);
  return notes;
}

}  // namespace gpuwhy
