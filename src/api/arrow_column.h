// SPDX-License-Identifier: Apache-2.0
//
// A column in memory as Arrow lays it out, or a table: a column of structs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gpuwhy/c.h>

#include "base/error.h"

namespace gpuwhy {

// Copies share their buffers, which nobody writes to once they are part of a column.
struct ArrowColumn {
  std::string name;
  std::string format;  // of the Arrow C data interface: "l", "u", "+s"
  std::int64_t length = 0;
  std::int64_t num_nulls = 0;
  bool is_nullable = false;
  std::vector<const void*> buffers;  // the first says which rows are there; null: all
  std::vector<std::shared_ptr<const void>> owners;  // of the buffers
  std::vector<ArrowColumn> children;
  std::shared_ptr<const ArrowColumn>
      dictionary;  // the texts that the numbers of a column stand for

  // Adds a buffer that is kept as it is.
  template <typename T>
  void add(std::vector<T> values) {
    const auto owner = std::make_shared<const std::vector<T>>(std::move(values));
    buffers.push_back(owner->data());
    owners.push_back(owner);
  }
};

// Which rows of a column are there, as a bit each.
class ArrowBits {
 public:
  explicit ArrowBits(std::size_t length) : bits_((length + 7) / 8) {}
  void set(std::size_t row) {
    bits_[row / 8] = static_cast<std::uint8_t>(bits_[row / 8] | (1U << (row % 8)));
    ++num_set_;
  }
  std::size_t num_set() const { return num_set_; }
  std::vector<std::uint8_t> take() { return std::move(bits_); }

 private:
  std::vector<std::uint8_t> bits_;
  std::size_t num_set_ = 0;
};

// A column without buffers yet.
ArrowColumn new_column(std::string name, std::string format, std::size_t length);

// Adds the first buffer of a column: which of its rows are there.
void add_validity(ArrowBits present, ArrowColumn& column);

// Texts; `text(row)` is a view, whose data is null where the row has none. Bytes that are not UTF-8
// become U+FFFD, as in metrics.json. Throws kInput beyond 2 GiB.
ArrowColumn text_column(std::string name, std::size_t length, bool is_nullable,
                        const std::function<std::string_view(std::size_t)>& text);

// Numbers for texts, without a copy of the numbers where they are owned by `owner`. A number below
// 0 is a row without a text.
ArrowColumn dictionary_column(std::string name, std::span<const std::int32_t> indexes,
                              std::shared_ptr<const void> owner,
                              const std::vector<std::string>& texts);
ArrowColumn dictionary_column(std::string name, std::vector<std::int32_t> indexes,
                              const std::vector<std::string>& texts);

// A number for each row, that stays where it is.
template <typename T>
ArrowColumn borrowed_column(std::string name, const char* format, std::span<const T> values,
                            std::shared_ptr<const void> owner) {
  ArrowColumn column = new_column(std::move(name), format, values.size());
  column.buffers = {nullptr, values.data()};
  column.owners = {std::move(owner)};
  return column;
}

// A number for each row.
template <typename T>
ArrowColumn owned_column(std::string name, const char* format, std::vector<T> values) {
  ArrowColumn column = new_column(std::move(name), format, values.size());
  column.buffers = {nullptr};
  column.add(std::move(values));
  return column;
}

// Fill in structs of the C data interface, which the receiver releases.
void export_schema(const ArrowColumn& column, ArrowSchema& schema);
void export_array(const ArrowColumn& column, ArrowArray& array);
// One batch.
void export_stream(ArrowColumn table, ArrowArrayStream& stream);

}  // namespace gpuwhy
