/* SPDX-License-Identifier: Apache-2.0
 *
 * The library as C functions, for bindings of other languages. Tables go out through the Arrow C
 * data interface, without a copy where a column is at hand as it is wanted.
 *
 *   llmprof_error* error = NULL;
 *   const char* paths[] = {"run.sqlite"};
 *   const char* options[] = {"model=llama_3_1_8b"};
 *   llmprof_profile* profile = llmprof_open(paths, 1, options, 1, &error);
 *   if (profile == NULL) { puts(llmprof_error_message(error)); llmprof_error_free(error); }
 *
 * Threads: any number of threads may call these functions at once, also on one profile. No C++
 * exception leaves them. A function that fails returns NULL or a number other than 0 and, where
 * `error` is not NULL, sets it; the caller frees it.
 */
#ifndef LLMPROF_C_H
#define LLMPROF_C_H

#include <stddef.h>
#include <stdint.h>

/* Names as C has them. NOLINTBEGIN(readability-identifier-naming) */
#ifdef __cplusplus
extern "C" {
#endif

#define LLMPROF_C_API __attribute__((visibility("default")))

/* As published at https://arrow.apache.org/docs/format/CDataInterface.html. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};
#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};
#endif

typedef struct llmprof_profile llmprof_profile; /* a recording, read and analyzed */
typedef struct llmprof_error llmprof_error;

/* "1.2.3" of the library that is loaded. */
LLMPROF_C_API const char* llmprof_version(void);
/* Of these functions; a larger number adds to them. */
#define LLMPROF_C_VERSION 1
LLMPROF_C_API int llmprof_c_version(void);

enum llmprof_error_kind {
  LLMPROF_FAILURE = 1, /* the library's, or the machine's */
  LLMPROF_USAGE = 2,   /* an option or a name is wrong */
  LLMPROF_INPUT = 3,   /* a file is unreadable or not what it claims to be */
  LLMPROF_CONTRACT = 4,
  LLMPROF_ENVIRONMENT = 5,
  LLMPROF_ABSENT = 6 /* the recording does not tell; the message says why */
};
LLMPROF_C_API int llmprof_error_kind(const llmprof_error* error);
LLMPROF_C_API const char* llmprof_error_message(const llmprof_error* error);
/* What to do about it; may be empty. */
LLMPROF_C_API const char* llmprof_error_hint(const llmprof_error* error);
LLMPROF_C_API void llmprof_error_free(llmprof_error* error);

/* Reads what `llmprof analyze PATH...` reads. Options are "name=value", named and written as those
 * of that command, with '_' for '-': model, gpu_name, prompt_tokens, new_tokens, batch, context,
 * image, tp, pp, dp, ncu, requests, slo, gpu, pid, from, to, steps, trim, mark, step, rules,
 * annotations, capture_trace, threads, memory_limit. ncu, mark, step and capture_trace may be
 * repeated. */
LLMPROF_C_API llmprof_profile* llmprof_open(const char* const* paths, size_t num_paths,
                                            const char* const* options, size_t num_options,
                                            llmprof_error** error);
/* Tables that were handed out stay valid. */
LLMPROF_C_API void llmprof_close(llmprof_profile* profile);

/* Texts are UTF-8, end in 0 and belong to the caller. */
LLMPROF_C_API void llmprof_free(char* text);
/* What `llmprof analyze --json` prints: docs/metrics.md. */
LLMPROF_C_API char* llmprof_metrics_json(const llmprof_profile* profile, llmprof_error** error);
/* One HTML file. The recording is read again, for its timeline. */
LLMPROF_C_API char* llmprof_report_html(const llmprof_profile* profile, llmprof_error** error);
/* One sentence. Valid as long as the profile. */
LLMPROF_C_API const char* llmprof_verdict(const llmprof_profile* profile);

/* The names of tables, in a fixed order. NULL: there is none of this number. */
LLMPROF_C_API const char* llmprof_table_name(size_t number);
/* A table as a struct array, one child per column. Both structs are the caller's to release. */
LLMPROF_C_API int llmprof_table(const llmprof_profile* profile, const char* name,
                                struct ArrowSchema* schema, struct ArrowArray* array,
                                llmprof_error** error);
/* The same as a stream of one batch. */
LLMPROF_C_API int llmprof_table_stream(const llmprof_profile* profile, const char* name,
                                       struct ArrowArrayStream* stream, llmprof_error** error);

/* A side of a comparison: a profile, or else what `llmprof compare` reads. */
typedef struct llmprof_run {
  const llmprof_profile* profile;
  const char* path; /* read if there is no profile */
} llmprof_run;
/* `format` is "json" or "html", as those of `llmprof compare`; the option is effect=PERCENT. */
LLMPROF_C_API char* llmprof_compare(const llmprof_run* base, size_t num_base,
                                    const llmprof_run* candidate, size_t num_candidate,
                                    const char* const* options, size_t num_options,
                                    const char* format, llmprof_error** error);

/* For Python, whose capsules own the structs above. llmprof_python() is told where the interpreter
 * has PyCapsule_GetPointer; the others are memory for a capsule, and its destructor. */
LLMPROF_C_API void llmprof_python(void* capsule_get_pointer);
LLMPROF_C_API struct ArrowSchema* llmprof_new_schema(void);
LLMPROF_C_API struct ArrowArray* llmprof_new_array(void);
LLMPROF_C_API struct ArrowArrayStream* llmprof_new_stream(void);
LLMPROF_C_API void llmprof_end_schema(void* capsule);
LLMPROF_C_API void llmprof_end_array(void* capsule);
LLMPROF_C_API void llmprof_end_stream(void* capsule);

#ifdef __cplusplus
}
#endif
/* NOLINTEND(readability-identifier-naming) */

#endif
