// SPDX-License-Identifier: Apache-2.0
//
// Bundles are sent to other people; keys must not travel with them. Public profiler recordings hold
// live Hugging Face tokens, cloud keys and notebook passwords, in the environment and in arguments.
//
// Three nets, each for what the others miss. Environment variables pass an allow-list. Whatever
// follows a name that says "secret" is replaced, in all the ways people write a name and a value.
// And known shapes of keys are replaced wherever they stand. In LLM programs "token" is mostly no
// secret (max_tokens, eos_token, tokenizer), so that word gets a rule of its own.
//
// One pass over the bytes, no regular expressions: the standard library's recurse once a character
// and overflow the stack on a long line.
//
// How it fails: a secret without a telling name and without a known shape passes (a bare password
// as a positional argument). A harmless value under a telling name is replaced, which is the side
// to err on.
#include "bundle/scrub.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "base/text.h"

namespace llmprof {
namespace {

constexpr std::size_t kShortestSecret = 8;  // shorter ones occur in other words

bool is_alnum(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}
bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

// Names and keys are made of these. '+', '/' and '=' occur in base64 keys only after their first
// characters.
bool is_name_char(char c) {
  return is_alnum(c) || c == '_' || c == '-' || c == '.';
}
bool is_key_char(char c) {
  return is_name_char(c) || c == '+' || c == '/' || c == '~' || c == '=';
}

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
    "pat",    "privatekey", "accesskey", "secretkey",  "authkey"};
// "key" alone is a lookup key; behind one of these words it opens something.
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
// Written together, as PGPASSWORD, GHTOKEN or openaiapikey.
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

// An account's token: the word ends the name, or only its container follows (token_file). In the
// middle of a name (token_embd, inter_token_latency_ms) and in the plural without an owner
// (max_tokens, num_tokens) it counts text.
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

// OPENAI_KEY, DB_PASS, BASIC_AUTH: in capitals, as variables are written, the last word is enough.
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

// A known beginning of keys, and what must follow for it to be one.
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

// Keys are drawn from letters and digits: a long unbroken run of them, with a digit where words
// could look alike.
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

bool starts_like_key(std::string_view run) {
  for (const KeyShape& shape : kKeyShapes) {
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

// A key by its shape, also behind a prefix: "my-ghp_...".
bool is_key_shape(std::string_view run) {
  constexpr std::size_t kLongestPrefix = 64;
  for (std::size_t i = 0; i < std::min(run.size(), kLongestPrefix); ++i) {
    if ((i == 0 || !is_alnum(run[i - 1])) && starts_like_key(run.substr(i))) {
      return true;
    }
  }
  return false;
}

// 17, 12.5: a count or a time. Longer whole numbers may be PINs.
bool is_small_number(std::string_view text) {
  const bool is_number =
      !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
  return is_number && (text.size() < 6 || text.find('.') != std::string_view::npos);
}

// Whether a value under this name is to go: counts that are called token are not, nor is a working
// directory.
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

bool is_scheme(std::string_view word) {
  const std::string lower = to_lower(word);
  return lower == "bearer" || lower == "basic" || lower == "token" || lower == "apikey" ||
         lower == "digest" || lower == "negotiate";
}

// --use-auth-token and its like are switches: what follows is somebody else's.
bool takes_no_value(std::string_view flag) {
  const std::vector<std::string> words = words_of(flag);
  return !words.empty() &&
         (words[0] == "use" || words[0] == "no" || words[0] == "enable" || words[0] == "require");
}

class TextScrubber {
 public:
  explicit TextScrubber(std::string_view text) : text_(text) {}

  std::string run() {
    while (at_ < text_.size()) {
      if (take_private_key() || take_url_password()) {
        continue;
      }
      if (is_name_char(text_[at_])) {
        take_run();
      } else {
        clean_ += text_[at_++];
      }
    }
    return std::move(clean_);
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }

  bool take_private_key() {
    if (text_[at_] != '-' || !rest().starts_with("-----BEGIN ")) {
      return false;
    }
    const std::size_t label_end = rest().find("-----", 11);
    if (label_end == std::string_view::npos ||
        rest().substr(0, label_end).find("PRIVATE KEY") == std::string_view::npos) {
      return false;
    }
    const std::size_t end = rest().find("-----END ");
    const std::size_t close =
        end == std::string_view::npos ? std::string_view::npos : rest().find("-----", end + 9);
    clean_ += kScrubbed;
    at_ = close == std::string_view::npos ? text_.size() : at_ + close + 5;
    return true;
  }

  // scheme://user:password@host keeps scheme and host.
  bool take_url_password() {
    if (text_[at_] != ':' || !rest().starts_with("://")) {
      return false;
    }
    const std::string_view authority =
        rest().substr(3, rest().find_first_of(" \t\r\n/\"'<>", 3) - 3);
    const std::size_t host = authority.rfind('@');
    if (host == std::string_view::npos) {
      return false;
    }
    clean_.append("://").append(kScrubbed);
    at_ += 3 + host;
    return true;
  }

  // A run of name characters: a name with a value behind it, a key by its shape, or neither.
  void take_run() {
    std::size_t end = at_;
    while (end < text_.size() && is_name_char(text_[end])) {
      ++end;
    }
    const std::string_view name = text_.substr(at_, end - at_);
    if (take_named_value(name, end)) {
      return;
    }
    // Runs inside one stretch of key characters share its end: looking for it anew each time would
    // be quadratic.
    const bool is_new_stretch = key_end_ < end;
    if (is_new_stretch) {
      key_end_ = end;
      while (key_end_ < text_.size() && is_key_char(text_[key_end_])) {
        ++key_end_;
      }
    }
    const std::string_view stretch = text_.substr(at_, key_end_ - at_);
    if (is_new_stretch ? is_key_shape(stretch) : starts_like_key(stretch)) {
      clean_ += kScrubbed;
      at_ = key_end_;
    } else if (!take_credential_after_scheme(name, end) && !take_flag_value(name, end)) {
      clean_ += name;
      at_ = end;
    }
  }

  // "Bearer abc..." outside of a header; a short word behind it is prose.
  bool take_credential_after_scheme(std::string_view scheme, std::size_t end) {
    const std::string lower = to_lower(scheme);
    if (lower != "bearer" && lower != "basic") {
      return false;
    }
    std::size_t start = end;
    while (start < text_.size() && is_blank(text_[start])) {
      ++start;
    }
    std::size_t stop = start;
    while (stop < text_.size() && is_key_char(text_[stop])) {
      ++stop;
    }
    const std::string_view credential = text_.substr(start, stop - start);
    if (start == end || credential.size() < 12 ||
        std::none_of(credential.begin(), credential.end(), is_digit)) {
      return false;
    }
    clean_ += text_.substr(at_, start - at_);
    clean_ += kScrubbed;
    at_ = stop;
    return true;
  }

  // `--api-key value` inside a longer text.
  bool take_flag_value(std::string_view name, std::size_t end) {
    if (!name.starts_with('-') || !is_secret_name(name)) {
      return false;
    }
    const std::size_t start = skip_blanks(end);
    const std::size_t stop = std::min(text_.find_first_of(" \t\r\n\"'", start), text_.size());
    const std::string_view value = text_.substr(start, stop - start);
    if (start == end || value.starts_with('-') || takes_no_value(name) ||
        !is_secret_value(name, value)) {
      return false;
    }
    replace(start, stop);
    return true;
  }

  // `name=value`, `name: value`, `"name": "value"`, `\"name\": \"value\"`, `x["name"] = "value"`,
  // `name := value`.
  bool take_named_value(std::string_view name, std::size_t end) {
    if (!is_secret_name(name)) {
      return false;
    }
    std::size_t cursor = end;
    while (cursor < text_.size() &&
           std::string_view("\\\"']").find(text_[cursor]) != std::string_view::npos) {
      ++cursor;
    }
    cursor = skip_blanks(cursor);
    if (cursor >= text_.size() || (text_[cursor] != '=' && text_[cursor] != ':') ||
        text_.substr(cursor, 3) == "://") {
      return false;
    }
    while (cursor < text_.size() &&
           std::string_view(":=>").find(text_[cursor]) != std::string_view::npos) {
      ++cursor;
    }
    cursor = skip_blanks(cursor);
    if (cursor < text_.size() && text_[cursor] == '[' &&
        !text_.substr(cursor).starts_with(kScrubbed)) {
      ++cursor;
    }
    if (cursor < text_.size() && text_[cursor] == '\\') {
      ++cursor;
    }
    const std::size_t stop = value_end(name, cursor);
    const bool is_quoted = cursor < stop && (text_[cursor] == '"' || text_[cursor] == '\'');
    const std::size_t start = is_quoted ? cursor + 1 : cursor;
    if (!is_secret_value(name, text_.substr(start, stop - start))) {
      return false;
    }
    replace(start, stop);
    return true;
  }

  std::size_t skip_blanks(std::size_t cursor) const {
    while (cursor < text_.size() && is_blank(text_[cursor])) {
      ++cursor;
    }
    return cursor;
  }

  void replace(std::size_t start, std::size_t stop) {
    clean_ += text_.substr(at_, start - at_);
    clean_ += kScrubbed;
    at_ = stop;
  }

  // A quoted value ends before its quotation mark, a header's at the end of the line, any other at
  // a separator.
  std::size_t value_end(std::string_view name, std::size_t start) const {
    if (start < text_.size() && (text_[start] == '"' || text_[start] == '\'')) {
      const char quote = text_[start];
      const bool is_escaped = start > 0 && text_[start - 1] == '\\';
      std::size_t end = start + 1;
      while (end < text_.size() && text_[end] != quote) {
        end += text_[end] == '\\' && !is_escaped ? 2 : 1;
      }
      end = std::min(end, text_.size());
      return is_escaped && end > start + 1 && text_[end - 1] == '\\' ? end - 1 : end;
    }
    const std::string lower = to_lower(name);
    if (lower.ends_with("authorization") || lower.ends_with("cookie")) {
      return std::min(text_.find_first_of("\r\n\"'", start), text_.size());
    }
    std::size_t end = std::min(text_.find_first_of(" \t\r\n&,;\"'", start), text_.size());
    if (is_scheme(text_.substr(start, end - start)) && end < text_.size() && is_blank(text_[end])) {
      end = std::min(text_.find_first_of(" \t\r\n&,;\"'", end + 1), text_.size());
    }
    return end;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t key_end_ = 0;
  std::string clean_;
};

// Prefixes end in '_'.
constexpr std::array<std::string_view, 27> kEnvironmentPrefixes = {
    "CUDA_",     "NVIDIA_",    "NCCL_", "NVTX_",   "NSYS_",       "LLMPROF_",       "VLLM_",
    "SGLANG_",   "SGL_",       "TLLM_", "TRTLLM_", "TORCH_",      "TORCHINDUCTOR_", "TORCHDYNAMO_",
    "PYTORCH_",  "TRITON_",    "GGML_", "LLAMA_",  "FLASHINFER_", "OMP_",           "MKL_",
    "OPENBLAS_", "OMPI_COMM_", "PMI_",  "UCX_",    "NVSHMEM_",    "TRANSFORMERS_"};
const std::set<std::string_view> kEnvironmentNames = {"PATH",
                                                      "LD_LIBRARY_PATH",
                                                      "LD_PRELOAD",
                                                      "PYTHONPATH",
                                                      "VIRTUAL_ENV",
                                                      "CONDA_DEFAULT_ENV",
                                                      "TMPDIR",
                                                      "LANG",
                                                      "LC_ALL",
                                                      "RANK",
                                                      "LOCAL_RANK",
                                                      "WORLD_SIZE",
                                                      "LOCAL_WORLD_SIZE",
                                                      "NODE_RANK",
                                                      "MASTER_ADDR",
                                                      "MASTER_PORT",
                                                      "HF_HOME",
                                                      "HF_HUB_OFFLINE",
                                                      "TOKENIZERS_PARALLELISM",
                                                      "CUBLAS_WORKSPACE_CONFIG",
                                                      "SLURM_JOB_ID",
                                                      "SLURM_JOB_NODELIST",
                                                      "SLURM_JOB_NUM_NODES",
                                                      "SLURM_NODEID",
                                                      "SLURM_NTASKS",
                                                      "SLURM_PROCID",
                                                      "SLURM_LOCALID",
                                                      "SLURM_STEP_ID",
                                                      "SLURM_CPUS_PER_TASK",
                                                      "SLURM_GPUS_ON_NODE"};

bool is_allowed_variable(std::string_view name) {
  return kEnvironmentNames.contains(name) ||
         std::any_of(kEnvironmentPrefixes.begin(), kEnvironmentPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

bool is_secret_name(std::string_view name) {
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

std::string scrub_text(std::string_view text) {
  return TextScrubber(text).run();
}

namespace {

// `--name=value` or `NAME=value` as one argument: the value reaches to its end, whatever it is made
// of.
std::string scrub_argument(const std::string& argument) {
  const std::size_t equals = argument.find('=');
  if (equals != std::string::npos) {
    const std::string_view name = std::string_view(argument).substr(0, equals);
    const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return is_name_char(c) || c == '+';
    });
    if (is_name && is_secret_value(name, std::string_view(argument).substr(equals + 1))) {
      return argument.substr(0, equals + 1) + std::string(kScrubbed);
    }
  }
  return scrub_text(argument);
}

// Whether `argument` is the value of the flag before it. A short word behind a dash is the next
// flag.
bool is_value_of(std::string_view flag, std::string_view argument) {
  const bool is_flag =
      argument.starts_with("--") || (argument.starts_with('-') && argument.size() < 7);
  return flag.starts_with('-') && flag.find('=') == std::string_view::npos && !is_flag &&
         !takes_no_value(flag) && is_secret_value(flag, argument);
}

Json scrub_leaves(const Json& tree) {
  if (tree.is_string() || tree.is_number()) {
    return kScrubbed;
  }
  Json clean = tree;
  if (tree.is_structured()) {
    for (Json& item : clean) {
      item = scrub_leaves(item);
    }
  }
  return clean;
}

Json scrub_list(const Json& list) {
  Json clean = Json::array();
  std::string flag;
  for (const Json& item : list) {
    if (!item.is_string()) {
      clean.push_back(scrub_tree(item));
      flag.clear();
      continue;
    }
    const auto& argument = item.get_ref<const std::string&>();
    clean.push_back(is_value_of(flag, argument) ? std::string(kScrubbed)
                                                : scrub_argument(argument));
    flag = argument;
  }
  return clean;
}

}  // namespace

std::vector<std::string> scrub_arguments(const std::vector<std::string>& arguments) {
  return scrub_list(arguments).get<std::vector<std::string>>();
}

Json scrub_tree(const Json& tree) {
  if (tree.is_string()) {
    return scrub_text(tree.get_ref<const std::string&>());
  }
  if (tree.is_array()) {
    return scrub_list(tree);
  }
  if (!tree.is_object()) {
    return tree;
  }
  // {name: HF_TOKEN, value: ...}, as Kubernetes writes an environment.
  const auto name = tree.find("name");
  const bool is_named_secret = name != tree.end() && name->is_string() &&
                               is_secret_name(name->get_ref<const std::string&>());
  Json clean = Json::object();
  for (const auto& [key, value] : tree.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : to_json_line(value);
    if (value.is_structured()
            ? is_secret_name(key)
            : is_secret_value(key, text) && !value.is_null() && !value.is_boolean()) {
      clean[key] = scrub_leaves(value);
    } else {
      clean[key] = is_named_secret && key == "value" ? scrub_leaves(value) : scrub_tree(value);
    }
  }
  return clean;
}

std::vector<std::string> secret_values(const std::map<std::string, std::string>& environment) {
  std::vector<std::string> values;
  for (const auto& [name, value] : environment) {
    if (value.size() >= kShortestSecret && is_secret_value(name, value)) {
      values.push_back(value);
    }
  }
  return values;
}

std::string scrub_text(std::string_view text, const std::vector<std::string>& values) {
  std::string clean = scrub_text(text);
  for (const std::string& value : values) {
    for (std::size_t at = clean.find(value); at != std::string::npos; at = clean.find(value, at)) {
      clean.replace(at, value.size(), kScrubbed);
      at += kScrubbed.size();
    }
  }
  return clean;
}

void add_removed(std::string_view text, std::string_view clean, std::vector<std::string>& removed) {
  while (text != clean) {
    const std::size_t mark = clean.find(kScrubbed);
    if (mark == std::string_view::npos) {
      return;
    }
    const std::string_view rest = clean.substr(mark + kScrubbed.size());
    const std::string_view until = rest.substr(0, rest.find(kScrubbed));
    const std::size_t end =
        until.empty() || mark > text.size() ? text.size() : text.find(until, mark);
    const std::string_view gone =
        text.substr(std::min(mark, text.size()), end == std::string_view::npos ? end : end - mark);
    if (gone.size() >= kShortestSecret && gone != kScrubbed) {
      removed.emplace_back(gone);
    }
    if (end == std::string_view::npos) {
      return;
    }
    text.remove_prefix(end);
    clean = rest;
  }
}

std::map<std::string, std::string> scrub_environment(
    const std::map<std::string, std::string>& environment) {
  std::map<std::string, std::string> clean;
  for (const auto& [name, value] : environment) {
    if (is_allowed_variable(name)) {
      clean[name] = is_secret_value(name, value) ? std::string(kScrubbed) : scrub_text(value);
    }
  }
  return clean;
}

}  // namespace llmprof
