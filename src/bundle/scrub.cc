// SPDX-License-Identifier: Apache-2.0
//
// Removal of secrets from texts, argument lists, JSON trees and environments.
//
// Bundles are sent to other people, and keys must not travel with them. Public profiler recordings
// contain live Hugging Face tokens, cloud keys and notebook passwords, in environments and in
// arguments.
//
// Three filters, each for what the others miss. Environment variables pass an allow-list. A value
// after a name that says "secret" is replaced, in all the ways people write a name and a value. And
// known key formats are replaced everywhere. bundle/secrets.cc knows names and formats; this file
// finds them in a text.
//
// One pass over the bytes, without regular expressions: those of the standard library recurse once
// per character and overflow the stack on a long line.
//
// How it fails: a secret without a revealing name and without a known format passes (a bare
// password as a positional argument). A harmless value under a revealing name is replaced, which is
// the safer mistake.
#include "bundle/scrub.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "bundle/json_with_duplicates.h"
#include "bundle/secrets.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kShortestSecret = 8;  // shorter ones occur in other words

// End of an unquoted value. The zero is for environments and other binary text.
constexpr std::string_view kValueEnds(" \t\r\n&,;\"'\0", 10);

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

bool is_scheme(std::string_view word) {
  const std::string lower = to_lower(word);
  return lower == "bearer" || lower == "basic" || lower == "token" || lower == "apikey" ||
         lower == "digest" || lower == "negotiate";
}

// One pass over a text. Each take_*() either consumes a secret at the current position or does
// nothing.
class TextScrubber {
 public:
  explicit TextScrubber(std::string_view text) : text_(text) {}

