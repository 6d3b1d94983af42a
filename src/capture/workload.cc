// SPDX-License-Identifier: Apache-2.0
//
// Command line and environment of the profiled program.
//
// Engines differ only in a few variables and flags, so a kind of program is data (conf/workload/).
// For another engine a user writes a file.
#include "capture/workload.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "capture/tools.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

// mpirun, its options, python, its options: no program comes after more words than this.
constexpr std::size_t kMostLauncherWords = 12;

// Checked before anything is captured, so that a typo costs no profiling run.
std::string find_program(const System& system, const std::string& name) {
  if (name.find('/') == std::string::npos) {
    if (const auto found = find_on_path(system, name)) {
      return found->string();
    }
    throw Error(ErrorKind::kUsage, fmt::format("there is no program '{}' on PATH", printable(name)),
                "give its path, as ./program");
  }
  std::error_code ignored;
  if (fs::is_directory(name, ignored)) {
    throw Error(ErrorKind::kUsage, fmt::format("{} is a directory", printable(name)));
  }
  if (!fs::is_regular_file(name, ignored)) {
    throw Error(ErrorKind::kUsage, fmt::format("there is no program {}", printable(name)));
  }
  if (::access(name.c_str(), X_OK) != 0) {
    throw Error(
        ErrorKind::kUsage, fmt::format("{} is not executable", printable(name)),
        fmt::format("chmod +x {0}, or put its interpreter in front: python {0}", printable(name)));
  }
  return name;
}

bool needs_quotes(const std::string& word) {
  return word.empty() || word.find_first_not_of(
                             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "_-+=./:,@%") != std::string::npos;
}

}  // namespace

std::vector<std::string> build_work_argv(const System& system, const WorkloadSettings& settings,
                                         const std::vector<std::string>& command) {
  if (command.empty()) {
    throw Error(ErrorKind::kUsage, "run: needs a command",
                "gpuwhy run [OVERRIDE...] -- PROGRAM [ARGUMENT...]");
  }
  std::vector<std::string> argv = command;
  argv[0] = find_program(system, command[0]);
  argv.insert(argv.end(), settings.arguments.begin(), settings.arguments.end());
  return argv;
}

std::map<std::string, std::string> work_environment(const System& system,
                                                    const WorkloadSettings& settings,
                                                    bool is_profiled,
                                                    std::vector<std::string>& notes) {
  std::map<std::string, std::string> environment = system.environment;
  environment.insert(settings.environment.begin(), settings.environment.end());
  if (is_profiled) {
    for (const std::string& name : settings.strip_environment) {
      if (environment.erase(name) > 0) {
        notes.push_back(fmt::format(
            "{} is not handed to the program: its own profiler and Nsight's cannot run at once",
            printable(name)));
      }
    }
  }
  return environment;
}

std::optional<std::size_t> position_of(const std::vector<std::string>& command,
                                       const std::vector<std::string>& words) {
  std::optional<std::size_t> position;
  for (std::size_t i = 0; i < std::min(command.size(), kMostLauncherWords); ++i) {
    const std::string name = fs::path(command[i]).filename().string();
    const bool is_module = i > 0 && command[i - 1] == "-m";
    // vllm.entrypoints.api_server is vllm, python3.11 is python.
    const std::string plain = is_module ? command[i].substr(0, command[i].find('.'))
                                        : name.substr(0, name.find_last_not_of("0123456789.") + 1);
    if (std::find(words.begin(), words.end(), plain) != words.end() ||
        std::find(words.begin(), words.end(), name) != words.end()) {
      position = i;
    }
  }
  return position;
}

std::string shell_text(const std::vector<std::string>& argv) {
  std::string text;
  for (const std::string& word : argv) {
    text += text.empty() ? "" : " ";
    if (!needs_quotes(word)) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char c : word) {
      text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    text += '\'';
  }
  return text;
}

std::vector<std::string> split_command(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool is_open = false;  // a word has begun
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_escape = c == '\\' && quote != '\'' && i + 1 < text.size();
    if (is_escape) {
      word += text[++i];
      is_open = true;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      is_open = true;
    } else if (std::string_view("|&;<>`$*").find(c) != std::string_view::npos) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("'{}' in '{}' is for a shell, and there is none", c, printable(text)),
                  "quote it, or give the line to a shell: \"sh -c '...'\"");
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (is_open) {
        words.push_back(std::exchange(word, {}));
      }
      is_open = false;
    } else {
      word += c;
      is_open = true;
    }
  }
  if (quote != 0) {
    throw Error(ErrorKind::kUsage, fmt::format("a quote is not closed in '{}'", printable(text)));
  }
  if (is_open) {
    words.push_back(std::move(word));
  }
  return words;
}

std::vector<std::string> own_command(const std::string& verb) {
  std::error_code failure;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failure);
  return {failure ? "gpuwhy" : self.string(), verb};
}

}  // namespace gpuwhy
