// SPDX-License-Identifier: Apache-2.0
//
// Steps without marks: passes of a model that are prefill or decode by the work of their kernels.
#pragma once

#include <cstdint>
#include <string_view>

#include "analysis/stages/attribution.h"
#include "analysis/stages/stages.h"
#include "analysis/structure/structure.h"
#include "results/diagnostic.h"
#include "results/structure.h"
#include "trace/trace.h"

namespace gpuwhy {

// "prefill", "decode"; empty where it is not known.
std::string_view text_of(PassWorkKind work);

// Tells prefill from decode by two signs at least: ModelPass::work, PassRow::kind and
// StructureSummary::recovered learn it.
void recover_steps(const Trace& trace, Structure& structure, StructureSummary& summary);

// Compares marked prefill and decode steps with the passes of known kind that run in them.
void compare_with_marks(const Structure& structure, const Stages& stages,
                        const Attribution& attribution, StructureSummary& summary);

// Notes where fewer than nine tenths of those steps agree.
void add_disagreement(const StructureSummary& summary, Diagnostics& diagnostics);

// The rate of decode for steps of that many sequences.
void add_recovered_rate(std::int64_t batch, StructureSummary& summary);

}  // namespace gpuwhy
