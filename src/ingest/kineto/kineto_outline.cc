// SPDX-License-Identifier: Apache-2.0
//
// Estimate of the number of events in a PyTorch trace, from samples of its text.
//
// The text has no table of contents, so samples are counted and scaled by bytes. An event is
// recognized by its "cat", wherever a sample cuts the text. Profilers write operators first and
// kernels after them, so samples of a plain text are spread over it.
//
// What it gets wrong: gzip cannot be entered in the middle, so of a gzipped trace only the
// beginning is seen, where calls and kernels are rare. There two operators are assumed per call (a
// ResNet-50 of 2021: 23,646 and 11,923), and one kernel per call. The rest may compress
// differently. Long arguments (shapes, stacks) that only some events have also change the density.
#include "ingest/kineto/kineto_outline.h"

#include <algorithm>
#include <fstream>

#include "base/error.h"
#include "base/gzip_reader.h"
#include "base/text.h"
#include "base/units.h"
#include "ingest/ingest.h"
#include "ingest/kineto/kineto_event.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kSampleBytes = kMiB;
constexpr std::size_t kNumSamples = 16;

// Null for kinds that leave no row of their own.
std::uint64_t* count_of_kind(KinetoKind kind, TraceOutline& outline) {
  switch (kind) {
    case KinetoKind::kOperator:
    case KinetoKind::kModule:
      return &outline.num_ops;
    case KinetoKind::kAnnotation:
      return &outline.num_ranges;
    case KinetoKind::kCall:
    case KinetoKind::kLegacyLaunch:
      return &outline.num_calls;
    case KinetoKind::kKernel:
      return &outline.num_kernels;
    case KinetoKind::kCopy:
    case KinetoKind::kMemset:
      return &outline.num_copies;
    case KinetoKind::kFunction:
    case KinetoKind::kLegacyArrival:
    case KinetoKind::kSession:
    case KinetoKind::kCounted:
      break;
  }
  return nullptr;
}

// Samples an uncompressed file and returns the bytes looked at.
std::uint64_t sample_plain(const std::filesystem::path& path, TraceOutline& outline) {
  std::ifstream file(path, std::ios::binary);
  const bool is_whole = outline.file_bytes <= kSampleBytes * kNumSamples;
  const std::uint64_t step = is_whole ? kSampleBytes : outline.file_bytes / kNumSamples;
  std::string text;
  std::uint64_t num_read = 0;
  for (std::size_t i = 0; i < kNumSamples && file; ++i) {
    file.seekg(static_cast<std::streamoff>(i * step));
    text.resize(kSampleBytes);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
    count_kineto_events(text, outline);
    num_read += text.size();
  }
  return num_read;
}

// Reads the beginning of a compressed file and returns the bytes of the file that were inflated.
std::uint64_t sample_packed(GzipReader& source, TraceOutline& outline) {
  std::string text(kSampleBytes * kNumSamples, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const std::size_t got = source.read(text.data() + size, text.size() - size);
    if (got == 0) {
      break;
    }
    size += got;
  }
  count_kineto_events(std::string_view(text).substr(0, size), outline);
  return source.num_read();
}

}  // namespace

void count_kineto_events(std::string_view text, TraceOutline& outline) {
  constexpr std::string_view kKey = "\"cat\"";
  constexpr std::size_t kMostCategory = 40;
  constexpr std::size_t kMostBetween = 60;  // a category and the first letters of a name
  for (std::size_t at = text.find(kKey); at != std::string_view::npos; at = text.find(kKey, at)) {
    at += kKey.size();
    // Only the category after the key is looked at; the rest of the event is not parsed.
    std::string_view rest = text.substr(at, kMostCategory + kMostBetween);
    rest.remove_prefix(std::min(rest.find_first_not_of(": \n\t"), rest.size()));
    if (!rest.starts_with('"')) {
      continue;
    }
    const std::size_t end = rest.find('"', 1);
    const auto kind = kineto_kind(rest.substr(1, end == std::string_view::npos ? 0 : end - 1));
    if (!kind) {
      continue;
    }
    // Of Python frames modules are kept, and the few that are long.
    const bool is_module =
        *kind == KinetoKind::kFunction && rest.find("nn.Module: ") != std::string_view::npos;
    if (std::uint64_t* const count =
            count_of_kind(is_module ? KinetoKind::kModule : *kind, outline)) {
      ++*count;
    }
  }
}

TraceOutline outline_kineto_json(const InputFile& file) {
  const std::filesystem::path& path = file.path();
  TraceOutline outline;
  std::error_code failure;
  outline.file_bytes = std::filesystem::file_size(path, failure);
  if (failure) {
    throw Error(ErrorKind::kInput,
                "cannot read " + printable(path.string()) + ": " + failure.message());
  }
  GzipReader source(path);
  const bool is_packed = source.is_packed();
  const std::uint64_t seen =
      is_packed ? sample_packed(source, outline) : sample_plain(path, outline);
  outline.is_estimate = seen < outline.file_bytes;
  // Counts are scaled by the share of the file that was seen.
  if (outline.is_estimate) {
    const double scale = static_cast<double>(outline.file_bytes) /
                         static_cast<double>(std::max<std::uint64_t>(seen, 1));
    for (std::uint64_t* count : {&outline.num_kernels, &outline.num_copies, &outline.num_calls,
                                 &outline.num_ranges, &outline.num_ops}) {
      *count = static_cast<std::uint64_t>(static_cast<double>(*count) * scale);
    }
  }
  if (is_packed && outline.is_estimate) {
    outline.num_calls = std::max(outline.num_calls, outline.num_ops / 2);
    outline.num_kernels = std::max(outline.num_kernels, outline.num_calls);
  }
  outline.source = !outline.is_estimate ? "its text"
                   : is_packed          ? "the first 16 MiB of its text, scaled up: a call to two "
                                          "operators, a kernel to each call"
                                        : "16 samples of 1 MiB, scaled up";
  return outline;
}

}  // namespace gpuwhy
