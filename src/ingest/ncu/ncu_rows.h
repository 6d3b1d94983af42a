// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "trace/counters.h"

namespace gpuwhy {

// One metric or one rule of one launch, as in a printed table. Fields are empty if the table lacks
// them.
struct NcuRow {
  std::string_view id;
  std::string_view pid;
  std::string_view process;
  std::string_view kernel;
  std::string_view context;
  std::string_view stream;
  std::string_view block;  // "(128, 1, 1)" or a total
  std::string_view grid;
  std::string_view device;
  std::string_view compute_capability;
  std::string_view push_pop;    // NVTX
  std::string_view start_stop;  // NVTX
  std::string_view invocations;
  std::string_view section;
  std::string_view item;  // of a chart
  std::string_view metric;
  std::string_view unit;
  std::string_view value;
  std::string_view rule;
  std::string_view rule_text;
  std::string_view speedup_type;
  std::string_view speedup;
};

// Groups rows into launches. Rows of one launch need not be adjacent.
class NcuRowCollector {
 public:
  void add(const NcuRow& row);
  Counters finish();

 private:
  CounterResult& result_of(const NcuRow& row);
  void add_metric(const NcuRow& row, CounterResult& result);

  Counters counters_;
  std::unordered_map<std::string, std::size_t> known_;
  std::string last_key_;
  std::size_t last_ = 0;
};

// The metric a label stands for; empty if unknown. `item` is the chart's, for labels that depend on
// it.
std::string_view metric_of_label(std::string_view section, std::string_view item,
                                 std::string_view label);

}  // namespace gpuwhy
