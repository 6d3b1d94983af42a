// SPDX-License-Identifier: Apache-2.0
//
// Columns in Arrow's layout, and the structs of the C data interface that carry them out of the
// library.
//
// Each struct owns what it needs, its children included, since a receiver may keep one column and
// release the rest.
#include "api/arrow.h"

#include <cerrno>
#include <cstring>
#include <new>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

// Where a buffer of no bytes points to.
constexpr std::int64_t kNoBytes[8] = {};

// Behind private_data of a schema. The vectors have their size before anybody points into them.
struct SchemaOwner {
  std::string name;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
  ArrowSchema dictionary = {};
};

// Behind private_data of an array. `owners` may be the recording itself: the receiver of a
// column of times holds that.
struct ArrayOwner {
  std::vector<std::shared_ptr<const void>> owners;
  std::vector<const void*> buffers;
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;
  ArrowArray dictionary = {};

  // Adds a buffer that is kept as it is.
  template <typename T>
  void add(std::vector<T> values) {
    const auto held = std::make_shared<const std::vector<T>>(std::move(values));
    buffers.push_back(held->empty() ? static_cast<const void*>(kNoBytes) : held->data());
    owners.push_back(held);
  }
};

// Behind private_data of a stream.
struct StreamOwner {
  ColumnTable table;
  bool is_read = false;
};

// A child that the receiver moved away has no release any more, and is not ours to end.
template <typename Struct>
void release_if_held(Struct& held) {
  if (held.release != nullptr) {
    held.release(&held);
  }
}

// The release callback of both structs: ends the children, then what held them.
template <typename Owner, typename Struct>
void release_struct(Struct* held) {
  auto* const owner = static_cast<Owner*>(held->private_data);
  for (Struct& child : owner->children) {
    release_if_held(child);
  }
  release_if_held(owner->dictionary);
  held->release = nullptr;
  held->private_data = nullptr;
  delete owner;
}

// Gives the struct its owner, which `fill` completes; the struct holds it also if that throws.
template <typename Owner, typename Struct, typename Fill>
void own(Struct& made, std::size_t num_children, Fill&& fill) {
  std::memset(&made, 0, sizeof(made));
  auto* const owner = new Owner;
  made.private_data = owner;
  made.release = release_struct<Owner, Struct>;
  try {
    owner->children.resize(num_children);
    for (Struct& child : owner->children) {
      owner->pointers.push_back(&child);
    }
    fill(*owner);
  } catch (...) {
    made.release(&made);
    throw;
  }
  made.n_children = static_cast<std::int64_t>(num_children);
  made.children = owner->pointers.data();
}

// Calls made by the receiver, which knows no exceptions.
template <typename Body>
int errno_of(Body&& body) {
  try {
    body();
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  } catch (...) {
    return EIO;
  }
}

int stream_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  return errno_of(
      [&] { export_schema(static_cast<StreamOwner*>(stream->private_data)->table, *out); });
}

int stream_next(ArrowArrayStream* stream, ArrowArray* out) {
  auto* const owner = static_cast<StreamOwner*>(stream->private_data);
  std::memset(out, 0, sizeof(*out));
  if (owner->is_read) {
    return 0;  // a released array is the end
  }
  return errno_of([&] {
    export_array(owner->table, *out);
    owner->is_read = true;
  });
}

// The numbers of errno say all there is.
const char* stream_error(ArrowArrayStream* /*stream*/) {
  return nullptr;
}

void release_stream(ArrowArrayStream* stream) {
  delete static_cast<StreamOwner*>(stream->private_data);
  stream->release = nullptr;
  stream->private_data = nullptr;
}

// The table as one column.
ResultColumn struct_of(const ColumnTable& table) {
  ResultColumn whole;
  whole.type = ColumnType::kStruct;
  whole.children = table.columns;
  return whole;
}

// As the interface writes types; a name is a number into its dictionary of texts.
const char* format_of(ColumnType type) {
  switch (type) {
    case ColumnType::kIndex:
    case ColumnType::kName:
      return "i";
    case ColumnType::kId:
      return "I";
    case ColumnType::kReal:
      return "g";
    case ColumnType::kFlag:
      return "b";
    case ColumnType::kText:
      return "u";
    case ColumnType::kList:
      return "+l";
    case ColumnType::kStruct:
      return "+s";
    case ColumnType::kNumber:
      break;
  }
  return "l";
}

void set_bit(std::size_t row, std::vector<std::uint8_t>& bits) {
  bits[row / 8] = static_cast<std::uint8_t>(bits[row / 8] | (1U << (row % 8)));
}

// Offsets and bytes of texts.
class TextBuffers {
 public:
  void add(std::string_view text, const std::string& column) {
    const std::string valid = valid_text(text);
    bytes_.insert(bytes_.end(), valid.begin(), valid.end());
    if (bytes_.size() > INT32_MAX) {
      throw Error(ErrorKind::kInput, column + ": more than 2 GiB of text in one column");
    }
    offsets_.push_back(static_cast<std::int32_t>(bytes_.size()));
  }
  std::int64_t size() const { return static_cast<std::int64_t>(offsets_.size()) - 1; }
  void move_to(ArrayOwner& owner) {
    owner.add(std::move(offsets_));
    owner.add(std::move(bytes_));
  }

 private:
  std::vector<std::int32_t> offsets_ = {0};
  std::vector<char> bytes_;
};

