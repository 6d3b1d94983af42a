// SPDX-License-Identifier: Apache-2.0
//
// Step markers of inference engines: one table of grammars, and the reader of it.
//
// A pattern is the marker's text with
//   {name}       a number: c, g requests in context and generation, n requests of unknown phase,
//                c_sq, c_sk, c_sqsq, c_sqsk and g_... the sums of each phase (model/step_counts.h)
//   {}           a number that is not needed
//   {=a b:name}  pairs "a=1 b=2" in any order, b under another name; what is not listed is skipped
//   *            anything
// After the last two only plain text may follow, up to the end of the marker.
//
// A new engine is a row. Its pattern is the engine's own format string, read in the engine's
// source; its examples are tested, and the fuzzer starts from them.
//
// What it gets wrong: a request that vLLM preempted and reads again counts as generation there, so
// its step is called `verify`. A verified tree of drafts is counted as a chain, which attends to a
// little more.
#include "analysis/stages/step_markers.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include <fmt/format.h>

#include "base/parse_number.h"
#include "base/text.h"
#include "trace/interval_index.h"

namespace gpuwhy {
namespace {

constexpr std::string_view kVllm = "vLLM";
constexpr std::string_view kSglang = "SGLang";
constexpr std::string_view kSglangScheduler = "SGLang's scheduler";
constexpr std::string_view kTensorRtLlm = "TensorRT-LLM";
constexpr std::string_view kTransformers = "transformers";
constexpr std::string_view kAtom = "ATOM";
constexpr std::string_view kMegatron = "Megatron";
constexpr std::string_view kMegatronTraining = "Megatron's training schedule";
constexpr std::string_view kPyTorch = "PyTorch's profiler";

constexpr std::string_view kVllmSource = "vllm/v1/worker/gpu_worker.py, 0.26.1rc0";
constexpr std::string_view kSglangSource = "srt/utils/profile_utils.py, 2026-08-23";
constexpr std::string_view kTensorRtLlmSource = "_torch/pyexecutor/py_executor.py, to 2026-10";
constexpr std::string_view kTransformersSource = "src/marks/python/gpuwhy_mark_transformers.py";
constexpr std::string_view kAtomSource = "atom/model_engine/model_runner.py; TraceLens 1.0.0";
constexpr std::string_view kMegatronSource =
    "megatron/core/inference/engines/dynamic_engine.py, 0.20.0";
constexpr std::string_view kMegatronTrainingSource =
    "megatron/core/pipeline_parallel/schedules.py, 0.20.0";

// The step ends with it in every mode.
constexpr std::string_view kMegatronCompanion = "bookkeeping";

using Examples = std::array<std::string_view, 3>;

// Rows of one engine differ in these.
constexpr StepGrammar vllm(std::string_view pattern, std::string_view stage, Examples examples,
                           std::string_view source = kVllmSource) {
  return {kVllm, source, pattern, stage, examples};
}
constexpr StepGrammar sglang(std::string_view pattern, std::string_view stage, Examples examples,
                             std::string_view source = kSglangSource) {
  return {kSglang, source, pattern, stage, examples};
}
constexpr StepGrammar transformers(std::string_view pattern, std::string_view stage,
                                   Examples examples) {
  return {kTransformers, kTransformersSource, pattern, stage, examples};
}
constexpr StepGrammar tensorrt_llm(std::string_view pattern, Examples examples) {
  return {.engine = kTensorRtLlm,
          .source = kTensorRtLlmSource,
          .pattern = pattern,
          .stage = "",
          .examples = examples,
          .has_one_query_each = true};
}
// A plain word, which is its own example.
constexpr StepGrammar megatron(std::string_view word, std::string_view stage) {
  return {.engine = kMegatron,
          .source = kMegatronSource,
          .pattern = word,
          .stage = stage,
          .examples = {word},
          .companion = kMegatronCompanion};
}
constexpr StepGrammar schedule(std::string_view pattern, std::string_view stage,
                               std::string_view example) {
  return {.engine = kMegatronTraining,
          .source = kMegatronTrainingSource,
          .pattern = pattern,
          .stage = stage,
          .examples = {example},
          .use = StepUse::kFallback,
          .is_process_wide = true};
}

constexpr StepGrammar kGrammars[] = {
    // gpuwhy's own: prompt tokens, sequences that make a token, and each slot with its tokens.
    {.engine = kSlotMarkers,
     .source = "docs/requests.md",
     .pattern = "step[prefill={c_sq} decode={g}{=}]",
     .stage = "",
     .examples = {"step[prefill=512 decode=2 seqs=0:512,1:1,2:1]",
                  "step[prefill=0 decode=1 seqs=3:1]", "step[prefill=64 decode=0]"},
     .has_one_query_each = true,
     .has_slots = true},

    // vLLM. A request is in context until it has made a token. k counts the tokens of the step.
    vllm("execute_{}_context_{c}(sq{c_sq}sk{c_sk}sqsq{c_sqsq}sqsk{c_sqsk})"
         "_generation_{g}(sq{g_sq}sk{g_sk}sqsq{g_sqsq}sqsk{g_sqsk})",
         "",
         {"execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)"
          "_generation_37(sq37sk34489sqsq37sqsk34489)",
          "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)",
          "execute_128_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq128sk65536sqsq512sqsk262144)"}),
    vllm("execute_context_{c}({c_sq})_generation_{g}({g_sq})", "",
         {"execute_context_2(600)_generation_3(3)", "execute_context_0(0)_generation_8(8)",
          "execute_context_0(0)_generation_0(0)"}),
    vllm("execute_context_{c}({c_sq}_{c_sqsq})_generation_{g}({g_sq})", "",
         {"execute_context_1(888_788544)_generation_0(0)"},
         "a recording of vLLM with TraceLens' early patch"),
    vllm("capture_{}_FULL", "graph_capture", {"capture_32_FULL"},
         "vllm/v1/worker/gpu_model_runner.py, 0.26.1rc0"),
    vllm("capture_{}_PIECEWISE", "graph_capture", {"capture_8192_PIECEWISE"},
         "vllm/v1/worker/gpu_model_runner.py, 0.26.1rc0"),

    // SGLang. The mode names the step; the sums are there with detailed_annotations.
    sglang("step[EXTEND bs={c} toks={c_sq}{=c_sq c_sk c_sqsq c_sqsk}]", "prefill",
           {"step[EXTEND bs=4 toks=512]",
            "step[EXTEND bs=2 toks=12 c_sq=12 c_sqsq=80 c_sqsk=120 c_sk=20]"}),
    {.engine = kSglang,
     .source = kSglangSource,
     .pattern = "step[DECODE bs={g}{=g_sq g_sk g_sqsq g_sqsk}]",
     .stage = "decode",
     .examples = {"step[DECODE bs=64]",
                  "step[DECODE bs=64 g_sq=64 g_sqsq=64 g_sqsk=100032 g_sk=100032]",
                  "step[DECODE bs=2 g_sqsq=2 g_sqsk=30 g_sk=30]"},
     .wide_stage = "draft",
     .has_one_query_each = true},
    {.engine = kSglang,
     .source = "srt/model_executor/step_span_utils.py, 2026-08-23",
     .pattern = "step[MIXED bs={} c={c} g={g}{=c_sq c_sk c_sqsq c_sqsk g_sq g_sk g_sqsq g_sqsk}]",
     .stage = "",
     .examples = {"step[MIXED bs=66 c=2 g=64 c_sq=2048 c_sk=2048 c_sqsq=2097152 c_sqsk=2097152 "
                  "g_sq=64 g_sk=65600 g_sqsq=64 g_sqsk=65600]",
                  "step[MIXED bs=1 c=1 g=0 c_sq=3 c_sk=3 c_sqsq=9 c_sqsk=9 "
                  "g_sq=0 g_sk=0 g_sqsq=0 g_sqsk=0]"},
     .has_one_query_each = true},
    sglang("step[MIXED bs={n}*]", "mixed", {"step[MIXED bs=66]"}),
    // Its k is the length before the drafts: eagle_info.py adds draft_token_num to it.
    {.engine = kSglang,
     .source = kSglangSource,
     .pattern = "step[TARGET_VERIFY bs={g}{=g_sq g_sk g_sqsq g_sqsk}]",
     .stage = "verify",
     .examples = {"step[TARGET_VERIFY bs=64 g_sq=256 g_sqsq=1024 g_sqsk=262400 g_sk=65600]",
                  "step[TARGET_VERIFY bs=2 g_sq=6 g_sqsq=18 g_sqsk=90 g_sk=30]",
                  "step[TARGET_VERIFY bs=64]"},
     .has_keys_before_queries = true},
    sglang("step[DRAFT_EXTEND_V2 bs={c}{=c_sq c_sk c_sqsq c_sqsk}]", "draft",
           {"step[DRAFT_EXTEND_V2 bs=8]",
            "step[DRAFT_EXTEND_V2 bs=2 c_sq=8 c_sqsq=32 c_sqsk=152 c_sk=38]"}),
    sglang("step[DRAFT_LOOP raw_bs={n} bs={} topk={}]", "draft",
           {"step[DRAFT_LOOP raw_bs=3 bs=4 topk=1]"},
           "srt/speculative/frozen_kv_mtp_cuda_graph_runner.py, 2026-08-23"),
    sglang("step[IDLE bs={g}*]", "idle", {"step[IDLE bs=0]"}),
    sglang("step[PREBUILT bs={n}*]", "idle", {"step[PREBUILT bs=16]"}),
    sglang("step[SPLIT_PREFILL bs={c}*]", "prefill", {"step[SPLIT_PREFILL bs=3]"}),
    sglang("step[DLLM_EXTEND bs={n}*]", "step", {"step[DLLM_EXTEND bs=5]"}),
    sglang("capture_{}_DECODE", "graph_capture", {"capture_32_DECODE"},
           "a recording of SGLang with TraceLens' patch"),

    // TensorRT-LLM, four ages of one marker.
    tensorrt_llm("[Executor] _forward_step {}: {c} ctx reqs, {c_sq} ctx tokens, {g} gen reqs",
                 {"[Executor] _forward_step 60000: 0 ctx reqs, 0 ctx tokens, 32 gen reqs",
                  "[Executor] _forward_step 7: 2 ctx reqs, 4096 ctx tokens, 30 gen reqs"}),
    tensorrt_llm("[Executor] _forward_step {}: {c} ctx reqs, {g} gen reqs",
                 {"[Executor] _forward_step 12: 0 ctx reqs, 500 gen reqs",
                  "[Executor] _forward_step 1: 4 ctx reqs, 0 gen reqs"}),
    tensorrt_llm("[Executor] _forward_step: {c} ctx reqs, {g} gen reqs",
                 {"[Executor] _forward_step: 1 ctx reqs, 3 gen reqs"}),
    tensorrt_llm("_forward_step: {c} ctx reqs, {g} gen reqs",
                 {"_forward_step: 0 ctx reqs, 8 gen reqs"}),

    // gpuwhy's own marks of transformers, where PyTorch's profiler runs. k counts the step's
    // tokens.
    transformers("transformers.prefill[bs={c} toks={c_sq}{=c_sk c_sqsq c_sqsk}]", "prefill",
                 {"transformers.prefill[bs=3 toks=51 c_sk=51 c_sqsq=867 c_sqsk=867]",
                  "transformers.prefill[bs=3 toks=51]"}),
    transformers("transformers.decode_step[bs={g} toks={g_sq}{=g_sk g_sqsq g_sqsk}]", "decode",
                 {"transformers.decode_step[bs=3 toks=3 g_sk=54 g_sqsq=3 g_sqsk=54]",
                  "transformers.decode_step[bs=3 toks=3]"}),
    transformers("transformers.verify[bs={g} toks={g_sq}{=g_sk g_sqsq g_sqsk}]", "verify",
                 {"transformers.verify[bs=1 toks=4]"}),

    // ATOM. A decode step with p= has requests of both phases, in one sum.
    {kAtom,
     kAtomSource,
     "prefill[bs={c}{=tok:c_sq sk:c_sk sqsq:c_sqsq sqsk:c_sqsk}]",
     "prefill",
     {"prefill[bs=2 tok=14721 ctx=[7803, 6918]]",
      "prefill[bs=2 tok=14721 ctx=[7803, 6918] sqsq=108745533 sqsk=108745533 sk=14721]",
      "prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3]"}},
    {.engine = kAtom,
     .source = kAtomSource,
     .pattern = "decode[bs={}{=tok:g_sq p:c d:g sk:g_sk sqsq:g_sqsq sqsk:g_sqsk}]",
     .stage = "",
     .examples = {"decode[bs=117/128 tok=117 d=117]",
                  "decode[bs=32 tok=128 d=32 spec=3 sqsq=512 sqsk=262144 sk=65536]",
                  "decode[bs=128 tok=384 p=2 d=126 sqsq=132612 sqsk=1114112 sk=258048 tbo=1]"},
     .has_joint_sums = true},

    // Megatron inference: plain words, so they count beside the engine's other ranges, or where
    // nothing better is marked.
    // Prefill is a step with at least one request in context.
    megatron("Prefill", "prefill"),
    megatron("Decode", "decode"),
    megatron("AsyncOverlap", "step"),
    megatron("AsyncNoOverlap", "step"),
    // A rank without requests runs the experts for the others.
    megatron("EP-dummy-forward", "idle"),

    // SGLang under nsys: a step, and not what is in it.
    {kSglangScheduler,
     "srt/utils/nvtx_utils.py, 2026-08-23",
     "scheduler.run_batch",
     "step",
     {"scheduler.run_batch"}},

    // Training. Autograd launches from threads of its own, hence process-wide.
    schedule("megatron.core.pipeline_parallel.schedules.*.warmup", "pipeline_warmup",
             "megatron.core.pipeline_parallel.schedules."
             "forward_backward_pipelining_with_interleaving.warmup"),
    schedule("megatron.core.pipeline_parallel.schedules.*.steady", "pipeline_steady",
             "megatron.core.pipeline_parallel.schedules."
             "forward_backward_pipelining_with_interleaving.steady"),
    schedule("megatron.core.pipeline_parallel.schedules.*.cooldown", "pipeline_cooldown",
             "megatron.core.pipeline_parallel.schedules."
             "forward_backward_pipelining_with_interleaving.cooldown"),
    schedule("megatron.core.pipeline_parallel.schedules.*.misc", "pipeline_misc",
             "megatron.core.pipeline_parallel.schedules."
             "forward_backward_pipelining_with_interleaving.misc"),
    {.engine = kPyTorch,
     .source = "torch/profiler/profiler.py, 2.x",
     .pattern = "ProfilerStep#{}",
     .stage = "step",
     .examples = {"ProfilerStep#6"},
     .use = StepUse::kFallback,
     .is_process_wide = true},
};

constexpr std::array<std::string_view, 11> kFieldNames = {
    "n", "c", "c_sq", "c_sk", "c_sqsq", "c_sqsk", "g", "g_sq", "g_sk", "g_sqsq", "g_sqsk"};
constexpr std::size_t kRequestsField = 0;
constexpr std::size_t kContextFields = 1;
constexpr std::size_t kGenerationFields = 6;

using Numbers = std::array<std::optional<std::int64_t>, kFieldNames.size()>;

// A context of a million tokens in a thousand requests has 1e9 keys, and 1e15 pairs at most.
constexpr std::int64_t kMostKeys = 1'000'000'000'000;
constexpr std::int64_t kMostPairs = 1'000'000'000'000'000;

std::int64_t most_of(std::string_view name) {
  if (name.ends_with("sqsq") || name.ends_with("sqsk")) {
    return kMostPairs;
  }
  return name.ends_with("sk") ? kMostKeys : kMostTokens;
}

// Takes the digits off the front of `text`. False: there are none, or more than a step can have.
// A sum beyond all reason is left absent.
bool take_number(std::string_view& text, std::string_view name, Numbers& numbers) {
  const std::size_t length = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto* field = std::find(kFieldNames.begin(), kFieldNames.end(), name);
  std::int64_t value = 0;
  const auto failure = std::from_chars(text.data(), text.data() + length, value).ec;
  const bool is_plausible = failure == std::errc() && value <= most_of(name);
  if (field != kFieldNames.end() && is_plausible) {
    numbers[static_cast<std::size_t>(field - kFieldNames.begin())] = value;
  }
  text.remove_prefix(length);
  const bool is_sum = name.empty() || name.find('_') != std::string_view::npos;
  return length > 0 && (is_plausible || is_sum);
}

// "sk:c_sk" stands for the pair "sk=1", read as c_sk.
void read_pairs(std::string_view names, std::string_view text, Numbers& numbers) {
  for (const std::string_view pair : split(text, ' ')) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) {
      continue;
    }
    for (const std::string_view name : split(names, ' ')) {
      const std::size_t colon = std::min(name.find(':'), name.size());
      if (pair.substr(0, equals) == name.substr(0, colon)) {
        std::string_view value = pair.substr(equals + 1);
        take_number(value, colon == name.size() ? name : name.substr(colon + 1), numbers);
      }
    }
  }
}

