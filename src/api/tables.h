// SPDX-License-Identifier: Apache-2.0
//
// The tables of a recording, by name, for the library and for gpuwhy table.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/profile.h"
#include "results/columns.h"
#include "results/results.h"
#include "session/reading/named_model.h"
#include "session/reading/recording.h"

namespace gpuwhy {

// A recording that a caller of the library holds, and how it was read: a report reads it again.
// Never changed once it is there, so that threads may share it.
struct OpenRecording {
  std::vector<std::string> paths;
  RecordingOptions options;
  ProfileWants wants;
  Profile profile;
  std::string verdict;  // as text
};

// A table, or why there is none. Its rows are counted before its columns are made; these refer to
// the recording.
struct TableResult {
  std::size_t num_rows = 0;
  std::function<std::vector<ResultColumn>()> columns = {};
  std::string reason = {};  // empty: there is one
  std::string hint = {};
};

// What a recording's files hold, read once for all tables. Throws as profile_recordings() does.
OpenRecording read_recording(std::vector<std::string> paths, RecordingOptions options,
                             const ModelChoice& model, const System& system);

// A table by its name; `section`: the section of a report that shows the same to a person, or null.
struct TableInfo {
  const char* name;
  const char* summary;
  const char* section;
  TableResult (*make)(const std::shared_ptr<const OpenRecording>& recording);
};
std::span<const TableInfo> all_tables();

// Throws kUsage where no table has that name.
TableResult make_table(const std::shared_ptr<const OpenRecording>& recording,
                       std::string_view name);

}  // namespace gpuwhy