// A number for each text in order of first use; keys may have equal texts.
void add_names(const ResultColumn& column, std::size_t num_rows, ArrayOwner& owner) {
  std::unordered_map<std::int64_t, std::int32_t> by_key;
  std::unordered_map<std::string_view, std::int32_t> by_text;
  TextBuffers texts;
  std::vector<std::int32_t> numbers;
  numbers.reserve(num_rows);
  for (std::size_t row = 0; row < num_rows; ++row) {
    const auto key = column.value(row);
    if (!key) {
      numbers.push_back(-1);
      continue;
    }
    const auto [known, is_new] = by_key.try_emplace(*key, 0);
    if (is_new) {
      const std::string_view text = column.text(*key);
      const auto [entry, is_new_text] =
          by_text.try_emplace(text, static_cast<std::int32_t>(by_text.size()));
      if (is_new_text) {
        texts.add(text, column.name);
      }
      known->second = entry->second;
    }
    numbers.push_back(known->second);
  }
  owner.add(std::move(numbers));
  own<ArrayOwner>(owner.dictionary, 0, [&](ArrayOwner& words) {
    owner.dictionary.length = texts.size();
    words.buffers.push_back(nullptr);
    texts.move_to(words);
    owner.dictionary.n_buffers = 3;
    owner.dictionary.buffers = words.buffers.data();
  });
}

template <typename T>
void add_numbers(const ResultColumn& column, std::size_t num_rows, ArrayOwner& owner) {
  std::vector<T> numbers;
  numbers.reserve(num_rows);
  for (std::size_t row = 0; row < num_rows; ++row) {
    numbers.push_back(static_cast<T>(column.value(row).value_or(0)));
  }
  owner.add(std::move(numbers));
}

void export_column(const ResultColumn& column, std::size_t num_rows, ArrowArray& array);

// Everything after the first buffer, which says which rows are there.
void add_values(const ResultColumn& column, std::size_t num_rows, ArrayOwner& owner) {
  switch (column.type) {
    case ColumnType::kNumber:
    case ColumnType::kReal:
      return add_numbers<std::int64_t>(column, num_rows, owner);
    case ColumnType::kIndex:
      return add_numbers<std::int32_t>(column, num_rows, owner);
    case ColumnType::kId:
      return add_numbers<std::uint32_t>(column, num_rows, owner);
    case ColumnType::kFlag: {
      std::vector<std::uint8_t> bits((num_rows + 7) / 8);
      for (std::size_t row = 0; row < num_rows; ++row) {
        if (column.value(row).value_or(0) != 0) {
          set_bit(row, bits);
        }
      }
      return owner.add(std::move(bits));
    }
    case ColumnType::kText: {
      TextBuffers texts;
      for (std::size_t row = 0; row < num_rows; ++row) {
        const auto key = column.value(row);
        texts.add(key ? column.text(*key) : std::string_view(), column.name);
      }
      return texts.move_to(owner);
    }
    case ColumnType::kName:
      return add_names(column, num_rows, owner);
    case ColumnType::kList:
      owner.add(column.offsets);
      return export_column(column.children[0], static_cast<std::size_t>(column.offsets.back()),
                           owner.children[0]);
    case ColumnType::kStruct:
      for (std::size_t i = 0; i < column.children.size(); ++i) {
        export_column(column.children[i], num_rows, owner.children[i]);
      }
  }
}

void export_column(const ResultColumn& column, std::size_t num_rows, ArrowArray& array) {
  own<ArrayOwner>(array, column.children.size(), [&](ArrayOwner& owner) {
    std::vector<std::uint8_t> present(column.is_optional ? (num_rows + 7) / 8 : 0);
    for (std::size_t row = 0; column.is_optional && row < num_rows; ++row) {
      if (column.value(row)) {
        set_bit(row, present);
      } else {
        ++array.null_count;
      }
    }
    owner.buffers.push_back(nullptr);
    if (array.null_count > 0) {
      owner.buffers.pop_back();
      owner.add(std::move(present));
    }
    if (column.numbers != nullptr) {
      owner.buffers.push_back(column.numbers);
      owner.owners.push_back(column.owner);
    } else {
      add_values(column, num_rows, owner);
    }
    array.length = static_cast<std::int64_t>(num_rows);
    array.n_buffers = static_cast<std::int64_t>(owner.buffers.size());
    array.buffers = owner.buffers.data();
    array.dictionary = column.type == ColumnType::kName ? &owner.dictionary : nullptr;
  });
}

void export_type(const ResultColumn& column, ArrowSchema& schema) {
  own<SchemaOwner>(schema, column.children.size(), [&](SchemaOwner& owner) {
    owner.name = column.name;
    schema.format = format_of(column.type);
    schema.name = owner.name.c_str();
    schema.flags = column.is_optional ? ARROW_FLAG_NULLABLE : 0;
    for (std::size_t i = 0; i < column.children.size(); ++i) {
      export_type(column.children[i], owner.children[i]);
    }
    if (column.type == ColumnType::kName) {
      ResultColumn texts;
      texts.type = ColumnType::kText;
      export_type(texts, owner.dictionary);
      schema.dictionary = &owner.dictionary;
    }
  });
}

}  // namespace

void export_schema(const ColumnTable& table, ArrowSchema& schema) {
  export_type(struct_of(table), schema);
}

void export_array(const ColumnTable& table, ArrowArray& array) {
  export_column(struct_of(table), table.num_rows, array);
}

void export_stream(ColumnTable table, ArrowArrayStream& stream) {
  auto owner = std::make_unique<StreamOwner>(StreamOwner{std::move(table)});
  stream.get_schema = stream_schema;
  stream.get_next = stream_next;
  stream.get_last_error = stream_error;
  stream.release = release_stream;
  stream.private_data = owner.release();
}

}  // namespace gpuwhy
