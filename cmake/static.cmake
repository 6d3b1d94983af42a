# SPDX-License-Identifier: Apache-2.0
#
# gpuwhy_static: the layers as they are, linked with archives of all they need into one file that runs on any Linux. The
# archives are Debian's and, where Debian has none, those of tools/install-deps.sh static; the target is not there without
# them. {fmt} has no archive either: its headers hold the whole library, and cmake/static_parts.cc compiles it.
set(static_prefix "$ENV{GPUWHY_STATIC_PREFIX}")
if(NOT static_prefix)
  set(static_prefix "$ENV{HOME}/.cache/gpuwhy/static")
endif()
set(archives "")
set(names simdjson yaml-cpp sqlite3 ssl crypto z)
if(GPUWHY_HISTORY)
  list(PREPEND names curl)
endif()
foreach(name IN LISTS names)
  if(name MATCHES "curl|simdjson")
    find_library(GPUWHY_ARCHIVE_${name} lib${name}.a PATHS "${static_prefix}/lib" NO_DEFAULT_PATH)
  else()
    find_library(GPUWHY_ARCHIVE_${name} lib${name}.a)
  endif()
  if(NOT GPUWHY_ARCHIVE_${name})
    return()
  endif()
  list(APPEND archives "${GPUWHY_ARCHIVE_${name}}")
endforeach()

get_property(layers GLOBAL PROPERTY GPUWHY_LAYERS)
add_executable(gpuwhy_static EXCLUDE_FROM_ALL src/cli/main.cc cmake/static_parts.cc)
add_dependencies(gpuwhy_static ${layers})
list(TRANSFORM layers REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE layer_files)
target_link_libraries(gpuwhy_static PRIVATE gpuwhy_flags -static -Wl,--start-group ${layer_files} -Wl,--end-group ${archives})
set_target_properties(gpuwhy_static PROPERTIES UNITY_BUILD OFF RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}"
  LINK_DEPENDS "${layer_files}")
