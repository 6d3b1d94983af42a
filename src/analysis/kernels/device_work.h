// SPDX-License-Identifier: Apache-2.0
//
// The work of one GPU in time order, as the ledger sweeps it.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/stages/attribution.h"
#include "base/row_memory.h"
#include "results/bucket.h"
#include "trace/trace.h"

namespace gpuwhy {

// Kernels, copies and graphs under one number each: the rows of the three tables, one after the
// other. A view of the columns: a copy would be the largest part of the ledger's memory.
class AllWork {
  // get(table, origins, row) of the table that the number is of.
  template <typename Get>
  auto in_table(std::uint32_t number, Get get) const {
    if (number < num_kernels_) {
      return get(trace_.kernels, attribution_.kernels, number);
    }
    return number < end_of_copies_
               ? get(trace_.copies, attribution_.copies, number - num_kernels_)
               : get(trace_.graphs, attribution_.graphs, number - end_of_copies_);
  }

 public:
  // `is_communication` by StringId. All must outlive the view.
  AllWork(const Trace& trace, const Attribution& attribution,
          const std::vector<bool>& is_communication)
      : trace_(trace),
        attribution_(attribution),
        is_communication_(is_communication),
        num_kernels_(static_cast<std::uint32_t>(trace.kernels.size())),
        end_of_copies_(num_kernels_ + static_cast<std::uint32_t>(trace.copies.size())) {}

  std::uint32_t end_of_kernels() const { return num_kernels_; }
  std::uint32_t size() const {
    return end_of_copies_ + static_cast<std::uint32_t>(trace_.graphs.size());
  }

  std::int64_t start_ns(std::uint32_t number) const {
    return in_table(number, [](const auto& table, const Origins&, std::uint32_t row) {
      return table.start_ns[row];
    });
  }
  std::int64_t end_ns(std::uint32_t number) const {
    return in_table(number, [](const auto& table, const Origins&, std::uint32_t row) {
      return table.end_ns[row];
    });
  }
  std::uint16_t device(std::uint32_t number) const {
    return in_table(number, [](const auto& table, const Origins&, std::uint32_t row) {
      return table.device[row];
    });
  }
  // The API call that launched it, or kNone.
  std::uint32_t call(std::uint32_t number) const {
    return in_table(number, [](const auto&, const Origins& origins, std::uint32_t row) {
      return origins.call[row];
    });
  }
  // The stage instances that it belongs to, or kNone.
  std::uint32_t instance(std::uint32_t number) const {
    return in_table(number, [](const auto&, const Origins& origins, std::uint32_t row) {
      return origins.instance[row];
    });
  }
  std::uint32_t nested(std::uint32_t number) const {
    return in_table(number, [](const auto&, const Origins& origins, std::uint32_t row) {
      return origins.nested[row];
    });
  }
  // Compute, comm or copy.
  Bucket kind(std::uint32_t number) const {
    if (number < num_kernels_) {
      return is_communication_[static_cast<std::size_t>(trace_.kernels.name[number])]
                 ? Bucket::kComm
                 : Bucket::kCompute;
    }
    return number < end_of_copies_ ? Bucket::kCopy : Bucket::kCompute;
  }
  bool is_graph_node(std::uint32_t number) const {
    return number < num_kernels_ && trace_.kernels.is_graph_node(number);
  }

 private:
  const Trace& trace_;
  const Attribution& attribution_;
  const std::vector<bool>& is_communication_;
  std::uint32_t num_kernels_;
  std::uint32_t end_of_copies_;
};

// The numbers of all work of one GPU by start.
using DeviceWork = RowVector<std::uint32_t>;

// By device.
std::vector<DeviceWork> work_by_device(const Trace& trace, const AllWork& all);

}  // namespace gpuwhy
