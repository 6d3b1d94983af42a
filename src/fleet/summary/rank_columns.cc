// SPDX-License-Identifier: Apache-2.0
//
// Checked access to the large tables of a rank's summary.
//
// The checks make an untrusted table safe to add: equal lengths, and strict order, so that no
// kernel and no collective of a rank counts twice. Texts are sorted in a file, so their numbers
// compare like the texts.
#include "fleet/summary/rank_columns.h"

#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kMostSequence = std::int64_t{1} << 62;  // one more still fits

[[noreturn]] void unsorted(std::string_view what) {
  throw Error(ErrorKind::kInput, fmt::format("damaged summary: its {} are not in order", what),
              "make it again from the rank's recording next to it: gpuwhy analyze --out DIR");
}

}  // namespace

KernelColumns::KernelColumns(const ColumnarFile& file)
    : stage(file.text_ids("kernel.stage")),
      kernel(file.text_ids("kernel.kernel")),
      family(file.text_ids("kernel.family")),
      calls(file.numbers("kernel.calls")),
      total_ns(file.numbers("kernel.total_ns")),
      min_ns(file.numbers("kernel.min_ns")),
      max_ns(file.numbers("kernel.max_ns")),
      durations(file, kDurations, stage.size()) {
  for (const std::size_t size : {kernel.size(), family.size(), calls.size(), total_ns.size(),
                                 min_ns.size(), max_ns.size()}) {
    if (size != stage.size()) {
      wrong_length("kernel.stage");
    }
  }
  for (std::size_t i = 1; i < stage.size(); ++i) {
    if (std::tie(stage[i - 1], kernel[i - 1], family[i - 1]) >=
        std::tie(stage[i], kernel[i], family[i])) {
      unsorted("kernels");
    }
  }
}
CollectiveColumns::CollectiveColumns(const ColumnarFile& file)
    : communicator(file.text_ids("collective.communicator")),
      stage(file.text_ids("collective.stage")),
      kernel(file.text_ids("collective.kernel")),
      sequence(file.numbers("collective.sequence")),
      duration_ns(file.numbers("collective.duration_ns")) {
  for (const std::size_t size :
       {stage.size(), kernel.size(), sequence.size(), duration_ns.size()}) {
    if (size != communicator.size()) {
      wrong_length("collective.communicator");
    }
  }
  for (std::size_t i = 0; i < communicator.size(); ++i) {
    if (sequence[i] >= kMostSequence) {
      unsorted("collectives");
    }
  }
  for (std::size_t i = 1; i < communicator.size(); ++i) {
    if (std::tie(communicator[i - 1], sequence[i - 1]) >= std::tie(communicator[i], sequence[i])) {
      unsorted("collectives");
    }
  }
}
}  // namespace gpuwhy
