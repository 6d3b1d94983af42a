// SPDX-License-Identifier: Apache-2.0
//
// The public library: plain structs and functions in front of the internal layers.
//
// Results are copied, so that no internal type and no type of a third-party library is part of the
// interface. A table of a recording has thousands of rows, not millions.
#include <gpuwhy/error.h>
#include <gpuwhy/model.h>
#include <gpuwhy/recording.h>

#include "analysis/profile.h"
#include "base/error.h"
#include "model/checkpoint.h"
#include "results/json.h"
#include "results/results.h"
#include "session/reading/recording.h"

namespace gpuwhy::api {
namespace {

// Converts any exception of a layer to the library's own.
template <typename Body>
auto guarded(Body&& body) {
  try {
    return body();
  } catch (const gpuwhy::Error& error) {
    throw Error(error.what(), error.hint());
  } catch (const std::bad_alloc&) {
    throw Error("out of memory", "");
  } catch (const std::exception& error) {
    throw Error(error.what(), "");
  }
}

StageRow stage_row(const gpuwhy::StageRow& stage) {
  return {stage.stage.text(), stage.num_instances, stage.total_ns,
          stage.median_ns,    stage.kernel_ns,     stage.tokens};
}

KernelRow kernel_row(const gpuwhy::KernelRow& kernel) {
  return {kernel.kernel_name, kernel.short_name, kernel.device,   kernel.stage.text(),
          kernel.family,      kernel.calls,      kernel.total_ns, kernel.min_ns,
          kernel.median_ns,   kernel.max_ns,     kernel.p99_ns};
}

LedgerRow ledger_row(const gpuwhy::LedgerRow& stage) {
  LedgerRow row{stage.stage.text(), stage.device, stage.window_ns, {}};
  for (std::size_t i = 0; i < kNumBuckets; ++i) {
    row.buckets_ns.emplace_back(kBucketNames[i], stage.buckets_ns[i]);
  }
  return row;
}

Recording recording_of(const std::string& path, const std::string& rules_file) {
  RecordingOptions options;
  options.rules = rules_file;
  const Analysis analysis = profile_recordings({path}, options, this_system()).analysis;
  Recording recording;
  recording.format = analysis.capture.format.name;
  if (analysis.capture.duration_ns > 0) {  // none in a summary, nor where nothing was recorded
    recording.capture_ns = analysis.capture.duration_ns;
  }
  recording.kernel_ns = analysis.capture.kernel_ns;
  for (const DeviceRow& device : analysis.devices) {
    recording.devices.push_back(device.device);
  }
  for (const gpuwhy::StageRow& stage : analysis.stages) {
    recording.stages.push_back(stage_row(stage));
  }
  for (const gpuwhy::KernelRow& kernel : analysis.kernels) {
    recording.kernels.push_back(kernel_row(kernel));
  }
  for (const gpuwhy::LedgerRow& ledger : analysis.ledgers) {
    recording.ledgers.push_back(ledger_row(ledger));
  }
  for (const Finding& finding : analysis.findings) {
    recording.findings.push_back(
        {word_of(finding.id), finding.sentence, text_of_member(finding.advice), finding.saving_ns});
  }
  for (const Diagnostic& diagnostic : analysis.data_quality) {
    recording.warnings.push_back(diagnostic.sentence);
  }
  recording.metrics_json = metrics_json_text(analysis);
  return recording;
}

WorkCost cost_at(const std::string& path, const LlmWork& work) {
  const LlmCost cost = cost_of(load_llm(path), work);
  return {cost.total_flops(), cost.total_bytes()};
}

}  // namespace

Error::~Error() = default;

Recording read_recording(const std::string& path) {
  return guarded([&] { return recording_of(path, ""); });
}

Recording read_recording(const std::string& path, const std::string& rules_file) {
  return guarded([&] { return recording_of(path, rules_file); });
}

const char* version() {
  return GPUWHY_VERSION;
}

ModelFacts model_facts(const std::string& path) {
  return guarded([&]() -> ModelFacts {
    const Llm llm = load_llm(path);
    const LlmParams params = params_of(llm);
    return {llm.family, params.total, params.active, kv_bytes_per_token(llm), llm.weight_dtype};
  });
}

WorkCost prefill_cost(const std::string& path, std::int64_t tokens, std::int64_t batch) {
  return guarded([&] { return cost_at(path, prefill_work(tokens, batch)); });
}

WorkCost decode_cost(const std::string& path, std::int64_t context, std::int64_t batch) {
  return guarded([&] { return cost_at(path, decode_work(context, batch)); });
}

}  // namespace gpuwhy::api
