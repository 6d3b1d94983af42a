// SPDX-License-Identifier: Apache-2.0
//
// The join of a file of requests and the steps of a recording.
#pragma once

#include <vector>

#include "analysis/requests/request_join.h"
#include "trace/requests.h"

namespace gpuwhy {

// A file of requests, and what they were promised.
struct RequestEvidence {
  Requests requests;
  ServiceLimits limits;
};

// Every request with its steps, for the tables of single requests.
struct JoinedRequests {
  Requests requests;
  EngineLoop loop;
  RequestJoin join;
  LateTokens late;
  RequestClockCheck clock;
  std::string reason;  // why none is joined
};

// Joins requests and steps. `gaps` are those of the ledger, by device.
JoinedRequests join_requests(const Trace& trace, const Stages& stages, const Analysis& analysis,
                             const std::vector<std::vector<LongGap>>& gaps, Requests requests);

// Tables of it.
RequestsSummary summarise_requests(const JoinedRequests& joined, const ServiceLimits& limits,
                                   const Analysis& analysis);
// Every request, by time sent.
std::vector<RequestOutline> outline_requests(const JoinedRequests& joined,
                                             const Analysis& analysis);

}  // namespace gpuwhy
