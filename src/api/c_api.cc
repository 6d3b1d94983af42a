// SPDX-License-Identifier: Apache-2.0
//
// The C functions of the library: what crosses them are plain pointers, texts and Arrow's structs.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include <llmprof/c.h>

#include "api/open_options.h"
#include "api/tables.h"
#include "base/error.h"
#include "report/comparison.h"
#include "session/compared_runs.h"

struct llmprof_error {  // NOLINT(readability-identifier-naming)
  int kind = LLMPROF_FAILURE;
  std::string message;
  std::string hint;
};

struct llmprof_profile {  // NOLINT(readability-identifier-naming)
  std::shared_ptr<const llmprof::OpenRecording> recording;
};

namespace llmprof {
namespace {

// Rows of each table on the page of a comparison, as `llmprof compare` has at least.
constexpr std::size_t kPageRows = 20;

// A caller that passes no place for an error gets none. Without memory for one, the place stays
// null, which llmprof_error_message() knows.
void set_error(llmprof_error** error, int kind, const std::string& message,
               const std::string& hint) noexcept {
  if (error != nullptr) {
    try {
      *error = new llmprof_error{kind, message, hint};
    } catch (...) {
      *error = nullptr;
    }
  }
}

int number_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kFailure:
      break;
    case ErrorKind::kUsage:
      return LLMPROF_USAGE;
    case ErrorKind::kInput:
      return LLMPROF_INPUT;
    case ErrorKind::kContract:
      return LLMPROF_CONTRACT;
    case ErrorKind::kEnvironment:
      return LLMPROF_ENVIRONMENT;
  }
  return LLMPROF_FAILURE;
}

// Runs `body`; its exception becomes `error`, its result `failed`.
template <typename Result, typename Body>
Result no_throw(llmprof_error** error, Result failed, Body&& body) noexcept {
  if (error != nullptr) {
    *error = nullptr;
  }
  try {
    return body();
  } catch (const Error& thrown) {
    set_error(error, number_of(thrown.kind()), thrown.what(), thrown.hint());
  } catch (const std::bad_alloc&) {
    set_error(error, LLMPROF_FAILURE, "out of memory", "");
  } catch (const std::exception& thrown) {
    set_error(error, LLMPROF_FAILURE, thrown.what(), "");
  } catch (...) {
    set_error(error, LLMPROF_FAILURE, "unknown failure", "");
  }
  return failed;
}

// A text that llmprof_free() ends, in whatever language it is held.
char* copy_of(const std::string& text) {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) {
    throw std::bad_alloc();
  }
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

// Nothing was given where something must be.
template <typename T>
const T& given(const T* pointer, const char* what) {
  if (pointer == nullptr) {
    throw Error(ErrorKind::kUsage, std::string(what) + " is null");
  }
  return *pointer;
}

// A null list is an empty one.
template <typename T>
std::span<const T> given_span(const T* first, std::size_t count) {
  return first == nullptr ? std::span<const T>() : std::span<const T>(first, count);
}

TableResult table_or_reason(const llmprof_profile* profile, const char* name) {
  given(name, "name");
  return make_table(given(profile, "profile").recording, name);
}

// Profiles as they were read, paths as `llmprof compare` reads them: a baseline may hold many runs.
std::vector<RunSummary> runs_of(std::span<const llmprof_run> given_runs) {
  std::vector<RunSummary> summaries;
  for (const llmprof_run& run : given_runs) {
    if (run.profile != nullptr) {
      const OpenRecording& recording = *run.profile->recording;
      summaries.push_back(summary_of_metrics(recording.paths.front(), recording.metrics));
      continue;
    }
    given(run.path, "path");
    for (RunSummary& summary : summaries_of(load_compared({run.path}, this_system()))) {
      summaries.push_back(std::move(summary));
    }
  }
  if (summaries.empty()) {
    throw Error(ErrorKind::kUsage, "a side of the comparison has no run");
  }
  return summaries;
}

}  // namespace
}  // namespace llmprof

using llmprof::given;
using llmprof::no_throw;

const char* llmprof_version(void) {
  return LLMPROF_VERSION;
}

int llmprof_c_version(void) {
  return LLMPROF_C_VERSION;
}

int llmprof_error_kind(const llmprof_error* error) {
  return error == nullptr ? 0 : error->kind;
}

const char* llmprof_error_message(const llmprof_error* error) {
  return error == nullptr ? "out of memory" : error->message.c_str();
}

const char* llmprof_error_hint(const llmprof_error* error) {
  return error == nullptr ? "" : error->hint.c_str();
}

void llmprof_error_free(llmprof_error* error) {
  delete error;
}

