// SPDX-License-Identifier: Apache-2.0
//
// Generator of fuzzing seeds: one small valid input of each kind, from this project's own fixtures.
//
//   llmprof_fuzz_seeds GOLDEN OUT       GOLDEN is tests/golden; OUT gets one folder per target
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <tuple>

#include "analysis/step_markers.h"
#include "base/file.h"
#include "base/json.h"
#include "fleet/merge/fleet_summary.h"
#include "fleet/merge/merge.h"
#include "fleet/summary/summary_file.h"
#include "ingest/ncu_report_writer.h"
#include "made_sqlite.h"
#include "model/made_checkpoint.h"
#include "nvtx/range_file.h"

namespace llmprof {
namespace {

namespace fs = std::filesystem;

const char* const kModel = R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4,
"num_key_value_heads": 2, "num_hidden_layers": 2, "intermediate_size": 128, "vocab_size": 320, "torch_dtype": "bfloat16"})";
const char* const kMixture =
    R"({"model_type": "deepseek_v2", "hidden_size": 64, "num_attention_heads": 4,
"num_hidden_layers": 2, "intermediate_size": 128, "vocab_size": 320, "kv_lora_rank": 16, "qk_nope_head_dim": 16,
"qk_rope_head_dim": 8, "v_head_dim": 16, "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
"n_shared_experts": 1, "first_k_dense_replace": 1})";

std::string gguf_seed() {
  GgufWriter writer;
  writer.text("general.architecture", "llama").number("llama.embedding_length", 64);
  writer.number("llama.block_count", 2).number("llama.attention.head_count", 4);
  writer.number("llama.feed_forward_length", 128).number("llama.attention.head_count_kv", 2);
  writer.texts("tokenizer.ggml.tokens", 5).flags("llama.attention.sliding", {true, false});
  for (const MadeTensor& tensor : made_tensors(Json::parse(kModel))) {
    writer.tensor(tensor, GgufWriter::kQ8);
  }
  return writer.bytes();
}

std::string ncu_seed() {
  test::WrittenLaunch launch;
  launch.metrics = {{0, 700}, {1, 20.5}};
  launch.nvtx_domain = "LLM";
  launch.nvtx_stack = {"decode"};
  launch.has_rule = true;
  test::WrittenBlock block;
  block.sources = {"cubin"};
  block.launches = {launch, launch};
  block.strings = {"gpu__time_duration.sum", "sm__throughput.avg.pct_of_peak_sustained_elapsed"};
  block.session = test::session_message();
  return test::report_bytes({block});
}

