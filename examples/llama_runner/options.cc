// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <cstdlib>
#include <stdexcept>

namespace llama_runner {

const char* const kUsage =
    "usage: llama_runner --model FILE [options]\n"
    "       llama_runner --make-model PRESET FILE [--tokenizer none|spm]\n"
    "  --prompt TEXT        what to read; a model without a tokenizer takes none\n"
    "  --prompt-tokens N    tokens per sequence, if no text is given (64)\n"
    "  --new-tokens N       to make a sequence; prefill makes the first (16)\n"
    "  --batch B            sequences of a request (1)\n"
    "  --requests N         one after the other (3)\n"
    "  --warmup N           requests before them that no stage counts (1)\n"
    "  --threads N          on the CPU (1)\n"
    "  --ubatch N           tokens computed at once (512)\n"
    "  --gpu-layers N       layers on the GPU; all unless told otherwise\n"
    "  --unregistered       marks with plain strings in place of registered ones\n"
    "  --metrics FILE       writes the program's own timers there, as JSON\n"
    "  --operators FILE     times every operator and writes a table there, as CSV. Steps take "
    "longer\n"
    "                       for it: for a pass of its own, whose stage times mean nothing\n"
    "  --make-model PRESET  writes a model with random weights: llama_tiny, llama_100m,\n"
    "                       llama_100m_f16, moe_tiny, qwen3moe_tiny, mla_tiny\n";

namespace {

struct NumberOption {
  const char* name;
  std::int64_t Options::*field;
  std::int64_t least;
  std::int64_t most;
};

constexpr NumberOption kNumbers[] = {
    {"--prompt-tokens", &Options::prompt_tokens, 1, 1 << 20},
    {"--new-tokens", &Options::new_tokens, 1, 1 << 20},
    {"--batch", &Options::batch, 1, 64},
    {"--requests", &Options::requests, 1, 1 << 20},
    {"--warmup", &Options::warmup, 0, 1 << 20},
    {"--threads", &Options::threads, 1, 1024},
    {"--ubatch", &Options::ubatch, 1, 1 << 20},
    {"--gpu-layers", &Options::gpu_layers, 0, 1 << 20},
};

struct TextOption {
  const char* name;
  std::string Options::*field;
};

constexpr TextOption kTexts[] = {
    {"--model", &Options::model},         {"--prompt", &Options::prompt},
    {"--metrics", &Options::metrics},     {"--operators", &Options::operators},
    {"--tokenizer", &Options::tokenizer}, {"--make-model", &Options::made_model},
};

std::int64_t number_in(const NumberOption& option, const std::string& text) {
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < option.least || value > option.most) {
    throw std::runtime_error(std::string(option.name) + " takes a whole number of " +
                             std::to_string(option.least) + " to " + std::to_string(option.most) +
                             ", not '" + text + "'");
  }
  return value;
}

// True when `word` is an option with a value, which is taken.
bool take_value(const std::string& word, const char* value, Options& options) {
  const auto text = [&] {
    if (value == nullptr) {
      throw std::runtime_error(word + " needs a value");
    }
    return std::string(value);
  };
  for (const NumberOption& option : kNumbers) {
    if (word == option.name) {
      options.*option.field = number_in(option, text());
      return true;
    }
  }
  for (const TextOption& option : kTexts) {
    if (word == option.name) {
      options.*option.field = text();
      return true;
    }
  }
  return false;
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (take_value(word, i + 1 < argc ? argv[i + 1] : nullptr, options)) {
      ++i;
    } else if (word == "--unregistered") {
      options.uses_plain_strings = true;
    } else if (!options.made_model.empty() && options.model.empty() && word[0] != '-') {
      options.model = word;
    } else {
      throw std::runtime_error("unknown option '" + word + "'");
    }
  }
  if (options.model.empty()) {
    throw std::runtime_error(options.made_model.empty() ? "needs --model FILE"
                                                        : "--make-model needs a file to write");
  }
  return options;
}

}  // namespace llama_runner
