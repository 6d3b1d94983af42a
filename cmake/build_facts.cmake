# SPDX-License-Identifier: Apache-2.0
#
# Writes build_facts.h for `gpuwhy --version`, and touches it only when something changed.
execute_process(COMMAND git -C "${SOURCE}" describe --always --dirty --exclude=*
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failure ERROR_QUIET)
if(failure)
  set(commit "no commit known")
else()
  set(commit "commit ${commit}")
endif()
if(SANITIZE)
  set(BUILD_TYPE "${BUILD_TYPE} with ${SANITIZE}")
endif()
set(text "#pragma once
#define GPUWHY_VERSION \"${VERSION}\"
#define GPUWHY_COMMIT \"${commit}\"
#define GPUWHY_BUILD_TYPE \"${BUILD_TYPE}\"
#define GPUWHY_COMPILER \"${COMPILER}\"
#define GPUWHY_SYSTEM \"${SYSTEM}\"
#define GPUWHY_CLI11_VERSION \"${CLI11_VERSION}\"
#define GPUWHY_YAML_CPP_VERSION \"${YAML_CPP_VERSION}\"
")
file(CONFIGURE OUTPUT "${OUT}" CONTENT "${text}" @ONLY)
