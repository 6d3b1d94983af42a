// SPDX-License-Identifier: Apache-2.0
//
// Recognition of secrets by the words in their names and by known key formats.
//
// A name is split into words, as people write them: aws.secretAccessKey, HF_TOKEN, --api-key. Word
// lists decide, because names are short. Only "token" needs a rule, since in LLM programs it is
// rarely a secret (max_tokens, eos_token, tokenizer). A key without a name is recognized by its
// service's prefix and by a run of letters and digits that no word has.
#include "bundle/secrets.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cctype>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "bundle/scrub.h"

namespace llmprof {
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

const std::set<std::string_view> kSecretWords = {
    "secret", "password",   "passwd",    "passphrase", "pwd",       "credential", "authorization",
    "cookie", "bearer",     "jwt",       "apikey",     "signature", "sig",        "sshpass",
    "pat",    "privatekey", "accesskey", "secretkey",  "authkey",   "cred"};
// "key" alone is a lookup key; after one of these words it grants access.
const std::set<std::string_view> kKeyOwners = {
    "api",    "access", "secret", "private", "signing",    "account", "license",
    "master", "auth",   "ssh",    "deploy",  "encryption", "service", "subscription"};
// Tokens of a vocabulary, not of an account.
const std::set<std::string_view> kVocabulary = {
    "bos",    "eos",    "pad",     "unk",   "sep",   "cls",   "mask",  "image",  "video",
    "audio",  "stop",   "special", "next",  "per",   "first", "last",  "add",    "skip",
    "new",    "max",    "min",     "num",   "n",     "time",  "think", "prompt", "output",
    "input",  "decode", "prefill", "ms",    "each",  "boi",   "eoi",   "start",  "end",
    "vision", "tool",   "draft",   "inter", "patch", "text",  "word"};
// Written as one word: PGPASSWORD, GHTOKEN, openaiapikey.
constexpr std::array<std::string_view, 8> kSecretEndings = {
    "password", "passwd", "passphrase", "secret", "apikey", "accesskey", "secretkey", "privatekey"};

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

// A known prefix of keys, and what must follow it.
struct KeyShape {
  std::string_view prefix;
  std::size_t least_rest;  // characters after the prefix
  bool needs_digit;        // ordinary words may begin like this one
};

constexpr std::array<KeyShape, 38> kKeyShapes = {{
    {"hf_", 30, false},          // Hugging Face
    {"api_org_", 30, false},     // Hugging Face, organisations
    {"sk-", 18, true},           // OpenAI, Anthropic, DeepSeek and others
    {"sk_live_", 16, false},     // Stripe
    {"sk_test_", 16, false},     //
    {"rk_live_", 16, false},     //
    {"ghp_", 20, false},         // GitHub
    {"gho_", 20, false},         //
    {"ghu_", 20, false},         //
    {"ghs_", 20, false},         //
    {"ghr_", 20, false},         //
    {"github_pat_", 20, false},  //
    {"glpat-", 16, false},       // GitLab
    {"AKIA", 16, false},         // AWS
    {"ASIA", 16, true},          //
    {"AIza", 30, false},         // Google
    {"ya29.", 20, false},        //
    {"xoxb-", 10, false},        // Slack
    {"xoxp-", 10, false},        //
    {"xoxa-", 10, false},        //
    {"xoxs-", 10, false},        //
    {"xapp-", 16, true},         //
    {"hvs.", 20, false},         // Vault
    {"glsa_", 20, false},        // Grafana
    {"tgp_v1_", 20, false},      // Together
    {"nvapi-", 20, false},       // NVIDIA
    {"npm_", 30, false},         //
    {"pypi-AgEI", 20, false},    //
    {"dckr_pat_", 16, false},    // Docker
    {"SG.", 30, true},           // SendGrid
    {"gsk_", 30, false},         // Groq
    {"r8_", 30, false},          // Replicate
    {"xai-", 30, true},          //
    {"pplx-", 30, false},        //
    {"dapi", 32, true},          // Databricks
    {"lsv2_", 20, true},         // LangSmith
    {"local-", 60, true},        // Weights & Biases, own server
    {"eyJ", 30, false},          // JSON web token: base64 of {"
}};

// The shapes by their first character, so that most characters of a text need no comparison.
class ShapesByFirst {
 public:
  ShapesByFirst() {
    for (const KeyShape& shape : kKeyShapes) {
      shapes_[static_cast<unsigned char>(shape.prefix[0])].push_back(&shape);
    }
  }
  const std::vector<const KeyShape*>& at(char c) const {
    return shapes_[static_cast<unsigned char>(c)];
  }

