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

// A column that is as long as the first one of its table.
template <typename Values>
Values as_long(Values values, std::size_t size, std::string_view first) {
  if (values.size() != size) {
    wrong_length(first);
  }
  return values;
}

}  // namespace

KernelColumns::KernelColumns(const ColumnarFile& file)
    : stage(file.text_ids("kernel.stage")),
      kernel(as_long(file.text_ids("kernel.kernel"), stage.size(), "kernel.stage")),
      family(as_long(file.text_ids("kernel.family"), stage.size(), "kernel.stage")),
      calls(as_long(file.numbers("kernel.calls"), stage.size(), "kernel.stage")),
      total_ns(as_long(file.numbers("kernel.total_ns"), stage.size(), "kernel.stage")),
      min_ns(as_long(file.numbers("kernel.min_ns"), stage.size(), "kernel.stage")),
      max_ns(as_long(file.numbers("kernel.max_ns"), stage.size(), "kernel.stage")),
      durations(file, "kernel.histogram", "launches", stage.size()) {
  for (std::size_t i = 1; i < stage.size(); ++i) {
    if (std::tie(stage[i - 1], kernel[i - 1], family[i - 1]) >=
        std::tie(stage[i], kernel[i], family[i])) {
      unsorted("kernels");
    }
  }
}

CollectiveColumns::CollectiveColumns(const ColumnarFile& file)
    : communicator(file.text_ids("collective.communicator")),
      stage(as_long(file.text_ids("collective.stage"), communicator.size(),
                    "collective.communicator")),
      kernel(as_long(file.text_ids("collective.kernel"), communicator.size(),
                     "collective.communicator")),
      sequence(as_long(file.numbers("collective.sequence"), communicator.size(),
                       "collective.communicator")),
      duration_ns(as_long(file.numbers("collective.duration_ns"), communicator.size(),
                          "collective.communicator")) {
  for (std::size_t i = 0; i < communicator.size(); ++i) {
    if (sequence[i] >= kMostSequence || (i > 0 && std::tie(communicator[i - 1], sequence[i - 1]) >=
                                                      std::tie(communicator[i], sequence[i]))) {
      unsorted("collectives");
    }
  }
}

}  // namespace gpuwhy
