// SPDX-License-Identifier: Apache-2.0
//
// Generator of fuzzing seeds: one small valid input of each kind, from this project's own fixtures.
//
//   gpuwhy_fuzz_seeds GOLDEN OUT        GOLDEN is tests/golden; OUT gets one folder per target
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <tuple>

#include "analysis/profile.h"
#include "analysis/stages/step_markers.h"
#include "base/file.h"
#include "base/json.h"
#include "fleet/merge/fleet_summary.h"
#include "fleet/merge/merge.h"
#include "fleet/summary/summary_file.h"
#include "ingest/ingest.h"
#include "ingest/ncu_report_writer.h"
#include "made_sqlite.h"
#include "model/made_checkpoint.h"
#include "nvtx/range_file.h"
#include "results/json.h"
#include "results/results.h"

namespace gpuwhy {
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
  KernelSums kernel;
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

// Two ranks' work: collectives with their groups, attention, modules in operators, an old kind of
// annotation.
const char* const kCollectives =
    R"j({"schemaVersion": 1, "with_stack": 1, "cupti_version": 18, "deviceProperties": [{"id": 0, "name": "X", "numSms": 8,
"computeMajor": 9, "computeMinor": 0, "totalGlobalMem": 80000000000}], "distributedInfo": {"rank": 0, "world_size": 2,
"pg_config": [{"pg_name": "0", "ranks": [0, 1]}]}, "baseTimeNanoseconds": 1700000000000000000, "traceEvents": [
{"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Traces", "tid": 0, "ts": 90, "dur": 90},
{"ph": "X", "cat": "cpu_op", "name": "aten::scaled_dot_product_attention", "pid": 9, "tid": 9, "ts": 100, "dur": 9, "args":
{"Input Dims": [[1, 8, 16, 64], [1, 8, 16, 64], [1, 8, 16, 64]], "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"],
"Concrete Inputs": ["", "", "", "", "0.", "True"], "Module Hierarchy": "m.layers.0.attn"}},
{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 9, "tid": 9, "ts": 110, "dur": 9, "args": {"Collective name":
"allreduce", "dtype": "BFloat16", "In msg nelems": 4096, "Out msg nelems": 4096, "Group size": 2, "Process Group Name": "0",
"Process Group Description": "tp", "Process Group Ranks": "[0, ...]"}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 103, "dur": 3, "args": {"correlation": 1}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernelExC", "pid": 9, "tid": 9, "ts": 113, "dur": 3, "args": {"correlation": 2}},
{"ph": "X", "cat": "kernel", "name": "flash_fwd_kernel", "pid": 0, "tid": 7, "ts": 120, "dur": 8, "args": {"device": 0, "context": 1,
"stream": 7, "correlation": 1, "grid": [8, 4, 1], "block": [128, 1, 1]}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "pid": 0, "tid": 8, "ts": 130, "dur": 6, "args":
{"device": 0, "stream": 8, "correlation": 2, "Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 4096,
"Out msg nelems": 4096, "Group size": 2, "Process Group Name": "0", "Process Group Description": "tp", "Process Group Ranks": "[0, ...]"}},
{"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "pid": 0, "tid": 7, "ts": 140, "dur": 1, "args": {"device": 0, "stream": 7,
"correlation": 3, "bytes": 64}}]})j";
// As the profiler before Kineto wrote it.
const char* const kLegacyTrace =
    R"j([{"name": "add", "ph": "X", "ts": 10.5, "dur": 9.0, "tid": 2, "pid": "CPU functions", "args": {}},
{"name": "add", "ph": "s", "ts": 10.5, "tid": 2, "pid": "CPU functions", "id": 0, "cat": "cpu_to_cuda", "args": {}},
{"name": "k", "ph": "f", "ts": 30.0, "tid": 1, "pid": "CUDA functions", "id": 0, "cat": "cpu_to_cuda", "args": {}},
{"name": "k", "ph": "X", "ts": 30.0, "dur": 4.0, "tid": 1, "pid": "CUDA functions", "args": {}}])j";

// Every table that is read, with a row or two.
const char* const kAllTables = R"sql(
CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES (1, 'sm90_xmma_gemm_bf16'), (2, 'cudaLaunchKernel_v7000'), (3, 'decode'), (4, 'poll'), (5, '_Z4gemmv'),
  (6, 'cudaGraphLaunch_v10000'), (7, 'cudaMemcpyAsync_v3020'), (8, 'LLM');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, "end" INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER, mangledName INTEGER, gridX INTEGER, gridY INTEGER,
  gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, graphNodeId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1100, 2000, 0, 1, 7, 1, 16777216, 1, 1, 5, 8, 1, 1, 128, 1, 1, NULL),
  (5100, 6000, 0, 1, 7, 2, 16777216, 1, 1, 5, 8, 1, 1, 128, 1, 1, 77), (7100, 9000, 1, 1, 8, 9, 16777216, NULL, 1, NULL, 8, 1, 1, 64, 1, 1, NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, "end" INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1000, 1050, 16777217, 1, 2), (5000, 5050, 16777217, 2, 6), (9100, 9900, 16777217, 4, 7);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER, "end" INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (9200, 9800, 0, 1, 7, 4, 16777216, 4096, 1, 0, 2), (9900, 9950, 0, 1, 7, 5, 16777216, 64, 2, 2, 1);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start INTEGER, "end" INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, bytes INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (9960, 9970, 0, 1, 7, 6, 16777216, 4096);
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start INTEGER, "end" INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, graphId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (10000, 12000, 0, 1, 7, 8, 16777216, 1);
CREATE TABLE CUDA_GRAPH_NODE_EVENTS(start INTEGER, globalTid INTEGER, graphNodeId INTEGER, originalGraphNodeId INTEGER);
INSERT INTO CUDA_GRAPH_NODE_EVENTS VALUES (100, 16777217, 70, NULL), (200, 16777217, 77, 70);
CREATE TABLE NVTX_EVENTS(start INTEGER, "end" INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId INTEGER, domainId INTEGER,
  uint64Value INTEGER, int64Value INTEGER, uint32Value INTEGER, int32Value INTEGER);
