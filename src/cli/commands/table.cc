// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy table: one table of a recording, for people and for scripts.
//
// The list of tables is that of the library (api/tables.cc). For a person, a table that a section
// of the report shows is that section; others are shown by their columns, whose names end in their
// units. Scripts get all columns and all rows, under the same names in CSV, JSON and Arrow.
#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "analysis/ranges.h"
#include "api/tables.h"
#include "base/csv.h"
#include "base/error.h"
#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/recording_options.h"
#include "report/sections.h"

namespace gpuwhy {
namespace {

struct TableOptions {
  std::vector<std::string> words;  // NAME and FILE..., or one of both
  std::string stage;
  RowLimit top{20};
  std::string format = "text";
  bool is_json = false;
  JsonPages pages;
  RecordingOptions recording;
  ModelChoice model;
};

template <typename T>
T element(const ArrowColumn& column, std::size_t buffer, std::size_t row) {
  return static_cast<const T*>(column.buffers[buffer])[row];
}

bool bit(const ArrowColumn& column, std::size_t buffer, std::size_t row) {
  return (element<std::uint8_t>(column, buffer, row / 8) >> (row % 8) & 1) != 0;
}

// The value of a row; null where it has none. A struct is an object, a list an array.
Json value_at(const ArrowColumn& column, std::size_t row) {
  if (column.buffers[0] != nullptr && !bit(column, 0, row)) {
    return nullptr;
  }
  const std::string& format = column.format;
  if (format == "+s") {
    Json object = Json::object();
    for (const ArrowColumn& child : column.children) {
      object[child.name] = value_at(child, row);
    }
    return object;
  }
  if (format == "u" || format == "+l") {
    const auto begin = static_cast<std::size_t>(element<std::int32_t>(column, 1, row));
    const auto end = static_cast<std::size_t>(element<std::int32_t>(column, 1, row + 1));
    if (format == "u") {
      return end == begin
                 ? std::string()
                 : std::string(static_cast<const char*>(column.buffers[2]) + begin, end - begin);
    }
    Json list = Json::array();
    for (std::size_t i = begin; i < end; ++i) {
      list.push_back(value_at(column.children[0], i));
    }
    return list;
  }
  if (column.dictionary != nullptr) {
    return value_at(*column.dictionary,
                    static_cast<std::size_t>(element<std::int32_t>(column, 1, row)));
  }
  switch (format[0]) {
    case 'b':
      return bit(column, 1, row);
    case 'g':
      return element<double>(column, 1, row);
    case 'i':
      return element<std::int32_t>(column, 1, row);
    case 'I':
      return element<std::uint32_t>(column, 1, row);
    default:
      return element<std::int64_t>(column, 1, row);
  }
}

// A column that holds no other: a field of a struct has the name of both.
struct PlainColumn {
  std::string name;
  const ArrowColumn* column;
};

// Lists are in JSON alone.
void add_plain_columns(const ArrowColumn& table, const std::string& before,
                       std::vector<PlainColumn>& columns) {
  for (const ArrowColumn& child : table.children) {
    if (child.format == "+s") {
      add_plain_columns(child, before + child.name + ".", columns);
    } else if (child.format != "+l") {
      columns.push_back({before + child.name, &child});
    }
  }
}

std::vector<PlainColumn> plain_columns(const ArrowColumn& table) {
  std::vector<PlainColumn> columns;
  add_plain_columns(table, "", columns);
  return columns;
}

// The rows of one stage, where the table says the stage of each; empty: of all.
std::vector<std::size_t> rows_of(const ArrowColumn& table, const std::string& stage) {
  const auto stages = std::ranges::find(table.children, "stage", &ArrowColumn::name);
  const bool has_all = stage.empty() || stages == table.children.end();
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < static_cast<std::size_t>(table.length); ++row) {
    if (has_all || value_at(*stages, row) == stage) {
      rows.push_back(row);
    }
  }
  return rows;
}

CellFormat unit_of(const PlainColumn& one) {
  constexpr std::pair<std::string_view, CellFormat> kEndings[] = {
      {"bytes_per_s", CellFormat::kBytesPerSecond},
      {"_fraction", CellFormat::kFraction},
      {"flops_per_s", CellFormat::kTeraflops},
      {"_bytes", CellFormat::kBytes},
      {"flops", CellFormat::kFlops},
      {"_ns", CellFormat::kDuration}};
  const std::string& format = one.column->format;
  if (format == "u" || format == "b" || one.column->dictionary != nullptr) {
    return format == "b" ? CellFormat::kText : CellFormat::kName;
  }
  const auto* const found = std::ranges::find_if(
      kEndings, [&](const auto& ending) { return one.name.ends_with(ending.first); });
  return found != std::end(kEndings) ? found->second
         : format == "g"             ? CellFormat::kRate
                                     : CellFormat::kCount;
}

CellValue cell_value(const Json& value) {
  return value.is_null()             ? CellValue()
         : value.is_number_integer() ? CellValue(value.get<std::int64_t>())
         : value.is_number()         ? CellValue(value.get<double>())
         : value.is_boolean()        ? CellValue(std::string(value.get<bool>() ? "yes" : "no"))
                                     : CellValue(value.get<std::string>());
}

Document columns_document(const TableInfo& info, const ArrowColumn& table,
                          std::vector<std::size_t> rows, std::size_t most) {
  Section section;
  section.id = info.name;
  section.title = info.summary;
  section.paragraphs.push_back(
      fmt::format("{} of {} rows", std::min(most, rows.size()), rows.size()));
  rows.resize(std::min(most, rows.size()));
  ReportTable& shown = section.tables.emplace_back();
  const std::vector<PlainColumn> columns = plain_columns(table);
  for (const PlainColumn& one : columns) {
    std::string title = one.name;
    for (const std::string_view ending : {"_ns", "_fraction", "_bytes"}) {
      title.resize(title.size() - (title.ends_with(ending) ? ending.size() : 0));
    }
    std::ranges::replace(title, '_', ' ');
    shown.columns.push_back({title, one.name, unit_of(one)});
  }
  for (const std::size_t row : rows) {
    ReportRow& made = shown.rows.emplace_back();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      made.cells.push_back(
          {cell_value(value_at(*columns[i].column, row)), shown.columns[i].unit, ""});
    }
  }
  return {"", {std::move(section)}};
}

