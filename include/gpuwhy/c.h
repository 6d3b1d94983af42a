/* SPDX-License-Identifier: Apache-2.0
 *
 * The library as C functions, for bindings of other languages. Tables go out through the Arrow C
 * data interface, without a copy where a column is at hand as it is wanted.
 *
 *   gpuwhy_error* error = NULL;
 *   const char* paths[] = {"run.sqlite"};
 *   const char* options[] = {"model=llama_3_1_8b"};
 *   gpuwhy_profile* profile = gpuwhy_open(paths, 1, options, 1, &error);
 *   if (profile == NULL) { puts(gpuwhy_error_message(error)); gpuwhy_error_free(error); }
 *
 * Threads: any number of threads may call these functions at once, also on one profile. No C++
 * exception leaves them. A function that fails returns NULL or a number other than 0 and, where
 * `error` is not NULL, sets it; the caller frees it.
 */
#ifndef GPUWHY_C_H
#define GPUWHY_C_H

#include <stddef.h>
#include <stdint.h>

/* Names as C has them. NOLINTBEGIN(readability-identifier-naming) */
#ifdef __cplusplus
extern "C" {
#endif

#define GPUWHY_C_API __attribute__((visibility("default")))

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

typedef struct gpuwhy_profile gpuwhy_profile; /* a recording, read and analyzed */
typedef struct gpuwhy_error gpuwhy_error;

/* "1.2.3" of the library that is loaded. */
GPUWHY_C_API const char* gpuwhy_version(void);
/* Of these functions; a larger number adds to them. */
#define GPUWHY_C_VERSION 1
GPUWHY_C_API int gpuwhy_c_version(void);

enum gpuwhy_error_kind {
  GPUWHY_FAILURE = 1, /* the library's, or the machine's */
  GPUWHY_USAGE = 2,   /* an option or a name is wrong */
  GPUWHY_INPUT = 3,   /* a file is unreadable or not what it claims to be */
  GPUWHY_CONTRACT = 4,
  GPUWHY_ENVIRONMENT = 5,
  GPUWHY_ABSENT = 6 /* the recording does not tell; the message says why */
};
GPUWHY_C_API int gpuwhy_error_kind(const gpuwhy_error* error);
GPUWHY_C_API const char* gpuwhy_error_message(const gpuwhy_error* error);
/* What to do about it; may be empty. */
GPUWHY_C_API const char* gpuwhy_error_hint(const gpuwhy_error* error);
GPUWHY_C_API void gpuwhy_error_free(gpuwhy_error* error);

/* Reads what `gpuwhy analyze PATH...` reads. Options are "name=value", named and written as those
 * of that command, with '_' for '-': model, gpu_name, prompt_tokens, new_tokens, batch, context,
 * image, tp, pp, dp, ncu, requests, slo, gpu, pid, from, to, steps, trim, mark, step, rules,
 * annotations, capture_trace, threads, memory_limit. ncu, mark, step and capture_trace may be
 * repeated. */
GPUWHY_C_API gpuwhy_profile* gpuwhy_open(const char* const* paths, size_t num_paths,
                                         const char* const* options, size_t num_options,
                                         gpuwhy_error** error);
/* Tables that were handed out stay valid. */
GPUWHY_C_API void gpuwhy_close(gpuwhy_profile* profile);

/* Texts are UTF-8, end in 0 and belong to the caller. */
GPUWHY_C_API void gpuwhy_free(char* text);
/* What `gpuwhy analyze --json` prints: docs/metrics.md. */
GPUWHY_C_API char* gpuwhy_metrics_json(const gpuwhy_profile* profile, gpuwhy_error** error);
/* One HTML file. The recording is read again, for its timeline. */
GPUWHY_C_API char* gpuwhy_report_html(const gpuwhy_profile* profile, gpuwhy_error** error);
/* One sentence. Valid as long as the profile. */
GPUWHY_C_API const char* gpuwhy_verdict(const gpuwhy_profile* profile);

/* The names of tables, in a fixed order. NULL: there is none of this number. */
GPUWHY_C_API const char* gpuwhy_table_name(size_t number);
/* A table as a struct array, one child per column. Both structs are the caller's to release. */
GPUWHY_C_API int gpuwhy_table(const gpuwhy_profile* profile, const char* name,
                              struct ArrowSchema* schema, struct ArrowArray* array,
                              gpuwhy_error** error);
/* The same as a stream of one batch. */
GPUWHY_C_API int gpuwhy_table_stream(const gpuwhy_profile* profile, const char* name,
                                     struct ArrowArrayStream* stream, gpuwhy_error** error);

/* A side of a comparison: a profile, or else what `gpuwhy compare` reads. */
typedef struct gpuwhy_run {
  const gpuwhy_profile* profile;
  const char* path; /* read if there is no profile */
} gpuwhy_run;
/* `format` is "json" or "html", as those of `gpuwhy compare`; the option is effect=PERCENT. */
GPUWHY_C_API char* gpuwhy_compare(const gpuwhy_run* base, size_t num_base,
                                  const gpuwhy_run* candidate, size_t num_candidate,
                                  const char* const* options, size_t num_options,
                                  const char* format, gpuwhy_error** error);

/* For Python, whose capsules own the structs above. gpuwhy_python() is told where the interpreter
 * has PyCapsule_GetPointer; the others are memory for a capsule, and its destructor. */
GPUWHY_C_API void gpuwhy_python(void* capsule_get_pointer);
GPUWHY_C_API struct ArrowSchema* gpuwhy_new_schema(void);
GPUWHY_C_API struct ArrowArray* gpuwhy_new_array(void);
GPUWHY_C_API struct ArrowArrayStream* gpuwhy_new_stream(void);
GPUWHY_C_API void gpuwhy_end_schema(void* capsule);
GPUWHY_C_API void gpuwhy_end_array(void* capsule);
GPUWHY_C_API void gpuwhy_end_stream(void* capsule);

#ifdef __cplusplus
}
#endif
/* NOLINTEND(readability-identifier-naming) */

#endif
