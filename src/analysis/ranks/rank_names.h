// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "trace/trace.h"

namespace gpuwhy {

// What a file name says of its rank. Engines write "dp0_pp0_tp3_dcp0_ep3_rank3" (vLLM) or
// "1723456789-TP-3-DP-1" (SGLang), trainers "rank-3" or "rank_3".
RankName rank_in_name(std::string_view file_name);

// Both names have a place in a replica, and it is the same replica.
bool are_of_one_replica(const RankName& a, const RankName& b);
// Both names have a replica, and they differ.
bool are_of_two_replicas(const RankName& a, const RankName& b);

}  // namespace gpuwhy
