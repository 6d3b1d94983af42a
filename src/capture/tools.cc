// SPDX-License-Identifier: Apache-2.0
//
// Discovery of nsys and ncu, their versions and the options they support.
//
// Options, report names and defaults change between releases, and a wrong one results in exit code
// 0 and an empty result. So the tool itself is asked (`stats --help-reports`, `profile --help`,
// `--list-sets`), which takes some 200 ms once. Only what it does not answer is inferred from its
// version. Asking also covers versions that did not exist when this was written.
//
// How it fails: help texts are written for people. A release with another layout yields no options,
// and the result then says that it was inferred.
#include "capture/tools.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "capture/subprocess.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

// Differences between the two tools in how they are found.
struct ToolKind {
  const char* name;      // of the program
  const char* product;   // as NVIDIA calls it
  const char* variable;  // names the program outright
  const char* packages;  // Debian's
  // Directories of NVIDIA's installers; '*' stands for a version.
  std::array<const char*, 4> directories;
};

constexpr ToolKind kNsys = {"nsys",
                            "Nsight Systems",
                            "GPUWHY_NSYS",
                            "nsight-systems nsight-systems-target",
                            {"/usr/local/cuda/bin", "/opt/nvidia/nsight-systems/*/bin",
                             "/opt/nvidia/nsight-systems-cli/*/bin", "/usr/local/cuda-*/bin"}};
constexpr ToolKind kNcu = {"ncu",
                           "Nsight Compute",
                           "GPUWHY_NCU",
                           "nsight-compute nsight-compute-target",
                           {"/usr/local/cuda/bin", "/opt/nvidia/nsight-compute/*",
                            "/usr/local/cuda-*/bin", "/usr/local/cuda-*/nsight-compute-*"}};

bool is_executable(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

// Digits compare as numbers, so that 2024.10 comes after 2024.9.
bool is_older(const fs::path& a, const fs::path& b) {
  const std::string x = a.string();
  const std::string y = b.string();
  return ::strverscmp(x.c_str(), y.c_str()) < 0;
}

// Paths that match a pattern with '*' in its last components, newest version first.
std::vector<fs::path> expand(const System& system, std::string_view pattern) {
  std::vector<fs::path> found = {system.root};
  for (const fs::path& piece : fs::path(pattern).relative_path()) {
    const std::string name = piece.string();
    const std::size_t star = name.find('*');
    std::vector<fs::path> next;
    for (const fs::path& directory : found) {
      if (star == std::string::npos) {
        next.push_back(directory / name);
        continue;
      }
      std::error_code ignored;
      for (const auto& entry : fs::directory_iterator(directory, ignored)) {
        const std::string candidate = entry.path().filename().string();
        if (candidate.starts_with(name.substr(0, star)) && candidate.size() > star) {
          next.push_back(entry.path());
        }
      }
    }
    found = std::move(next);
  }
  std::ranges::sort(found, [](const auto& a, const auto& b) { return is_older(b, a); });
  return found;
}

std::string install_hint(const ToolKind& kind) {
  return fmt::format(
      "install {}: on Debian apt-get install {} (component non-free; tools/install-deps.sh nsight "
      "does "
      "it all), elsewhere from NVIDIA's site or the CUDA toolkit; or set {}=/path/to/{}",
      kind.product, kind.packages, kind.variable, kind.name);
}

// The user's choice, then PATH, then the installers' directories.
fs::path find_tool(const System& system, const ToolKind& kind) {
  if (const auto named = system.variable(kind.variable)) {
    if (!is_executable(*named)) {
      throw Error(
          ErrorKind::kEnvironment,
          fmt::format("{}={} is not a program", kind.variable, printable(*named)),
          fmt::format("give the path of the {} program, or unset {}", kind.name, kind.variable));
    }
    return *named;
  }
  if (const auto on_path = find_on_path(system, kind.name)) {
    return *on_path;
  }
  for (const char* pattern : kind.directories) {
    for (const fs::path& directory : expand(system, pattern)) {
      if (is_executable(directory / kind.name)) {
        return directory / kind.name;
      }
    }
  }
  throw Error(ErrorKind::kEnvironment, fmt::format("{} was not found", kind.name),
              install_hint(kind));
}

std::string ask(const System& system, const fs::path& tool, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), tool.string());
  Process question{std::move(arguments), system.environment};
  // `nsys stats --help-reports` imports every Python file of the current folder.
  question.directory = "/";
  const ProcessResult result = run_process(question);
  return result.timed_out ? "" : result.out + result.err;
}

