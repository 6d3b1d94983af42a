// SPDX-License-Identifier: Apache-2.0
#include "fuzz/targets.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include "agents/mcp_server.h"
#include "analysis/kernels/graph_names.h"
#include "analysis/profile.h"
#include "analysis/stages/step_markers.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_page.h"
#include "base/yaml.h"
#include "bundle/manifest.h"
#include "capture/nvtx_timer.h"
#include "cli/commands/budgets.h"
#include "config/compose.h"
#include "config/override.h"
#include "fleet/history/clickhouse.h"
#include "fleet/merge/fleet_summary.h"
#include "fleet/merge/merge.h"
#include "fleet/summary/columnar_file.h"
#include "fleet/summary/summary_file.h"
#include "fuzz/structure.h"
#include "ingest/ingest.h"
#include "ingest/kineto/graph_annotations.h"
#include "ingest/ncu/ncu_csv.h"
#include "ingest/ncu/ncu_rep.h"
#include "ingest/nsys/nsys_csv.h"
#include "ingest/operators_csv.h"
#include "ingest/requests/request_files.h"
#include "model/gguf.h"
#include "model/llm.h"
#include "model/safetensors.h"
#include "report/sections/files.h"
#include "report/sections/worth.h"
#include "results/json.h"
#include "results/results.h"
#include "serve/stream_reader.h"
#include "session/reading/compared_runs.h"

namespace gpuwhy {
namespace {

void must(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "%s\n", what);
    std::abort();
  }
}

