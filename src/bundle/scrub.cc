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
    "secret",     "secrets",    "password",    "passwords",     "passwd", "passphrase",
    "pwd",        "credential", "credentials", "authorization", "cookie", "cookies",
    "bearer",     "jwt",        "apikey",      "signature",     "sig",    "sshpass",
    "privatekey", "accesskey",  "secretkey",   "authkey",       "pat"};
// "key" alone is a lookup key; behind one of these words it opens something.
const std::set<std::string_view> kKeyOwners = {
    "api",    "access", "secret", "private",    "signing", "account", "license",
    "master", "auth",   "ssh",    "encryption", "deploy",  "service", "subscription"};
// Tokens of a vocabulary, not of an account.
const std::set<std::string_view> kVocabulary = {
    "bos",   "eos",    "pad",    "unk",     "sep",    "cls",     "mask",  "image",
    "video", "audio",  "stop",   "special", "next",   "per",     "first", "last",
    "add",   "skip",   "new",    "max",     "min",    "num",     "n",     "time",
    "think", "prompt", "output", "input",   "decode", "prefill", "ms",    "each"};
// Written together, as PGPASSWORD, GHTOKEN or openaiapikey.
constexpr std::array<std::string_view, 8> kSecretEndings = {
    "password", "passwd", "passphrase", "secret", "apikey", "accesskey", "secretkey", "privatekey"};

bool names_account_token(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool is_token = word == "token" || (word.size() > 5 && word.ends_with("token"));
    const bool is_counted = i > 0 && kVocabulary.contains(words[i - 1]);
    const bool has_id = i + 1 < words.size() && (words[i + 1] == "id" || words[i + 1] == "ids" ||
                                                 words[i + 1] == "count" || words[i + 1] == "type");
    if (is_token && !is_counted && !has_id) {
      return true;
    }
  }
  return false;
}

// A known beginning of keys, and what must follow for it to be one.
struct KeyShape {
  std::string_view prefix;
  std::size_t least_rest;  // characters after the prefix
  bool needs_digit;        // ordinary words may begin like this one
};

