// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "report/document/document.h"

namespace gpuwhy {

enum class Color { kPlain, kGreen, kYellow, kRed, kDim };

// Where results (standard output) and messages (standard error) go.
class Console {
 public:
  // `choice` is auto, always or never. Auto: NO_COLOR wins, then CLICOLOR_FORCE, then whether a
  // terminal that can show colour is there. Sixteen colours only: every terminal has them, and
  // users chose what they look like.
  //
  // COLUMNS, where it is exported, is the width in place of the terminal's.
  void configure(const std::string& choice, const std::map<std::string, std::string>& environment);

  void out(std::string_view text);
  void err(std::string_view text);

  // For standard output; plain when it has no colour. Colour never carries meaning alone.
  std::string painted(Color color, std::string_view text) const;

  // Columns of the terminal on standard output, or 0 when there is none: then nothing is wrapped or
  // cut.
  std::size_t width() const;

  // The same on standard error.
  std::size_t error_width() const;

  // Whether somebody watches standard error. COLUMNS alone does not make a log file a terminal.
  static bool has_error_terminal();

  // How documents are shown on standard output and standard error.
  TerminalForm form() const { return {width(), has_color_}; }
  TerminalForm error_form() const { return {error_width(), has_error_color_}; }

  // Pushes everything out. False when some of it could not be written.
  bool flush();

 private:
  bool has_color_ = false;
  bool has_error_color_ = false;
  std::size_t columns_ = 0;  // that the user asked for; 0: those of the terminal
};

// Rows under headings, columns aligned, two blanks apart. The last column is cut to the terminal's
// width. Where that is not enough, columns that may be left out are, and a line names them.
struct Table {
  std::vector<std::string> headings;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> optional = {};  // headings, the least important first
};
std::string table_text(const Table& table, std::size_t width);

}  // namespace gpuwhy
