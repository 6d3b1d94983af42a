// SPDX-License-Identifier: Apache-2.0
//
// Writer of the kernel table as a pprof profile, for `go tool pprof -top`, flame graphs and
// -diff_base.
//
// A profile consists of samples of call stacks. Here a stage calls a family calls a kernel, and a
// sample is a row of the table, not a moment: its values are the row's sums, so totals are exact.
// The file is as small for a hundred million launches as for a thousand, and exists for kernel
// summaries too.
//
// Where passes of a model were recovered, a stage calls a pass calls a kind of layer calls a part
// calls a kernel. The layer's number is a label, so that a flame graph shows one layer with its
// parts; `-tagroot layer` divides it by layer. The launches of a row that have no part, of passes
// that the capture cuts for example, keep the family.
//
// pprof shortens C++ names that it considers not yet demangled: it removes templates and
// parameters, and kernels that differ only in these become one. It leaves a name alone if its
// system name differs, so the table's short name is the name and the full one the system name.
//
// Field numbers: proto/profile.proto of github.com/google/pprof.
#include "export/pprof.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>
#include <protozero/pbf_writer.hpp>

#include "analysis/profile.h"
#include "base/gzip_base64.h"
#include "export/event_sink.h"
#include "trace/device_label.h"

namespace gpuwhy {
namespace {

using protozero::pbf_tag_type;
using protozero::pbf_writer;

namespace profile_field {
constexpr pbf_tag_type kSampleType = 1, kSample = 2, kLocation = 4, kFunction = 5, kStringTable = 6,
                       kDurationNanos = 10, kComment = 13, kDefaultSampleType = 14;
constexpr pbf_tag_type kTypeType = 1, kTypeUnit = 2;                               // ValueType
constexpr pbf_tag_type kSampleLocations = 1, kSampleValues = 2, kSampleLabel = 3;  // leaf first
constexpr pbf_tag_type kLabelKey = 1, kLabelText = 2;
constexpr pbf_tag_type kLocationId = 1, kLocationLine = 4, kLineFunction = 1;
constexpr pbf_tag_type kFunctionId = 1, kFunctionName = 2, kFunctionSystemName = 3;
}  // namespace profile_field
namespace field = profile_field;

// Launches of one row of the kernel table at one place of the model.
struct PlaceKey {
  std::uint32_t stage = 0;  // of Stages, or kNone
  StringId name{};
  std::uint16_t device = 0;
  std::uint32_t part = 0;  // into StructureSummary::parts
  std::int32_t layer = 0;  // -1: in no layer

