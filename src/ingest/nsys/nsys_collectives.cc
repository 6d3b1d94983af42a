// SPDX-License-Identifier: Apache-2.0
//
// Communicators of NCCL in nsys exports.
//
// NCCL marks its calls with NVTX, and in recent versions a mark has a payload with the id of the
// communicator: a hash that is the same on all its ranks. The export has the layouts of payloads
// (NVTX_PAYLOAD_SCHEMA_ENTRIES), and their bytes only if `nsys export --include-blobs=true` made
// it. A blob is a header of four numbers of 64 bits (domain, schema, size and offset of the
// payload), then the payload.
//
// A kernel belongs to the call inside which it is launched. Calls between ncclGroupStart and
// ncclGroupEnd launch their kernels in the latter: they have a communicator if all of them name the
// same one, and an operation if all have the same. Sends and receives with every rank of the
// communicator are an all-to-all, as PyTorch makes it; others stay sends. Kernels that a CUDA graph
// repeats were launched by no call of NCCL and belong to none.
//
// Everything that does not fit exactly is left out: a kernel without a group is better than one in
// the wrong group.
#include "ingest/nsys/nsys_collectives.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

namespace gpuwhy {
namespace {

constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kLargestPayload = 4096;
constexpr std::size_t kMostGroups = 65'536;
constexpr std::string_view kGroupStart = "ncclGroupStart";
constexpr std::string_view kGroupEnd = "ncclGroupEnd";
constexpr std::string_view kAllToAll = "all_to_all";

std::uint64_t little_endian(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

int digit_of(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

// The bytes of a payload column: a blob, or the same in hexadecimal digits, since the column is
// declared as text.
std::string bytes_of(const SqlValue& value) {
  if (value.text.size() > 2 * (kHeaderBytes + kLargestPayload)) {
    return {};
  }
  if (value.kind == SqlValue::Kind::kBlob) {
    return std::string(value.text);
  }
  std::string bytes;
  if (value.kind == SqlValue::Kind::kText && value.text.size() % 2 == 0) {
    for (std::size_t i = 0; i < value.text.size(); i += 2) {
      const int high = digit_of(value.text[i]);
      const int low = digit_of(value.text[i + 1]);
      if (high < 0 || low < 0) {
        return {};
      }
      bytes += static_cast<char>(high * 16 + low);
    }
  }
  return bytes;
}

bool is_operation(std::string_view name) {
  constexpr std::string_view kOperations[] = {"ncclAllReduce", "ncclAllGather", "ncclReduceScatter",
                                              "ncclBroadcast", "ncclBcast",     "ncclReduce",
                                              "ncclAlltoAll",  "ncclGather",    "ncclScatter",
                                              "ncclSend",      "ncclRecv"};
  return std::find(std::begin(kOperations), std::end(kOperations), name) != std::end(kOperations);
}

bool is_launch(std::string_view name) {
  return name.starts_with("cudaLaunchKernel") || name.starts_with("cuLaunchKernel") ||
         name.starts_with("cudaLaunchCooperative") || name.starts_with("cuLaunchCooperative");
}

}  // namespace

NcclPayloads::NcclPayloads(const NsysTables& tables) {
  if (!tables.has("NVTX_PAYLOAD_SCHEMA_ENTRIES")) {
    return;
  }
  constexpr std::int64_t kInt = 5;      // NVTX_PAYLOAD_ENTRY_TYPE_INT
  constexpr std::int64_t kUint64 = 18;  // NVTX_PAYLOAD_ENTRY_TYPE_UINT64
  tables.file().query(
      "SELECT domainId, schemaId, type, name, offset FROM NVTX_PAYLOAD_SCHEMA_ENTRIES",
      [&](const auto& row) {
        const std::string_view name = row[3].as_text();
        const std::int64_t type = row[2].as_integer();
        const std::int64_t offset = row[4].as_integer();  // null: it is the first
        if (offset < 0 || offset > static_cast<std::int64_t>(kLargestPayload) ||
            layouts_.size() >= kMostGroups) {
          return;
        }
        Layout& layout = layouts_[{row[0].as_integer(), row[1].as_integer()}];
        if (name == "NCCL communicator ID" && type == kUint64) {
          layout.communicator = static_cast<std::size_t>(offset);
        } else if (name == "Peer rank" && type == kInt) {
          layout.peer = static_cast<std::size_t>(offset);
        } else if (name == "No. of ranks" && type == kInt) {
          layout.num_ranks = static_cast<std::size_t>(offset);
        }
      });
  std::erase_if(layouts_, [](const auto& item) { return !item.second.communicator; });
}

void NcclPayloads::add(std::uint32_t range, std::int64_t domain, const SqlValue& payload) {
  if (layouts_.empty() || payload.is_null()) {
    return;
  }
  const std::string bytes = bytes_of(payload);
  if (bytes.size() < kHeaderBytes) {
    return;
  }
  const auto header = [&](std::size_t number) { return little_endian(bytes, number * 8, 8); };
  const auto layout =
      layouts_.find({static_cast<std::int64_t>(header(0)), static_cast<std::int64_t>(header(1))});
  const std::uint64_t size = header(2);
  const std::uint64_t offset = header(3);
  if (layout == layouts_.end() || static_cast<std::int64_t>(header(0)) != domain ||
      offset < kHeaderBytes || offset > bytes.size() || size != bytes.size() - offset) {
    return;
  }
  const std::string_view fields = std::string_view(bytes).substr(offset);
  const auto int_at = [&](std::optional<std::size_t> at) -> std::optional<std::int32_t> {
    if (!at || *at + 4 > fields.size()) {
      return std::nullopt;
    }
    return static_cast<std::int32_t>(little_endian(fields, *at, 4));
  };
  if (*layout->second.communicator + 8 > fields.size()) {
    return;
  }
  const std::uint64_t communicator = little_endian(fields, *layout->second.communicator, 8);
  if (const auto num_ranks = int_at(layout->second.num_ranks)) {
    const auto [known, is_new] = sizes_.try_emplace(communicator, *num_ranks);
    known->second = known->second == *num_ranks ? *num_ranks : 0;
  }
  payloads_.push_back({range, communicator, int_at(layout->second.peer)});
}

// The calls of NCCL on one thread, in their order, and what kernels that they launch belong to.
class NcclCalls {
 public:
  struct Launches {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::uint64_t communicator = 0;
    std::string_view operation;
  };

  explicit NcclCalls(const NcclPayloads& payloads) : payloads_(payloads) {}

  void start_group() {
    if (depth_++ == 0) {
      group_.clear();
    }
  }

  void add(std::int64_t start_ns, std::int64_t end_ns, std::string_view name,
           const NcclPayloads::Payload& payload) {
    group_.push_back({name, payload.communicator, payload.peer});
    launches_.push_back({start_ns, end_ns, payload.communicator, name});
    if (depth_ == 0) {
      group_.clear();
    }
  }

  void end_group(std::int64_t start_ns, std::int64_t end_ns) {
    if (depth_ == 0) {
      return;  // it began before the recording
    }
    if (--depth_ > 0 || group_.empty()) {
      return;
    }
    const bool is_one = std::ranges::all_of(
        group_, [&](const Call& call) { return call.communicator == group_[0].communicator; });
    const std::string_view operation = operation_of_group();
    if (is_one && !operation.empty()) {
      launches_.push_back({start_ns, end_ns, group_[0].communicator, operation});
    }
  }

  const std::vector<Launches>& launches() const { return launches_; }

 private:
  struct Call {
    std::string_view name;
    std::uint64_t communicator = 0;
    std::optional<std::int32_t> peer;
  };

  // Empty if the calls differ.
  std::string_view operation_of_group() const {
    std::set<std::int32_t> to;
    std::set<std::int32_t> from;
    std::set<std::string_view> names;
    for (const Call& call : group_) {
      names.insert(call.name);
      if (call.peer) {
        (call.name == "ncclSend" ? to : from).insert(*call.peer);
      }
    }
    if (names.size() == 1) {
      return *names.begin();
    }
    if (names != std::set<std::string_view>{"ncclRecv", "ncclSend"}) {
      return {};
    }
    const auto size = payloads_.sizes_.find(group_[0].communicator);
    const bool is_with_all = size != payloads_.sizes_.end() && size->second > 1 && to == from &&
                             to.size() == static_cast<std::size_t>(size->second);
    return is_with_all ? kAllToAll : "ncclSend";
  }

  const NcclPayloads& payloads_;
  std::vector<Call> group_;
  std::vector<Launches> launches_;
  int depth_ = 0;
};

void NcclPayloads::add_groups(Trace& trace) const {
  if (payloads_.empty()) {
    return;
  }
  const Ranges& ranges = trace.ranges;
  std::unordered_map<std::uint32_t, const Payload*> by_range;
  std::set<std::uint32_t> threads;
  for (const Payload& payload : payloads_) {
    by_range[payload.range] = &payload;
    threads.insert(ranges.thread[payload.range]);
  }
  std::vector<std::uint32_t> rows;
  for (std::uint32_t row = 0; row < ranges.size(); ++row) {
    const std::string_view name = trace.strings[ranges.text[row]];
    const bool is_whole = ranges.kind[row] == RangeKind::kPushPop && ranges.end_ns[row] != kOpenEnd;
    if (is_whole && threads.contains(ranges.thread[row]) &&
        (name == kGroupStart || name == kGroupEnd || by_range.contains(row))) {
      rows.push_back(row);
    }
  }
  std::ranges::sort(rows, {},
                    [&](std::uint32_t one) { return std::tuple(ranges.start_ns[one], one); });
  std::map<std::uint32_t, NcclCalls> calls;  // by thread
  for (const std::uint32_t row : rows) {
    NcclCalls& of_thread = calls.try_emplace(ranges.thread[row], *this).first->second;
    const std::string_view name = trace.strings[ranges.text[row]];
    if (name == kGroupStart) {
      of_thread.start_group();
    } else if (name == kGroupEnd) {
      of_thread.end_group(ranges.start_ns[row], ranges.end_ns[row]);
    } else if (is_operation(name)) {
      of_thread.add(ranges.start_ns[row], ranges.end_ns[row], name, *by_range.at(row));
    }
  }
  std::map<std::uint64_t, std::uint32_t> groups;
  const ApiCalls& api = trace.api_calls;
  for (std::size_t row = 0; row < api.size(); ++row) {
    const auto of_thread = calls.find(api.thread[row]);
    if (of_thread == calls.end() || api.correlation[row] == kNone ||
        !is_launch(trace.strings[api.name[row]])) {
      continue;
    }
    const auto& launches = of_thread->second.launches();
    auto inside = std::ranges::upper_bound(
        launches, api.start_ns[row], {},
        [](const auto& call) -> const auto& { return call.start_ns; });
    if (inside == launches.begin() || (--inside)->end_ns < api.end_ns[row]) {
      continue;
    }
    const auto [group, is_new] = groups.try_emplace(
        inside->communicator, static_cast<std::uint32_t>(trace.process_groups.size()));
    if (is_new && groups.size() > kMostGroups) {
      break;
    }
    if (is_new) {
      // Without its size: not every rank's recording has the call that says it, and the name of a
      // communicator must be the same on all of them.
      trace.process_groups.push_back({fmt::format("{:#018x}", inside->communicator), "", {}, 0});
    }
    trace.collective_kernels.push_back({trace.threads[api.thread[row]].process,
                                        api.correlation[row], group->second,
                                        trace.strings.intern(inside->operation)});
  }
  std::ranges::sort(trace.collective_kernels);
}

}  // namespace gpuwhy
