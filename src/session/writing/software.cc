// SPDX-License-Identifier: Apache-2.0
//
// Versions of a program's software: mapped libraries, Python packages, the commit of its source.
//
// Names of mapped files and of metadata folders have the versions; to ask Python or an engine would
// mean to import it. What this gets wrong: packages of a changed search path (PYTHONPATH) that map
// no file, libraries that are linked statically, a container that the program starts.
#include "session/writing/software.h"

#include <algorithm>
#include <fstream>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "capture/processes.h"
#include "capture/subprocess.h"
#include "capture/tools.h"
#include "session/version.h"
#include "session/writing/engine_version.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

constexpr int kMostMappings = 200'000;
constexpr int kMostPackages = 20'000;
constexpr std::size_t kLongestName = 128;
constexpr std::uint64_t kLargestPython = 256 * kMiB;
constexpr std::string_view kPython = "python3.";

// "libcudart" of libcudart.so.12 and libcudart-d0da41ae.so.11.0; empty if nobody asks for it.
std::string library_name(const std::string& file) {
  static const std::set<std::string_view> kKnown = {
      "libcuda",  "libcudart", "libcublas", "libcudnn", "libnccl",       "libnvrtc",
      "libcupti", "libtorch",  "libllama",  "libggml",  "libtorch_cuda", "libnvinfer"};
  const std::string name = file.substr(0, std::min(file.find(".so"), file.find('-')));
  return kKnown.contains(name) || file.find(kPython) <= 3 ? name : "";
}

// The "3.11" of python3.11 and libpython3.11.so.1.0; empty if it is neither.
std::string python_series(const std::string& name) {
  const std::size_t minor = name.find(kPython) + kPython.size();
  return minor < kPython.size()
             ? ""
             : "3." + name.substr(minor, name.find_first_not_of("0123456789", minor) - minor);
}

// The binary of an interpreter has its version as a text, "3.11.2" or "3.14.0rc1", at times merged
// with the end of a path.
std::string python_version(const fs::path& file, const std::string& series) {
  constexpr std::size_t kLongest = 15;
  try {
    const std::string bytes = read_file(file, kLargestPython);
    const std::string start = series + '.';
    for (std::size_t at = 1; (at = bytes.find(start, at)) != std::string::npos; ++at) {
      std::string text = bytes.substr(at, kLongest + 1).c_str();
      const bool is_whole =
          std::string_view("0123456789.").find(bytes[at - 1]) == std::string::npos;
      if (is_whole && text.size() > start.size() && text.size() <= kLongest &&
          text.find_first_not_of("0123456789.abcr+") == std::string::npos) {
        return text;
      }
    }
  } catch (const Error&) {  // then it is not known
  }
  return "";
}

// In Python's order: a virtual environment comes first, the system's packages come last.
std::vector<fs::path> folders_of(const ProcessFiles& files, const std::string& series) {
  std::error_code failure;
  const bool is_virtual = fs::exists(files.program.parent_path() / "../pyvenv.cfg", failure);
  std::vector<fs::path> folders;
  if (is_virtual || !series.empty()) {  // beside /usr/bin/sleep are packages that it does not use
    folders = package_folders(files.program);
  }
  folders.insert(is_virtual ? folders.end() : folders.begin(), files.folders.begin(),
                 files.folders.end());
  std::set<fs::path> told;
  std::erase_if(folders, [&](const fs::path& folder) {
    const std::string version = folder.parent_path().filename();
    const bool is_other = version != "python3" && version != "python" + series;
    return (!series.empty() && is_other) || !fs::is_directory(folder, failure) ||
           !told.insert(folder).second;
  });
  return folders;
}

using Versions = std::map<std::string, std::string>;

// Of each package, the version in the first folder.
Versions packages_in(const std::vector<fs::path>& folders) {
  Versions packages;
  std::error_code failure;
  int num_left = kMostPackages;
  for (const fs::path& folder : folders) {
    for (fs::directory_iterator entry(folder, failure);
         !failure && entry != fs::directory_iterator() && num_left-- > 0;
         entry.increment(failure)) {
      if (auto package = package_of(entry->path().filename().string())) {
        packages.insert(std::move(*package));
      }
    }
  }
  return packages;
}

std::string version_in(const Versions& versions, const std::string& name) {
  const auto found = versions.find(name);
  return found == versions.end() ? "" : found->second;
}