// Reads what is left of a text up to the plain `tail`, which must end it.
std::optional<Numbers> match_open(std::string_view names, std::string_view tail,
                                  std::string_view text, Numbers numbers) {
  if (!text.ends_with(tail)) {
    return std::nullopt;
  }
  text.remove_suffix(tail.size());
  read_pairs(names, text, numbers);
  return numbers;
}

std::optional<Numbers> match(std::string_view pattern, std::string_view text) {
  Numbers numbers;
  while (!pattern.empty()) {
    if (pattern[0] == '*') {
      return match_open("", pattern.substr(1), text, numbers);
    }
    if (pattern[0] == '{') {
      const std::size_t close = pattern.find('}');
      const std::string_view name = pattern.substr(1, close - 1);
      pattern.remove_prefix(close + 1);
      if (name.starts_with('=')) {
        return match_open(name.substr(1), pattern, text, numbers);
      }
      if (!take_number(text, name, numbers)) {
        return std::nullopt;
      }
    } else if (text.starts_with(pattern[0])) {
      pattern.remove_prefix(1);
      text.remove_prefix(1);
    } else {
      return std::nullopt;
    }
  }
  return text.empty() ? std::optional(numbers) : std::nullopt;
}

// Numbers that requests of whole tokens can have. Σ q(q - 1) is even, every request has a token,
// and attends to it.
bool is_consistent(const PhaseCounts& phase) {
  const std::int64_t queries = phase.queries.value_or(phase.requests);
  const std::int64_t squared = phase.queries_squared.value_or(queries);
  return queries >= phase.requests && squared >= queries && (squared - queries) % 2 == 0 &&
         phase.keys.value_or(queries) >= queries &&
         phase.queries_times_keys.value_or(squared) >= squared;
}

