// SPDX-License-Identifier: Apache-2.0
//
// Rows of kernels by a hash of their names in order, so that a row of any length costs one entry.
#include "analysis/kernels/mover_rows.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/names/kernel_names.h"
#include "base/text.h"

namespace gpuwhy {

void MoverRows::extend(std::uint32_t stream, StringId name, std::int64_t time_ns) {
  Row& row = open_[stream];
  row.key = (row.key ^ static_cast<std::uint64_t>(name)) * 0x9E3779B97F4A7C15ULL;
  row.key ^= row.key >> 29U;
  row.total_ns += time_ns;
  row.longest_ns = std::max(row.longest_ns, time_ns);
  // Once a kernel is not named, none after it is.
  if (row.num_named == row.length++) {
    if (row.num_groups > 0 && row.groups[row.num_groups - 1].name == name) {
      ++row.groups[row.num_groups - 1].count;
      ++row.num_named;
    } else if (row.num_groups < kMostGroups) {
      row.groups[row.num_groups++] = {name, 1};
      ++row.num_named;
    }
  }
}

void MoverRows::end(std::uint32_t stream, std::size_t place) {
  Row& row = open_[stream];
  if (row.length == 0) {
    return;
  }
  if (row.length > 1) {
    const std::uint64_t key = row.key + place * 0xD1B54A32D192ED03ULL;
    auto found = rows_.find(key);
    if (found == rows_.end() && rows_.size() < kMostRows) {
      found = rows_.emplace(key, row).first;
      found->second.total_ns = 0;
      found->second.place = place;
    }
    if (found != rows_.end()) {
      ++found->second.count;
      found->second.total_ns += row.total_ns;
      found->second.fused_ns += fused_row_ns(row.longest_ns);
    }
  }
  row = {};
}

void MoverRows::name_largest(std::vector<KernelChains>& chains) const {
  std::vector<const Row*> largest(chains.size());
  for (const auto& [key, row] : rows_) {
    const Row*& best = largest[row.place];
    if (best == nullptr ||
        std::tie(row.total_ns, row.groups) > std::tie(best->total_ns, best->groups)) {
      best = &row;
    }
  }
  for (std::size_t place = 0; place < chains.size(); ++place) {
    if (const Row* row = largest[place]) {
      chains[place].row_kernels = text_of(*row);
      chains[place].num_rows = row->count;
      chains[place].row_ns = row->total_ns;
      chains[place].row_fused_ns = row->fused_ns;
    }
  }
}

std::string MoverRows::text_of(const Row& row) const {
  // Kernels that differ in more than these names count as the same one here.
  std::vector<std::pair<std::string, std::uint32_t>> named;
  for (std::uint32_t i = 0; i < row.num_groups; ++i) {
    const std::string whole = short_kernel_names({std::string(strings_[row.groups[i].name])})[0];
    std::string name(trim(std::string_view(whole).substr(0, whole.find_first_of("<["))));
    if (named.empty() || named.back().first != name) {
      named.emplace_back(std::move(name), 0);
    }
    named.back().second += row.groups[i].count;
  }
  std::vector<std::string> kernels;
  kernels.reserve(named.size());
  for (const auto& [name, count] : named) {
    kernels.push_back(count == 1 ? name : fmt::format("{} x {}", count, name));
  }
  const std::string text = fmt::format("{}", fmt::join(kernels, ", "));
  return row.length > row.num_named
             ? fmt::format("{} and {} more", text, row.length - row.num_named)
             : text;
}

}  // namespace gpuwhy