template <typename T>
void put(std::string& bytes, std::size_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

std::string ranges_seed() {
  std::string bytes(kRangeFileHeaderBytes + 512, '\0');
  RangeFileHeader header{};
  std::memcpy(header.magic, kRangeFileMagic, sizeof(kRangeFileMagic));
  header.version = kRangeFileVersion;
  header.chunk_bytes = kRangeChunkBytes;
  header.pid = 7;
  header.end_bytes = bytes.size();
  put(bytes, 0, header);
  std::size_t at = kRangeFileHeaderBytes;
  put(bytes, at, RangeRecord{{RangeRecordType::kThread, 0, 0, 9}, 0, 0, 0});
  at += kRangeRecordBytes;
  for (const auto& [type, domain, id] :
       {std::tuple(RangeRecordType::kDomain, std::uint16_t{1}, 0U),
        std::tuple(RangeRecordType::kName, std::uint16_t{0}, 1U)}) {
    put(bytes, at, RangeTextRecord{{type, 0, domain, id}, 3, 0});
    std::memcpy(bytes.data() + at + sizeof(RangeTextRecord), "LLM", 3);
    at += range_text_record_bytes(3);
  }
  put(bytes, at, RangeRecord{{RangeRecordType::kRange, kRangeHasInteger, 1, 1}, 100, 200, 5});
  return bytes;
}

std::string summary_seed(std::int64_t rank) {
  RankSummary summary;
  summary.identity.run_id = "run";
  summary.identity.rank = rank;
  summary.identity.num_ranks = 8;
  KernelCell kernel;
  kernel.stage = "decode";
  kernel.kernel = "gemm";
  kernel.family = "gemm";
  kernel.calls = 2;
  kernel.total_ns = 30;
  kernel.min_ns = 10;
  kernel.max_ns = 20;
  kernel.histogram = {{10, 1}, {20, 1}};
  summary.kernels = {kernel};
  return summary_bytes(summary);
}

// A step each, with a kernel in it.
std::string marked_trace(const char* first, const char* second) {
  Json events = Json::array();
  int start_us = 10;
  for (const char* text : {first, second}) {
    const Json where = {{"ph", "X"}, {"pid", 1}, {"tid", 1}};
    for (const auto& [category, name, offset_us, length_us] :
         {std::tuple("user_annotation", text, 0, 50),
          std::tuple("cuda_runtime", "cudaLaunchKernel", 5, 2),
          std::tuple("kernel", "k", 10, 20)}) {
      Json event = where;
      event.update(
          {{"cat", category}, {"name", name}, {"ts", start_us + offset_us}, {"dur", length_us}});
      if (std::string_view(category) != "user_annotation") {
        event["args"] = {{"correlation", start_us}, {"device", 0}, {"stream", 7}};
      }
      events.push_back(event);
    }
    start_us += 100;
  }
  return Json{{"schemaVersion", 1}, {"traceEvents", events}}.dump();
}

void write_seed(const fs::path& out, const char* target, const char* name, std::string_view bytes) {
  fs::create_directories(out / target);
  write_file(out / target / name, bytes);
}

void write_sqlite(const fs::path& golden, const char* name, const fs::path& out) {
  const fs::path file = out / "nsys_sqlite" / name;
  fs::create_directories(file.parent_path());
  fs::remove(file);
  // Small pages: most of a small database is empty otherwise, and a fuzzer changes emptiness.
  execute_sql(file, "PRAGMA page_size=512;" + read_file(golden / name / "run.sqlite.sql"));
}

// One message of each kind.
std::string mcp_seed() {
  std::string lines =
      R"({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26", "capabilities": {}}})"
      "\n"
      R"({"jsonrpc": "2.0", "method": "notifications/initialized"})"
      "\n"
      R"({"jsonrpc": "2.0", "id": "a", "method": "tools/list"})"
      "\n"
      R"([{"jsonrpc": "2.0", "id": 2, "method": "ping"}])"
      "\n"
      R"({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})"
      "\n";
  for (const char* call :
       {R"("open", "arguments": {"path": ".", "max_tokens": 200, "continuation": "/entries"})",
        R"("explain", "arguments": {"key": "launch_bound"})",
        R"("explain", "arguments": {"key": "kernels[].total_ns"})",
        R"("kernels", "arguments": {"path": "../x", "top": 3, "steps": "1..2", "marks": ["a=b"]})",
        R"("compare", "arguments": {"base": ["a"], "candidate": ["b"], "from": "1s", "gpu": 0})",
        R"("plan_capture", "arguments": {"engine": "vllm"})"}) {
    lines +=
        std::string(R"({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": )") +
        call + "}}\n";
  }
  return lines;
}

// Rows, a nested row and a text that no page holds.
std::string page_seed() {
  Json document = {{"a/b~c", Json::array()},
                   {"text", std::string(1000, 'x')},
                   {"deep", {{"x", {{"y", {1, 2}}}}}}};
  for (int i = 0; i < 50; ++i) {
    document["a/b~c"].push_back({{"name", "row"}, {"value", i}});
  }
  document["a/b~c"].push_back(Json::array({std::string(400, 'y'), std::string(400, 'z')}));
  return to_json_line(document);
}

