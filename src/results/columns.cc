// SPDX-License-Identifier: Apache-2.0
//
// CSV and JSON of columns, and a choice of them.
#include "results/columns.h"

#include <unordered_map>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/json.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

void add_without_lists(const std::string& before, std::vector<ResultColumn> columns,
                       std::vector<ResultColumn>& into) {
  for (ResultColumn& column : columns) {
    const std::string name = before + column.name;
    if (column.type == ColumnType::kStruct) {
      add_without_lists(name + ".", std::move(column.children), into);
    } else if (column.type != ColumnType::kList) {
      column.name = name;
      into.push_back(std::move(column));
    }
  }
}

// Writes values of one column: each text of a few only once.
class CellWriter {
 public:
  using TextForm = std::string (*)(std::string_view);

  CellWriter(const ResultColumn& column, TextForm form) : column_(column), form_(form) {
    for (const ResultColumn& child : column.children) {
      children_.emplace_back(child, form);
    }
  }

  // Whether there is a value, which is added then.
  bool add_plain(std::size_t row, std::string& out) {
    const auto value = column_.value(row);
    if (!value) {
      return false;
    }
    switch (column_.type) {
      case ColumnType::kFlag:
        out += *value != 0 ? "true" : "false";
        break;
      case ColumnType::kReal:
        out += json_number(std::bit_cast<double>(*value));
        break;
      case ColumnType::kText:
        out += form_(valid_text(column_.text(*value)));
        break;
      case ColumnType::kName: {
        const auto [known, is_new] = names_.try_emplace(*value);
        if (is_new) {
          known->second = form_(valid_text(column_.text(*value)));
        }
        out += known->second;
        break;
      }
      default:
        out += fmt::format_int(*value).str();
    }
    return true;
  }

  void add_json(std::size_t row, std::size_t indent, std::string& out) {
    if (column_.type != ColumnType::kList && column_.type != ColumnType::kStruct) {
      out += add_plain(row, out) ? "" : "null";
    } else if (!column_.value(row)) {
      out += "null";
    } else if (column_.type == ColumnType::kStruct) {
      add_object(children_, row, indent, out);
    } else {
      const auto begin = static_cast<std::size_t>(column_.offsets[row]);
      const auto end = static_cast<std::size_t>(column_.offsets[row + 1]);
      add_list(end - begin, indent, out,
               [&](std::size_t i) { children_.front().add_json(begin + i, indent + 2, out); });
    }
  }

  static void add_object(std::vector<CellWriter>& fields, std::size_t row, std::size_t indent,
                         std::string& out) {
    out += "{";
    for (CellWriter& field : fields) {
      out += &field == fields.data() ? "\n" : ",\n";
      out.append(indent + 2, ' ').append(json_string(field.column_.name)).append(": ");
      field.add_json(row, indent + 2, out);
    }
    out.append("\n").append(indent, ' ').append("}");
  }

  template <typename AddItem>
  static void add_list(std::size_t size, std::size_t indent, std::string& out, AddItem&& add_item) {
    out += "[";
    for (std::size_t i = 0; i < size; ++i) {
      out.append(i == 0 ? "\n" : ",\n").append(indent + 2, ' ');
      add_item(i);
    }
    if (size > 0) {
      out.append("\n").append(indent, ' ');
    }
    out += "]";
  }

 private:
  const ResultColumn& column_;
  TextForm form_;
  std::vector<CellWriter> children_;
  std::unordered_map<std::int64_t, std::string> names_;
};

std::vector<CellWriter> writers_of(const std::vector<ResultColumn>& columns,
                                   CellWriter::TextForm form) {
  std::vector<CellWriter> writers;
  for (const ResultColumn& column : columns) {
    writers.emplace_back(column, form);
  }
  return writers;
}

}  // namespace

std::string json_string(std::string_view text) {
  return to_json_line(text);
}

std::string valid_text(std::string_view text) {
  std::string valid;
  for (std::size_t bad = find_not_utf8(text); bad != std::string_view::npos;
       bad = find_not_utf8(text)) {
    valid.append(text.substr(0, bad)).append("\xEF\xBF\xBD");
    text.remove_prefix(bad + 1);
  }
  return valid.append(text);
}

std::vector<ResultColumn> pick(std::vector<ResultColumn> columns,
                               std::initializer_list<std::string_view> names) {
  std::vector<ResultColumn> picked;
  for (const std::string_view name : names) {
    picked.push_back(std::move(*std::ranges::find(columns, name, &ResultColumn::name)));
  }
  return picked;
}

std::vector<ResultColumn> without_lists(std::vector<ResultColumn> columns) {
  std::vector<ResultColumn> plain;
  add_without_lists("", std::move(columns), plain);
  return plain;
}

ResultColumn without_empty(ResultColumn column) {
  column.is_optional = true;
  column.value = [value = column.value, text = column.text](std::size_t row) {
    const auto key = value(row);
    return key && text(*key).empty() ? std::nullopt : key;
  };
  return column;
}

void write_csv(const std::vector<ResultColumn>& columns, const std::vector<std::size_t>& rows,
               const std::function<void(const std::string&)>& put) {
  std::vector<CellWriter> writers = writers_of(columns, csv_cell);
  std::string line;
  for (const ResultColumn& column : columns) {
    line.append(line.empty() ? "" : ",").append(csv_cell(column.name));
  }
  put(line + "\n");
  for (const std::size_t row : rows) {
    line.clear();
    for (CellWriter& writer : writers) {
      line += &writer == writers.data() ? "" : ",";
      writer.add_plain(row, line);
    }
    put(line + "\n");
  }
}

std::string json_of_columns(const std::vector<ResultColumn>& columns,
                            const std::vector<std::size_t>& rows, std::size_t indent) {
  std::vector<CellWriter> writers = writers_of(columns, json_string);
  std::string text;
  CellWriter::add_list(rows.size(), indent, text, [&](std::size_t i) {
    CellWriter::add_object(writers, rows[i], indent + 2, text);
  });
  return text;
}

}  // namespace gpuwhy
