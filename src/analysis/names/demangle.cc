// SPDX-License-Identifier: Apache-2.0
//
// Readable forms of mangled kernel names: of C++ (HIP, SYCL, OpenMP), and plain paths of Rust.
//
// The demangler of the C++ runtime prints every back reference in full, so a name of a hundred
// bytes can ask for gigabytes. This one reads a name once and leaves back references out: they only
// repeat what stands before them. What it does not understand ends the template arguments with
// "...", and the name stays useful: its own part comes first.
#include "analysis/names/demangle.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace gpuwhy {
namespace {

constexpr std::size_t kLongestMangled = 1 << 16;
constexpr int kMostNested = 100;

bool is_decimal(char c) {
  return c >= '0' && c <= '9';
}

std::string_view builtin_type(char c) {
  static constexpr std::pair<char, std::string_view> kTypes[] = {{'v', "void"},
                                                                 {'b', "bool"},
                                                                 {'c', "char"},
                                                                 {'a', "signed char"},
                                                                 {'h', "unsigned char"},
                                                                 {'s', "short"},
                                                                 {'t', "unsigned short"},
                                                                 {'i', "int"},
                                                                 {'j', "unsigned int"},
                                                                 {'l', "long"},
                                                                 {'m', "unsigned long"},
                                                                 {'x', "long long"},
                                                                 {'y', "unsigned long long"},
                                                                 {'f', "float"},
                                                                 {'d', "double"},
                                                                 {'e', "long double"},
                                                                 {'w', "wchar_t"},
                                                                 {'n', "__int128"},
                                                                 {'z', "..."}};
  const auto* row = std::ranges::find_if(kTypes, [&](const auto& one) { return one.first == c; });
  return row == std::end(kTypes) ? std::string_view() : row->second;
}

// The hash that ends a path of Rust's first mangling: h and 16 hexadecimal digits.
bool is_rust_hash(std::string_view part) {
  return part.size() == 17 && part[0] == 'h' &&
         part.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
}

// The Itanium mangling, as far as names of kernels use it.
class MangledName {
 public:
  explicit MangledName(std::string_view text) : rest_(text) {}

  // The name and its template arguments; empty if there is none.
  std::string read() {
    take('L');
    std::string name = read_name();
    if (!name.empty() && is_bad_) {
      name += name.ends_with('>') ? "" : "<...>";
    }
    return name;
  }

 private:
  bool take(char c) {
    const bool is_next = !rest_.empty() && rest_.front() == c;
    rest_.remove_prefix(is_next ? 1 : 0);
    return is_next;
  }
  bool take(std::string_view text) {
    const bool is_next = rest_.starts_with(text);
    rest_.remove_prefix(is_next ? text.size() : 0);
    return is_next;
  }
  bool is_next_digit() const { return !rest_.empty() && is_decimal(rest_.front()); }
  bool is_done() const { return is_bad_ || rest_.empty(); }

