// SPDX-License-Identifier: Apache-2.0
//
// Translation of NVTX range filters for nsys and ncu, checked against the ranges that were seen.
//
// nsys writes RANGE@DOMAIN, ncu DOMAIN@RANGE. nsys takes one range, ncu several. A bare name is a
// start/end range for ncu and any kind for nsys. Both compare literally, so a wildcard is accepted
// and matches nothing. And nsys looks only at registered strings, unless an environment variable
// says otherwise. Each of these mistakes ends in an empty capture with exit code 0. So ranges are
// written DOMAIN:RANGE here and translated for each tool, using what a pass without profilers saw.
// A range that cannot match is rejected before a model is loaded.
//
// What it cannot know: whether a range that was seen without a profiler is entered again under one.
// The contract checks that afterwards.
#include "capture/trigger.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/list_of.h"
#include "base/text.h"
#include "base/units.h"

namespace gpuwhy {
namespace {

// The marks of include/gpuwhy/nvtx.h, widest first. The rules in conf/rules/stages.yaml know the
// same names in the default domain.
constexpr std::array<std::string_view, 5> kStageNames = {"request", "prefill", "decode_all",
                                                         "decode", "decode_step"};

bool is_stage_name(std::string_view name) {
  return std::find(kStageNames.begin(), kStageNames.end(), name) != kStageNames.end();
}

Error refusal(std::string_view given, const std::string& reason, const std::string& hint) {
  return {ErrorKind::kUsage,
          fmt::format("run.gate={} would open no capture: {}", printable(given), reason), hint};
}

// Every rejection explains which tool would have matched nothing, and how to write it.
StageMark parse_mark(std::string_view text) {
  const std::string example = "write DOMAIN:RANGE, as run.gate=LLM:request";
  if (text.find(',') != std::string_view::npos) {
    throw refusal(text, "nsys takes one range only",
                  "name the range around all stages, as run.gate=LLM:request; the "
                  "analysis finds the stages in it");
  }
  if (text.find_first_of("*?") != std::string_view::npos) {
    throw refusal(text, "nsys and ncu compare range names literally, wildcards match nothing",
                  example);
  }
  std::size_t at = text.find(':');
  if (at == std::string_view::npos) {
    at = text.find('@');
  }
  if (at == std::string_view::npos) {
    throw refusal(
        text, "it has no domain",
        is_stage_name(text)
            ? fmt::format("run.gate=LLM:{0}, or run.gate=:{0} in NVTX's default domain", text)
            : example + "; a range of the default domain is :RANGE");
  }
  StageMark mark{std::string(text.substr(0, at)), std::string(text.substr(at + 1))};
  if (mark.name.empty()) {
    throw refusal(text, "the range has no name", example);
  }
  if (is_stage_name(mark.domain) && !is_stage_name(mark.name)) {
    throw refusal(
        text,
        fmt::format("'{}' is a range, not a domain: the order is swapped", printable(mark.domain)),
        fmt::format("run.gate={}:{}", printable(mark.name), printable(mark.domain)));
  }
  if (mark.name.find('@') != std::string::npos || mark.domain.find('@') != std::string::npos) {
    throw refusal(text, "nsys does not accept a name with @ in it",
                  "rename the range, or record everything: run.gate=none");
  }
  return mark;
}

const SeenMark* find_seen(const std::vector<SeenMark>& seen, const StageMark& mark) {
  const auto found = std::ranges::find_if(seen, [&](const SeenMark& s) { return s.mark == mark; });
  return found == seen.end() ? nullptr : &*found;
}

CaptureTrigger trigger_on(const SeenMark& seen, std::string reason) {
  return {TriggerWish::Kind::kMark, seen.mark, seen.is_registered, std::move(reason),
          static_cast<std::int64_t>(seen.count)};
}

CaptureTrigger automatic_trigger(const std::vector<SeenMark>& seen) {
  for (const char* domain : {"LLM", ""}) {
    for (const std::string_view name : kStageNames) {
      if (const SeenMark* found = find_seen(seen, {domain, std::string(name)})) {
        return trigger_on(*found,
                          fmt::format("the widest mark of the baseline pass, entered {}",
                                      found->count == 1 ? "once" : count_of(found->count, "time")));
      }
    }
  }
  return {TriggerWish::Kind::kEverything, {}, false, "the baseline pass saw no mark of a stage"};
}

// From the most to the least specific explanation: no ranges at all, swapped, misspelled.
Error would_not_fire(const StageMark& mark, const std::vector<SeenMark>& seen) {
  if (seen.empty()) {
    return {ErrorKind::kContract,
            fmt::format("{} was never entered; the baseline pass saw no NVTX range",
                        printable(mark.text())),
            "mark the stages (docs/marking.md), or record everything: run.gate=none"};
  }
  if (find_seen(seen, {mark.name, mark.domain}) != nullptr) {
    return {ErrorKind::kContract,
            fmt::format("there is no {}; range and domain are swapped", printable(mark.text())),
            fmt::format("run.gate={}:{}", printable(mark.name), printable(mark.domain))};
  }
  auto names =
      list_of<std::string>(seen, [&](const SeenMark& s) { return printable(s.mark.text()); });
  const auto guess = nearest(mark.text(), names);
  names.resize(std::min<std::size_t>(names.size(), 8));
  return {ErrorKind::kContract,
          fmt::format("{} was never entered in the baseline pass", printable(mark.text())),
          guess ? fmt::format("did you mean run.gate={}?", *guess)
                : fmt::format("seen: {}", fmt::join(names, ", "))};
}

// ncu takes its special characters literally after a backslash.
std::string escaped_for_ncu(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (std::string_view("@,[]/*+\\").find(c) != std::string_view::npos) {
      text += '\\';
    }
    text += c;
  }
  return text;
}

}  // namespace