PhaseCounts phase_of(const Numbers& numbers, std::size_t first) {
  PhaseCounts phase{numbers[first].value_or(0), numbers[first + 1], numbers[first + 2],
                    numbers[first + 3], numbers[first + 4]};
  return phase.requests == 0 ? PhaseCounts{0, 0, 0, 0, 0} : phase;
}

// One token each: the squares are the tokens, and the products the keys.
void assume_one_query_each(PhaseCounts& phase) {
  if (!phase.queries && phase.queries_squared.value_or(phase.requests) == phase.requests) {
    phase.queries = phase.requests;
  }
  if (phase.queries == phase.requests) {
    phase.queries_squared = phase.queries;
    phase.queries_times_keys = phase.keys;
  }
}

void add_queries_to_keys(PhaseCounts& phase) {
  if (phase.keys && phase.queries) {
    *phase.keys += *phase.queries;
  } else {
    phase.keys.reset();
  }
  if (phase.queries_times_keys && phase.queries_squared) {
    *phase.queries_times_keys += *phase.queries_squared;
  } else {
    phase.queries_times_keys.reset();
  }
}

std::string_view stage_of(const StepGrammar& grammar, const StepCounts& counts) {
  const PhaseCounts& generation = counts.generation;
  const bool is_wide = generation.queries.value_or(0) > generation.requests;
  if (!grammar.stage.empty()) {
    return grammar.stage == "decode" && is_wide ? grammar.wide_stage : grammar.stage;
  }
  if (counts.context.requests > 0) {
    return generation.requests > 0 ? "mixed" : "prefill";
  }
  if (generation.requests == 0) {
    return "idle";
  }
  return is_wide ? grammar.wide_stage : "decode";
}