  std::string_view source_name() {
    std::size_t size = 0;
    while (is_next_digit() && size < kLongestMangled) {
      size = size * 10 + static_cast<std::size_t>(rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    if (size == 0 || size > rest_.size()) {
      is_bad_ = true;
      return {};
    }
    const std::string_view name = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return name.starts_with("_GLOBAL__N") || is_rust_hash(name) ? std::string_view() : name;
  }

  // S_, S1_, T_, T1_: what stands before. St and the like are names of std.
  std::string_view reference() {
    rest_.remove_prefix(1);
    if (take('t')) {
      return is_next_digit() ? source_name() : std::string_view();
    }
    if (!rest_.empty() && std::islower(static_cast<unsigned char>(rest_.front())) != 0) {
      rest_.remove_prefix(1);
      return {};
    }
    const std::size_t end = rest_.find('_');
    if (end > 8) {
      is_bad_ = true;
    } else {
      rest_.remove_prefix(end + 1);
    }
    return {};
  }

  static void add_part(std::string_view part, std::string& name) {
    if (!part.empty()) {
      name += name.empty() ? "" : "::";
      name += part;
    }
  }

  std::string read_name() {
    std::string name;
    if (!take('N')) {
      add_part(is_next_digit() ? source_name() : std::string_view(), name);
      if (!name.empty()) {
        add_arguments(name);
      }
      return name;
    }
    while (take('r') || take('V') || take('K') || take('R') || take('O')) {
    }
    while (!is_done() && !take('E')) {
      take('L');
      const char next = rest_.empty() ? 'E' : rest_.front();
      if (is_decimal(next)) {
        add_part(source_name(), name);
      } else if (next == 'S') {
        add_part(reference(), name);
      } else if (next == 'I') {
        add_arguments(name);
      } else {
        is_bad_ = next != 'E';
      }
    }
    return name;
  }

  // I <argument>... E
  void add_arguments(std::string& name) {
    if (!take('I')) {
      return;
    }
    const std::string arguments = read_list();
    name += "<" + arguments + (is_bad_ ? (arguments.empty() ? "..." : ", ...") : "") + ">";
  }

  // Arguments up to their E.
  std::string read_list() {
    std::string list;
    if (++depth_ > kMostNested) {
      is_bad_ = true;
    }
    while (!is_done() && !take('E')) {
      const std::string argument = read_argument();
      if (!argument.empty()) {
        list += (list.empty() ? "" : ", ") + argument;
      }
    }
    --depth_;
    return list;
  }

  std::string read_argument() {
    if (take('J')) {
      return read_list();
    }
    if (take("Tn") || take("Ty")) {  // the kind of the next argument
      if (!is_done()) {
        read_type();
      }
      return {};
    }
    if (take("XadL_Z") || take("L_Z")) {
      return read_function();
    }
    return take('L') ? read_literal() : read_type();
  }

  // The name of a function and, unread, its type; then E, twice where it is an expression.
  std::string read_function() {
    std::string name = read_name();
    const int num_open = depth_;
    while (!is_done() && rest_.front() != 'E') {
      read_type();
    }
    depth_ = num_open;
    take('E');
    take('E');
    return name;
  }

  // <type> <value> E: the value alone.
  std::string read_literal() {
    const bool is_bool = !rest_.empty() && rest_.front() == 'b';
    read_type();
    const std::size_t end = rest_.find('E');
    if (is_bad_ || end == std::string_view::npos) {
      is_bad_ = true;
      return {};
    }
    std::string value(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    if (is_bool) {
      return value == "1" ? "true" : "false";
    }
    if (value.starts_with('n')) {
      value[0] = '-';
    }
    return value;
  }

  std::string read_type() {
    if (++depth_ > kMostNested) {
      is_bad_ = true;
    }
    std::string type = is_done() ? std::string() : read_type_at(rest_.front());
    --depth_;
    return type;
  }

  std::string read_type_at(char next) {
    if (is_decimal(next) || next == 'N') {
      return read_name();
    }
    if (next == 'S' || next == 'T') {
      std::string type(reference());
      add_arguments(type);
      return type;
    }
    rest_.remove_prefix(1);
    switch (next) {
      case 'P':
        return with_star(read_type());
      case 'R':
      case 'O':
      case 'K':
      case 'V':
      case 'r':
        return read_type();
      case 'u':
        return std::string(source_name());
      case 'F':
        take('Y');
        read_list();
        return {};
      case 'A':
        rest_.remove_prefix(std::min(rest_.find('_'), rest_.size() - 1) + 1);
        return read_type();
      case 'D':
        return read_d_type();
      default:
        break;
    }
    const std::string_view type = builtin_type(next);
    is_bad_ = is_bad_ || type.empty();
    return std::string(type);
  }

  static std::string with_star(std::string type) { return type.empty() ? type : type + "*"; }

  std::string read_d_type() {
    if (take("F16b")) {
      return "bfloat16";
    }
    if (take("F16_") || take('h')) {
      return "half";
    }
    if (take('n')) {
      return "nullptr_t";
    }
    if (take('p')) {
      return read_type();
    }
    is_bad_ = true;
    return {};
  }

  std::string_view rest_;
  int depth_ = 0;
  bool is_bad_ = false;
};

// _RNvNtCs1a2b_5crate6module4name: the identifiers of a plain path, in order.
std::string rust_path(std::string_view text) {
  std::string path;
  for (std::size_t i = 0; i < text.size();) {
    if (is_decimal(text[i])) {
      std::size_t size = 0;
      for (; i < text.size() && is_decimal(text[i]) && size < kLongestMangled; ++i) {
        size = size * 10 + static_cast<std::size_t>(text[i] - '0');
      }
      i += i < text.size() && text[i] == '_' ? 1 : 0;
      if (size == 0 || size > text.size() - i) {
        return {};
      }
      path += (path.empty() ? "" : "::") + std::string(text.substr(i, size));
      i += size;
    } else if (text[i] == 's') {  // a number that tells two of one name apart
      const std::size_t end = text.find('_', i);
      if (end == std::string_view::npos) {
        return {};
      }
      i = end + 1;
    } else if (text[i] == 'N' && i + 1 < text.size()) {
      i += 2;
    } else if (text[i] == 'C') {
      ++i;
    } else {
      break;  // generic arguments and the crate that uses them
    }
  }
  return path;
}

}  // namespace

std::string readable_kernel_name(std::string_view name) {
  std::string_view text = name;
  text = text.substr(0, text.find(" [clone "));
  if (text.ends_with(".kd")) {  // the descriptor of a HIP kernel
    text.remove_suffix(3);
  }
  std::string readable;
  if (text.size() <= kLongestMangled) {
    const std::string_view symbol = text.substr(0, text.find('.'));  // .cold, .constprop.0
    if (symbol.starts_with("_Z")) {
      readable = MangledName(symbol.substr(2)).read();
    } else if (symbol.starts_with("_RN") || symbol.starts_with("_RC")) {
      readable = rust_path(symbol.substr(2));
    }
  }
  return readable.empty() ? std::string(text.empty() ? name : text) : readable;
}

}  // namespace gpuwhy