// The bytes as a file, for readers that map or seek. In memory where there is a folder for it; not
// a memfd, which SQLite does not open.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) {
    std::ofstream out(path(), std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    must(out.flush().good(), "no file in memory");
  }
  ~MemoryFile() { std::filesystem::remove(path()); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  static const std::filesystem::path& path() {
    static const std::filesystem::path kPath =
        std::filesystem::path(std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp") /
        ("gpuwhy-fuzz-" + std::to_string(getpid()));
    return kPath;
  }
};

// A folder without files of others, as long as the process runs.
struct EmptyFolder {
  EmptyFolder() { std::filesystem::create_directories(path); }
  ~EmptyFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  EmptyFolder(const EmptyFolder&) = delete;
  EmptyFolder& operator=(const EmptyFolder&) = delete;

  const std::filesystem::path path = MemoryFile::path().string() + "-root";
};

void check_analysis(const Analysis& analysis) {
  for (const LedgerRow& ledger : analysis.ledgers) {
    must(ledger.sum_ns() == ledger.window_ns, "a ledger does not add up");
  }
  must(metrics_json(analysis).is_object(), "no metrics");
}

void run_trace(std::string_view bytes) {
  const MemoryFile file(bytes);
  Trace trace = load_trace(file.path(), 1);
  name_nodes_by_nvtx(trace);
  name_nodes_by_order(trace, trace);
  check_analysis(profile(std::move(trace), Rules()).analysis);
}

void run_annotations(std::string_view bytes) {
  parse_graph_annotations(bytes, "names.json");
}

void run_ncu_rep(std::string_view bytes) {
  parse_ncu_rep(bytes);
}

void run_ncu_csv(std::string_view bytes) {
  parse_ncu_output(bytes);
}

void run_nsys_csv(std::string_view bytes) {
  check_analysis(profile(parse_nsys_csv(bytes), Rules()).analysis);
}

void run_operators(std::string_view bytes) {
  parse_operators_csv(bytes);
}

// Rows that are kept have times in order.
void run_requests(std::string_view bytes) {
  const Requests requests = parse_requests(bytes, "requests.jsonl");
  must(requests.token_begin.size() == requests.size() + 1, "tokens of a row are missing");
  for (std::size_t row = 0; row < requests.size(); ++row) {
    const auto tokens = requests.tokens_of(row);
    must(std::is_sorted(tokens.begin(), tokens.end()), "tokens are not in order");
  }
}

void run_gguf(std::string_view bytes) {
  const MemoryFile file(bytes);
  config_from_gguf(read_gguf(file.path()));
}

void run_safetensors(std::string_view bytes) {
  const MemoryFile file(bytes);
  read_safetensors(file.path());
}

void run_llm_config(std::string_view bytes) {
  const Llm llm = llm_from_config(parse_json(bytes, "config.json"));
  constexpr std::int64_t kTokens = 128;
  cost_of(llm, prefill_work(kTokens));
  cost_of(llm, decode_work(kTokens));
}

// Overrides, a line each.
void run_overrides(std::string_view bytes) {
  std::vector<std::string> overrides;
  while (!bytes.empty() && overrides.size() < 20) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    overrides.emplace_back(bytes.substr(0, end));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  compose(std::nullopt, overrides);
}

void run_yaml(std::string_view bytes) {
  const Json tree = parse_yaml(bytes, "fuzz.yaml");
  must(parse_yaml(to_yaml_text(tree), "again") == tree, "YAML does not come back");
}

void run_config_file(std::string_view bytes) {
  const MemoryFile file(bytes);
  compose(file.path(), {});
}

void run_ranges(std::string_view bytes) {
  const MemoryFile file(bytes);
  TimedRun run;
  run.processes.push_back(read_range_file(file.path()));
  timed_ranges_csv(run);
}

// Whatever a marker says, its sums are those of requests, and small enough to add up.
void run_step_marker(std::string_view bytes) {
  const auto marker = read_step_marker("", bytes);
  if (!marker) {
    throw Error(ErrorKind::kInput, "no marker");
  }
  for (const PhaseCounts& phase : {marker->counts.context, marker->counts.generation}) {
    must(phase.requests <= kMostTokens && phase.queries.value_or(0) <= kMostTokens,
         "a marker's counts are out of bounds");
    must(phase.queries_times_keys.value_or(INT64_MAX) >= phase.queries_squared.value_or(0),
         "a marker's sums contradict each other");
  }
}

void run_budgets(std::string_view bytes) {
  const MemoryFile file(bytes);
  read_budgets(file.path());
}

// The checksum is against accidents, and a fuzzer that has to guess it reads nothing.
void run_summary(std::string_view bytes) {
  constexpr std::size_t kHeadBytes = 16;
  std::string file(bytes);
  if (file.size() > kHeadBytes) {
    with_checksum(file);
  }
  FleetMerge merge;
  merge.add(file);  // a rank's or a merged one
  fleet_bytes(merge.finish());
  if (ColumnarFile(file).kind() == kRankKind) {
    const std::string again = summary_bytes(read_summary(file));
    must(summary_bytes(read_summary(again)) == again, "a summary does not come back");
  }
}

// What a history's server says: a version, then rows of a name, a number and a list of numbers.
void run_server_answer(std::string_view bytes) {
  constexpr std::size_t kColumns = 3;
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  dialect_of(bytes.substr(0, end));
  for (const auto& row : tab_separated(bytes.substr(std::min(end + 1, bytes.size())), kColumns)) {
    server_number(row[1]);
    must(server_numbers(row[2]).size() <= row[2].size(), "more numbers than characters");
  }
}

// A bundle that has nothing but a manifest.
void run_manifest(std::string_view bytes) {
  static const EmptyFolder kFolder;
  const Artifacts artifacts = Artifacts::from_root(kFolder.path);
  std::ofstream(kFolder.path / "manifest.json", std::ios::binary) << bytes;
  const Manifest manifest = read_manifest(artifacts);
  must(differences(manifest, artifacts).size() == manifest.files.size(),
       "a file that is not there");
}

// Messages, a line each, to a server whose folder is empty. Every answer is one line of JSON.
void run_mcp(std::string_view bytes) {
  static const EmptyFolder kFolder;
  McpServer server(McpTools(kFolder.path, {}, std::nullopt), "0");
  for (int i = 0; i < 20 && !bytes.empty(); ++i) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    const std::string_view line = bytes.substr(0, end);
    ids_of_message(line);
    if (const auto said = server.answer(line)) {
      must(said->find('\n') == std::string::npos, "an answer has two lines");
      parse_json(*said, "the answer");
    }
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
}

// Pages of a document are within their budget, lead on, and hold the document together.
void run_json_page(std::string_view bytes) {
  constexpr std::size_t kMostPages = 100'000;
  const Json document = parse_json(bytes, "fuzz.json");
  PageRequest request{kLeastTokens, ""};
  std::size_t num_pages = 0;
  std::size_t size_bytes = 0;
  do {
    const std::string text = json_page(document, request);
    must(text.size() <= kLeastTokens * kBytesPerToken, "a page is too large");
    const Json page = parse_json(text, "the page");
    size_bytes += to_json_line(page.at("value")).size();
    must(page.at("next") != request.after || request.after.empty(), "a page does not go on");
    request.after = page.at("next").is_null() ? "" : page.at("next").get<std::string>();
    must(++num_pages < kMostPages, "pages do not end");
  } while (!request.after.empty());
  const bool is_cut = size_bytes < to_json_line(document).size();
  must(!is_cut || document.is_structured() || document.is_string(),
       "a document is not in its pages");
}

// A metrics.json that somebody sent: all that is made of it.
void run_metrics(std::string_view bytes) {
  const Results metrics = metrics_from_json(parse_json(bytes, "metrics.json"));
  summary_of_metrics("fuzz", metrics);
  for (const auto& [name, text] :
       report_files(metrics, {}, Timeline(), nullptr, GpuPrice{2.5, "EUR"})) {
    must(!text.empty(), "an empty file of a report");
  }
}

// What an engine streams to the load generator, in pieces of any size.
void run_server_stream(std::string_view bytes) {
  EventLines lines;
  StreamReader reader;
  while (!bytes.empty()) {
    const std::size_t size = 1 + static_cast<unsigned char>(bytes.front()) % 64;
    lines.add(bytes.substr(0, size), [&](std::string_view data) {
      reader.read(data);
      reader.first_model(data);
    });
    bytes.remove_prefix(std::min(size, bytes.size()));
  }
}

// An answer of the reader; whatever else is thrown leaves, and is found.
template <void (*kRun)(std::string_view)>
bool answered(std::string_view bytes) {
  try {
    kRun(bytes);
    return true;
  } catch (const Error& error) {
    must(error.kind() == ErrorKind::kInput || error.kind() == ErrorKind::kUsage ||
             error.kind() == ErrorKind::kContract,
         error.what());
    return false;
  }
}

constexpr std::array kTargets = {
    FuzzTarget{"nsys_sqlite", answered<run_trace>, changed_sqlite, grown_sqlite},
    FuzzTarget{"kineto", answered<run_trace>, changed_kineto, grown_kineto},
    FuzzTarget{"ncu_rep", answered<run_ncu_rep>},
    FuzzTarget{"ncu_csv", answered<run_ncu_csv>},
    FuzzTarget{"nsys_csv", answered<run_nsys_csv>},
    FuzzTarget{"operators_csv", answered<run_operators>},
    FuzzTarget{"graph_annotations", answered<run_annotations>, changed_json, grown_json},
    FuzzTarget{"requests", answered<run_requests>, changed_json_lines},
    FuzzTarget{"gguf", answered<run_gguf>, changed_gguf},
    FuzzTarget{"safetensors", answered<run_safetensors>, changed_safetensors},
    FuzzTarget{"llm_config", answered<run_llm_config>, changed_json, grown_json},
    FuzzTarget{"overrides", answered<run_overrides>},
    FuzzTarget{"yaml", answered<run_yaml>, changed_yaml, grown_yaml},
    FuzzTarget{"config_file", answered<run_config_file>, changed_yaml, grown_yaml},
    FuzzTarget{"ranges", answered<run_ranges>},
    FuzzTarget{"summary", answered<run_summary>},
    FuzzTarget{"budgets", answered<run_budgets>, changed_yaml, grown_yaml},
    FuzzTarget{"step_marker", answered<run_step_marker>},
    FuzzTarget{"mcp", answered<run_mcp>, changed_json_lines},
    FuzzTarget{"json_page", answered<run_json_page>, changed_json, grown_json},
    FuzzTarget{"server_answer", answered<run_server_answer>},
    FuzzTarget{"manifest", answered<run_manifest>, changed_json, grown_json},
    FuzzTarget{"metrics", answered<run_metrics>, changed_json, grown_json},
    FuzzTarget{"server_stream", answered<run_server_stream>, changed_json_lines},
};

}  // namespace

std::span<const FuzzTarget> fuzz_targets() {
  return kTargets;
}

}  // namespace gpuwhy