  bool operator==(const PlaceKey&) const = default;
};

struct PlaceHash {
  std::size_t operator()(const PlaceKey& key) const {
    std::uint64_t hash = 0;
    for (const std::uint64_t part :
         {(std::uint64_t{key.stage} << 32) | static_cast<std::uint64_t>(key.name),
          (std::uint64_t{key.part} << 32) | static_cast<std::uint32_t>(key.layer),
          std::uint64_t{key.device}}) {
      hash = (hash ^ part) * 0x9e3779b97f4a7c15ULL;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

struct PlaceSum {
  std::int64_t launches = 0;
  std::int64_t total_ns = 0;
};

struct PlaceSample {
  std::uint32_t part = 0;
  std::int32_t layer = 0;
  PlaceSum sum;
};

// Samples of each row of the kernel table, by part and layer. Without a structure empty.
std::vector<std::vector<PlaceSample>> samples_in_model(const Profile& profile) {
  if (profile.kernel_parts.empty()) {
    return {};
  }
  const Trace& trace = *profile.trace;
  std::unordered_map<PlaceKey, PlaceSum, PlaceHash> sums;
  for (const KernelStream& stream : profile.structure.streams) {
    for (const ModelPass& pass : stream.passes) {
      for (std::uint32_t i = pass.begin; i < pass.end; ++i) {
        const std::uint32_t row = stream.kernels[i];
        if (profile.kernel_parts[row] == kNone) {
          continue;
        }
        const std::uint32_t instance = profile.attribution.kernels.instance[row];
        const std::uint32_t stage =
            instance == kNone ? kNone : profile.stages.instances[instance].stage;
        const int layer = pass.layer_at(i);
        PlaceSum& sum = sums[{stage, trace.kernels.name[row], trace.kernels.device[row],
                              profile.kernel_parts[row], layer < pass.num_layers() ? layer : -1}];
        ++sum.launches;
        sum.total_ns += trace.kernels.end_ns[row] - trace.kernels.start_ns[row];
      }
    }
  }
  // Rows by the texts that identify them.
  using RowKey = std::tuple<std::string_view, std::string_view, std::string_view>;
  std::map<RowKey, std::size_t> rows;
  for (std::size_t i = 0; i < profile.analysis.kernels.size(); ++i) {
    const KernelRow& record = profile.analysis.kernels[i];
    rows.emplace(RowKey(record.stage.text(), record.kernel_name, record.device), i);
  }
  std::vector<std::vector<PlaceSample>> samples(profile.analysis.kernels.size());
  for (const auto& [key, sum] : sums) {
    const std::string device = device_label(trace.devices[key.device]);
    const std::string_view stage = profile.stages.name_of(key.stage).text();
    const auto row = rows.find(RowKey(stage, trace.strings[key.name], device));
    if (row != rows.end()) {
      samples[row->second].push_back({key.part, key.layer, sum});
    }
  }
  for (std::vector<PlaceSample>& of_row : samples) {
    std::sort(of_row.begin(), of_row.end(), [](const PlaceSample& a, const PlaceSample& b) {
      return std::pair(a.part, a.layer) < std::pair(b.part, b.layer);
    });
  }
  return samples;
}

// Collects texts and locations while writing; the string table goes last.
class ProfileWriter {
 public:
  ProfileWriter() : profile_(bytes_) { text(""); }  // the table's first is empty

  std::string write(const Profile& profile) {
    const Analysis& analysis = profile.analysis;
    add_type("launches", "count");
    add_type("gpu_time", "nanoseconds");
    const std::vector<std::vector<PlaceSample>> in_model = samples_in_model(profile);
    for (std::size_t i = 0; i < analysis.kernels.size(); ++i) {
      const KernelRow& record = analysis.kernels[i];
      PlaceSum others{record.calls, record.total_ns};
      if (!in_model.empty()) {
        for (const PlaceSample& sample : in_model[i]) {
          add_model_sample(record, analysis.structure->parts[sample.part], sample);
          others.launches -= sample.sum.launches;
          others.total_ns -= sample.sum.total_ns;
        }
      }
      if (others.launches > 0) {
        add_sample(record, {family_location(record)}, others, -1);
      }
    }
    profile_.add_int64(field::kDurationNanos, analysis.capture.duration_ns);
    profile_.add_int64(field::kDefaultSampleType, text("gpu_time"));
    profile_.add_int64(
        field::kComment,
        text(in_model.empty() ? "gpuwhy: stage -> family -> kernel; sums of GPU time, not samples"
                              : "gpuwhy: stage -> pass -> layer -> part -> kernel, outside of "
                                "passes stage -> family -> kernel; sums of GPU time, not "
                                "samples"));
    for (const std::string* each : texts_) {
      profile_.add_string(field::kStringTable, *each);
    }
    return gzipped(bytes_);
  }

 private:
  std::int64_t text(const std::string& value) {
    const auto [at, is_new] = numbers_.try_emplace(value, texts_.size());
    if (is_new) {
      texts_.push_back(&at->first);
    }
    return static_cast<std::int64_t>(at->second);
  }

  void add_type(const char* type, const char* unit) {
    pbf_writer value(profile_, field::kSampleType);
    value.add_int64(field::kTypeType, text(type));
    value.add_int64(field::kTypeUnit, text(unit));
  }

  // A function with a single location. The kind separates a kernel from a stage with the same name.
  std::uint64_t location(const char* kind, const std::string& name, const std::string& whole) {
    const auto [at, is_new] = locations_.try_emplace({kind, whole}, locations_.size() + 1);
    const std::uint64_t id = at->second;
    if (is_new) {
      {
        pbf_writer function(profile_, field::kFunction);
        function.add_uint64(field::kFunctionId, id);
        function.add_int64(field::kFunctionName, text(name));
        function.add_int64(field::kFunctionSystemName, name == whole ? 0 : text(whole));
      }
      pbf_writer place(profile_, field::kLocation);
      place.add_uint64(field::kLocationId, id);
      pbf_writer line(place, field::kLocationLine);
      line.add_uint64(field::kLineFunction, id);
    }
    return id;
  }

  std::uint64_t frame(const char* kind, const std::string& name) {
    const std::string shown = "[" + shown_name(name) + "]";
    return location(kind, shown, shown);
  }

  std::uint64_t family_location(const KernelRow& record) { return frame("family", record.family); }

  void add_model_sample(const KernelRow& record, const LayerPartRow& part,
                        const PlaceSample& sample) {
    add_sample(record,
               {frame("part", part.part), frame("block", std::string(part.block())),
                frame("pass", part.pass)},
               sample.sum, sample.layer);
  }

  // `between` are the frames between kernel and stage, the innermost first. A layer of -1 has no
  // label.
  void add_sample(const KernelRow& record, std::initializer_list<std::uint64_t> between,
                  const PlaceSum& sum, std::int32_t layer) {
    std::vector<std::uint64_t> stack = {
        location("kernel", shown_name(record.short_name), shown_name(record.kernel_name))};
    stack.insert(stack.end(), between);
    stack.push_back(frame("stage", record.stage.text()));
    const std::int64_t values[] = {sum.launches, sum.total_ns};
    pbf_writer sample(profile_, field::kSample);
    sample.add_packed_uint64(field::kSampleLocations, stack.begin(), stack.end());
    sample.add_packed_int64(field::kSampleValues, std::begin(values), std::end(values));
    add_label(sample, "device", record.device);
    if (layer >= 0) {
      add_label(sample, "layer", fmt::to_string(layer));
    }
  }

  void add_label(pbf_writer& sample, const char* key, const std::string& value) {
    pbf_writer label(sample, field::kSampleLabel);
    label.add_int64(field::kLabelKey, text(key));
    label.add_int64(field::kLabelText, text(value));
  }

  std::string bytes_;
  pbf_writer profile_;
  std::unordered_map<std::string, std::size_t> numbers_;  // does not move its keys
  std::vector<const std::string*> texts_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> locations_;
};

}  // namespace

std::string pprof_profile(const Profile& profile) {
  return ProfileWriter().write(profile);
}

}  // namespace gpuwhy
