// SPDX-License-Identifier: Apache-2.0
//
// What the host did while a GPU waited for it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/idle/gaps.h"
#include "analysis/stages/attribution.h"
#include "results/idle_label.h"
#include "trace/trace.h"

namespace gpuwhy {

// Names causes of gaps, GPU by GPU.
class IdleCauses {
 public:
  IdleCauses(const Trace& trace, const Stages& stages, const Attribution& attribution)
      : trace_(trace), stages_(stages), attribution_(attribution) {}

  // Begins with a GPU. Gaps that are long enough to ask what the host did are kept.
  void begin();
  void ask(const Gap& gap);

  // Names the causes of the gaps that were kept.
  void name(std::uint16_t device);

  // The gaps that were kept, in time order. Of very many only the longest are.
  const std::vector<Gap>& asked() const { return asked_; }

  // Sets the label of each gap of the GPU, in time order.
  void set_label(Gap& gap);

  const std::vector<IdleLabel>& labels() const { return labels_; }

 private:
  // A gap that is long enough to ask what the host did.
  struct HostSpan {
    std::uint32_t thread = 0;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    Gap* gap = nullptr;
    IdleLabel label = {};
  };

  // When the program made code ready, where no call lasts as long.
  struct FirstUses {
    std::vector<std::int64_t> links_ns;  // by any thread: one compiles while another waits for it
    HostFunctions captures;              // of graphs, from the beginning to the end
  };

  void keep_longest();
  void set_usual_label(Gap& gap);
  std::uint16_t label_of_wait(Gap& gap);
  std::vector<HostSpan> spans_of_asked();
  std::vector<std::size_t> first_of_threads(const std::vector<HostSpan>& spans) const;
  void name_calls(std::uint16_t device, std::vector<HostSpan>& spans);
  template <typename... Words>
  std::vector<std::uint32_t> calls_with(Words... words) const;
  const FirstUses& first_uses();
  void name_scopes(std::vector<HostSpan>& spans);
  void name_functions(std::vector<HostSpan>& spans) const;
  std::vector<bool> first_launches(std::uint16_t device, const std::vector<HostSpan>& spans) const;
  std::uint16_t number_of(const IdleLabel& label);

  static bool is_named(const HostSpan& span);
  template <typename Name>
  static void set_scope(const Name& name, HostSpan& span);
  template <typename Table, typename Names, typename ByName>
  void add_coverage(const Table& table, const Names& texts, const std::vector<HostSpan>& spans,
                    ByName& by_name) const;
  template <typename Table, typename Visit>
  static void visit_overlaps(const Table& table, std::size_t row,
                             const std::vector<HostSpan>& spans,
                             const std::vector<std::size_t>& first_of, Visit visit);
  const std::vector<bool>& marks();

  const Trace& trace_;
  const Stages& stages_;
  const Attribution& attribution_;
  std::vector<Gap> asked_;      // of the GPU at hand
  std::size_t next_asked_ = 0;  // the first that set_label() has not met
  std::vector<IdleLabel> labels_ = {{}, {IdleKind::kLaunching, "", ""}};
  std::vector<bool> is_mark_;  // by StringId; empty: not asked for yet
  std::optional<FirstUses> first_uses_;
  std::map<StringId, std::uint16_t> wait_labels_;
  std::map<IdleLabel, std::uint16_t> numbers_ = {{labels_[0], 0}, {labels_[1], 1}};
};

}  // namespace gpuwhy