llmprof_profile* llmprof_open(const char* const* paths, size_t num_paths,
                              const char* const* options, size_t num_options,
                              llmprof_error** error) {
  return no_throw(error, static_cast<llmprof_profile*>(nullptr), [&] {
    auto recording = std::make_shared<llmprof::OpenRecording>();
    for (const char* path : llmprof::given_span(paths, num_paths)) {
      given(path, "path");
      recording->paths.emplace_back(path);
    }
    if (recording->paths.empty()) {
      throw llmprof::Error(llmprof::ErrorKind::kUsage, "no path is given");
    }
    const llmprof::OpenOptions read =
        llmprof::open_options(llmprof::given_span(options, num_options));
    recording->options = read.recording;
    if (!read.model.model.empty()) {
      recording->wants.model = llmprof::model_setup(read.model);
    }
    recording->wants.gpu_name = read.model.gpu_name;
    recording->wants.batch = read.model.setup.batch;
    recording->profile = llmprof::profile_recordings(recording->paths, recording->options,
                                                     llmprof::this_system(), recording->wants);
    recording->metrics = llmprof::metrics_of(recording->profile.analysis);
    return new llmprof_profile{std::move(recording)};
  });
}

void llmprof_close(llmprof_profile* profile) {
  delete profile;
}

void llmprof_free(char* text) {
  std::free(text);
}

char* llmprof_metrics_json(const llmprof_profile* profile, llmprof_error** error) {
  return no_throw(error, static_cast<char*>(nullptr), [&] {
    return llmprof::copy_of(
        llmprof::metrics_json_text(given(profile, "profile").recording->metrics));
  });
}

char* llmprof_report_html(const llmprof_profile* profile, llmprof_error** error) {
  return no_throw(error, static_cast<char*>(nullptr), [&] {
    const llmprof::OpenRecording& recording = *given(profile, "profile").recording;
    llmprof::ProfileWants wants = recording.wants;
    wants.has_timeline = true;
    const llmprof::Profile again = llmprof::profile_recordings(recording.paths, recording.options,
                                                               llmprof::this_system(), wants);
    return llmprof::copy_of(
        llmprof::report_page(llmprof::metrics_of(again.analysis), again.timeline));
  });
}

const char* llmprof_verdict(const llmprof_profile* profile) {
  return profile == nullptr ? "" : profile->recording->metrics.verdict.c_str();
}

const char* llmprof_table_name(size_t number) {
  const std::span<const char* const> names = llmprof::table_names();
  return number < names.size() ? names[number] : nullptr;
}

int llmprof_table(const llmprof_profile* profile, const char* name, ArrowSchema* schema,
                  ArrowArray* array, llmprof_error** error) {
  return no_throw(error, -1, [&] {
    given(schema, "schema");
    given(array, "array");
    const llmprof::TableResult made = llmprof::table_or_reason(profile, name);
    if (!made.reason.empty()) {
      llmprof::set_error(error, LLMPROF_ABSENT, made.reason, made.hint);
      return -1;
    }
    llmprof::export_array(made.table, *array);
    try {
      llmprof::export_schema(made.table, *schema);
    } catch (...) {
      array->release(array);
      throw;
    }
    return 0;
  });
}

int llmprof_table_stream(const llmprof_profile* profile, const char* name, ArrowArrayStream* stream,
                         llmprof_error** error) {
  return no_throw(error, -1, [&] {
    given(stream, "stream");
    llmprof::TableResult made = llmprof::table_or_reason(profile, name);
    if (!made.reason.empty()) {
      llmprof::set_error(error, LLMPROF_ABSENT, made.reason, made.hint);
      return -1;
    }
    llmprof::export_stream(std::move(made.table), *stream);
    return 0;
  });
}

char* llmprof_compare(const llmprof_run* base, size_t num_base, const llmprof_run* candidate,
                      size_t num_candidate, const char* const* options, size_t num_options,
                      const char* format, llmprof_error** error) {
  return no_throw(error, static_cast<char*>(nullptr), [&] {
    const std::string_view form = &given(format, "format");
    if (form != "json" && form != "html") {
      throw llmprof::Error(llmprof::ErrorKind::kUsage, "format takes json or html");
    }
    const llmprof::Comparison comparison =
        llmprof::compare_runs(llmprof::runs_of(llmprof::given_span(base, num_base)),
                              llmprof::runs_of(llmprof::given_span(candidate, num_candidate)),
                              llmprof::compare_options(llmprof::given_span(options, num_options)));
    return llmprof::copy_of(form == "json"
                                ? llmprof::comparison_json(comparison)
                                : llmprof::comparison_page(comparison, llmprof::kPageRows));
  });
}
