// SPDX-License-Identifier: Apache-2.0
//
// Tables that are wider than the terminal.
#include <fmt/format.h>

#include "base/text.h"
#include "report/document/document.h"
#include "testing.h"

namespace gpuwhy {
namespace {

// A document with one table; each row has the same word in its second column.
Document wide_document(std::size_t num_numbers) {
  Document document;
  Section& section = document.sections.emplace_back();
  section.id = "wide";
  section.title = "Wide";
  ReportTable& table = section.tables.emplace_back();
  table.columns = {{"stage", "", CellFormat::kName}, {"what", "", CellFormat::kText}};
  for (std::size_t i = 0; i < num_numbers; ++i) {
    table.columns.push_back({fmt::format("column{}", i), "", CellFormat::kDuration});
  }
  table.columns.push_back({"verdict", "", CellFormat::kText});
  for (const char* stage : {"prefill", "decode"}) {
    ReportRow& row = table.rows.emplace_back();
    row.cells = {{stage, CellFormat::kName, ""}, {"same kernel", CellFormat::kText, ""}};
    for (std::size_t i = 0; i < num_numbers; ++i) {
      row.cells.push_back({static_cast<double>(1'000'000 * (i + 1)), CellFormat::kDuration, ""});
    }
    row.cells.push_back({"GPU mostly idle", CellFormat::kText, ""});
  }
  return document;
}

TEST(WideTable, AWordThatIsTheSameInAllRowsIsSaidOnce) {
  const std::string wide = terminal_text(wide_document(4), {120, false});
  EXPECT_THAT(wide, Not(HasSubstr("In all rows")));
  const std::string narrow = terminal_text(wide_document(4), {72, false});
  EXPECT_THAT(narrow, HasSubstr("  In all rows: what same kernel\n"));
  EXPECT_EQ(narrow.find("same kernel"), narrow.rfind("same kernel"));
}

TEST(WideTable, ColumnsThatDoNotFitFollowBelowTheirStages) {
  const std::string text = terminal_text(wide_document(9), {80, false});
  for (const std::string_view line : split(text, '\n')) {
    EXPECT_LE(display_width(line), 80U) << text;
  }
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_THAT(text, HasSubstr(fmt::format("column{}", i)));
  }
  EXPECT_THAT(text, HasSubstr("9.00 ms"));
  EXPECT_THAT(text, HasSubstr("GPU mostly idle"));
  EXPECT_NE(text.find("prefill"), text.rfind("prefill"));
}

}  // namespace
}  // namespace gpuwhy