TriggerWish parse_trigger(std::string_view text) {
  if (text == "auto") {
    return {TriggerWish::Kind::kAuto, {}};
  }
  if (text == "none") {
    return {TriggerWish::Kind::kEverything, {}};
  }
  if (text == "cuda_profiler_api") {
    return {TriggerWish::Kind::kCudaProfilerApi, {}};
  }
  return {TriggerWish::Kind::kMark, parse_mark(text)};
}

// Without a baseline pass a mark is taken on trust.
CaptureTrigger choose_trigger(const TriggerWish& wish, const std::vector<SeenMark>* seen) {
  switch (wish.kind) {
    case TriggerWish::Kind::kEverything:
      return {TriggerWish::Kind::kEverything, {}, false, "run.gate=none"};
    case TriggerWish::Kind::kCudaProfilerApi:
      return {TriggerWish::Kind::kCudaProfilerApi, {}, false, "the program opens it itself"};
    case TriggerWish::Kind::kAuto:
      return seen != nullptr ? automatic_trigger(*seen)
                             : CaptureTrigger{TriggerWish::Kind::kEverything,
                                              {},
                                              false,
                                              "no baseline pass recorded which marks exist"};
    case TriggerWish::Kind::kMark:
      break;
  }
  if (seen == nullptr) {
    return {TriggerWish::Kind::kMark, wish.mark, false, "run.gate"};
  }
  const SeenMark* found = find_seen(*seen, wish.mark);
  if (found == nullptr) {
    throw would_not_fire(wish.mark, *seen);
  }
  return trigger_on(*found, "run.gate");
}

std::vector<std::string> nsys_trigger_options(const CaptureTrigger& gate) {
  // The end of the range is ignored: other requests follow, and the default end policy sends
  // SIGTERM to the program.
  switch (gate.kind) {
    case TriggerWish::Kind::kMark: {
      const std::string domain = gate.mark.domain.empty() ? "" : "@" + gate.mark.domain;
      return {"--capture-range=nvtx", "--nvtx-capture=" + gate.mark.name + domain,
              "--capture-range-end=none"};
    }
    case TriggerWish::Kind::kCudaProfilerApi:
      return {"--capture-range=cudaProfilerApi", "--capture-range-end=stop"};
    case TriggerWish::Kind::kAuto:
    case TriggerWish::Kind::kEverything:
      break;
  }
  return {};
}

std::map<std::string, std::string> nsys_trigger_environment(const CaptureTrigger& gate) {
  if (gate.kind == TriggerWish::Kind::kMark && !gate.is_registered) {
    return {{"NSYS_NVTX_PROFILER_REGISTER_ONLY", "0"}};
  }
  return {};
}

std::vector<std::string> ncu_gate_options(const std::vector<SeenMark>& marks, const NcuTool& ncu) {
  if (marks.empty()) {
    return {};
  }
  std::vector<std::string> options = {"--nvtx"};
  // The trailing slash selects push/pop ranges, a bare name start/end ranges.
  for (const SeenMark& seen : marks) {
    const std::string domain =
        seen.mark.domain.empty() ? "" : escaped_for_ncu(seen.mark.domain) + "@";
    const std::string range = domain + escaped_for_ncu(seen.mark.name);
    if (seen.is_push_pop) {
      options.insert(options.end(), {"--nvtx-include", range + "/"});
    }
    if (seen.is_start_end) {
      options.insert(options.end(), {"--nvtx-include", range});
    }
  }
  // Kernels launched by another thread (PyTorch's backward) count too, if this ncu supports it.
  if (ncu.has_option("--nvtx-push-pop-scope")) {
    options.insert(options.end(), {"--nvtx-push-pop-scope", "process"});
  }
  return options;
}

}  // namespace gpuwhy
