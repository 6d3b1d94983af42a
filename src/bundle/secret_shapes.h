// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwhy {

// A known prefix of keys, and what must follow it.
struct KeyShape {
  std::string prefix;
  std::size_t least_rest = 0;  // characters after the prefix
  bool needs_digit = false;    // ordinary words may begin like this one
  std::string needed;          // a text that must follow somewhere
};

// Words that make a name a secret's.
struct SecretNameWord {
  std::string word;
  std::vector<std::string> after;  // only after a word that ends in one of these; empty: always
  bool is_ending = false;          // of a longer word
};

// The shapes of secrets: conf/rules/secrets.yaml, and rows of users.
class SecretShapes {
 public:
  SecretShapes();

  // Adds the rows under `secrets` of a file of rules; nothing if it has none. Throws kUsage with
  // `name` and the line of a row that cannot be used.
  void add(const std::string& name, std::string_view text);

  // A run of key characters that begins like the keys of some service, and is as long and random.
  bool starts_like_key(std::string_view run) const;
  // Whether a key may begin with these two characters.
  bool may_start_key(char first, char second) const { return starts_.test(pair(first, second)); }

  // False for most harmless names, by a few of their letters.
  bool may_name_secret(std::string_view name) const;
  // Whether a word of a name, in lower case and the singular, makes it a secret's. `before` is the
  // word before it, or empty.
  bool is_secret_word(std::string_view word, std::string_view before) const;

  const std::vector<KeyShape>& keys() const { return keys_; }
  const std::set<std::string, std::less<>>& plain_words() const { return plain_words_; }
  const std::vector<SecretNameWord>& other_words() const { return other_words_; }

 private:
  static std::size_t pair(char first, char second) {
    return (std::size_t{static_cast<unsigned char>(first)} << 8U) |
           static_cast<unsigned char>(second);
  }
  void add_key(KeyShape shape);
  void add_word(SecretNameWord word);
  void note_start(std::string_view word);

  std::vector<KeyShape> keys_;
  std::array<std::vector<std::uint32_t>, 256> by_first_;  // into keys_, by their first character
  std::bitset<65'536> starts_;
  std::set<std::string, std::less<>> plain_words_;  // that count always, whole
  std::vector<SecretNameWord> other_words_;
  std::bitset<32'768> word_starts_;  // the first four letters of each
  std::bitset<32'768> short_words_;  // those of three letters
};

// All shapes that are known. Built in ones are read at the first call.
const SecretShapes& secret_shapes();

// Adds rows of a user's file. To be called before anything is searched, by one thread.
void add_secret_shapes(const std::string& name, std::string_view text);

}  // namespace gpuwhy
