// SPDX-License-Identifier: Apache-2.0
//
// Columns in Arrow's layout, and the structs of the C data interface that carry them out of the
// library.
//
// Each struct owns what it needs, its children included, since a receiver may keep one column and
// release the rest.
#include "api/arrow_column.h"

#include <cerrno>
#include <cstring>
#include <new>

#include "base/text.h"

namespace gpuwhy {
namespace {

// Where a buffer of no bytes points to.
constexpr std::int64_t kNoBytes[8] = {};

// Behind private_data of a schema. The vectors have their size before anybody points into them.
struct SchemaOwner {
  std::string format;
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
};

// Behind private_data of a stream.
struct StreamOwner {
  ArrowColumn table;
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

// Adds `text` with U+FFFD for each byte that is not UTF-8.
void append_utf8(std::string_view text, std::vector<char>& bytes) {
  static constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  while (true) {
    const std::size_t wrong = find_not_utf8(text);
    const std::string_view right = text.substr(0, wrong);
    bytes.insert(bytes.end(), right.begin(), right.end());
    if (wrong == std::string_view::npos) {
      return;
    }
    bytes.insert(bytes.end(), kReplacement.begin(), kReplacement.end());
    text.remove_prefix(wrong + 1);
  }
}

}  // namespace

ArrowColumn new_column(std::string name, std::string format, std::size_t length) {
  ArrowColumn column;
  column.name = std::move(name);
  column.format = std::move(format);
  column.length = static_cast<std::int64_t>(length);
  return column;
}

void add_validity(ArrowBits present, ArrowColumn& column) {
  column.num_nulls = column.length - static_cast<std::int64_t>(present.num_set());
  if (column.num_nulls == 0) {
    column.buffers.push_back(nullptr);
  } else {
    column.add(present.take());
  }
}

ArrowColumn text_column(std::string name, std::size_t length, bool is_nullable,
                        const std::function<std::string_view(std::size_t)>& text) {
  ArrowColumn column = new_column(std::move(name), "u", length);
  column.is_nullable = is_nullable;
  ArrowBits present(length);
  std::vector<std::int32_t> offsets;
  offsets.reserve(length + 1);
  offsets.push_back(0);
  std::vector<char> bytes;
  for (std::size_t row = 0; row < length; ++row) {
    if (const std::string_view value = text(row); value.data() != nullptr) {
      present.set(row);
      append_utf8(value, bytes);
    }
    if (bytes.size() > INT32_MAX) {
      throw Error(ErrorKind::kInput, column.name + ": more than 2 GiB of text in one column");
    }
    offsets.push_back(static_cast<std::int32_t>(bytes.size()));
  }
  add_validity(std::move(present), column);
  column.add(std::move(offsets));
  column.add(std::move(bytes));
  return column;
}

ArrowColumn dictionary_column(std::string name, std::span<const std::int32_t> indexes,
                              std::shared_ptr<const void> owner,
                              const std::vector<std::string>& texts) {
  ArrowColumn column = new_column(std::move(name), "i", indexes.size());
  ArrowBits present(indexes.size());
  for (std::size_t row = 0; row < indexes.size(); ++row) {
    if (indexes[row] >= 0) {
      present.set(row);
    }
  }
  column.is_nullable = present.num_set() < indexes.size();
  add_validity(std::move(present), column);
  column.buffers.push_back(indexes.data());
  column.owners.push_back(std::move(owner));
  column.dictionary = std::make_shared<const ArrowColumn>(text_column(
      "", texts.size(), false, [&](std::size_t i) { return std::string_view(texts[i]); }));
  return column;
}

ArrowColumn dictionary_column(std::string name, std::vector<std::int32_t> indexes,
                              const std::vector<std::string>& texts) {
  const auto owner = std::make_shared<const std::vector<std::int32_t>>(std::move(indexes));
  return dictionary_column(std::move(name), *owner, owner, texts);
}

void export_schema(const ArrowColumn& column, ArrowSchema& schema) {
  std::memset(&schema, 0, sizeof(schema));
  auto owner = std::make_unique<SchemaOwner>();
  owner->format = column.format;
  owner->name = column.name;
  owner->children.resize(column.children.size());
  owner->pointers.reserve(column.children.size());
  schema.release = release_struct<SchemaOwner, ArrowSchema>;
  schema.private_data = owner.get();
  schema.format = owner->format.c_str();
  schema.name = owner->name.c_str();
  schema.flags = column.is_nullable ? ARROW_FLAG_NULLABLE : 0;
  schema.n_children = static_cast<std::int64_t>(column.children.size());
  SchemaOwner& held = *owner.release();  // by the struct, also if a child throws
  try {
    for (std::size_t i = 0; i < column.children.size(); ++i) {
      export_schema(column.children[i], held.children[i]);
      held.pointers.push_back(&held.children[i]);
    }
    if (column.dictionary != nullptr) {
      export_schema(*column.dictionary, held.dictionary);
      schema.dictionary = &held.dictionary;
    }
  } catch (...) {
    schema.release(&schema);
    throw;
  }
  schema.children = held.pointers.data();
}

void export_array(const ArrowColumn& column, ArrowArray& array) {
  std::memset(&array, 0, sizeof(array));
  auto owner = std::make_unique<ArrayOwner>();
  owner->owners = column.owners;
  owner->buffers = column.buffers;
  // Only the first buffer may be null: that all rows are there.
  for (std::size_t i = 1; i < owner->buffers.size(); ++i) {
    if (owner->buffers[i] == nullptr) {
      owner->buffers[i] = kNoBytes;
    }
  }
  owner->children.resize(column.children.size());
  owner->pointers.reserve(column.children.size());
  array.release = release_struct<ArrayOwner, ArrowArray>;
  array.private_data = owner.get();
  array.length = column.length;
  array.null_count = column.num_nulls;
  array.n_buffers = static_cast<std::int64_t>(owner->buffers.size());
  array.n_children = static_cast<std::int64_t>(column.children.size());
  array.buffers = owner->buffers.data();
  ArrayOwner& held = *owner.release();
  try {
    for (std::size_t i = 0; i < column.children.size(); ++i) {
      export_array(column.children[i], held.children[i]);
      held.pointers.push_back(&held.children[i]);
    }
    if (column.dictionary != nullptr) {
      export_array(*column.dictionary, held.dictionary);
      array.dictionary = &held.dictionary;
    }
  } catch (...) {
    array.release(&array);
    throw;
  }
  array.children = held.pointers.data();
}

void export_stream(ArrowColumn table, ArrowArrayStream& stream) {
  auto owner = std::make_unique<StreamOwner>(StreamOwner{std::move(table)});
  stream.get_schema = stream_schema;
  stream.get_next = stream_next;
  stream.get_last_error = stream_error;
  stream.release = release_stream;
  stream.private_data = owner.release();
}

}  // namespace gpuwhy
