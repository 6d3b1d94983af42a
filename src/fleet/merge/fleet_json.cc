// SPDX-License-Identifier: Apache-2.0
//
// JSON form of a merge report, from which terminal output, page and scripts are fed.
#include <map>

#include <fmt/format.h>

#include "base/json.h"
#include "fleet/merge/fleet_report.h"

namespace gpuwhy {
namespace {

std::string run_text(std::int64_t first, std::int64_t last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

Json time_json(const CollectiveTime& time) {
  return {{"total_ns", time.total_ns},
          {"transfer_ns", time.transfer_ns},
          {"waiting_ns", time.waiting_ns},
          {"alone_ns", time.alone_ns}};
}

Json reason_json(const RankVerdict& verdict) {
  if (!verdict.reason) {
    return {{"absent", verdict.reason_absent}};
  }
  const StragglerCause& reason = *verdict.reason;
  return {{"stage", reason.stage},
          {"kernel", reason.kernel},
          {"kernel_excess_ns", reason.kernel_excess_ns},
          {"kernel_ratio", reason.kernel_ratio},
          {"kernel_share_fraction", reason.own_share_fraction},
          {"excess_ns", reason.excess_ns},
          {"compute_ratio", reason.compute_ratio}};
}

Json rank_json(const RankVerdict& verdict) {
  Json row = {{"rank", verdict.rank},
              {"node", text_or_null(verdict.node)},
              {"gpu", text_or_null(verdict.gpu)},
              {"recorded_by", text_or_null(verdict.recorded_by)},
              {"exit_code", verdict.exit_code},
              {"own_ns", number_or_null(verdict.own_ns)},
              {"deviation_fraction", number_or_null(verdict.deviation_fraction)},
              {"collectives", time_json(verdict.collectives)},
              {"met", verdict.num_met},
              {"last", verdict.num_last},
              {"caused_ns", verdict.caused_ns},
              {"blamed_ns", verdict.blamed_ns},
              {"lost_ns", verdict.lost_ns},
              {"network_ns", verdict.network_ns},
              {"straggler", verdict.is_straggler}};
  if (verdict.is_straggler) {
    row["cause"] = id_of(verdict.cause);
    if (verdict.parts) {
      row["excess"] = {{"compute_ns", verdict.parts->compute_ns},
                       {"host_ns", verdict.parts->host_ns},
                       {"copy_ns", verdict.parts->copy_ns},
                       {"network_ns", verdict.parts->network_ns}};
    }
    row["reason"] = reason_json(verdict);
  }
  return row;
}

Json groups_json(const std::vector<GroupSpread>& groups) {
  Json rows = Json::array();
  for (const GroupSpread& group : groups) {
    rows.push_back({{"name", group.name},
                    {"ranks", group.num_ranks},
                    {"deviation_fraction", group.deviation_fraction},
                    {"worst_rank", group.worst_rank},
                    {"outlier", group.is_outlier}});
  }
  return rows;
}

Json rank_groups_json(const std::vector<JobGroup>& groups) {
  Json rows = Json::array();
  for (const JobGroup& group : groups) {
    Json row = {
        {"kind", group.kind == ParallelKind::kUnknown ? Json(nullptr) : Json(id_of(group.kind))},
        {"evidence", group.evidence},
        {"communicator", group.communicator},
        {"ranks", text_or_null(group.ranks)},
        {"size", group.size > 0 ? Json(group.size) : Json(nullptr)},
        {"present", group.num_present},
        {"calls", group.num_calls},
        {"collectives", time_json(group.collectives)},
        {"late_rank", number_or_null(group.late_rank)},
        {"last", group.num_last},
        {"lost_ns", group.lost_ns}};
    row["collectives"]["num"] = group.num_collectives;
    rows.push_back(std::move(row));
  }
  return rows;
}

Json parts_json(const std::vector<FleetPart>& parts) {
  Json rows = Json::array();
  for (const FleetPart& part : parts) {
    rows.push_back({{"pass", part.pass},
                    {"block", part.block},
                    {"part", part.part},
                    {"ranks", part.num_ranks},
                    {"passes", part.passes},
                    {"launches", part.launches},
                    {"total_ns", part.total_ns},
                    {"slowest_ns", part.slowest_ns},
                    {"slowest_rank", part.slowest_rank}});
  }
  return rows;
}

Json kernels_json(const std::vector<KernelOutlier>& kernels) {
  Json rows = Json::array();
  for (const KernelOutlier& kernel : kernels) {
    rows.push_back({{"kernel", kernel.kernel},
                    {"stage", kernel.stage},
                    {"family", kernel.family},
                    {"ranks", kernel.num_ranks},
                    {"slow_ranks", kernel.num_slow},
                    {"mean_ns", kernel.mean_ns},
                    {"slow_ratio", kernel.slow_ratio},
                    {"excess_ns", kernel.excess_ns},
                    {"worst_rank", kernel.worst_rank}});
  }
  return rows;
}

// Ranks by attempt, as ranges of numbers.
Json attempts_json(const std::vector<OlderRank>& older) {
  std::map<std::int64_t, std::vector<std::pair<std::int64_t, std::int64_t>>> attempts;
  for (const OlderRank& one : older) {
    auto& runs = attempts[one.attempt];
    if (!runs.empty() && runs.back().second == one.rank - 1) {
      runs.back().second = one.rank;
    } else {
      runs.emplace_back(one.rank, one.rank);
    }
  }
  Json rows = Json::array();
  for (const auto& [attempt, runs] : attempts) {
    Json ranks = Json::array();
    for (const auto& [first, last] : runs) {
      ranks.push_back(run_text(first, last));
    }
    rows.push_back({{"attempt", attempt}, {"ranks", ranks}});
  }
  return rows;
}

// Which ranks are there, missing, unfinished or failed.
Json presence_json(const FleetReport& report, const LeftOut& left_out) {
  Json missing = Json::array();
  for (const auto& [first, last] : report.missing) {
    missing.push_back(run_text(first, last));
  }
  Json failed = Json::array();
  Json not_recorded = Json::array();
  std::map<std::string, std::int64_t> recorders;
  for (const RankVerdict& verdict : report.ranks) {
    ++recorders[verdict.recorded_by.empty() ? "n/a" : verdict.recorded_by];
    if (verdict.exit_code != 0) {
      failed.push_back({{"rank", verdict.rank}, {"exit_code", verdict.exit_code}});
    }
    if (!verdict.failure.empty()) {
      not_recorded.push_back({{"rank", verdict.rank}, {"reason", verdict.failure}});
    }
  }
  return {{"present", report.ranks.size()},
          {"expected", report.num_expected > 0 ? Json(report.num_expected) : Json(nullptr)},
          {"num_missing", report.num_missing},
          {"missing", missing},
          {"unfinished", attempts_json(left_out.unfinished)},
          {"unreadable", left_out.unreadable},
          {"failed", failed},
          {"not_recorded", not_recorded},
          {"earlier_attempts", attempts_json(report.older)},
          {"recorded_by", recorders}};
}

}  // namespace

SharedJson fleet_json(const FleetReport& report, const LeftOut& left_out) {
  Json json = json_document("fleet", 1);
  json["run_id"] = text_or_null(report.run_id);
  json["attempt"] = report.attempt;
  json["ranks"] = presence_json(report, left_out);
  json["quantity"] = report.quantity;
  json["num_measured"] = report.num_measured;
  json["lateness"] = report.lateness == FleetReport::Lateness::kPinned     ? "pinned"
                     : report.lateness == FleetReport::Lateness::kRotating ? "rotating"
                                                                           : "none";
  json["collectives"] = time_json(report.collectives);
  json["collectives"]["num"] = report.num_collectives;
  json["collectives"]["num_alone"] = report.num_alone;
  json["collectives"]["num_mismatched"] = report.num_mismatched;
  json["collectives"]["communicators_by"] = report.communicators_by;
  json["rank_table"] = Json::array();
  for (const std::size_t i : report.stragglers) {
    json["rank_table"].push_back(rank_json(report.ranks[i]));
  }
  json["nodes"] = groups_json(report.nodes);
  json["gpus"] = groups_json(report.gpus);
  json["kernels"] = kernels_json(report.kernels);
  json["groups"] = rank_groups_json(report.groups);
  json["parts"] = parts_json(report.parts);
  // In rank order, as the heat map shows them.
  json["heat"] = {{"ranks", Json::array()}, {"nodes", Json::array()}, {"stages", Json::array()}};
  for (const RankVerdict& verdict : report.ranks) {
    json["heat"]["ranks"].push_back(verdict.rank);
    json["heat"]["nodes"].push_back(verdict.node);
  }
  for (const StageDeviation& stage : report.stages) {
    Json fractions = Json::array();
    for (const auto& fraction : stage.fractions) {
      fractions.push_back(number_or_null(fraction));
    }
    json["heat"]["stages"].push_back({{"stage", stage.stage}, {"deviation_fractions", fractions}});
  }
  return std::make_shared<Json>(std::move(json));
}

}  // namespace gpuwhy
