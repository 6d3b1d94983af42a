// SPDX-License-Identifier: Apache-2.0
//
// Stacks of host code, as trees of scopes.
//
// Intervals and places are sorted by thread and time and walked in parallel with a stack. An
// interval becomes a scope when the first place inside it is met, below the scope of the interval
// around it. So a scope is made once, however many places it holds, and the work does not grow with
// the depth of the stack.
//
// What it gets wrong: ranges of two NVTX domains may overlap without nesting. The later one counts
// as inside the earlier one until both have ended.
#include "analysis/names/host_scopes.h"

#include <algorithm>
#include <tuple>

#include "analysis/names/operator_names.h"

namespace gpuwhy {
namespace {

ScopeKind scope_kind(std::string_view range_text) {
  if (!module_path(range_text).empty()) {
    return ScopeKind::kModule;
  }
  return is_operator_text(range_text) ? ScopeKind::kOperator : ScopeKind::kRange;
}

// A row of a table of the source, without its parent.
HostScope scope_of(const Ops& ops, std::uint32_t row, const Trace& source, Trace& target) {
  HostScope scope;
  scope.name = target.strings.intern(source.strings[ops.name[row]]);
  scope.kind = ops.kind[row] == OpKind::kOperator ? ScopeKind::kOperator : ScopeKind::kModule;
  return scope;
}

HostScope scope_of(const Ranges& ranges, std::uint32_t row, const Trace& source, Trace& target) {
  HostScope scope;
  scope.name = target.strings.intern(source.strings[ranges.text[row]]);
  scope.domain = target.strings.intern(source.strings[ranges.domain[row]]);
  scope.kind = scope_kind(source.strings[ranges.text[row]]);
  return scope;
}

template <typename Table>
std::vector<std::uint32_t> sorted_rows(const Table& table) {
  std::vector<std::uint32_t> rows;
  for (std::uint32_t row = 0; row < table.size(); ++row) {
    if constexpr (requires { table.text; }) {
      if (table.kind[row] != RangeKind::kPushPop) {
        continue;
      }
    }
    rows.push_back(row);
  }
  std::ranges::sort(rows, {}, [&](std::uint32_t one) {
    return std::tuple(table.thread[one], table.start_ns[one], -table.end_ns[one], one);
  });
  return rows;
}

struct OpenInterval {
  std::uint32_t row = 0;
  std::uint32_t scope = kNone;  // not made yet
};

template <typename Table>
std::vector<std::uint32_t> scopes_in(const Table& table, const std::vector<HostPlace>& places,
                                     const Trace& source, Trace& target) {
  const std::vector<std::uint32_t> rows = sorted_rows(table);
  std::vector<OpenInterval> open;
  const auto close_before = [&](const HostPlace& place) {
    while (!open.empty() && (table.thread[open.back().row] != place.thread ||
                             table.end_ns[open.back().row] <= place.time_ns)) {
      open.pop_back();
    }
  };
  std::vector<std::uint32_t> found;
  found.reserve(places.size());
  std::size_t next = 0;
  for (const HostPlace& place : places) {
    for (; next < rows.size(); ++next) {
      const HostPlace start{table.thread[rows[next]], table.start_ns[rows[next]]};
      if (start > place) {
        break;
      }
      close_before(start);
      open.push_back({rows[next], kNone});
    }
    close_before(place);
    // Scopes of the outer intervals are made first: those below the last one that has its scope.
    std::size_t made = open.size();
    while (made > 0 && open[made - 1].scope == kNone) {
      --made;
    }
    for (; made < open.size(); ++made) {
      HostScope scope = scope_of(table, open[made].row, source, target);
      scope.parent = made == 0 ? kNone : open[made - 1].scope;
      open[made].scope = static_cast<std::uint32_t>(target.host_scopes.size());
      target.host_scopes.push_back(scope);
    }
    found.push_back(open.empty() ? kNone : open.back().scope);
  }
  return found;
}

}  // namespace

std::vector<std::uint32_t> add_scopes_at(const std::vector<HostPlace>& places, const Trace& source,
                                         Trace& target) {
  return source.ops.size() > 0 ? scopes_in(source.ops, places, source, target)
                               : scopes_in(source.ranges, places, source, target);
}

// Parents come first, so one pass is enough.
ScopeNames::ScopeNames(const Trace& trace) {
  for (std::uint32_t i = 0; i < trace.host_scopes.size(); ++i) {
    const HostScope& scope = trace.host_scopes[i];
    const bool is_inside = scope.parent != kNone;
    const bool is_module = scope.kind == ScopeKind::kModule;
    op.push_back(scope.kind == ScopeKind::kOperator ? i : is_inside ? op[scope.parent] : kNone);
    module.push_back(is_module ? i : is_inside ? module[scope.parent] : kNone);
    const std::uint32_t outer = is_inside ? layer[scope.parent] : kNone;
    const bool is_first = outer == kNone && is_module;
    layer.push_back(is_first && layer_of(path_of_module(trace.strings[scope.name])) ? i : outer);
  }
}

}  // namespace gpuwhy