std::optional<StepMarker> marker_of(const StepGrammar& grammar, const Numbers& numbers) {
  StepMarker marker;
  marker.grammar = &grammar;
  marker.stage = grammar.stage;
  marker.sequences = numbers[kRequestsField];
  const bool has_phases = numbers[kContextFields] || numbers[kGenerationFields];
  if (!has_phases) {
    return grammar.stage.empty() ? std::nullopt : std::optional(marker);
  }
  PhaseCounts& context = marker.counts.context;
  PhaseCounts& generation = marker.counts.generation;
  context = phase_of(numbers, kContextFields);
  generation = phase_of(numbers, kGenerationFields);
  if (grammar.has_one_query_each) {
    assume_one_query_each(generation);
  }
  if (grammar.has_keys_before_queries) {
    add_queries_to_keys(generation);
  }
  const bool is_joint = grammar.has_joint_sums && context.requests > 0;
  if (is_joint) {
    marker.tokens = generation.queries;
    generation = {generation.requests, {}, {}, {}, {}};
  } else if (context.queries && generation.queries) {
    marker.tokens = *context.queries + *generation.queries;
  }
  for (PhaseCounts* phase : {&context, &generation}) {
    if (!is_consistent(*phase)) {
      *phase = {phase->requests, phase->queries, {}, {}, {}};
    }
  }
  marker.stage = stage_of(grammar, marker.counts);
  marker.sequences = context.requests + generation.requests;
  return marker;
}