void print_csv(const ArrowColumn& table, const std::vector<std::size_t>& rows, Console& console) {
  const std::vector<PlainColumn> columns = plain_columns(table);
  std::string line;
  for (const PlainColumn& one : columns) {
    line += (line.empty() ? "" : ",") + one.name;
  }
  console.out(line + "\n");
  for (const std::size_t row : rows) {
    line.clear();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Json value = value_at(*columns[i].column, row);
      line += i == 0 ? "" : ",";
      line += value.is_null()     ? ""
              : value.is_string() ? csv_cell(value.get_ref<const std::string&>())
                                  : to_json_line(value);
    }
    console.out(line + "\n");
  }
}

std::string json_text(const TableInfo& info, const TableResult& made,
                      const std::vector<std::size_t>& rows) {
  Json document = json_document("table", 1);
  document["table"] = info.name;
  document["reason"] = made.reason.empty() ? Json(nullptr) : Json(made.reason);
  document["rows"] = Json::array();
  for (const std::size_t row : rows) {
    document["rows"].push_back(value_at(made.table, row));
  }
  return to_json_text(document);
}

// A part of the recording by time has all its stages: `stage` is empty then.
std::shared_ptr<const OpenRecording> read_part(TableOptions& options,
                                               const std::vector<std::string>& files,
                                               Context& context) {
  check_model_options(options.model);
  options.model.setup.num_gpus = options.recording.parallelism.ranks_per_model();
  auto recording = std::make_shared<OpenRecording>(
      read_recording(files, options.recording, options.model, context.system));
  Analysis& analysis = recording->profile.analysis;
  const auto phase = options.recording.window.is_empty()
                         ? window_of_phase(row_name(options.stage), analysis)
                         : std::nullopt;
  if (phase) {
    options.recording.window = *phase;
    options.stage.clear();
    *recording = read_recording(files, options.recording, options.model, context.system);
  } else if (!options.stage.empty()) {
    keep_stage(row_name(options.stage), analysis);
  }
  say_how_read(recording->profile, context.console);
  analysis.ranges = analysis.all_ranges;  // a report has the first hundred
  return recording;
}

// The list is a table too: the names, and how many rows each has where there is a recording.
TableResult list_tables(const std::shared_ptr<const OpenRecording>& recording) {
  const std::span<const TableInfo> all = all_tables();
  ArrowColumn list = new_column("", "+s", all.size());
  list.buffers = {nullptr};
  const auto add_texts = [&](const char* name, const char* TableInfo::*text) {
    list.children.push_back(text_column(
        name, all.size(), false, [&](std::size_t i) { return std::string_view(all[i].*text); }));
  };
  add_texts("table", &TableInfo::name);
  if (recording != nullptr) {
    std::vector<std::int64_t> lengths;
    ArrowBits present(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const TableResult made = all[i].make(recording);
      lengths.push_back(made.table.length);
      if (made.reason.empty()) {
        present.set(i);
      }
    }
    ArrowColumn& rows = list.children.emplace_back(new_column("rows", "l", all.size()));
    add_validity(std::move(present), rows);
    rows.add(std::move(lengths));
  }
  add_texts("what it has", &TableInfo::summary);
  return {std::move(list), {}, {}};
}

