// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy completion: scripts that complete commands, options and configuration keys, made from the
// command table.
//
// All three shells get the same idea: walk the words typed so far down the command tree, then offer
// what the table holds at that place. The words are written into the script, so completing starts
// no process. A word that ends in
// '=' wants its value next and gets no blank behind it.
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/exit_code.h"
#include "cli/command.h"

namespace gpuwhy {
namespace {

// One place in the command tree and what may be typed there.
struct Place {
  std::string path;  // "", "list", "list config"
  std::vector<std::string> words;
};

std::vector<std::string> words_of(const std::vector<Option>& options) {
  std::vector<std::string> words;
  for (const Option& option : options) {
    if (option.is_positional()) {
      words.insert(words.end(), option.choices.begin(), option.choices.end());
      const auto likely =
          option.suggestions == nullptr ? std::vector<std::string>{} : option.suggestions();
      words.insert(words.end(), likely.begin(), likely.end());
    } else if (option.group != OptionGroup::kHidden) {
      words.push_back(option.long_name());
    }
  }
  return words;
}

void add_places(const Command& command, const std::string& path, std::vector<Place>& places) {
  Place place{path, words_of(command.options)};
  for (const Command& sub : command.subcommands) {
    if (!sub.is_hidden) {
      place.words.push_back(sub.name);
    }
  }
  place.words.emplace_back("--help");
  places.push_back(place);
  for (const Command& sub : command.subcommands) {
    add_places(sub, path.empty() ? sub.name : path + " " + sub.name, places);
  }
}

std::vector<Place> all_places() {
  Command root;
  root.subcommands = all_commands();
  std::string color;
  root.options = {{"--version", "", "", &color}, {"--color", "", "", &color}};
  std::vector<Place> places;
  add_places(root, "", places);
  return places;
}

// `case` lines shared by bash and zsh, whose case statements are the same.
std::string descend_cases(const std::vector<Place>& places) {
  std::string cases;
  for (const Place& place : places) {
    if (!place.path.empty()) {
      cases += fmt::format("{}'{}'", cases.empty() ? "" : "|", place.path);
    }
  }
  return cases;
}

std::string word_cases(const std::vector<Place>& places) {
  std::string cases;
  for (const Place& place : places) {
    cases += fmt::format("    '{}') offers='{}' ;;\n", place.path, fmt::join(place.words, " "));
  }
  return cases;
}

std::string bash_script(const std::vector<Place>& places) {
  return fmt::format(R"(# gpuwhy completion for bash: source <(gpuwhy completion bash)
_gpuwhy() {{
  local line=${{COMP_LINE:0:COMP_POINT}} current='' place='' word offers
  local -a typed
  read -ra typed <<<"$line"
  if [[ $line != *[[:space:]] ]]; then
    current=${{typed[-1]}}
    unset 'typed[-1]'
  fi
  for word in "${{typed[@]:1}}"; do
    case "${{place:+$place }}$word" in
      {}) place="${{place:+$place }}$word" ;;
    esac
  done
  case "$place" in
{}  esac
  if [[ ${{typed[-1]}} == --color ]]; then
    offers='auto always never'
  fi
  COMPREPLY=($(compgen -W "$offers" -- "$current"))
  if [[ ${{#COMPREPLY[@]}} -eq 1 && ${{COMPREPLY[0]}} == *= ]]; then
    compopt -o nospace
  fi
  # bash takes '=' for the end of a word: what stands before it must not be repeated.
  if [[ $current == *=* && $COMP_WORDBREAKS == *=* ]]; then
    COMPREPLY=("${{COMPREPLY[@]#"${{current%=*}}="}}")
  fi
}}
complete -o default -F _gpuwhy gpuwhy
)",
                     descend_cases(places), word_cases(places));
}

std::string zsh_script(const std::vector<Place>& places) {
  return fmt::format(R"(#compdef gpuwhy
# gpuwhy completion for zsh: save as _gpuwhy in a directory of $fpath
_gpuwhy() {{
  local place='' word offers
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    case "${{place:+$place }}$word" in
      {}) place="${{place:+$place }}$word" ;;
    esac
  done
  case "$place" in
{}  esac
  if [[ ${{words[CURRENT-1]}} == --color ]]; then
    offers='auto always never'
  fi
  local -a plain open
  plain=(${{${{=offers}}:#*=}})
  open=(${{(M)${{=offers}}:#*=}})
  compadd -a plain
  compadd -S '' -a open
  _files
}}
if [[ $funcstack[1] == _gpuwhy ]]; then
  _gpuwhy "$@"
else
  compdef _gpuwhy gpuwhy
fi
)",
                     descend_cases(places), word_cases(places));
}

std::string fish_script(const std::vector<Place>& places) {
  std::string script =
      R"(# gpuwhy completion for fish: save as ~/.config/fish/completions/gpuwhy.fish
function __gpuwhy_place
    set -l place
    for word in (commandline -opc)[2..-1]
        set -l next (string join ' ' $place $word)
        if contains -- "$next" )";
  for (const Place& place : places) {
    script += place.path.empty() ? "" : fmt::format("'{}' ", place.path);
  }
  script += R"(
            set place $next
        end
    end
    string join ' ' $place
end
)";
  for (const Place& place : places) {
    script += fmt::format("complete -c gpuwhy -n 'test \"$(__gpuwhy_place)\" = \"{}\"' -a '{}'\n",
                          place.path, fmt::join(place.words, " "));
  }
  return script;
}

struct Shell {
  const char* name;
  std::string (*script)(const std::vector<Place>&);
};

constexpr Shell kShells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

}  // namespace

Command completion_command() {
  auto shell = std::make_shared<std::string>();
  Command command;
  command.name = "completion";
  command.summary = "Print a completion script for bash, zsh or fish";
  Option which{"SHELL", "", "One of: bash, zsh, fish", shell.get()};
  for (const Shell& known : kShells) {
    which.choices.emplace_back(known.name);
  }
  which.is_required = true;
  command.options = {which};
  command.examples = "  source <(gpuwhy completion bash)\n";
  command.run = [shell](Context& context) -> int {
    for (const Shell& known : kShells) {
      if (*shell == known.name) {
        context.console.out(known.script(all_places()));
      }
    }
    return kExitOk;
  };
  return command;
}

}  // namespace gpuwhy
