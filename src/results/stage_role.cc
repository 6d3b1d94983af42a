// SPDX-License-Identifier: Apache-2.0
//
// Roles of stages by the names that engines and marks give them.
#include "results/stage_role.h"

#include <string_view>
#include <utility>

namespace gpuwhy {

StageRole role_of(const RowName& row) {
  static constexpr std::pair<std::string_view, StageRole> kRoles[] = {
      {"prefill", StageRole::kPrefill},
      {"decode", StageRole::kDecode},
      {"decode_step", StageRole::kDecodeStep},
      {"mixed", StageRole::kMixed},
      {"verify", StageRole::kVerify},
      {"draft", StageRole::kDraft},
      {"step", StageRole::kStep},
      {"warmup", StageRole::kWarmUp},
      {"idle", StageRole::kIdle},
      {"graph_capture", StageRole::kGraphCapture}};
  for (const auto& [name, role] : kRoles) {
    if (row.stage == name) {
      return role;
    }
  }
  return StageRole::kOther;
}

bool is_decode(const RowName& row) {
  const StageRole role = role_of(row);
  return role == StageRole::kDecode || role == StageRole::kDecodeStep;
}

bool is_without_work(const RowName& row) {
  const StageRole role = role_of(row);
  return row.kind == RowKind::kUnmarked || role == StageRole::kGraphCapture ||
         role == StageRole::kIdle || role == StageRole::kWarmUp;
}

}  // namespace gpuwhy
