// SPDX-License-Identifier: Apache-2.0
//
// Shapes of secrets as data: prefixes of keys and words of names, with tables that rule out most
// texts at a glance.
#include "bundle/secret_shapes.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "base/yaml.h"
#include "bundle/secrets.h"
#include "config/embedded.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kShortestPrefix = 3;  // shorter ones begin ordinary words
constexpr std::size_t kShortestRun = 16;
constexpr std::size_t kShortestWord = 3;
constexpr std::int64_t kMostRest = 1000;

// Letters as a number below 32768. Five bits of a letter are the same in capitals; other characters
// may look like a letter, and then the words decide.
std::size_t three_letters(const char* letters) {
  const auto bits = [&](int i) { return static_cast<unsigned char>(letters[i]) & 31U; };
  return (bits(0) << 10U) | (bits(1) << 5U) | bits(2);
}
std::size_t four_letters(const char* letters) {
  const auto last = static_cast<unsigned char>(letters[3]) & 31U;
  const auto all = static_cast<std::uint32_t>((three_letters(letters) << 5U) | last);
  return (all * 0x9E3779B1U) >> 17U;  // Fibonacci hashing
}

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}

// Keys are random letters and digits: a long unbroken run, with a digit where words could look
// alike.
bool looks_random(std::string_view rest, bool needs_digit) {
  std::size_t run = 0;
  bool has_digit = false;
  for (const char c : rest) {
    run = is_alnum(c) ? run + 1 : 0;
    has_digit = run > 0 && (is_digit(c) || (run > 1 && has_digit));
    if (run >= kShortestRun && (has_digit || !needs_digit)) {
      return true;
    }
  }
  return false;
}

// One row of a file, with what it is called in messages.
class ShapeRow {
 public:
  ShapeRow(const std::string& file, const YamlRow& row) : file_(file), row_(row) {
    for (const auto& [key, values] : row.values) {
      constexpr std::string_view kKeys[] = {"service", "prefix", "least", "digit",
                                            "has",     "words",  "after", "endings"};
      if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys)) {
        refuse(fmt::format("'{}' is not a key of a secret", printable(key)));
      }
    }
  }

  bool has(const char* key) const { return row_.values.contains(key); }

  std::vector<std::string> list(const char* key) const {
    const auto found = row_.values.find(key);
    return found == row_.values.end() ? std::vector<std::string>() : found->second;
  }

  std::string text(const char* key) const {
    const std::vector<std::string> values = list(key);
    if (values.size() > 1) {
      refuse(fmt::format("{} is a list", key));
    }
    return values.empty() ? "" : values.front();
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: line {} of secrets: {}", printable(file_), row_.line, what),
                "rows are as in conf/rules/secrets.yaml: {prefix: acme_, least: 20} or "
                "{words: [acmepin]}");
  }

 private:
  const std::string& file_;
  const YamlRow& row_;
};

KeyShape key_of(const ShapeRow& row) {
  KeyShape shape;
  shape.prefix = row.text("prefix");
  const bool is_word = std::all_of(shape.prefix.begin(), shape.prefix.end(), is_name_char);
  if (shape.prefix.size() < kShortestPrefix || !is_word) {
    row.refuse("a prefix has three or more of the characters A-Z a-z 0-9 _ - .");
  }
  const auto least = parse_whole(row.text("least"));
  if (!least || *least < static_cast<std::int64_t>(kShortestRun) || *least > kMostRest) {
    row.refuse("least is a number from 16 to 1000");
  }
  shape.least_rest = static_cast<std::size_t>(*least);
  const std::string digit = row.text("digit");
  if (!digit.empty() && digit != "true" && digit != "false") {
    row.refuse("digit is true or false");
  }
  shape.needs_digit = digit == "true";
  shape.needed = row.text("has");
  return shape;
}

void check_word(const ShapeRow& row, const std::string& word) {
  const bool is_lower_case =
      std::all_of(word.begin(), word.end(), [](char c) { return is_lower(c) || is_digit(c); });
  if (word.size() < kShortestWord || !is_lower_case) {
    row.refuse("words have three or more of the characters a-z 0-9");
  }
}

}  // namespace

