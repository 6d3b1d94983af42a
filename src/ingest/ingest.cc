// SPDX-License-Identifier: Apache-2.0
//
// Which format is this file, and who reads it? One line a format; each knows itself.
#include "ingest/ingest.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "base/error.h"

namespace llmprof {
namespace {

const std::array<const Importer*, 3> kImporters = {&kNsysReport, &kNsysSqlite, &kKinetoJson};

const std::array<const CounterImporter*, 2> kCounterImporters = {&kNcuReport, &kNcuCsv};

constexpr std::size_t kHeadSize = 1024;  // gzip's first text may stand behind 300 bytes of tables

}  // namespace

std::string head_of(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw Error(ErrorKind::kUsage, fmt::format("{} is a directory", path.string()),
                "give a file: the .sqlite that nsys export wrote, or a .nsys-rep");
  }
  // Opening a pipe waits for whoever writes into it, maybe for ever.
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored)) {
    throw Error(ErrorKind::kUsage, fmt::format("{} is not a regular file", path.string()));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(ErrorKind::kUsage,
                fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
  }
  std::string head(kHeadSize, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  return head;
}

bool is_nsys_report(const std::filesystem::path& path) {
  return kNsysReport.sniff(head_of(path), path);
}

namespace {

const Importer& importer_of(const std::filesystem::path& path) {
  const std::string head = head_of(path);
  if (head.empty()) {
    throw Error(ErrorKind::kInput, fmt::format("{} is empty", path.string()),
                "the export did not finish: run nsys export again");
  }
  for (const Importer* importer : kImporters) {
    if (importer->sniff(head, path)) {
      return *importer;
    }
  }
  throw Error(
      ErrorKind::kInput, fmt::format("{} is no recording llmprof reads", path.string()),
      "it reads SQLite exports of Nsight Systems (nsys export --type sqlite FILE.nsys-rep) and "
      "traces of PyTorch's profiler (.json, .json.gz)");
}

}  // namespace

Trace load_trace(const std::filesystem::path& path, unsigned num_threads) {
  const Importer& importer = importer_of(path);
  Trace trace = importer.load(path, num_threads);
  trace.capture.path = path.string();
  trace.capture.format = importer.name;
  return trace;
}

TraceOutline outline_trace(const std::filesystem::path& path) {
  const Importer& importer = importer_of(path);
  TraceOutline outline = importer.outline(path);
  outline.format = importer.name;
  return outline;
}

Counters load_counters(const std::filesystem::path& path) {
  const std::string head = head_of(path);
  for (const CounterImporter* importer : kCounterImporters) {
    if (importer->sniff(head, path)) {
      Counters counters = with_context(path.string(), [&] { return importer->load(path); });
      counters.path = path.string();
      counters.format = importer->name;
      return counters;
    }
  }
  throw Error(ErrorKind::kInput, fmt::format("{} holds no counters llmprof reads", path.string()),
              "it reads reports of Nsight Compute (.ncu-rep) and what ncu prints with --csv");
}

}  // namespace llmprof