constexpr std::array<KeyShape, 33> kKeyShapes = {{
    {"hf_", 30, false},          // Hugging Face
    {"api_org_", 30, false},     // Hugging Face, organisations
    {"sk-", 18, true},           // OpenAI, Anthropic, DeepSeek and others
    {"sk_live_", 16, false},     // Stripe
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

bool is_key_shape(std::string_view run) {
  for (const KeyShape& shape : kKeyShapes) {
    if (!run.starts_with(shape.prefix) || run.size() < shape.prefix.size() + shape.least_rest) {
      continue;
    }
    const std::string_view rest = run.substr(shape.prefix.size());
    if (shape.prefix == "eyJ" && rest.find('.') == std::string_view::npos) {
      continue;
    }
    if (!shape.needs_digit || std::any_of(rest.begin(), rest.end(), is_digit)) {
      return true;
    }
  }
  return false;
}

bool is_small_number(std::string_view text) {
  return !text.empty() && text.size() < 10 && std::all_of(text.begin(), text.end(), is_digit);
}

// Whether a value under this name is to go: counts that are called token are not.
bool is_secret_value(std::string_view name, std::string_view value) {
  if (value.empty() || value == kScrubbed || !is_secret_name(name)) {
    return false;
  }
  const bool is_flag = value == "true" || value == "false" || value == "True" || value == "False" ||
                       value == "null" || value == "None";
  const std::vector<std::string> words = words_of(name);
  return !is_flag && !(is_small_number(value) && names_account_token(words));
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
    std::size_t key_end = end;
    while (key_end < text_.size() && is_key_char(text_[key_end])) {
      ++key_end;
    }
    if (is_key_shape(text_.substr(at_, key_end - at_))) {
      clean_ += kScrubbed;
      at_ = key_end;
    } else if (is_scheme(name) && take_credential_after_scheme(end)) {
      return;
    } else {
      clean_ += name;
      at_ = end;
    }
  }

  static bool is_scheme(std::string_view word) { return word == "Bearer" || word == "Basic"; }

  // "Bearer abc..." outside of a header; a short word behind it is prose.
  bool take_credential_after_scheme(std::size_t end) {
    std::size_t start = end;
    while (start < text_.size() && is_blank(text_[start])) {
      ++start;
    }
    std::size_t stop = start;
    while (stop < text_.size() && is_key_char(text_[stop])) {
      ++stop;
    }
    if (start == end || stop - start < 12) {
      return false;
    }
    clean_ += text_.substr(at_, start - at_);
    clean_ += kScrubbed;
    at_ = stop;
    return true;
  }

  // `name=value`, `name: value`, `"name": "value"`, also for the last part of `env.HF_TOKEN=...`.
  bool take_named_value(std::string_view name, std::size_t end) {
    if (!is_secret_name(name)) {
      return false;
    }
    std::size_t cursor = end;
    if (cursor < text_.size() && (text_[cursor] == '"' || text_[cursor] == '\'')) {
      ++cursor;
    }
    while (cursor < text_.size() && is_blank(text_[cursor])) {
      ++cursor;
    }
    if (cursor >= text_.size() || (text_[cursor] != '=' && text_[cursor] != ':') ||
        text_.substr(cursor, 3) == "://") {
      return false;
    }
    ++cursor;
    while (cursor < text_.size() && is_blank(text_[cursor])) {
      ++cursor;
    }
    const std::size_t stop = value_end(cursor);
    std::size_t start = cursor;
    if (start < stop && (text_[start] == '"' || text_[start] == '\'')) {
      ++start;
    }
    if (!is_secret_value(name, text_.substr(start, stop - start))) {
      return false;
    }
    clean_ += text_.substr(at_, start - at_);
    clean_ += kScrubbed;
    at_ = stop;
    return true;
  }

  // A quoted value ends before its quotation mark; a bare one at a separator, a header's scheme
  // word not counted.
  std::size_t value_end(std::size_t start) const {
    if (start < text_.size() && (text_[start] == '"' || text_[start] == '\'')) {
      std::size_t end = start + 1;
      while (end < text_.size() && text_[end] != text_[start]) {
        end += text_[end] == '\\' ? 2 : 1;
      }
      return std::min(end, text_.size());
    }
    std::size_t end = std::min(text_.find_first_of(" \t\r\n&,;\"'", start), text_.size());
    const std::string_view word = text_.substr(start, end - start);
    if ((is_scheme(word) || word == "Token" || word == "token") && end < text_.size() &&
        is_blank(text_[end])) {
      end = std::min(text_.find_first_of(" \t\r\n&,;\"'", end + 1), text_.size());
    }
    return end;
  }

  std::string_view text_;
  std::size_t at_ = 0;
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
    if (kSecretWords.contains(words[i])) {
      // PWD and OLDPWD are directories.
      const bool is_directory = words[i] == "pwd" && words.size() == 1;
      if (!is_directory) {
        return true;
      }
    }
    if (i > 0 && words[i] == "key" && kKeyOwners.contains(words[i - 1])) {
      return true;
    }
    if (std::any_of(kSecretEndings.begin(), kSecretEndings.end(),
                    [&](std::string_view ending) { return words[i].ends_with(ending); })) {
      return true;
    }
  }
  return names_account_token(words);
}

std::string scrub_text(std::string_view text) {
  return TextScrubber(text).run();
}

std::vector<std::string> scrub_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> clean;
  clean.reserve(arguments.size());
  bool follows_secret_flag = false;
  std::string_view flag;
  for (const std::string& argument : arguments) {
    if (follows_secret_flag && !argument.starts_with('-') && is_secret_value(flag, argument)) {
      clean.emplace_back(kScrubbed);
    } else {
      clean.push_back(scrub_text(argument));
    }
    flag = argument;
    follows_secret_flag = argument.starts_with('-') && argument.find('=') == std::string::npos &&
                          is_secret_name(argument);
  }
  return clean;
}

Json scrub_tree(const Json& tree) {
  if (tree.is_string()) {
    return scrub_text(tree.get_ref<const std::string&>());
  }
  if (tree.is_array()) {
    const bool is_argument_list =
        std::all_of(tree.begin(), tree.end(), [](const Json& item) { return item.is_string(); });
    if (is_argument_list) {
      return scrub_arguments(tree.get<std::vector<std::string>>());
    }
    Json clean = Json::array();
    for (const Json& item : tree) {
      clean.push_back(scrub_tree(item));
    }
    return clean;
  }
  if (tree.is_object()) {
    Json clean = Json::object();
    for (const auto& [key, value] : tree.items()) {
      const bool is_leaf = value.is_string() || value.is_number();
      const std::string text = value.is_string() ? value.get<std::string>() : to_json_line(value);
      clean[key] = is_leaf && is_secret_value(key, text) ? Json(kScrubbed) : scrub_tree(value);
    }
    return clean;
  }
  return tree;
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