 private:
  std::array<std::vector<const KeyShape*>, 256> shapes_;
};

// Three letters of every word that makes a name a secret's. Five bits of a letter are the same in
// capitals; other characters may look like a letter, and then the words decide.
class NameFilter {
 public:
  NameFilter() {
    for (const std::string_view part :
         {"sec", "pas", "pwd", "cre", "aut", "coo", "bea", "jwt", "key", "sig", "pat", "tok"}) {
      parts_.set(index(part.data()));
    }
  }
  bool may_be_secret(std::string_view name) const {
    for (std::size_t i = 0; i + 3 <= name.size(); ++i) {
      if (parts_.test(index(name.data() + i))) {
        return true;
      }
    }
    return false;
  }

 private:
  static std::size_t index(const char* letters) {
    const auto bits = [&](int i) { return static_cast<unsigned char>(letters[i]) & 31U; };
    return (bits(0) << 10U) | (bits(1) << 5U) | bits(2);
  }
  std::bitset<32768> parts_;
};

// Keys are random letters and digits: a long unbroken run, with a digit where words could look
// alike.
bool looks_random(std::string_view rest, bool needs_digit) {
  constexpr std::size_t kShortestRun = 16;
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

// 17, 12.5: a count or a time. Longer integers may be PINs.
bool is_small_number(std::string_view text) {
  const bool is_number =
      !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
  return is_number && (text.size() < 6 || text.find('.') != std::string_view::npos);
}

}  // namespace

bool is_secret_name(std::string_view name) {
  static const NameFilter kFilter;
  if (!kFilter.may_be_secret(name)) {
    return false;
  }
  const std::vector<std::string> words = words_of(name);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = singular(words[i]);
    const bool is_owned_key = i > 0 && word == "key" &&
                              (kKeyOwners.contains(words[i - 1]) || words[i - 1].ends_with("api"));
    if (kSecretWords.contains(word) || is_owned_key ||
        std::any_of(kSecretEndings.begin(), kSecretEndings.end(),
                    [&](std::string_view ending) { return word.ends_with(ending); })) {
      return true;
    }
  }
  return is_secret_variable(name, words) || names_account_token(words);
}

bool starts_like_key(std::string_view run) {
  static const ShapesByFirst kByFirst;
  if (run.empty()) {
    return false;
  }
  for (const KeyShape* known : kByFirst.at(run[0])) {
    const KeyShape& shape = *known;
    if (!run.starts_with(shape.prefix) || run.size() < shape.prefix.size() + shape.least_rest) {
      continue;
    }
    const std::string_view rest = run.substr(shape.prefix.size());
    if (shape.prefix == "eyJ" && rest.find('.') == std::string_view::npos) {
      continue;
    }
    if (looks_random(rest, shape.needs_digit)) {
      return true;
    }
  }
  return false;
}

bool is_key_shape(std::string_view run) {
  constexpr std::size_t kLongestPrefix = 64;
  constexpr std::size_t kShortestKey = 15;  // xoxb- and ten more
  if (run.size() < kShortestKey) {
    return false;
  }
  for (std::size_t i = 0; i < std::min(run.size(), kLongestPrefix); ++i) {
    if ((i == 0 || !is_alnum(run[i - 1])) && starts_like_key(run.substr(i))) {
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

}  // namespace llmprof