  std::string run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if ((c == '-' && take_private_key()) || (c == ':' && take_url_password())) {
        continue;
      }
      if (is_name_char(c)) {
        take_run();
      } else {
        ++at_;
      }
    }
    keep_until(text_.size());
    return std::move(clean_);
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }

  // From BEGIN to END, or to the end of the text if the END is missing.
  bool take_private_key() {
    if (!rest().starts_with("-----BEGIN ")) {
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
    replace(at_, close == std::string_view::npos ? text_.size() : at_ + close + 5);
    return true;
  }

  // scheme://user:password@host keeps scheme and host.
  bool take_url_password() {
    if (!rest().starts_with("://")) {
      return false;
    }
    const std::string_view authority =
        rest().substr(3, rest().find_first_of(" \t\r\n/\"'<>", 3) - 3);
    const std::size_t host = authority.rfind('@');
    if (host == std::string_view::npos) {
      return false;
    }
    replace(at_ + 3, at_ + 3 + host);
    return true;
  }

  // A run of name characters: a name followed by a value, a key by its format, or neither.
  void take_run() {
    std::size_t end = at_;
    while (end < text_.size() && is_name_char(text_[end])) {
      ++end;
    }
    const std::string_view name = text_.substr(at_, end - at_);
    if (take_named_value(name, end)) {
      return;
    }
    // Runs inside one stretch of key characters share its end; searching for it each time would be
    // quadratic.
    const bool is_new_stretch = key_end_ < end;
    if (is_new_stretch) {
      key_end_ = end;
      while (key_end_ < text_.size() && is_key_char(text_[key_end_])) {
        ++key_end_;
      }
    }
    const std::string_view stretch = text_.substr(at_, key_end_ - at_);
    if (is_new_stretch ? is_key_shape(stretch) : starts_like_key(stretch)) {
      replace(at_, key_end_);
    } else if (!take_credential_after_scheme(name, end) && !take_flag_value(name, end)) {
      at_ = end;
    }
  }

  // "Bearer abc..." outside of a header. A short word after it is prose.
  bool take_credential_after_scheme(std::string_view scheme, std::size_t end) {
    if (scheme.size() != 6 && scheme.size() != 5) {
      return false;
    }
    if ((scheme[0] != 'B' && scheme[0] != 'b') ||
        (to_lower(scheme) != "bearer" && to_lower(scheme) != "basic")) {
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
    replace(start, stop);
    return true;
  }

  // `--api-key value` within a longer text.
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
    if (end >= text_.size() || !is_of_class(text_[end], kAfterName)) {
      return false;
    }
    std::size_t cursor = end;
    while (cursor < text_.size() && (text_[cursor] == '\\' || text_[cursor] == '"' ||
                                     text_[cursor] == '\'' || text_[cursor] == ']')) {
      ++cursor;
    }
    cursor = skip_blanks(cursor);
    // Most words are not followed by a value, so the name is checked last.
    if (cursor >= text_.size() || (text_[cursor] != '=' && text_[cursor] != ':') ||
        text_.substr(cursor, 3) == "://" || !is_secret_name(name)) {
      return false;
    }
    // Operators such as :=, => and ==, then an opening bracket or an escaped quote.
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
    keep_until(start);
    clean_ += kScrubbed;
    at_ = stop;
    kept_ = stop;
  }

  // Copies what is unchanged as a whole: most texts hold no secret.
  void keep_until(std::size_t end) {
    clean_.append(text_, kept_, end - kept_);
    kept_ = end;
  }

  // A quoted value ends before its quotation mark, a header's value at the end of the line, any
  // other at a separator.
  std::size_t value_end(std::string_view name, std::size_t start) const {
    // In a JSON string within a JSON string both quotation marks are escaped.
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
    std::size_t end = std::min(text_.find_first_of(kValueEnds, start), text_.size());
    if (is_scheme(text_.substr(start, end - start)) && end < text_.size() && is_blank(text_[end])) {
      end = std::min(text_.find_first_of(kValueEnds, end + 1), text_.size());
    }
    return end;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t kept_ = 0;  // in clean_, or replaced
  std::size_t key_end_ = 0;
  std::string clean_;
};

// Variables that explain performance. Prefixes end in '_'.
constexpr std::array<std::string_view, 27> kEnvironmentPrefixes = {
    "CUDA_",     "NVIDIA_",    "NCCL_", "NVTX_",   "NSYS_",       "GPUWHY_",        "VLLM_",
    "SGLANG_",   "SGL_",       "TLLM_", "TRTLLM_", "TORCH_",      "TORCHINDUCTOR_", "TORCHDYNAMO_",
    "PYTORCH_",  "TRITON_",    "GGML_", "LLAMA_",  "FLASHINFER_", "OMP_",           "MKL_",
    "OPENBLAS_", "OMPI_COMM_", "PMI_",  "UCX_",    "NVSHMEM_",    "TRANSFORMERS_"};
constexpr std::string_view kEnvironmentNames =
    "PATH LD_LIBRARY_PATH LD_PRELOAD PYTHONPATH VIRTUAL_ENV CONDA_DEFAULT_ENV TMPDIR LANG "
    "LC_ALL RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE NODE_RANK MASTER_ADDR MASTER_PORT "
    "HF_HOME HF_HUB_OFFLINE TOKENIZERS_PARALLELISM CUBLAS_WORKSPACE_CONFIG SLURM_JOB_ID "
    "SLURM_JOB_NODELIST SLURM_JOB_NUM_NODES SLURM_NODEID SLURM_NTASKS SLURM_PROCID "
    "SLURM_LOCALID SLURM_STEP_ID SLURM_CPUS_PER_TASK SLURM_GPUS_ON_NODE";

bool is_allowed_variable(std::string_view name) {
  return std::ranges::count(split(kEnvironmentNames, ' '), name) > 0 ||
         std::any_of(kEnvironmentPrefixes.begin(), kEnvironmentPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::string scrub_text(std::string_view text) {
  return TextScrubber(text).run();
}

// `--name=value` or `NAME=value` as one argument: the value is the whole rest, whatever it
// contains.
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

namespace {

// Whether `argument` is the value of the preceding flag. A short word after a dash is the next
// flag.
bool is_value_of(std::string_view flag, std::string_view argument) {
  const bool is_flag =
      argument.starts_with("--") || (argument.starts_with('-') && argument.size() < 7);
  return flag.starts_with('-') && flag.find('=') == std::string_view::npos && !is_flag &&
         !takes_no_value(flag) && is_secret_value(flag, argument);
}

// Replaces every string and number and keeps the structure.
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
      append_key(clean, key, scrub_leaves(value));
    } else {
      append_key(clean, key,
                 is_named_secret && key == "value" ? scrub_leaves(value) : scrub_tree(value));
    }
  }
  return clean;
}

std::vector<std::string> secret_values(const std::map<std::string, std::string>& environment) {
  std::vector<std::string> values;
  for (const auto& [name, value] : environment) {
    if (value.size() < kShortestSecret || !is_secret_value(name, value)) {
      continue;
    }
    values.push_back(value);
    // Logs are searched line by line, and programs print such a value with "\n" for its line ends.
    const std::vector<std::string_view> lines = split(value, '\n');
    for (const std::string_view line : lines) {
      const std::string_view text = trim(line);
      if (lines.size() > 1 && text.size() >= kShortestSecret && !text.starts_with("-----")) {
        values.emplace_back(text);
      }
    }
  }
  return values;
}

std::string scrub_text(std::string_view text, const SecretValues& values) {
  std::string clean = scrub_text(text);
  return values.are_in(clean) ? values.without(clean) : clean;
}

Json without_values(const Json& tree, const SecretValues& values) {
  if (tree.is_string()) {
    return scrub_text(tree.get_ref<const std::string&>(), values);
  }
  if (!tree.is_structured()) {
    return tree;
  }
  Json clean = tree.is_array() ? Json::array() : Json::object();
  for (const auto& [key, value] : tree.items()) {
    if (tree.is_array()) {
      clean.push_back(without_values(value, values));
    } else {
      append_key(clean, scrub_text(key, values), without_values(value, values));
    }
  }
  return clean;
}

bool ends_in_private_key(std::string_view text) {
  if (text.find("-----BEGIN ") == std::string_view::npos) {
    return false;
  }
  const std::size_t begin = text.rfind("-----BEGIN ");
  if (begin == std::string_view::npos) {
    return false;
  }
  const std::string_view key = text.substr(begin);
  return key.find("PRIVATE KEY") != std::string_view::npos &&
         key.find("-----END ") == std::string_view::npos;
}

// Walks both texts in step: whatever lies between the unchanged parts was removed.
void add_removed(std::string_view text, std::string_view clean, SecretValues& removed) {
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
      removed.add(gone);
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

}  // namespace gpuwhy
