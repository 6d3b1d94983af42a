// SPDX-License-Identifier: Apache-2.0
//
// Labels of a rank: words of a site by which it asks its history, as cluster, job, user, git_sha.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "results/rank_summary.h"

namespace gpuwhy {

// Sets labels for every rank that gpuwhy records or analyzes, as "cluster=a,user=b".
inline constexpr const char* kLabelsVariable = "GPUWHY_LABELS";

using Labels = std::map<std::string, std::string>;

// Adds "key=value" words with commas between them; a later one replaces an earlier one. Keys are
// lower-case words of at most 64 bytes, values printable and at most 256 bytes. Throws kUsage.
void add_labels(std::string_view text, Labels& labels);

// Labels as a summary holds them: one "key=value" per line, sorted, so that equal labels are equal
// texts.
std::string labels_text(const Labels& labels);

// Whether that text has this "key=value".
bool has_label(std::string_view labels, std::string_view label);

// Stores labels in an identity. engine, engine_version and model are fields of their own.
void put_labels(Labels labels, RankIdentity& identity);

}  // namespace gpuwhy
