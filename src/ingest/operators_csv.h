// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwhy {

// A table of operators written by the program itself; docs/formats.md describes the columns.
struct OperatorTable {
  struct Stage {
    std::string name;
    std::int64_t calls = 0;     // forward passes
    std::int64_t total_ns = 0;  // of them all
  };
  struct Row {
    std::string stage;
    std::string op;     // "MUL_MAT"
    std::string name;   // what it works on, as "ffn_up"; may be empty
    std::string layer;  // "3"; empty: of none
    std::int64_t calls = 0;
    std::int64_t total_ns = 0;
    std::optional<std::int64_t> flops;
    std::optional<std::int64_t> bytes;
  };
  std::vector<Stage> stages;
  std::vector<Row> rows;
  std::int64_t num_bad_rows = 0;  // left out
};

// Throws kInput if it is not such a table.
OperatorTable parse_operators_csv(std::string_view text);
OperatorTable load_operators_csv(const std::filesystem::path& path);

}  // namespace gpuwhy
