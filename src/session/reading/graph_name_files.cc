// SPDX-License-Identifier: Apache-2.0
//
// Files with the names of kernels in CUDA graphs: those that are given, and those that lie beside a
// recording under the names that engines and PyTorch use.
//
//   kernel_annotations_rank0_*.json                 PyTorch; beside the trace or one folder up
//   capture_traces/graph_capture_rank_0.*           vLLM
//   graph_capture_profile/*_rank0.json.gz           SGLang, one for each batch size
//
// A recording that does not tell its rank has the rank in its file name, else for rank 0.
#include "session/reading/graph_name_files.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "analysis/kernels/graph_names.h"
#include "base/error.h"
#include "ingest/ingest.h"
#include "ingest/kineto/graph_annotations.h"
#include "session/reading/memory_fit.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFound = 64;  // files beside a recording that are read
constexpr const char* kDiagnostic = "graph_names";

// "rank3", "rank_3" or "rank-3" in a file name.
std::optional<std::int64_t> rank_in(const std::string& name) {
  std::size_t at = name.rfind("rank");
  if (at == std::string::npos) {
    return std::nullopt;
  }
  at += 4;
  at += at < name.size() && (name[at] == '_' || name[at] == '-') ? 1 : 0;
  std::int64_t rank = 0;
  const auto [end, failure] = std::from_chars(name.data() + at, name.data() + name.size(), rank);
  return failure == std::errc() && rank >= 0 ? std::optional(rank) : std::nullopt;
}

// Files of a folder for which fits(name) holds, sorted.
template <typename Fits>
std::vector<std::string> files_in(const fs::path& folder, Fits fits) {
  std::vector<std::string> files;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    std::error_code ignored;
    const std::string name = entry.path().filename().string();
    if (fits(name) && entry.is_regular_file(ignored)) {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  files.resize(std::min(files.size(), kMostFound));
  return files;
}

fs::path folder_of(const fs::path& file) {
  std::error_code ignored;
  const fs::path whole = fs::absolute(file, ignored);
  return (whole.empty() ? file : whole).parent_path();
}

class NameFiles {
 public:
  NameFiles(const fs::path& recording, std::optional<std::uint64_t> memory_bytes, Trace& trace)
      : folder_(folder_of(recording)),
        rank_(trace.capture.rank ? *trace.capture.rank
                                 : rank_in(recording.filename().string()).value_or(0)),
        memory_bytes_(memory_bytes),
        trace_(trace) {}

  std::vector<std::string> annotations_beside() const {
    for (const fs::path& folder : {folder_, folder_.parent_path()}) {
      std::vector<std::string> found = files_in(folder, [&](const std::string& name) {
        return name.starts_with("kernel_annotations_") && name.ends_with(".json") && is_ours(name);
      });
      if (!found.empty()) {
        return found;
      }
    }
    return {};
  }

  std::vector<std::string> captures_beside() const {
    std::vector<std::string> found =
        files_in(folder_ / "capture_traces", [&](const std::string& name) {
          return name.starts_with("graph_capture_rank") && is_trace(name) && is_ours(name);
        });
    if (found.empty()) {
      found = files_in(folder_ / "graph_capture_profile",
                       [&](const std::string& name) { return is_trace(name) && is_ours(name); });
    }
    return found;
  }

  void annotate(const std::string& file) {
    const std::int64_t before = count_graph_names(trace_).named();
    name_nodes_by_annotations(load_graph_annotations(file), trace_);
    const std::int64_t num_named = count_graph_names(trace_).named() - before;
    say(file, num_named, "no node id of the recording is in it");
  }

  void align(const std::string& file) {
    std::vector<InputFile> input;
    input.emplace_back(file);
    if (memory_bytes_) {
      fit_into_memory(input, *memory_bytes_, {}, 1);
    }
    constexpr unsigned kReaders = 1;
    const AlignedKernels aligned = name_nodes_by_order(load_trace(input.front(), kReaders), trace_);
    say(file, aligned.num_aligned,
        aligned.num_known == 0
            ? "it does not tell which kernels were launched: a capture recorded on CUDA names no "
              "kernels, so give a trace of the program without graphs"
            : "no graph of the recording runs the kernels it has in their order");
    if (aligned.is_exhausted) {
      warn(fmt::format("{}: the graphs differ too much from it, and some were not compared", file));
    }
  }

  void warn(std::string sentence) {
    trace_.diagnostics.push_back({kDiagnostic, Severity::kWarning, 1, std::move(sentence)});
  }

 private:
  bool is_ours(const std::string& name) const { return rank_in(name).value_or(0) == rank_; }
  static bool is_trace(const std::string& name) {
    return name.ends_with(".json") || name.ends_with(".json.gz");
  }

  void say(const std::string& file, std::int64_t num_named, std::string_view why_none) {
    if (num_named == 0) {
      warn(fmt::format("{} names no kernel of a CUDA graph: {}", file, why_none));
      return;
    }
    trace_.diagnostics.push_back(
        {kDiagnostic, Severity::kInfo, num_named,
         fmt::format("{} kernels of CUDA graphs have their names from {}", num_named, file)});
  }

  fs::path folder_;
  std::int64_t rank_;
  std::optional<std::uint64_t> memory_bytes_;
  Trace& trace_;
};

// Reads the given files, else the found ones, whose mistakes must not stop the analysis.
template <typename Read>
void read_name_files(const std::vector<std::string>& given, const std::vector<std::string>& found,
                     NameFiles& files, const Trace& trace, Read read) {
  for (const std::string& file : given) {
    read(file);
  }
  for (const std::string& file : given.empty() ? found : std::vector<std::string>()) {
    if (!has_unnamed_nodes(trace)) {
      return;
    }
    try {
      read(file);
    } catch (const Error& error) {
      files.warn(fmt::format("a file beside the recording was not used: {}", error.what()));
    }
  }
}

}  // namespace

void name_graph_kernels(const fs::path& recording, const GraphNameFiles& names,
                        std::optional<std::uint64_t> memory_bytes, Trace& trace) {
  NameFiles files(recording, memory_bytes, trace);
  if (count_graph_names(trace).num_kernels == 0) {
    if (!names.annotations.empty() || !names.capture_traces.empty()) {
      files.warn("the recording has no kernels of CUDA graphs: there is nothing to name");
    }
    return;
  }
  name_nodes_by_nvtx(trace);
  const std::vector<std::string> annotations =
      names.annotations.empty() ? std::vector<std::string>() : std::vector{names.annotations};
  using Files = std::vector<std::string>;
  read_name_files(annotations, names.is_search_allowed ? files.annotations_beside() : Files(),
                  files, trace, [&](const std::string& file) { files.annotate(file); });
  if (!trace.captured_launches.empty()) {
    name_nodes_by_order(trace, trace);
  }
  read_name_files(names.capture_traces, names.is_search_allowed ? files.captures_beside() : Files(),
                  files, trace, [&](const std::string& file) { files.align(file); });
}

}  // namespace gpuwhy
