// SPDX-License-Identifier: Apache-2.0
//
// The environment of this process. No other file reads it.
#include "capture/system.h"

#include <unistd.h>

namespace gpuwhy {

System this_system() {
  System system;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) {
      system.environment.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return system;
}

}  // namespace gpuwhy
