// SPDX-License-Identifier: Apache-2.0
//
// Importer of PyTorch profiler traces: Chrome trace-event JSON, plain or gzipped.
//
// Supports what Kineto has written since 2021, and the bare list of events that the older profiler
// wrote.
//
// The text is one object, and its member `traceEvents` is nearly all of it. Other members are small
// and may come before or after it, in any order; they name the GPUs, the rank and the versions.
// `baseTimeNanoseconds` is the UTC time of the trace's zero; without it times count from 1970. A
// truncated file yields what was read before, with a diagnostic.
#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "base/units.h"
#include "ingest/ingest.h"
#include "ingest/kineto/kineto_outline.h"
#include "ingest/kineto/kineto_trace.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kMostKeyBytes = 1 << 10;
constexpr std::size_t kMostMemberBytes = 4 << 20;
constexpr const char* kHint =
    "it reads what torch.profiler's export_chrome_trace and tensorboard_trace_handler write";

// A member of the outermost object, parsed; null if it is invalid.
Json parsed(const std::string& text) {
  try {
    return parse_json(text, "trace");
  } catch (const Error&) {
    return nullptr;
  }
}

std::optional<std::int64_t> integer_member(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() ? json_integer(*found) : std::nullopt;
}

// Empty if there is none.
std::string text_member(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// Reads one file front to back, in constant memory apart from the trace itself.
class KinetoLoader {
 public:
  explicit KinetoLoader(const std::filesystem::path& path)
      : path_(path), source_(path), window_(source_) {}

  Trace run() {
    // Both forms are in use: a bare array of events, and an object with members.
    skip_byte_order_mark();
    if (window_.peek() == '[') {
      read_events();
    } else if (window_.take('{')) {
      read_members();
    }
    require_events();
    trace_ = builder_.finish();
    name_devices();
    find_runtimes();
    trace_.capture.schema_version = schema_version_;
    trace_.capture.tool_version = tool_version_;
    trace_.capture.rank = integer_member(distributed_, "rank");
    trace_.capture.world_size = integer_member(distributed_, "world_size");
    describe_groups();
    trace_.capture.utc_ns = utc_at_zero();
    add_diagnostics();
    return std::move(trace_);
  }

 private:
  void skip_byte_order_mark() {
    window_.peek();
    if (window_.text().starts_with("\xef\xbb\xbf")) {
      window_.consume(3);
    }
  }

  void read_events() {
    has_events_ = true;
    const KinetoArray array =
        events_.read(window_, [&](const KinetoEvent& event) { builder_.add(event); });
    read_.num_events += array.num_events;
    for (std::size_t why = 0; why < array.left_out.size(); ++why) {
      read_.left_out[why].add(true, array.left_out[why].kernels);
      read_.left_out[why].add(false, array.left_out[why].others);
    }
    read_.was_repaired |= array.was_repaired;
    if (array.stopped_at) {
      read_.stopped_at = array.stopped_at;
    }
  }

  // Members are read one by one; only `traceEvents` is streamed.
  void read_members() {
    while (!read_.stopped_at && window_.peek() == '"') {
      const std::string key = window_.take_value(kMostKeyBytes);
      if (!window_.take(':')) {
        break;
      }
      if (key == "\"traceEvents\"" && window_.peek() == '[') {
        read_events();
      } else {
        keep_member(key, window_.take_value(kMostMemberBytes));
      }
      if (!window_.take(',')) {
        break;
      }
    }
    if (!read_.stopped_at && !window_.take('}')) {
      read_.stopped_at = window_.offset();
    }
  }

  void keep_member(const std::string& key, const std::string& text) {
    if (key == "\"deviceProperties\"") {
      devices_ = parsed(text);
    } else if (key == "\"distributedInfo\"") {
      distributed_ = parsed(text);
    } else if (key == "\"baseTimeNanoseconds\"") {
      base_ns_ = parse_whole(text);
    } else if (key == "\"schemaVersion\"") {
      schema_version_ = text;
    } else if (key == "\"with_stack\"") {
      has_stacks_ = text == "1" || text == "true";
    } else if (key == "\"cupti_version\"") {
      tool_version_ = "CUPTI " + text;
    } else if (key == "\"roctracer_version\"") {
      tool_version_ = "roctracer " + text;
    }
  }

  // Times since 1970 that are before 2001 are of another clock.
  std::optional<std::int64_t> utc_at_zero() const {
    constexpr std::int64_t kEarliestNs = 1'000'000'000'000'000'000;
    if (base_ns_) {
      return *base_ns_ >= kEarliestNs ? base_ns_ : std::nullopt;
    }
    return builder_.first_ns().value_or(0) >= kEarliestNs ? std::optional<std::int64_t>(0)
                                                          : std::nullopt;
  }

  // JSON without usable events is more likely a wrong file than an empty trace.
  void require_events() const {
    if (!has_events_) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{} is JSON, but not a trace: it has no traceEvents", path_.string()),
                  kHint);
    }
    if (builder_.num_kept() == 0 && schema_version_.empty()) {
      throw Error(ErrorKind::kInput,
                  read_.stopped_at
                      ? fmt::format("{} is cut off or damaged before its first event (byte {})",
                                    path_.string(), *read_.stopped_at)
                      : fmt::format("none of the {} trace events in {} is of PyTorch's profiler",
                                    read_.num_events, path_.string()),
                  kHint);
    }
  }

  // Ranks of groups whose lists the kernels cut: the trace as a whole names all groups of its rank.
  void describe_groups() {
    const auto all = distributed_.is_object() ? distributed_.find("pg_config") : distributed_.end();
    if (all == distributed_.end() || !all->is_array()) {
      return;
    }
    std::unordered_map<std::string, const Json*> by_name;
    for (const Json& one : *all) {
      by_name.try_emplace(text_member(one, "pg_name"), &one);
    }
    for (ProcessGroup& group : trace_.process_groups) {
      const auto found = by_name.find(group.name);
      if (!group.ranks.empty() || group.name.empty() || found == by_name.end()) {
        continue;
      }
      const auto ranks = found->second->find("ranks");
      group.ranks = ranks == found->second->end() ? std::vector<std::int64_t>() : ranks_in(*ranks);
      by_name.erase(found);  // once: the list may be long, and there may be many groups
    }
  }

  // In order; empty if one of them is none.
  static std::vector<std::int64_t> ranks_in(const Json& list) {
    std::vector<std::int64_t> ranks;
    for (const Json& rank : list) {
      const auto number = json_integer(rank);
      if (!number || *number < 0) {
        return {};
      }
      ranks.push_back(*number);
    }
    std::ranges::sort(ranks);
    return ranks;
  }

  // By number. If the numbers do not match, because a program saw the GPUs in another order, the
  // properties that all GPUs share.
  void name_devices() {
    const Json all = devices_.is_array() ? devices_ : Json::array();
    const bool are_alike = std::ranges::all_of(all, [&](const Json& one) {
      return text_member(one, "name") == text_member(all[0], "name");
    });
    for (DeviceInfo& device : trace_.devices) {
      const auto found = std::ranges::find_if(all, [&](const Json& one) {
        return integer_member(one, "id") == static_cast<std::int64_t>(device.ordinal);
      });
      if (found == all.end() && (all.empty() || !are_alike)) {
        continue;
      }
      const Json& one = found == all.end() ? all[0] : *found;
      const auto number = [&](const char* key, std::int64_t most) {
        return std::clamp<std::int64_t>(integer_member(one, key).value_or(0), 0, most);
      };
      device.name = text_member(one, "name");
      device.num_sms = static_cast<std::uint32_t>(number("numSms", 1 << 20));
      device.compute_major = static_cast<std::uint32_t>(number("computeMajor", 99));
      device.compute_minor = static_cast<std::uint32_t>(number("computeMinor", 99));
      device.memory_bytes = static_cast<std::uint64_t>(number("totalGlobalMem", INT64_MAX));
    }
  }

  // Of GPUs without a name: HIP or CUDA, by the calls that were recorded, else by kernels that only
  // AMD's libraries have.
  void find_runtimes() {
    constexpr std::string_view kHipKernels[] = {"Cijk_", "_gfx9", "ck_tile", "aiter", "rocblas"};
    const auto has = [&](const auto& names, const auto& fits) {
      return std::ranges::any_of(names, [&](StringId name) { return fits(trace_.strings[name]); });
    };
    const auto begins = [&](std::string_view word) {
      return has(trace_.api_calls.name,
                 [&](std::string_view name) { return name.starts_with(word); });
    };
    const auto is_hip_kernel = [&](std::string_view name) {
      return std::ranges::any_of(kHipKernels, [&](std::string_view word) {
        return name.find(word) != std::string_view::npos;
      });
    };
    for (DeviceInfo& device : trace_.devices) {
      if (device.name.empty()) {
        device.runtime = begins("hip") || has(trace_.kernels.name, is_hip_kernel) ? GpuRuntime::kHip
                         : begins("cu") ? GpuRuntime::kCuda
                                        : GpuRuntime::kUnknown;
      }
    }
  }

  // What was left out of the figures, by kind. A count of zero is not reported.
  void add_diagnostics() {
    const auto add = [&](const char* kind, Severity severity, std::uint64_t count,
                         std::string sentence) {
      if (count > 0) {
        trace_.diagnostics.push_back(
            {kind, severity, static_cast<std::int64_t>(count), std::move(sentence)});
      }
    };
    if (read_.stopped_at) {
      add("cut_off", Severity::kDataLoss, 1,
          fmt::format("the trace is cut off or damaged at byte {}{}: what follows is not in any "
                      "figure",
                      *read_.stopped_at, source_.is_cut_off() ? " (of the unpacked text)" : ""));
    }
    read_.left_out[static_cast<std::size_t>(Unusable::kFarAway)] = builder_.num_implausible();
    const EventCounts left_out = sum_of(read_.left_out);
    trace_.capture.has_kernel_table |= left_out.kernels > 0;
    trace_.capture.has_cuda |= left_out.kernels > 0;
    const auto num_kernels = static_cast<std::int64_t>(trace_.kernels.size());
    const auto num_kept = static_cast<std::int64_t>(builder_.num_kept());
    add_left_out(read_.left_out,
                 {num_kernels + left_out.kernels, num_kept - num_kernels + left_out.others},
                 {"no usable time, duration or thread", "their duration is below 0",
                  "a month or more from the first event, or as long"},
                 trace_.diagnostics);
    add("repaired_text", Severity::kInfo, read_.was_repaired ? 1 : 0,
        "the text has bytes that JSON does not allow; in names they were replaced");
    add("python_stacks", Severity::kWarning, has_stacks_ ? 1 : 0,
        "recorded with Python stacks (with_stack=True), which slow the CPU: gaps between kernels are "
        "longer than without the profiler");
  }

  std::filesystem::path path_;
  GzipReader source_;
  JsonBuffer window_;
  KinetoEvents events_;
  KinetoTrace builder_;
  KinetoArray read_;
  bool has_events_ = false;
  std::string schema_version_;
  bool has_stacks_ = false;  // of Python, which cost time
  std::string tool_version_;
  Json devices_;
  Json distributed_;
  std::optional<std::int64_t> base_ns_;
  Trace trace_;
};

bool is_kineto_json(const InputFile& file) {
  const std::string text = inflated_head(file.head());
  std::string_view rest = text;
  if (rest.starts_with("\xef\xbb\xbf")) {
    rest.remove_prefix(3);
  }
  rest = trim(rest);
  return rest.starts_with('{') || rest.starts_with('[');
}

// Single-threaded: the parser is several times faster than gunzip.
Recording load_kineto_json(const InputFile& file, unsigned /*num_threads*/) {
  return KinetoLoader(file.path()).run();
}

}  // namespace

const Importer kKinetoJson = {
    {.name = "PyTorch profiler JSON",
     .tool = "PyTorch's profiler",
     .tool_id = "kineto",
     .kind = "trace",
     .made_with = "torch.profiler: export_chrome_trace, tensorboard_trace_handler",
     .record_gpu = "record again with torch.profiler.profile(activities=[ProfilerActivity.CPU, "
                   "ProfilerActivity.CUDA])",
     .record_less = "record again, shorter: fewer active steps in torch.profiler.schedule, without "
                    "with_stack and profile_memory; wait until the file is written whole"},
    is_kineto_json,
    load_kineto_json,
    outline_kineto_json};

}  // namespace gpuwhy
