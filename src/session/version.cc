// SPDX-License-Identifier: Apache-2.0
//
// Version and build information.
//
// Numbers come from CMake and from the libraries themselves. build_facts.h is generated at every
// build, and only this file is recompiled when the commit changes.
#include "session/version.h"

#include <fmt/format.h>
#include <nlohmann/json_fwd.hpp>
#include <openssl/crypto.h>

#include "build_facts.h"

namespace gpuwhy {

std::string program_version() {
  return GPUWHY_VERSION;
}

std::string program_commit() {
  constexpr std::string_view kText = GPUWHY_COMMIT;
  constexpr std::string_view kBefore = "commit ";
  return std::string(kText.starts_with(kBefore) ? kText.substr(kBefore.size()) : "");
}

std::string version_text() {
  return fmt::format(
      "gpuwhy {} ({})\n"
      "built: {}, {} {}, {}\n"
      "with: CLI11 {}, fmt {}.{}.{}, nlohmann-json {}.{}.{}, OpenSSL {}, yaml-cpp {}\n",
      GPUWHY_VERSION, GPUWHY_COMMIT, GPUWHY_BUILD_TYPE, GPUWHY_COMPILER, __VERSION__, GPUWHY_SYSTEM,
      GPUWHY_CLI11_VERSION, FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100,
      NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH,
      OpenSSL_version(OPENSSL_VERSION_STRING), GPUWHY_YAML_CPP_VERSION);
}

}  // namespace gpuwhy