// Rows, because names such as detect-secrets would be scrubbed as keys.
Json rows_of(const Versions& versions) {
  Json rows = Json::array();
  for (const auto& [name, version] : versions) {
    rows.push_back({{"name", name}, {"version", text_or_null(version)}});
  }
  return rows;
}

// Git, without what makes it start programs: variables, a file watcher, hooks.
ProcessResult ask_git(const System& system, const fs::path& folder,
                      const std::vector<std::string>& words) {
  const auto git = find_on_path(system, "git");
  if (!git) {
    return {-1, false, "", "git is not on PATH"};
  }
  Process process{{git->string(), "--no-optional-locks", "-c", "core.fsmonitor=false", "-c",
                   "core.hooksPath=/dev/null", "-c", "safe.bareRepository=explicit"},
                  system.environment};
  process.argv.insert(process.argv.end(), words.begin(), words.end());
  std::erase_if(process.environment, [](const auto& one) { return one.first.starts_with("GIT_"); });
  process.environment["GIT_NO_LAZY_FETCH"] = "1";
  process.environment["LC_ALL"] = "C";
  process.directory = folder;
  try {
    return run_process(process);
  } catch (const Error& error) {
    return {-1, false, "", error.what()};
  }
}

// Whether a key of the repository's own configuration makes git status start a program: a filter of
// contents, or what fetches objects that a partial clone lacks.
bool starts_program(std::string_view line) {
  const std::string key = to_lower(line);
  return (key.starts_with("local") || key.starts_with("worktree")) &&
         (key.find("\tfilter.") != std::string::npos || key.ends_with(".promisor") ||
          key.ends_with("partialclone"));
}

Json source_at(const System& system, const fs::path& folder) {
  Json source = {{"folder", nullptr}, {"commit", nullptr}, {"dirty", nullptr}, {"reason", nullptr}};
  const ProcessResult head = ask_git(system, folder, {"rev-parse", "--show-toplevel", "HEAD"});
  const auto lines = split(head.out, '\n');
  if (!head.succeeded() || lines.size() < 2) {
    source["reason"] = head.err.substr(0, std::min<std::size_t>(head.err.find('\n'), 200));
    return source;
  }
  source["folder"] = lines[0];
  source["commit"] = lines[1];
  const ProcessResult keys =
      ask_git(system, folder, {"config", "--list", "--show-scope", "--name-only", "--includes"});
  if (!keys.succeeded() || std::ranges::any_of(split(keys.out, '\n'), starts_program)) {
    source["reason"] = "git status is not asked: the repository's configuration may start programs";
    return source;
  }
  const ProcessResult status = ask_git(
      system, folder, {"status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"});
  source[status.succeeded() ? "dirty" : "reason"] =
      status.succeeded() ? Json(!status.out.empty()) : Json("git status failed or took too long");
  return source;
}

}  // namespace

Json gpuwhy_json() {
  return {{"version", program_version()}, {"commit", text_or_null(program_commit())}};
}

std::vector<fs::path> package_folders(const fs::path& program) {
  std::vector<fs::path> folders;
  std::error_code failure;
  const fs::path libraries = program.parent_path().parent_path() / "lib";
  for (const fs::directory_entry& entry : fs::directory_iterator(libraries, failure)) {
    if (entry.path().filename().string().starts_with("python3")) {
      folders.push_back(entry.path() / "site-packages");
      folders.push_back(entry.path() / "dist-packages");
    }
  }
  return folders;
}

std::optional<std::pair<std::string, std::string>> package_of(std::string_view folder) {
  const std::size_t dash = folder.find('-', 1);
  if (!folder.ends_with(".dist-info") || folder.size() > kLongestName ||
      dash + 1 >= folder.rfind('.')) {
    return std::nullopt;
  }
  std::string name = to_lower(folder.substr(0, dash));
  std::ranges::replace_if(
      name, [](char c) { return c == '_' || c == '.'; }, '-');
  return std::pair(name, std::string(folder.substr(dash + 1, folder.rfind('.') - dash - 1)));
}