// Counts of a marker that lists its sequences. Those that are not in generation read a prompt.
void count_slots(std::string_view text, Numbers& numbers) {
  std::vector<SlotTokens> slots;
  read_slots(text, slots);
  const std::int64_t prompt = numbers[kContextFields + 1].value_or(0);
  const std::int64_t others =
      static_cast<std::int64_t>(slots.size()) - numbers[kGenerationFields].value_or(0);
  numbers[kContextFields] = prompt > 0 ? std::max<std::int64_t>(others, 1) : 0;
}

// The row of the table that a text fits, by its number.
std::optional<std::size_t> grammar_of(std::string_view text) {
  for (std::size_t i = 0; i < std::size(kGrammars); ++i) {
    if (match(kGrammars[i].pattern, text)) {
      return i;
    }
  }
  return std::nullopt;
}

bool has_range(const Trace& trace, std::string_view text) {
  const std::optional<StringId> id = trace.strings.find(text);
  return id && std::find(trace.ranges.text.begin(), trace.ranges.text.end(), *id) !=
                   trace.ranges.text.end();
}

// Whether a process launched GPU work. A profiler's steps in a process without any, while another
// has all of it, are not the steps of that work.
std::vector<bool> processes_with_work(const Trace& trace) {
  std::vector<bool> works(trace.processes.size(), trace.kernels.size() + trace.graphs.size() == 0);
  for (const std::uint16_t process : trace.kernels.process) {
    works[process] = true;
  }
  for (const std::uint16_t process : trace.graphs.process) {
    works[process] = true;
  }
  return works;
}

