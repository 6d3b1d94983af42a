// SPDX-License-Identifier: Apache-2.0
//
// Greedy generation, one request at a time, as an LLM server does it: reads the prompts of all
// sequences in one pass, then generates tokens step by step, reproducibly.
//
// The program's timers enclose the same code as the marks, so that a profiler's stage times
// can be compared with something that does not know of it. A mark holds whatever its stage needs to
// deliver: sampling is inside, since a token that is not chosen yet is of no use to anybody.
#include "generate.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include <llama.h>

#include "marks.h"

namespace llama_runner {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t ns_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

struct ModelFree {
  void operator()(llama_model* model) const { llama_model_free(model); }
};
struct ContextFree {
  void operator()(llama_context* context) const { llama_free(context); }
};

// llama_batch with room for `capacity` tokens.
class Batch {
 public:
  explicit Batch(std::int64_t capacity)
      : batch_(llama_batch_init(static_cast<std::int32_t>(capacity), 0, 1)) {}
  ~Batch() { llama_batch_free(batch_); }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void clear() { batch_.n_tokens = 0; }
  void add(llama_token token, std::int64_t position, std::int64_t sequence, bool has_logits) {
    const std::int32_t at = batch_.n_tokens++;
    batch_.token[at] = token;
    batch_.pos[at] = static_cast<llama_pos>(position);
    batch_.n_seq_id[at] = 1;
    batch_.seq_id[at][0] = static_cast<llama_seq_id>(sequence);
    batch_.logits[at] = has_logits ? 1 : 0;
  }
  const llama_batch& get() const { return batch_; }

 private:
  llama_batch batch_;
};

class Server {
 public:
  Server(const Options& options, OperatorTimer* operators)
      : options_(options), operators_(operators) {
    const Clock::time_point start = Clock::now();
    llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = static_cast<std::int32_t>(options.gpu_layers);
    model_.reset(llama_model_load_from_file(options.model.c_str(), params));
    if (!model_) {
      throw std::runtime_error("cannot load " + options.model);
    }
    vocab_ = llama_model_get_vocab(model_.get());
    make_prompts();
    make_context();
    result_.load_ns = ns_since(start);
    char description[128] = {};
    llama_model_desc(model_.get(), description, sizeof(description));
    result_.description = description;
    result_.params = static_cast<std::int64_t>(llama_model_n_params(model_.get()));
    result_.weight_bytes = static_cast<std::int64_t>(llama_model_size(model_.get()));
    result_.prompt_tokens = prompt_tokens();
  }

  RunResult serve() {
    for (std::int64_t i = 0; i < options_.warmup; ++i) {
      const Mark<gpuwhy::nvtx::WarmupName> mark(options_.uses_plain_strings, request_tokens());
      prefill();
      for (std::int64_t step = 1; step < std::min<std::int64_t>(options_.new_tokens, 3); ++step) {
        decode_step(step);
      }
    }
    if (operators_ != nullptr) {
      operators_->begin();
    }
    result_.output_hash = 14695981039346656037ULL;  // FNV-1a's offset basis
    for (std::int64_t i = 0; i < options_.requests; ++i) {
      result_.requests.push_back(request());
    }
    return std::move(result_);
  }

 private:
  std::int64_t prompt_tokens() const { return static_cast<std::int64_t>(prompts_[0].size()); }
  std::int64_t request_tokens() const {
    return options_.batch * (prompt_tokens() + options_.new_tokens);
  }

  void make_prompts() {
    const std::int64_t vocab_size = llama_vocab_n_tokens(vocab_);
    prompts_.resize(static_cast<std::size_t>(options_.batch));
    if (!options_.prompt.empty()) {
      std::fill(prompts_.begin(), prompts_.end(), tokens_of(options_.prompt));
      return;
    }
    for (std::int64_t sequence = 0; sequence < options_.batch; ++sequence) {
      for (std::int64_t i = 0; i < options_.prompt_tokens; ++i) {
        prompts_[static_cast<std::size_t>(sequence)].push_back(
            static_cast<llama_token>((i * 7919 + sequence * 104729 + 13) % vocab_size));
      }
    }
  }

  std::vector<llama_token> tokens_of(const std::string& text) const {
    if (llama_vocab_type(vocab_) == LLAMA_VOCAB_TYPE_NONE) {
      throw std::runtime_error("the model has no tokenizer: give --prompt-tokens");
    }
    std::vector<llama_token> tokens(text.size() + 8);
    const std::int32_t count =
        llama_tokenize(vocab_, text.data(), static_cast<std::int32_t>(text.size()), tokens.data(),
                       static_cast<std::int32_t>(tokens.size()), true, false);
    if (count <= 0) {
      throw std::runtime_error("the prompt cannot be tokenized");
    }
    tokens.resize(static_cast<std::size_t>(count));
    return tokens;
  }

