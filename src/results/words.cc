// SPDX-License-Identifier: Apache-2.0
//
// The words of enumerations, as files have them.
#include "results/bucket.h"
#include "results/idle_label.h"

namespace gpuwhy {

const std::array<const char*, kNumBuckets> kBucketNames = {
    "compute",     "comm",         "copy",   "other_stage",  "unattributed", "graph", "sync",
    "launch_late", "started_late", "queued", "unknown_idle", "unrecorded",   "tail"};

const char* const kIdleKindNames[kNumIdleKinds] = {
    "not_host", "waiting", "launching", "host_work", "first_use", "allocating", "blocked"};

}  // namespace gpuwhy