// SGLang marks the steps of a draft model like those of the model itself: DECODE where the model
// verifies, EXTEND inside the range `draft_extend`.
void mark_drafts(const Trace& trace, std::vector<EngineSteps::Step>& steps) {
  std::unordered_map<std::uint32_t, IntervalIndex> drafts;  // by thread
  for (std::uint32_t row = 0; row < trace.ranges.size(); ++row) {
    const std::string_view text = trace.strings[trace.ranges.text[row]];
    if (text == "draft" || text == "draft_extend") {
      drafts[trace.ranges.thread[row]].add(trace.ranges.start_ns[row], trace.ranges.end_ns[row],
                                           row);
    }
  }
  for (auto& [thread, index] : drafts) {
    index.prepare();
  }
  const bool has_verify =
      std::ranges::any_of(steps, [](const auto& step) { return step.marker.stage == "verify"; });
  for (EngineSteps::Step& step : steps) {
    const auto index = drafts.find(trace.ranges.thread[step.row]);
    const bool is_inside =
        index != drafts.end() && index->second.find(trace.ranges.start_ns[step.row]) != kNone;
    if (is_inside || (has_verify && step.marker.stage == "decode")) {
      step.marker.stage = "draft";
    }
  }
}

}  // namespace

std::span<const StepGrammar> step_grammars() {
  return kGrammars;
}

