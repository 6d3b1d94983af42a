// SPDX-License-Identifier: Apache-2.0
//
// Writer of the kernel table as a pprof profile, for `go tool pprof -top`, flame graphs and
// -diff_base.
//
// A profile consists of samples of call stacks. Here a stage calls a family calls a kernel, and a
// sample is a row of the table, not a moment: its values are the row's sums, so totals are exact.
// Because only the table is needed, the file is as small for a hundred million launches as for a
// thousand, and exists for kernel summaries too.
//
// pprof shortens C++ names that it considers not yet demangled: it removes templates and
// parameters, and kernels that differ only in these become one. It leaves a name alone if its
// system name differs, so the table's short name is the name and the full one the system name.
//
// Field numbers: proto/profile.proto of github.com/google/pprof.
#include "export/pprof.h"

#include <map>
#include <unordered_map>

#include <protozero/pbf_writer.hpp>

#include "base/gzip_base64.h"
#include "export/event_sink.h"

namespace llmprof {
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

// Collects texts and locations while writing; the string table goes last.
class ProfileWriter {
 public:
  ProfileWriter() : profile_(bytes_) { text(""); }  // the table's first is empty

  std::string write(const Analysis& analysis) {
    add_type("launches", "count");
    add_type("gpu_time", "nanoseconds");
    for (const KernelRecord& record : analysis.kernels) {
      add_sample(record);
    }
    profile_.add_int64(field::kDurationNanos, analysis.capture_ns);
    profile_.add_int64(field::kDefaultSampleType, text("gpu_time"));
    profile_.add_int64(field::kComment,
                       text("llmprof: stage -> family -> kernel; sums of GPU time, not samples"));
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

  void add_sample(const KernelRecord& record) {
    const std::string stage = shown_name(record.stage);
    const std::uint64_t stack[] = {
        location("kernel", shown_name(record.short_name), shown_name(record.kernel_name)),
        location("family", "[" + record.family + "]", "[" + record.family + "]"),
        location("stage", "[" + stage + "]", "[" + stage + "]")};
    const std::int64_t values[] = {record.calls, record.total_ns};
    pbf_writer sample(profile_, field::kSample);
    sample.add_packed_uint64(field::kSampleLocations, std::begin(stack), std::end(stack));
    sample.add_packed_int64(field::kSampleValues, std::begin(values), std::end(values));
    pbf_writer label(sample, field::kSampleLabel);
    label.add_int64(field::kLabelKey, text("device"));
    label.add_int64(field::kLabelText, text(record.device));
  }

  std::string bytes_;
  pbf_writer profile_;
  std::unordered_map<std::string, std::size_t> numbers_;  // does not move its keys
  std::vector<const std::string*> texts_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> locations_;
};

}  // namespace

std::string pprof_profile(const Analysis& analysis) {
  return ProfileWriter().write(analysis);
}

}  // namespace llmprof
