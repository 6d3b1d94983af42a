// SPDX-License-Identifier: Apache-2.0
//
// The terminal. Text from files and tools must come here through printable(): an escape sequence in
// a kernel name must not reach the screen.
#include "cli/console.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"

namespace llmprof {
namespace {

const char* escape_of(Color color) {
  switch (color) {
    case Color::kPlain:
      return "";
    case Color::kGreen:
      return "\x1b[32m";
    case Color::kYellow:
      return "\x1b[33m";
    case Color::kRed:
      return "\x1b[31m";
    case Color::kDim:
      return "\x1b[2m";
  }
  return "";
}

std::size_t columns_of(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

void Console::set_color(const std::string& choice,
                        const std::map<std::string, std::string>& environment) {
  const auto is_set = [&](const char* name) {
    const auto found = environment.find(name);
    return found != environment.end() && !found->second.empty();
  };
  if (choice != "auto") {
    has_color_ = choice == "always";
  } else if (is_set("NO_COLOR")) {
    has_color_ = false;
  } else if (is_set("CLICOLOR_FORCE") && environment.at("CLICOLOR_FORCE") != "0") {
    has_color_ = true;
  } else {
    has_color_ = ::isatty(STDOUT_FILENO) != 0 && is_set("TERM") && environment.at("TERM") != "dumb";
  }
}

void Console::out(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void Console::err(std::string_view text) {
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

std::string Console::painted(Color color, std::string_view text) const {
  if (!has_color_ || color == Color::kPlain) {
    return std::string(text);
  }
  return fmt::format("{}{}\x1b[0m", escape_of(color), text);
}

std::size_t Console::width() const {
  return columns_of(STDOUT_FILENO);
}

std::size_t Console::error_width() const {
  return columns_of(STDERR_FILENO);
}

bool Console::flush() {
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

std::string shortened(const std::string& text, std::size_t width) {
  if (display_width(text) <= width) {
    return text;
  }
  std::string short_text;
  std::size_t taken = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts_character = (text[i] & 0xc0) != 0x80;
    if (starts_character && ++taken > width - 3) {
      break;
    }
    short_text += text[i];
  }
  return short_text + "...";
}

std::string table_text(const Table& table, std::size_t width) {
  constexpr std::size_t kGap = 2;
  constexpr std::size_t kLeastLast = 20;
  std::vector<std::size_t> widths;
  for (const std::string& heading : table.headings) {
    widths.push_back(display_width(heading));
  }
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  std::size_t before_last = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    before_last += widths[i] + kGap;
  }
  const std::size_t last = width > before_last + kLeastLast ? width - before_last : SIZE_MAX;
  std::string text;
  const auto add_row = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool is_last = i + 1 == row.size();
      line += is_last ? shortened(row[i], last) : row[i];
      line.append(is_last ? 0 : widths[i] - display_width(row[i]) + kGap, ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  add_row(table.headings);
  for (const auto& row : table.rows) {
    add_row(row);
  }
  return text;
}

}  // namespace llmprof