bool fits_pattern(std::string_view pattern, std::string_view text) {
  return match(pattern, text).has_value();
}

std::optional<StepMarker> read_step_marker(std::string_view domain, std::string_view text) {
  const std::optional<std::size_t> row = grammar_of(text);
  if (!row || (!kGrammars[*row].companion.empty() && !domain.empty())) {
    return std::nullopt;
  }
  Numbers numbers = *match(kGrammars[*row].pattern, text);
  if (kGrammars[*row].has_slots) {
    count_slots(text, numbers);
  }
  return marker_of(kGrammars[*row], numbers);
}

void read_slots(std::string_view text, std::vector<SlotTokens>& slots) {
  constexpr std::string_view kKey = "seqs=";
  constexpr std::size_t kMostSlots = 65'536;
  const std::size_t size = slots.size();
  const std::size_t at = text.find(kKey);
  if (at == std::string_view::npos) {
    return;
  }
  text.remove_prefix(at + kKey.size());
  text = text.substr(0, text.find_first_not_of("0123456789:,"));
  for (const std::string_view pair : split(text, ',')) {
    const std::size_t colon = std::min(pair.find(':'), pair.size());
    const auto slot = parse_whole(pair.substr(0, colon));
    const auto tokens = parse_whole(pair.substr(std::min(colon + 1, pair.size())));
    if (!slot || !tokens || *slot > kMostTokens || *tokens > kMostTokens || *tokens == 0 ||
        slots.size() - size >= kMostSlots) {
      slots.resize(size);
      return;
    }
    slots.push_back({*slot, *tokens});
  }
}

EngineSteps find_engine_steps(const Trace& trace, StepUse use) {
  // Most ranges are not markers, and their texts repeat: each is looked at once.
  enum class Known : std::uint8_t { kUnread, kMarker, kNoMarker };
  std::vector<Known> known(trace.strings.size());
  std::unordered_map<std::string_view, std::vector<EngineSteps::Step>> by_engine;
  const std::vector<bool> works = processes_with_work(trace);
  for (std::size_t row = 0; row < trace.ranges.size(); ++row) {
    const std::string_view text = trace.strings[trace.ranges.text[row]];
    Known& is_marker = known[static_cast<std::size_t>(trace.ranges.text[row])];
    if (is_marker == Known::kUnread) {
      is_marker = grammar_of(text) ? Known::kMarker : Known::kNoMarker;
    }
    if (is_marker == Known::kNoMarker || trace.ranges.kind[row] == RangeKind::kMark) {
      continue;
    }
    const auto marker = read_step_marker(trace.strings[trace.ranges.domain[row]], text);
    const bool is_idle =
        use == StepUse::kFallback && !works[trace.threads[trace.ranges.thread[row]].process];
    // Plain words without company count only where nothing better is marked.
    const bool is_word = marker && !marker->grammar->companion.empty();
    if (marker && (marker->grammar->use == use || is_word) && !is_idle) {
      by_engine[marker->grammar->engine].push_back({row, *marker});
    }
  }
  for (const StepGrammar& grammar : kGrammars) {
    const auto found = by_engine.find(grammar.engine);
    const bool lacks_company = !grammar.companion.empty() && !has_range(trace, grammar.companion);
    if (found == by_engine.end() || (lacks_company && use == StepUse::kServing)) {
      continue;
    }
    EngineSteps result{grammar.engine, fmt::format("step markers of {}", grammar.engine),
                       std::move(found->second)};
    if (lacks_company) {
      result.source =
          fmt::format("ranges in the words of {}, which no other range confirms", grammar.engine);
    }
    // A patched SGLang writes vLLM's form around its own.
    if (grammar.engine == kVllm && by_engine.contains(kSglang)) {
      result.engine = kSglang;
      result.source = "step markers of SGLang, in vLLM's form";
    }
    if (result.engine == kSglang) {
      mark_drafts(trace, result.steps);
    }
    return result;
  }
  return {};
}

}  // namespace gpuwhy