constexpr TableInfo kList = {"tables", "Tables of a recording", nullptr, list_tables};

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  for (const TableInfo& table : all_tables()) {
    names.emplace_back(table.name);
  }
  return names;
}

// The table that the first word names; the list if that is a file. Throws kUsage if it is neither.
const TableInfo& named_table(const std::vector<std::string>& words) {
  const std::span<const TableInfo> tables = all_tables();
  const auto found = std::ranges::find(tables, words.front(), &TableInfo::name);
  if (found != tables.end()) {
    return *found;
  }
  std::error_code ignored;
  if (words.size() == 1 && std::filesystem::exists(words.front(), ignored)) {
    return kList;
  }
  const auto meant = nearest(words.front(), table_names());
  throw Error(ErrorKind::kUsage,
              fmt::format("table: there is no table '{}'", printable(words.front())),
              meant ? fmt::format("did you mean '{}'?", *meant) : "gpuwhy table lists them");
}

// For a person: a section of the report where one shows the table.
Document shown_table(const TableInfo& info, const std::shared_ptr<const OpenRecording>& recording,
                     const TableOptions& options) {
  if (info.section == nullptr) {
    const TableResult made = info.make(recording);
    if (!made.reason.empty()) {
      throw Error(ErrorKind::kInput, made.reason, made.hint);
    }
    return columns_document(info, made.table, rows_of(made.table, options.stage), options.top.rows);
  }
  SectionOptions shown;
  shown.set_top(options.top.rows);
  shown.is_terminal = options.format == "text";
  shown.has_all_parts = true;
  Results metrics = recording->profile.analysis;
  metrics.ranges = fold_numbered(metrics.ranges);  // numbered steps and layers are one row
  return section_document(metrics, {info.section}, shown);
}

// For a script.
void print_rows(const TableInfo& info, const std::shared_ptr<const OpenRecording>& recording,
                const TableOptions& options, Console& console) {
  const TableResult made = info.make(recording);
  std::vector<std::size_t> rows = rows_of(made.table, options.stage);
  rows.resize(std::min(options.top.is_given ? options.top.rows : SIZE_MAX, rows.size()));
  if (options.is_json) {
    console.out(paged(json_text(info, made, rows), options.pages));
  } else if (made.reason.empty()) {
    print_csv(made.table, rows, console);
  } else {
    throw Error(ErrorKind::kInput, made.reason, made.hint);
  }
}

int run_table(const TableOptions& given, Context& context) {
  TableOptions options = given;
  options.is_json = options.is_json || options.format == "json";
  check_pages(options.pages, options.is_json);
  const TableInfo& info = options.words.empty() ? kList : named_table(options.words);
  const bool is_list = &info == &kList;
  const std::vector<std::string> files(options.words.begin() + (is_list ? 0 : 1),
                                       options.words.end());
  if (!is_list && files.empty()) {
    throw Error(ErrorKind::kUsage, fmt::format("table {}: needs a recording", info.name),
                fmt::format("gpuwhy table {} FILE", info.name));
  }
  options.top.rows = is_list && !options.top.is_given ? SIZE_MAX : options.top.rows;
  const auto recording = files.empty() ? nullptr : read_part(options, files, context);
  if (options.is_json || options.format == "csv") {
    print_rows(info, recording, options, context.console);
  } else {
    const Document document = shown_table(info, recording, options);
    context.console.out(options.format == "md" ? markdown_text(document)
                                               : terminal_text(document, context.console.form()));
  }
  return kExitOk;
}

}  // namespace

Command table_command() {
  auto options = std::make_shared<TableOptions>();
  Command command;
  command.name = "table";
  command.summary = "Print one table of a recording: kernels, layers, ranges, steps, ...";
  command.options = {
      {"TABLE",
       "",
       "Name of a table, then the recording (several: ranks of one job); without a name: the list",
       &options->words,
       {},
       table_names},
      {"--stage", "NAME", "Only rows of this stage; also startup, steady or ending",
       &options->stage},
      {"--top", "N", "Rows to print, or all; csv and json have all if it is not given",
       &options->top},
      one_of({"text", "md", "csv", "json"},
             {"--format", "FORMAT", "text, md, csv or json; csv and json have all columns",
              &options->format}),
      json_option(options->is_json),
      ncu_option(options->recording.ncu),
  };
  add_page_options(command, options->pages);
  add_model_options(command, options->model, options->recording);
  add_request_options(command, options->recording);
  add_recording_options(command, options->recording);
  command.examples =
      "  gpuwhy table run.sqlite\n"
      "  gpuwhy table kernels run.sqlite --stage decode\n"
      "  gpuwhy table layers run.sqlite --model llama_3_1_8b\n"
      "  gpuwhy table launches run.sqlite --format csv > launches.csv\n";
  command.run = [options](Context& context) { return run_table(*options, context); };
  return command;
}

}  // namespace gpuwhy