void SecretShapes::add(const std::string& name, std::string_view text) {
  for (const YamlRow& read : yaml_rows(text, name, "secrets")) {
    const ShapeRow row(name, read);
    if (row.has("prefix")) {
      add_key(key_of(row));
    } else if (!row.has("words") && !row.has("endings")) {
      row.refuse("it has neither a prefix nor words nor endings");
    }
    for (const char* key : {"words", "endings"}) {
      for (const std::string& word : row.list(key)) {
        check_word(row, word);
        add_word({word, row.list("after"), std::string_view(key) == "endings"});
      }
    }
  }
}

SecretShapes::SecretShapes() {
  for (const char* word : {"key", "pass", "auth", "token"}) {
    note_start(word);  // of the rules in bundle/secrets.cc
  }
}

void SecretShapes::note_start(std::string_view word) {
  if (word.size() == kShortestWord) {
    short_words_.set(three_letters(word.data()));
  } else {
    word_starts_.set(four_letters(word.data()));
  }
}

void SecretShapes::add_key(KeyShape shape) {
  const auto number = static_cast<std::uint32_t>(keys_.size());
  by_first_[static_cast<unsigned char>(shape.prefix[0])].push_back(number);
  starts_.set(pair(shape.prefix[0], shape.prefix[1]));
  keys_.push_back(std::move(shape));
}

void SecretShapes::add_word(SecretNameWord word) {
  note_start(word.word);
  if (word.after.empty() && !word.is_ending) {
    plain_words_.insert(word.word);
  } else {
    other_words_.push_back(std::move(word));
  }
}

bool SecretShapes::starts_like_key(std::string_view run) const {
  if (run.size() < kShortestPrefix + kShortestRun || !may_start_key(run[0], run[1])) {
    return false;
  }
  for (const std::uint32_t number : by_first_[static_cast<unsigned char>(run[0])]) {
    const KeyShape& shape = keys_[number];
    if (!run.starts_with(shape.prefix) || run.size() < shape.prefix.size() + shape.least_rest) {
      continue;
    }
    const std::string_view rest = run.substr(shape.prefix.size());
    if (rest.find(shape.needed) != std::string_view::npos &&
        looks_random(rest, shape.needs_digit)) {
      return true;
    }
  }
  return false;
}

bool SecretShapes::may_name_secret(std::string_view name) const {
  for (std::size_t i = 0; i + kShortestWord <= name.size(); ++i) {
    const char* letters = name.data() + i;
    if (i + kShortestWord < name.size() && word_starts_.test(four_letters(letters))) {
      return true;
    }
    if (!short_words_.test(three_letters(letters))) {
      continue;
    }
    // "pat" is a word of MY_PAT and patId, and none of "path" and "PATH".
    const char last = name[i + kShortestWord - 1];
    const char next = i + kShortestWord < name.size() ? name[i + kShortestWord] : '\0';
    const bool goes_on = (is_lower(last) && is_lower(next) && next != 's') ||
                         (is_upper(last) && is_upper(next) && next != 'S');
    if (!goes_on) {
      return true;
    }
  }
  return false;
}

bool SecretShapes::is_secret_word(std::string_view word, std::string_view before) const {
  if (plain_words_.contains(word)) {
    return true;
  }
  return std::any_of(other_words_.begin(), other_words_.end(), [&](const SecretNameWord& known) {
    const bool fits = known.is_ending ? word.ends_with(known.word) : word == known.word;
    return fits && (known.after.empty() ||
                    std::any_of(known.after.begin(), known.after.end(),
                                [&](const std::string& owner) { return before.ends_with(owner); }));
  });
}

namespace {

SecretShapes& known_shapes() {
  static SecretShapes shapes = [] {
    SecretShapes built_in;
    for (const EmbeddedFile& file : embedded_conf()) {
      if (file.path == "rules/secrets.yaml") {
        built_in.add("conf/rules/secrets.yaml", file.text);
      }
    }
    if (built_in.keys().empty()) {
      // Better no program than one that keeps keys.
      throw Error(ErrorKind::kFailure, "this build carries no conf/rules/secrets.yaml");
    }
    return built_in;
  }();
  return shapes;
}

}  // namespace

const SecretShapes& secret_shapes() {
  return known_shapes();
}

void add_secret_shapes(const std::string& name, std::string_view text) {
  static std::set<std::string, std::less<>> known;  // of the runs before this one
  if (!known.contains(text)) {
    known_shapes().add(name, text);
    known.emplace(text);
  }
}

}  // namespace gpuwhy
