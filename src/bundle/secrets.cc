// SPDX-License-Identifier: Apache-2.0
//
// Recognition of secrets by the words in their names and by known key formats.
//
// A name is split into words, as people write them: aws.secretAccessKey, HF_TOKEN, --api-key. The
// lists of conf/rules/secrets.yaml decide, because names are short. Only "token" needs a rule,
// since in LLM programs it is rarely a secret (max_tokens, eos_token, tokenizer). A key without a
// name is recognized by its service's prefix and by a run of letters and digits that no word has.
#include "bundle/secrets.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "bundle/scrub.h"
#include "bundle/secret_shapes.h"

namespace gpuwhy {
namespace {

// "aws.secretAccessKey" -> {aws, secret, access, key}
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  char previous = '_';
  for (const char c : name) {
    const bool is_upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    const bool was_lower = std::islower(static_cast<unsigned char>(previous)) != 0;
    if (!is_alnum(c) || (is_upper && was_lower)) {
      words.emplace_back();
    }
    if (is_alnum(c)) {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    previous = c;
  }
  std::erase(words, "");
  return words;
}

// Tokens of a vocabulary, not of an account.
const std::set<std::string_view> kVocabulary = {
    "bos",    "eos",    "pad",     "unk",   "sep",   "cls",   "mask",  "image",  "video",
    "audio",  "stop",   "special", "next",  "per",   "first", "last",  "add",    "skip",
    "new",    "max",    "min",     "num",   "n",     "time",  "think", "prompt", "output",
    "input",  "decode", "prefill", "ms",    "each",  "boi",   "eoi",   "start",  "end",
    "vision", "tool",   "draft",   "inter", "patch", "text",  "word"};
// "tokens2" -> "token", "keys" -> "key": numbered and plural names mean the same.
std::string singular(std::string word) {
  while (!word.empty() && is_digit(word.back())) {
    word.pop_back();
  }
  if (word.size() > 3 && word.back() == 's' && word[word.size() - 2] != 's') {
    word.pop_back();
  }
  return word;
}

// A token of an account: the word ends the name, or only its container follows (token_file). In the
// middle of a name (token_embd, inter_token_latency_ms), or in the plural without an owner
// (max_tokens, num_tokens), it means text.
bool names_account_token(const std::vector<std::string>& words) {
  static const std::set<std::string_view> kContainers = {"file", "value", "secret", "path", "env"};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = singular(words[i]);
    const bool is_token = word == "token" || (word.size() > 5 && word.ends_with("token"));
    const bool is_plural = words[i].ends_with('s');
    const bool is_counted = i > 0 && kVocabulary.contains(words[i - 1]);
    const bool ends_name =
        i + 1 == words.size() || (i + 2 == words.size() && kContainers.contains(words[i + 1]));
    const bool has_owner = i > 0 || word != "token";
    if (is_token && !is_counted && ends_name && (!is_plural || has_owner)) {
      return true;
    }
  }
  return false;
}

// OPENAI_KEY, DB_PASS, BASIC_AUTH: in capitals, like a variable, the last word is enough.
bool is_secret_variable(std::string_view name, const std::vector<std::string>& words) {
  const bool is_capitals = std::none_of(name.begin(), name.end(), [](char c) {
    return std::islower(static_cast<unsigned char>(c)) != 0;
  });
  if (!is_capitals || words.empty()) {
    return false;
  }
  const std::string last = singular(words.back());
  return (words.size() > 1 && (last == "key" || last == "pass")) || last == "auth";
}

// 17, 12.5: a count or a time. Longer integers may be PINs.
bool is_small_number(std::string_view text) {
  const bool is_number =
      !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
  return is_number && (text.size() < 6 || text.find('.') != std::string_view::npos);
}

}  // namespace

bool is_secret_name(std::string_view name) {
  const SecretShapes& shapes = secret_shapes();
  if (!shapes.may_name_secret(name)) {
    return false;
  }
  const std::vector<std::string> words = words_of(name);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (shapes.is_secret_word(singular(words[i]), i > 0 ? words[i - 1] : std::string_view())) {
      return true;
    }
  }
  return is_secret_variable(name, words) || names_account_token(words);
}

bool starts_like_key(std::string_view run) {
  return secret_shapes().starts_like_key(run);
}

bool is_key_shape(std::string_view run) {
  constexpr std::size_t kLongestPrefix = 64;
  constexpr std::size_t kShortestKey = 19;  // three characters and sixteen more
  if (run.size() < kShortestKey) {
    return false;
  }
  const SecretShapes& shapes = secret_shapes();
  for (std::size_t i = 0; i + 1 < std::min(run.size(), kLongestPrefix); ++i) {
    if (shapes.may_start_key(run[i], run[i + 1]) && (i == 0 || !is_alnum(run[i - 1])) &&
        shapes.starts_like_key(run.substr(i))) {
      return true;
    }
  }
  return false;
}

bool is_secret_value(std::string_view name, std::string_view value) {
  if (value.empty() || value == kScrubbed || !is_secret_name(name)) {
    return false;
  }
  const std::string lower = to_lower(value);
  const bool is_flag = lower == "true" || lower == "false" || lower == "null" || lower == "none";
  const std::vector<std::string> words = words_of(name);
  const bool is_directory = words.back() == "pwd" && value.front() == '/';
  return !is_flag && !is_directory && !(is_small_number(value) && names_account_token(words));
}

bool takes_no_value(std::string_view flag) {
  const std::vector<std::string> words = words_of(flag);
  return !words.empty() &&
         (words[0] == "use" || words[0] == "no" || words[0] == "enable" || words[0] == "require");
}

}  // namespace gpuwhy
