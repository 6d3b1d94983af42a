// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"

namespace gpuwhy {

// What has more to say than a line of help.
struct Topic {
  const char* name;
  const char* summary;
  std::string (*text)();
};

// nullptr if there is no such topic.
const Topic* find_topic(std::string_view name);
std::vector<std::string> topic_names();

// Both return an ExitCode.
int print_topics(bool is_json, Console& console);
int print_topic(const Topic& topic, bool is_json, Console& console);

}  // namespace gpuwhy