std::optional<ProcessFiles> files_of_process(const System& system, int pid) {
  const fs::path folder = system.at(fmt::format("/proc/{}", pid));
  std::error_code failure;
  ProcessFiles files;
  files.executable = fs::read_symlink(folder / "exe", failure);
  const fs::path word = read_pseudo_file(folder / "cmdline").c_str();
  files.program = word.is_absolute() ? word : files.executable;
  if (!word.has_parent_path()) {  // found on its own PATH, as "python" of an environment
    const std::string variables = read_pseudo_file(folder / "environ");
    for (const std::string_view variable : split(variables, '\0')) {
      if (constexpr std::string_view kPath = "PATH="; variable.starts_with(kPath)) {
        const System its{{{"PATH", std::string(variable.substr(kPath.size()))}}};
        files.program = find_on_path(its, word).value_or(files.executable);
      }
    }
  }
  std::ifstream maps(folder / "maps");
  std::string line;
  int num_left = kMostMappings;
  for (; num_left > 0 && std::getline(maps, line); --num_left) {
    const std::string file = line.substr(std::min(line.find('/'), line.size()));
    if (!library_name(fs::path(file).filename()).empty()) {
      files.libraries.insert(file);
    }
    for (const std::string_view packages : {"/site-packages/", "/dist-packages/"}) {
      if (const std::size_t at = file.find(packages); at != std::string::npos) {
        files.folders.insert(file.substr(0, at + packages.size() - 1));
      }
    }
  }
  return num_left == kMostMappings ? std::nullopt : std::optional(std::move(files));
}

void look_at_programs(std::optional<ProcessFiles>& best) {
  std::error_code failure;
  const fs::path self = fs::read_symlink("/proc/self/exe", failure);
  for (const RunningProcess& process : descendants()) {
    auto files = is_profiler(process) ? std::nullopt : files_of_process({}, process.pid);
    if (files && files->executable != self &&
        (!best || files->libraries.size() >= best->libraries.size())) {
      best = std::move(files);
    }
  }
}

Json program_json(const std::vector<std::string>& argv, const std::optional<ProcessFiles>& seen) {
  std::error_code failure;
  const ProcessFiles files =
      seen.value_or(ProcessFiles{argv.at(0), fs::canonical(argv[0], failure), {}, {}});
  Versions libraries;
  fs::path python = files.executable;
  for (const fs::path& path : files.libraries) {
    const std::string file = path.filename();
    const std::size_t version = file.find(".so.");
    libraries[library_name(file)] = version == file.npos ? "" : file.substr(version + 4);
    python = file.starts_with("libpython") ? path : python;
  }
  const std::string series = python_series(python.filename());
  const std::vector<fs::path> folders = folders_of(files, series);
  const Versions packages = packages_in(folders);
  Json program = {{"seen_running", seen.has_value()},
                  {"path", files.program.string()},
                  {"executable", files.executable.string()}};
  program["reasons"] = Json::object();
  const auto add = [&](const char* key, const std::string& value, const char* reason) {
    program[key] = text_or_null(value);
    if (value.empty()) {
      program["reasons"][key] = reason;
    }
  };
  add("python", series.empty() ? "" : python_version(python, series),
      "its executable is not a Python, and it maps none");
  add("torch", version_in(packages, "torch"), "no folder of packages that it uses has torch");
  // Wheels call it libcudart.so.12, their packages have the whole version.
  const std::string runtime = version_in(libraries, "libcudart");
  const std::string wheel = version_in(packages, "nvidia-cuda-runtime-cu" + runtime);
  add("cuda_runtime", wheel.empty() ? runtime : wheel,
      seen ? "it maps no libcudart: none, or a static one" : "it was not seen running");
  const EngineName engine = engine_of(argv);
  const std::string version = version_in(packages, engine.name);
  add("engine", engine.name, "its command line starts no engine that gpuwhy knows");
  add("engine_version", version.empty() ? engine.version : version,
      "no folder of packages that it uses has the engine");
  program["package_folders"] = Json::array();
  for (const fs::path& folder : folders) {
    program["package_folders"].push_back(folder.string());
  }
  program["packages"] = rows_of(packages);
  program["libraries"] = rows_of(libraries);
  return program;
}

Json source_json(const System& system, const std::vector<std::string>& argv) {
  constexpr std::size_t kMostWords = 12;  // a launcher, its options, the program
  std::error_code failure;
  for (std::size_t i = 0; i < std::min(argv.size(), kMostWords); ++i) {
    if (fs::is_regular_file(argv[i], failure)) {
      Json source = source_at(system, fs::absolute(argv[i], failure).parent_path());
      if (!source["folder"].is_null() ||
          source["reason"].get<std::string>().find("not a git repository") == std::string::npos) {
        return source;
      }
    }
  }
  return source_at(system, fs::current_path(failure));
}

}  // namespace gpuwhy