INSERT INTO NVTX_EVENTS VALUES (0, NULL, 75, 'LLM', 16777217, NULL, 1, NULL, NULL, NULL, NULL), (50, 300, 59, 'aten::mm', 16777217, NULL, 0, NULL, NULL, NULL, NULL),
  (900, 3000, 59, 'prefill', 16777217, NULL, 1, 512, NULL, NULL, NULL), (4900, 9000, 59, NULL, 16777217, 3, 1, NULL, 1, NULL, NULL),
  (9050, NULL, 60, 'decode', 16777217, NULL, 1, NULL, NULL, 1, NULL), (9060, NULL, 34, 'mark', 16777217, NULL, 1, NULL, NULL, NULL, 1);
CREATE TABLE OSRT_API(start INTEGER, "end" INTEGER, globalTid INTEGER, nameId INTEGER);
INSERT INTO OSRT_API VALUES (2000, 400000000, 16777217, 4);
CREATE TABLE TARGET_INFO_GPU(id INTEGER, name TEXT, totalMemory INTEGER, memoryBandwidth INTEGER, clockRate INTEGER, smCount INTEGER,
  cuDevice INTEGER, computeMajor INTEGER, computeMinor INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100 80GB HBM3', 85899345920, 3352000000000, 1980000000, 132, 0, 9, 0);
CREATE TABLE TARGET_INFO_CUDA_DEVICE(gpuId INTEGER, cudaId INTEGER, pid INTEGER);
INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0, 0, 1);
CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT);
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.20.5'), ('EXPORT_PRODUCT_VERSION', '2025.1.1');
CREATE TABLE META_DATA_CAPTURE(name TEXT, value TEXT);
INSERT INTO META_DATA_CAPTURE VALUES ('CUDA_GRAPH_TRACE_OPTIONS:MODE', 'node');
CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INTEGER);
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);
CREATE TABLE ANALYSIS_DETAILS(duration INTEGER);
INSERT INTO ANALYSIS_DETAILS VALUES (500000000);
CREATE TABLE DIAGNOSTIC_EVENT(timestamp INTEGER, severity INTEGER, text TEXT);
INSERT INTO DIAGNOSTIC_EVENT VALUES (5, 2, 'Some events were lost.'), (6, 1, 'All is well.');
)sql";

void write_seed(const fs::path& out, const char* target, const char* name, std::string_view bytes) {
  fs::create_directories(out / target);
  write_file(out / target / name, bytes);
}

void write_sqlite(const fs::path& out, const char* name, const std::string& sql) {
  const fs::path file = out / "nsys_sqlite" / name;
  fs::create_directories(file.parent_path());
  fs::remove(file);
  // Small pages: most of a small database is empty otherwise, and a fuzzer changes emptiness.
  execute_sql(file, "PRAGMA page_size=512;" + sql);
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

std::string metrics_seed(const fs::path& recording) {
  return to_json_line(metrics_json(profile(load_trace(recording, 1), Rules()).analysis));
}

void run(const fs::path& golden, const fs::path& out) {
  for (const char* name :
       {"analyze-model", "analyze-graph", "analyze-graph-nodes", "analyze-nocuda"}) {
    write_sqlite(out, name, read_file(golden / name / "run.sqlite.sql"));
  }
  write_sqlite(out, "all-tables", kAllTables);
  write_sqlite(out, "utf-16", std::string("PRAGMA encoding='UTF-16le';") + kAllTables);
  write_seed(out, "kineto", "collectives.json", kCollectives);
  write_seed(out, "kineto", "legacy.json", kLegacyTrace);
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
  write_seed(out, "server_answer", "rows",
             "24.3.1.1\ngemm\\tbf16\\n\t18446744073709551615\t[1,2]\nx\t0\t[]\n");
  write_seed(out, "manifest", "some",
             R"({"schema": "gpuwhy.manifest", "schema_version": 1, "run_id": "r", "run": {},
                 "files": [{"path": "../a", "size_bytes": 1, "sha256": "00"}]})");
  for (const char* name : {"all-tables", "analyze-model"}) {
    write_seed(out, "metrics", name, metrics_seed(out / "nsys_sqlite" / name));
  }
  write_seed(out, "metrics", "collectives", metrics_seed(out / "kineto" / "collectives.json"));
  write_seed(
      out, "server_stream", "openai",
      "data: {\"choices\": [{\"text\": \"a\"}], \"usage\": {\"prompt_tokens\": 5, "
      "\"completion_tokens\": 1}}\n\ndata: {\"error\": {\"message\": \"x\"}}\n\ndata: [DONE]\n\n");
  write_seed(
      out, "server_stream", "llama",
      "data: {\"content\": \"a\", \"stop\": false, \"id_slot\": 1}\r\n\r\n"
      "data: {\"content\": \"\", \"stop\": true, \"tokens_evaluated\": 5, \"tokens_predicted\": 1}\n\n"
      "data: {\"data\": [{\"id\": \"m\"}]}\n\n");
}

}  // namespace
}  // namespace gpuwhy

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: gpuwhy_fuzz_seeds GOLDEN OUT\n");
    return 2;
  }
  gpuwhy::run(argv[1], argv[2]);
  return 0;
}