void run(const fs::path& golden, const fs::path& out) {
  for (const char* name :
       {"analyze-model", "analyze-graph", "analyze-graph-nodes", "analyze-nocuda"}) {
    write_sqlite(golden, name, out);
  }
  write_seed(out, "kineto", "trace.json", read_file(golden / "analyze-kineto/trace.json"));
  write_seed(out, "kineto", "vllm.json",
             marked_trace("execute_context_1(512)_generation_2(2)",
                          "execute_context_0(0)_generation_3(3)"));
  write_seed(out, "kineto", "sglang.json",
             marked_trace("step[EXTEND bs=4 toks=512]", "step[DECODE bs=8 g_sq=8]"));
  std::size_t num_markers = 0;
  for (const StepGrammar& grammar : step_grammars()) {
    for (const std::string_view example : grammar.examples) {
      if (!example.empty()) {
        write_seed(out, "step_marker", std::to_string(num_markers++).c_str(), example);
      }
    }
  }
  write_seed(out, "kineto", "capture.json",
             read_file(golden / "analyze-capture-trace/capture.json"));
  write_seed(out, "graph_annotations", "names.json",
             read_file(golden / "analyze-graph-annotations/names.json"));
  write_seed(out, "ncu_rep", "two", ncu_seed());
  write_seed(out, "ncu_csv", "details.csv", read_file(golden / "ncu-csv/details.csv"));
  write_seed(out, "ncu_csv", "raw.csv", read_file(golden / "analyze-sqlite-ncu/counters.csv"));
  write_seed(out, "nsys_csv", "kernels.csv", read_file(golden / "analyze-summary-ncu/kernels.csv"));
  write_seed(out, "operators_csv", "table.csv",
             "stage,kind,op,name,layer,total_ns,calls,flops,bytes\nprefill,stage,,,,1000,2,,\n"
             "prefill,operator,MUL_MAT,ffn_up,3,600,2,4096,12\n");
  write_seed(out, "requests", "own.jsonl", read_file(golden / "analyze-requests/requests.jsonl"));
  write_seed(out, "requests", "vllm.json",
             R"({"start_times": [1.5, 2], "ttfts": [0.25, 0], "itls": [[0.01, 0.02], []],)"
             R"( "input_lens": [5, 6], "output_lens": [3, 0], "errors": ["", "x"]})");
  write_seed(out, "requests", "aiperf.jsonl",
             R"({"metadata": {"request_start_ns": 5, "request_end_ns": 9000000}, "metrics":)"
             R"( {"time_to_first_token": {"value": 1.5, "unit": "ms"},)"
             R"( "inter_chunk_latency": {"value": [2, 3], "unit": "ms"}}})");
  write_seed(out, "requests", "dynamo.jsonl",
             R"({"schema": "dynamo.request.trace.v1", "event_type": "request_end",)"
             R"( "request": {"request_received_ms": 5, "ttft_ms": 2.5, "total_time_ms": 9}})");
  write_seed(out, "requests", "tensorrt.json",
             R"([{"perf_metrics": {"timing_metrics": {"arrival_time": 1.5,)"
             R"( "first_token_time": 2.5}}}])");
  write_seed(out, "gguf", "llama", gguf_seed());
  write_seed(out, "safetensors", "llama", made_safetensors(made_tensors(Json::parse(kModel))));
  write_seed(out, "llm_config", "llama.json", kModel);
  write_seed(out, "llm_config", "mixture.json", kMixture);
  write_seed(out, "overrides", "some",
             "run.mode=light\n+model.note={a: [1, 2]}\n~contract.stages\nprofiling/ncu=light\n");
  write_seed(out, "yaml", "some",
             "a: [1, 2.5, \"x\"]\nb:\n  c: null\n  d: |\n    text\n  e: 'it''s'\n");
  write_seed(out, "yaml", "plain", "run:\n  mode: light\n  passes: [baseline, nsys]\n");
  write_seed(out, "config_file", "run",
             "run:\n  mode: light\n  passes: [baseline, nsys]\nmodel: {name: x}\n");
  write_seed(out, "summary", "rank", summary_seed(3));
  FleetMerge merge;
  merge.add(summary_seed(3));
  merge.add(summary_seed(4));
  write_seed(out, "summary", "merged", fleet_bytes(merge.finish()));
  write_seed(out, "ranges", "two", ranges_seed());
  write_seed(out, "budgets", "two", read_file(golden / "gate-budget/budgets.yaml"));
  write_seed(out, "mcp", "session", mcp_seed());
  write_seed(out, "json_page", "model.json", kMixture);
  write_seed(out, "json_page", "rows.json", page_seed());
}

}  // namespace
}  // namespace llmprof

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: llmprof_fuzz_seeds GOLDEN OUT\n");
    return 2;
  }
  llmprof::run(argv[1], argv[2]);
  return 0;
}
