// SPDX-License-Identifier: Apache-2.0
//
// Communicators of NCCL in nsys exports: which kernels belong to which group of processes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ingest/nsys/nsys_tables.h"
#include "trace/trace.h"

namespace gpuwhy {

class NcclPayloads {
 public:
  // Reads the layouts of payloads. Nothing is kept of an export without them.
  explicit NcclPayloads(const NsysTables& tables);

  // The payload of a range, if it is one of NCCL's. `range` is its row in Trace::ranges.
  void add(std::uint32_t range, std::int64_t domain, const SqlValue& payload);

  // Process groups and collective kernels. After the threads of ranges and calls have their
  // numbers, and before rows are dropped.
  void add_groups(Trace& trace) const;

 private:
  // Where a payload has its fields, in bytes.
  struct Layout {
    std::optional<std::size_t> communicator;
    std::optional<std::size_t> peer;
    std::optional<std::size_t> num_ranks;
    bool operator==(const Layout&) const = default;
  };
  struct Payload {
    std::uint32_t range = 0;
    std::uint64_t communicator = 0;
    std::optional<std::int32_t> peer;
  };
  friend class NcclCalls;

  std::map<std::pair<std::int64_t, std::int64_t>, Layout> layouts_;  // by domain and schema
  std::vector<Payload> payloads_;
  std::map<std::uint64_t, std::int32_t> sizes_;  // of communicators; 0: contradictory
};

}  // namespace gpuwhy
