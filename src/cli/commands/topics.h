// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gpuwhy {

// What has more to say than a line of help.
struct Topic {
  const char* name;
  const char* summary;
  std::string (*text)();
};

// The first is the list of all.
std::span<const Topic> all_topics();
// nullptr if there is no such topic.
const Topic* find_topic(std::string_view name);

}  // namespace gpuwhy
