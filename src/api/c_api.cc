// SPDX-License-Identifier: Apache-2.0
//
// The C functions of the library: what crosses them are plain pointers, texts and Arrow's structs.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include <gpuwhy/c.h>

#include "analysis/profile.h"
#include "analysis/timeline/timeline.h"
#include "api/arrow.h"
#include "api/open_options.h"
#include "api/tables.h"
#include "base/error.h"
#include "report/comparison/comparison.h"
#include "report/sections/files.h"
#include "results/json.h"
#include "session/reading/compared_runs.h"

struct gpuwhy_error {  // NOLINT(readability-identifier-naming)
  int kind = GPUWHY_FAILURE;
  std::string message;
  std::string hint;
};

struct gpuwhy_profile {  // NOLINT(readability-identifier-naming)
  std::shared_ptr<const gpuwhy::OpenRecording> recording;
};

namespace gpuwhy {
namespace {

// Rows of each table on the page of a comparison, as `gpuwhy compare` has at least.
constexpr std::size_t kPageRows = 20;

// A caller that passes no place for an error gets none. Without memory for one, the place stays
// null, which gpuwhy_error_message() knows.
void set_error(gpuwhy_error** error, int kind, const std::string& message,
               const std::string& hint) noexcept {
  if (error != nullptr) {
    try {
      *error = new gpuwhy_error{kind, message, hint};
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
      return GPUWHY_USAGE;
    case ErrorKind::kInput:
      return GPUWHY_INPUT;
    case ErrorKind::kContract:
      return GPUWHY_CONTRACT;
    case ErrorKind::kEnvironment:
      return GPUWHY_ENVIRONMENT;
  }
  return GPUWHY_FAILURE;
}

// Runs `body`; its exception becomes `error`, its result `failed`.
template <typename Result, typename Body>
Result no_throw(gpuwhy_error** error, Result failed, Body&& body) noexcept {
  if (error != nullptr) {
    *error = nullptr;
  }
  try {
    return body();
  } catch (const Error& thrown) {
    set_error(error, number_of(thrown.kind()), thrown.what(), thrown.hint());
  } catch (const std::bad_alloc&) {
    set_error(error, GPUWHY_FAILURE, "out of memory", "");
  } catch (const std::exception& thrown) {
    set_error(error, GPUWHY_FAILURE, thrown.what(), "");
  } catch (...) {
    set_error(error, GPUWHY_FAILURE, "unknown failure", "");
  }
  return failed;
}

// A text that gpuwhy_free() ends, in whatever language it is held.
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

// Hands a table to `use`, or sets why there is none.
template <typename Use>
int with_table(const gpuwhy_profile* profile, const char* name, gpuwhy_error** error, Use&& use) {
  given(name, "name");
  const std::shared_ptr<const OpenRecording>& recording = given(profile, "profile").recording;
  const TableResult made = make_table(recording, name);
  if (!made.reason.empty()) {
    set_error(error, GPUWHY_ABSENT, made.reason, made.hint);
    return -1;
  }
  use(ColumnTable{name, made.num_rows, made.columns(), recording});
  return 0;
}

// Profiles as they were read, paths as `gpuwhy compare` reads them: a baseline may hold many runs.
std::vector<RunSummary> runs_of(std::span<const gpuwhy_run> given_runs) {
  std::vector<RunSummary> summaries;
  for (const gpuwhy_run& run : given_runs) {
    if (run.profile != nullptr) {
      const OpenRecording& recording = *run.profile->recording;
      summaries.push_back(summary_of_metrics(recording.paths.front(), recording.profile.analysis));
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
}  // namespace gpuwhy

using gpuwhy::given;
using gpuwhy::no_throw;

const char* gpuwhy_version(void) {
  return GPUWHY_VERSION;
}

int gpuwhy_c_version(void) {
  return GPUWHY_C_VERSION;
}

int gpuwhy_error_kind(const gpuwhy_error* error) {
  return error == nullptr ? 0 : error->kind;
}

const char* gpuwhy_error_message(const gpuwhy_error* error) {
  return error == nullptr ? "out of memory" : error->message.c_str();
}

const char* gpuwhy_error_hint(const gpuwhy_error* error) {
  return error == nullptr ? "" : error->hint.c_str();
}

void gpuwhy_error_free(gpuwhy_error* error) {
  delete error;
}

gpuwhy_profile* gpuwhy_open(const char* const* paths, size_t num_paths, const char* const* options,
                            size_t num_options, gpuwhy_error** error) {
  return no_throw(error, static_cast<gpuwhy_profile*>(nullptr), [&] {
    std::vector<std::string> files;
    for (const char* path : gpuwhy::given_span(paths, num_paths)) {
      given(path, "path");
      files.emplace_back(path);
    }
    if (files.empty()) {
      throw gpuwhy::Error(gpuwhy::ErrorKind::kUsage, "no path is given");
    }
    gpuwhy::OpenOptions read = gpuwhy::open_options(gpuwhy::given_span(options, num_options));
    return new gpuwhy_profile{std::make_shared<const gpuwhy::OpenRecording>(gpuwhy::read_recording(
        std::move(files), std::move(read.recording), read.model, gpuwhy::this_system()))};
  });
}

void gpuwhy_close(gpuwhy_profile* profile) {
  delete profile;
}

void gpuwhy_free(char* text) {
  std::free(text);
}

char* gpuwhy_metrics_json(const gpuwhy_profile* profile, gpuwhy_error** error) {
  return no_throw(error, static_cast<char*>(nullptr), [&] {
    return gpuwhy::copy_of(
        gpuwhy::metrics_json_text(given(profile, "profile").recording->profile.analysis));
  });
}

char* gpuwhy_report_html(const gpuwhy_profile* profile, gpuwhy_error** error) {
  return no_throw(error, static_cast<char*>(nullptr), [&] {
    const gpuwhy::OpenRecording& recording = *given(profile, "profile").recording;
    gpuwhy::ProfileWants wants = recording.wants;
    wants.has_timeline = true;
    const gpuwhy::Profile again = gpuwhy::profile_recordings(recording.paths, recording.options,
                                                             gpuwhy::this_system(), wants);
    return gpuwhy::copy_of(gpuwhy::report_page(again.analysis, again.timeline));
  });
}

const char* gpuwhy_verdict(const gpuwhy_profile* profile) {
  return profile == nullptr ? "" : profile->recording->verdict.c_str();
}

const char* gpuwhy_table_name(size_t number) {
  const std::span<const gpuwhy::TableInfo> tables = gpuwhy::all_tables();
  return number < tables.size() ? tables[number].name : nullptr;
}

int gpuwhy_table(const gpuwhy_profile* profile, const char* name, ArrowSchema* schema,
                 ArrowArray* array, gpuwhy_error** error) {
  return no_throw(error, -1, [&] {
    given(schema, "schema");
    given(array, "array");
    return gpuwhy::with_table(profile, name, error, [&](const gpuwhy::ColumnTable& table) {
      gpuwhy::export_array(table, *array);
      try {
        gpuwhy::export_schema(table, *schema);
      } catch (...) {
        array->release(array);
        throw;
      }
    });
  });
}

int gpuwhy_table_stream(const gpuwhy_profile* profile, const char* name, ArrowArrayStream* stream,
                        gpuwhy_error** error) {
  return no_throw(error, -1, [&] {
    given(stream, "stream");
    return gpuwhy::with_table(profile, name, error, [&](gpuwhy::ColumnTable table) {
      gpuwhy::export_stream(std::move(table), *stream);
    });
  });
}

char* gpuwhy_compare(const gpuwhy_run* base, size_t num_base, const gpuwhy_run* candidate,
                     size_t num_candidate, const char* const* options, size_t num_options,
                     const char* format, gpuwhy_error** error) {
  return no_throw(error, static_cast<char*>(nullptr), [&] {
    const std::string_view form = &given(format, "format");
    if (form != "json" && form != "html") {
      throw gpuwhy::Error(gpuwhy::ErrorKind::kUsage, "format takes json or html");
    }
    const gpuwhy::Comparison comparison =
        gpuwhy::compare_runs(gpuwhy::runs_of(gpuwhy::given_span(base, num_base)),
                             gpuwhy::runs_of(gpuwhy::given_span(candidate, num_candidate)),
                             gpuwhy::compare_options(gpuwhy::given_span(options, num_options)));
    return gpuwhy::copy_of(form == "json" ? gpuwhy::comparison_json(comparison)
                                          : gpuwhy::comparison_page(comparison, gpuwhy::kPageRows));
  });
}