  void make_context() {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<std::uint32_t>(request_tokens());
    params.n_batch = static_cast<std::uint32_t>(options_.batch * prompt_tokens());
    params.n_ubatch =
        static_cast<std::uint32_t>(std::min<std::int64_t>(options_.ubatch, params.n_batch));
    params.n_seq_max = static_cast<std::uint32_t>(options_.batch);
    params.n_threads = static_cast<std::int32_t>(options_.threads);
    params.n_threads_batch = params.n_threads;
    if (operators_ != nullptr) {
      params.cb_eval = OperatorTimer::callback;
      params.cb_eval_user_data = operators_;
    }
    context_.reset(llama_init_from_model(model_.get(), params));
    if (!context_) {
      throw std::runtime_error("no context for " + std::to_string(request_tokens()) + " tokens");
    }
  }

  void compute(const Batch& batch, const char* stage) {
    if (operators_ != nullptr) {
      operators_->begin_stage(stage);
    }
    const std::int32_t failure = llama_decode(context_.get(), batch.get());
    llama_synchronize(context_.get());
    if (operators_ != nullptr) {
      operators_->end_stage();
    }
    if (failure != 0) {
      throw std::runtime_error("llama_decode answered " + std::to_string(failure));
    }
  }

  // The likeliest token at output `row` of the last pass.
  llama_token likeliest(std::int64_t row) {
    const float* logits = llama_get_logits_ith(context_.get(), static_cast<std::int32_t>(row));
    const llama_token token = static_cast<llama_token>(
        std::max_element(logits, logits + llama_vocab_n_tokens(vocab_)) - logits);
    result_.output_hash =
        (result_.output_hash ^ static_cast<std::uint64_t>(token)) * 1099511628211ULL;
    return token;
  }

  void prefill() {
    llama_memory_clear(llama_get_memory(context_.get()), true);
    Batch batch(options_.batch * prompt_tokens());
    for (std::int64_t sequence = 0; sequence < options_.batch; ++sequence) {
      const std::vector<llama_token>& prompt = prompts_[static_cast<std::size_t>(sequence)];
      for (std::int64_t i = 0; i < prompt_tokens(); ++i) {
        batch.add(prompt[static_cast<std::size_t>(i)], i, sequence, i + 1 == prompt_tokens());
      }
    }
    compute(batch, "prefill");
    last_.clear();
    for (std::int64_t sequence = 1; sequence <= options_.batch; ++sequence) {
      last_.push_back(likeliest(sequence * prompt_tokens() - 1));
    }
  }

  // Step 1 reads the token that prefill made.
  void decode_step(std::int64_t step) {
    Batch batch(options_.batch);
    for (std::int64_t sequence = 0; sequence < options_.batch; ++sequence) {
      batch.add(last_[static_cast<std::size_t>(sequence)], prompt_tokens() + step - 1, sequence,
                true);
    }
    compute(batch, "decode_step");
    for (std::int64_t sequence = 0; sequence < options_.batch; ++sequence) {
      last_[static_cast<std::size_t>(sequence)] = likeliest(sequence);
    }
  }

  RequestTimes request() {
    const bool is_plain = options_.uses_plain_strings;
    RequestTimes times;
    const Mark<gpuwhy::nvtx::RequestName> whole(is_plain, request_tokens());
    Clock::time_point start = Clock::now();
    {
      const Mark<gpuwhy::nvtx::PrefillName> mark(is_plain, options_.batch * prompt_tokens());
      prefill();
    }
    times.ttft_ns = ns_since(start);
    start = Clock::now();
    const Mark<gpuwhy::nvtx::DecodeAllName> loop(is_plain,
                                                 options_.batch * (options_.new_tokens - 1));
    for (std::int64_t step = 1; step < options_.new_tokens; ++step) {
      const Clock::time_point step_start = Clock::now();
      {
        const Mark<gpuwhy::nvtx::DecodeStepName> mark(is_plain, options_.batch);
        decode_step(step);
      }
      times.step_ns.push_back(ns_since(step_start));
    }
    times.decode_ns = ns_since(start);
    return times;
  }

  const Options& options_;
  OperatorTimer* operators_;
  std::unique_ptr<llama_model, ModelFree> model_;
  std::unique_ptr<llama_context, ContextFree> context_;
  const llama_vocab* vocab_ = nullptr;
  std::vector<std::vector<llama_token>> prompts_;
  std::vector<llama_token> last_;  // of each sequence
  RunResult result_;
};

}  // namespace

RunResult run_requests(const Options& options, OperatorTimer* operators) {
  llama_log_set(
      [](ggml_log_level level, const char* text, void*) {
        if (level == GGML_LOG_LEVEL_ERROR) {
          std::fputs(text, stderr);
        }
      },
      nullptr);
  ggml_backend_load_all();
  llama_backend_init();
  return Server(options, operators).serve();
}

}  // namespace llama_runner