ToolVersion ask_version(const System& system, const ToolKind& kind, const fs::path& path) {
  const std::string printed = ask(system, path, {"--version"});
  const auto version = parse_tool_version(printed);
  if (!version) {
    const std::string_view said = trim(printed);
    throw Error(ErrorKind::kEnvironment,
                fmt::format("{} does not print its version: {}", path.string(),
                            said.empty() ? "it prints nothing"
                                         : "it prints \"" + printable(said.substr(0, 80)) + "\""),
                install_hint(kind));
  }
  return *version;
}

// "--cuda-graph-trace" from help lines such as "\t-c, --capture-range=" and "  -k [ --kernel-name ]
// arg".
std::vector<std::string> options_in(std::string_view help) {
  std::set<std::string> options;
  for (const std::string_view line : split(help, '\n')) {
    std::string_view text = trim(line);
    // A short form may come first: "-c, " or "-k [ ".
    if (text.size() > 3 && text[0] == '-' && text[1] != '-') {
      const std::size_t next = text.find("--");
      text = next <= 5 ? text.substr(next) : std::string_view{};
    }
    if (!text.starts_with("--")) {
      continue;
    }
    const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-");
    // "--nvtx-domain-[include|exclude]" stands for two options; neither is needed.
    if (end > 2 && text[std::min(end, text.size()) - 1] != '-') {
      options.emplace(text.substr(0, end));
    }
  }
  return {options.begin(), options.end()};
}

// First words of indented lines such as "  gpukernsum[:base|:mangled] -- CUDA GPU Kernel Summary".
std::vector<std::string> reports_in(std::string_view help) {
  std::vector<std::string> reports;
  for (const std::string_view line : split(help, '\n')) {
    if (line.starts_with("  ") && line.find(" -- ") != std::string_view::npos) {
      const std::string_view text = trim(line);
      reports.emplace_back(text.substr(0, text.find_first_of("[: ")));
    }
  }
  return reports;
}

// The importer is in the host-linux-* folder next to the folder of the real nsys. The CUDA
// toolkit's nsys is a script that starts one elsewhere: in the toolkit, or where NVIDIA's package
// put it.
fs::path importer_of(const System& system, const NsysTool& nsys) {
  std::error_code ignored;
  const System whole;  // paths below are absolute already
  const std::string home = fs::canonical(nsys.path, ignored).parent_path().parent_path().string();
  std::vector<fs::path> folders = expand(whole, home + "/host-linux-*");
  if (nsys.is_wrapper) {
    for (const std::string& pattern :
         {home + "/nsight-systems-*/host-linux-*",
          system.at("/opt/nvidia/nsight-systems").string() + "/*/host-linux-*"}) {
      const auto more = expand(whole, pattern);
      folders.insert(folders.end(), more.begin(), more.end());
    }
  }
  for (const fs::path& folder : folders) {
    if (is_executable(folder / "QdstrmImporter")) {
      return folder / "QdstrmImporter";
    }
  }
  return {};
}

bool is_script(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 2> head{};
  file.read(head.data(), head.size());
  return file && head[0] == '#' && head[1] == '!';
}

// Rows of the table printed by `ncu --list-sets`. The one marked "yes" is the default.
void read_sets(std::string_view table, NcuTool& tool) {
  for (const std::string_view line : split(table, '\n')) {
    if (line.empty() || line[0] == ' ' || line[0] == '-' || line.starts_with("Identifier")) {
      continue;
    }
    const std::size_t end = line.find(' ');
    const bool is_enabled = line.find(" yes ") != std::string_view::npos;
    const bool is_row = is_enabled || line.find(" no ") != std::string_view::npos;
    if (end == std::string_view::npos || !is_row) {
      continue;
    }
    tool.sets.emplace_back(line.substr(0, end));
    if (is_enabled) {
      tool.default_set = tool.sets.back();
    }
  }
}

