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

#include "base/parse_number.h"
#include "base/text.h"

namespace gpuwhy {
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

void Console::configure(const std::string& choice,
                        const std::map<std::string, std::string>& environment) {
  if (const auto columns = environment.find("COLUMNS"); columns != environment.end()) {
    const std::optional<std::int64_t> number = parse_whole(columns->second);
    columns_ = number && *number > 0 && *number <= 10'000 ? static_cast<std::size_t>(*number) : 0;
  }
  const auto is_set = [&](const char* name) {
    const auto found = environment.find(name);
    return found != environment.end() && !found->second.empty();
  };
  const auto may_color = [&](int descriptor) {
    if (choice != "auto") {
      return choice == "always";
    }
    if (is_set("NO_COLOR")) {
      return false;
    }
    if (is_set("CLICOLOR_FORCE") && environment.at("CLICOLOR_FORCE") != "0") {
      return true;
    }
    return ::isatty(descriptor) != 0 && is_set("TERM") && environment.at("TERM") != "dumb";
  };
  has_color_ = may_color(STDOUT_FILENO);
  has_error_color_ = may_color(STDERR_FILENO);
}

bool Console::has_error_terminal() {
  return columns_of(STDERR_FILENO) > 0;
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
  return columns_ > 0 ? columns_ : columns_of(STDOUT_FILENO);
}

std::size_t Console::error_width() const {
  return columns_ > 0 ? columns_ : columns_of(STDERR_FILENO);
}

bool Console::flush() {
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kLeastLast = 20;

std::vector<std::size_t> widths_of(const Table& table) {
  std::vector<std::size_t> widths;
  for (const std::string& heading : table.headings) {
    widths.push_back(display_width(heading));
  }
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  return widths;
}

bool fits(const Table& table, std::size_t width) {
  const std::vector<std::size_t> widths = widths_of(table);
  std::size_t sum = std::min(widths.back(), kLeastLast);
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    sum += widths[i] + kGap;
  }
  return sum < width;
}

void drop_column(const std::string& heading, Table& table) {
  const auto found = std::ranges::find(table.headings, heading);
  if (found == table.headings.end()) {
    return;
  }
  const std::ptrdiff_t place = found - table.headings.begin();
  table.headings.erase(found);
  for (auto& row : table.rows) {
    row.erase(row.begin() + place);
  }
}

}  // namespace

std::string table_text(const Table& whole, std::size_t width) {
  Table table = whole;
  std::string left_out;
  for (const std::string& heading : whole.optional) {
    if (width > 0 && !fits(table, width)) {
      drop_column(heading, table);
      left_out += (left_out.empty() ? "" : ", ") + heading;
    }
  }
  const std::vector<std::size_t> widths = widths_of(table);
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
  return left_out.empty() ? text : text + fmt::format("Left out at this width: {}.\n", left_out);
}

}  // namespace gpuwhy
