// SPDX-License-Identifier: Apache-2.0
//
// Marks of llama.cpp's batches: a wrapper around llama_decode, preloaded into a program that uses
// libllama.so.
//
// A batch says which sequence each of its tokens belongs to, and whether its logits are wanted. One
// token that follows a token whose logits were wanted was sampled from them: it is a decode step of
// its sequence. All other tokens are read: prefill. A range has the text
// step[prefill=512 decode=2 seqs=0:512,1:1,2:1], where seqs are numbers of sequences (slots of
// llama-server) and their tokens.
//
// Only the fields that llama_batch has had since 2023 are read, and nothing is changed. Where a
// program uses more contexts than are followed, the rest is not marked.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "marks/emit.h"

namespace gpuwhy {
namespace {

// llama_batch. It is passed by value, in memory; the rest is what later versions may append.
struct LlamaBatch {
  std::int32_t num_tokens;
  std::int32_t* token;
  float* embedding;
  std::int32_t* position;
  std::int32_t* num_sequences;
  std::int32_t** sequences;
  std::int8_t* logits;
  void* rest[8];
};
using Decode = std::int32_t (*)(void*, LlamaBatch);

constexpr int kMostContexts = 8;
constexpr int kMostSequences = 256;  // LLAMA_MAX_SEQ
constexpr std::size_t kMostText = 8192;

// What is known of a sequence of a context.
struct Sequence {
  std::int32_t next_position = 0;
  bool has_logits = false;  // of its last token
};
struct FollowedContext {
  void* context = nullptr;
  Sequence sequences[kMostSequences];
};
FollowedContext contexts[kMostContexts];

// The part of a batch that belongs to one sequence.
struct Part {
  std::int32_t num_tokens = 0;
  std::int32_t first_position = 0;
  std::int32_t last_position = 0;
  bool has_logits = false;
};

pthread_once_t once = PTHREAD_ONCE_INIT;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
Decode decode = nullptr;
bool is_open = false;

// One line for `gpuwhy run`, which says otherwise that nothing was marked.
void write_note() {
  const char* const path = ::secure_getenv("GPUWHY_MARK_NOTES");
  const int file =
      path == nullptr ? -1 : ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file >= 0) {
    constexpr char kNote[] = "ok llama_cpp\n";
    [[maybe_unused]] const ssize_t written = ::write(file, kNote, sizeof(kNote) - 1);
    ::close(file);
  }
}

void start() {
  decode = reinterpret_cast<Decode>(::dlsym(RTLD_NEXT, "llama_decode"));
  is_open = open_marks_tool();
  write_note();
}

FollowedContext* followed(void* context) {
  for (FollowedContext& one : contexts) {
    if (one.context == context || one.context == nullptr) {
      one.context = context;
      return &one;
    }
  }
  return nullptr;
}

// False where the tokens of the batch cannot be assigned to sequences: then it gets no mark.
bool split_batch(const LlamaBatch& batch, const FollowedContext& context, Part* parts) {
  for (std::int32_t i = 0; i < batch.num_tokens; ++i) {
    const bool has_sequence = batch.sequences != nullptr && batch.num_sequences != nullptr;
    if (has_sequence && batch.num_sequences[i] < 1) {
      return false;
    }
    const std::int32_t sequence = has_sequence ? batch.sequences[i][0] : 0;
    if (sequence < 0 || sequence >= kMostSequences) {
      return false;
    }
    Part& part = parts[sequence];
    const std::int32_t position = batch.position != nullptr
                                      ? batch.position[i]
                                      : context.sequences[sequence].next_position + part.num_tokens;
    if (part.num_tokens == 0) {
      part.first_position = position;
    }
    part.last_position = position;
    // Without flags, the logits of the last token are wanted.
    part.has_logits = batch.logits != nullptr ? batch.logits[i] != 0 : i + 1 == batch.num_tokens;
    ++part.num_tokens;
  }
  return true;
}

bool is_sampled(const Part& part, const Sequence& before) {
  return part.num_tokens == 1 && before.has_logits && part.first_position == before.next_position;
}

// The text of the range; its tokens are returned.
std::int64_t describe(const Part* parts, const FollowedContext& context, char* text) {
  std::int64_t num_prefill = 0;
  std::int64_t num_decode = 0;
  for (int i = 0; i < kMostSequences; ++i) {
    (is_sampled(parts[i], context.sequences[i]) ? num_decode : num_prefill) += parts[i].num_tokens;
  }
  int length = std::snprintf(
      text, kMostText, "step[prefill=%lld decode=%lld seqs=", static_cast<long long>(num_prefill),
      static_cast<long long>(num_decode));
  const char* separator = "";
  for (int i = 0; i < kMostSequences; ++i) {
    if (parts[i].num_tokens > 0) {
      length += std::snprintf(text + length, kMostText - static_cast<std::size_t>(length),
                              "%s%d:%d", separator, i, parts[i].num_tokens);
      separator = ",";
    }
  }
  std::snprintf(text + length, kMostText - static_cast<std::size_t>(length), "]");
  return num_prefill + num_decode;
}

void remember(const Part* parts, FollowedContext& context) {
  for (int i = 0; i < kMostSequences; ++i) {
    if (parts[i].num_tokens > 0) {
      context.sequences[i] = {parts[i].last_position + 1, parts[i].has_logits};
    }
  }
}

std::int32_t marked_decode(void* llama_context, const LlamaBatch& batch) {
  Part parts[kMostSequences];
  char text[kMostText];
  ::pthread_mutex_lock(&mutex);
  FollowedContext* const context = followed(llama_context);
  const bool is_known = context != nullptr && split_batch(batch, *context, parts);
  const std::int64_t num_tokens = is_known ? describe(parts, *context, text) : 0;
  ::pthread_mutex_unlock(&mutex);
  if (!is_known) {
    return decode(llama_context, batch);
  }
  push_text_mark(text, num_tokens);
  const std::int32_t result = decode(llama_context, batch);
  pop_mark();
  if (result == 0) {  // else the batch was not read
    ::pthread_mutex_lock(&mutex);
    remember(parts, *context);
    ::pthread_mutex_unlock(&mutex);
  }
  return result;
}

}  // namespace
}  // namespace gpuwhy

extern "C" __attribute__((visibility("default"))) std::int32_t llama_decode(
    void* context, gpuwhy::LlamaBatch batch) {
  ::pthread_once(&gpuwhy::once, gpuwhy::start);
  if (gpuwhy::decode == nullptr) {
    return -1;  // cannot be: the program called it, so it is linked to it
  }
  return gpuwhy::is_open && batch.num_tokens > 0 ? gpuwhy::marked_decode(context, batch)
                                                 : gpuwhy::decode(context, batch);
}