// "application-only" from the help line "--target-processes arg (=application-only)".
std::string default_in(std::string_view help, std::string_view option) {
  const std::size_t start = help.find(std::string(option) + " arg (=");
  if (start == std::string_view::npos) {
    return {};
  }
  const std::size_t open = help.find("(=", start) + 2;
  return std::string(help.substr(open, help.find(')', open) - open));
}

}  // namespace

std::string ToolVersion::text() const {
  return fmt::format("{}.{}.{}", year, release, patch);
}

bool Tool::has_option(std::string_view option) const {
  return std::binary_search(options.begin(), options.end(), option);
}

std::optional<ToolVersion> parse_tool_version(std::string_view printed) {
  constexpr std::string_view kDigits = "0123456789";
  // A version starts with a year: skips dates, paths and build numbers around it.
  for (std::size_t at = printed.find("20"); at != std::string_view::npos;
       at = printed.find("20", at + 1)) {
    const std::string_view rest = printed.substr(at, printed.find_first_of(" \t\r\n)", at) - at);
    const auto pieces = split(rest.substr(0, rest.find_first_not_of("0123456789.")), '.');
    if (pieces.size() < 2 || pieces[0].size() != 4 ||
        (at > 0 && kDigits.find(printed[at - 1]) != std::string_view::npos)) {
      continue;
    }
    std::array<int, 3> numbers{};
    bool is_version = true;
    for (std::size_t i = 0; i < std::min(pieces.size(), numbers.size()); ++i) {
      const auto [end, failure] =
          std::from_chars(pieces[i].data(), pieces[i].data() + pieces[i].size(), numbers[i]);
      is_version = is_version && failure == std::errc() && pieces[i].size() < 6;
    }
    if (is_version) {
      return ToolVersion{numbers[0], numbers[1], numbers[2], std::string(rest)};
    }
  }
  return std::nullopt;
}

std::optional<fs::path> find_on_path(const System& system, const std::string& name) {
  const std::string path = system.variable("PATH").value_or("");
  for (const std::string_view directory : split(path, ':')) {
    const fs::path candidate = fs::path(directory) / name;
    if (candidate.is_absolute() && is_executable(candidate)) {
      return candidate;
    }
  }
  return std::nullopt;
}

NsysTool ensure_nsys(const System& system) {
  NsysTool tool;
  tool.path = find_tool(system, kNsys);
  tool.version = ask_version(system, kNsys, tool.path);
  tool.options = options_in(ask(system, tool.path, {"profile", "--help"}));
  tool.is_wrapper = is_script(tool.path);
  tool.importer = importer_of(system, tool);
  tool.reports = reports_in(ask(system, tool.path, {"stats", "--help-reports"}));
  tool.reports_asked = !tool.reports.empty();
  const auto knows = [&](const char* report) {
    return std::find(tool.reports.begin(), tool.reports.end(), report) != tool.reports.end();
  };
  tool.has_old_report_names =
      tool.reports_asked ? knows("gpukernsum") : !tool.version.is_at_least(2023, 1);
  tool.kernel_summary_report = tool.has_old_report_names ? "gpukernsum" : "cuda_gpu_kern_sum";
  return tool;
}

NcuTool ensure_ncu(const System& system) {
  NcuTool tool;
  tool.path = find_tool(system, kNcu);
  tool.version = ask_version(system, kNcu, tool.path);
  const std::string help = ask(system, tool.path, {"--help"});
  tool.options = options_in(help);
  read_sets(ask(system, tool.path, {"--list-sets"}), tool);
  tool.default_target_processes = default_in(help, "--target-processes");
  tool.has_per_launch_config = help.find("per-launch-config") != std::string::npos;
  return tool;
}

}  // namespace gpuwhy
