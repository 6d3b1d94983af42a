# SPDX-License-Identifier: Apache-2.0
#
# What a Python wheel holds (pyproject.toml): the static program, and libgpuwhy.so with all it needs inside but the C
# library. Nothing but the names of library.map is seen from outside, so another SQLite in the same process does
# not matter; and only so may Debian's archives, which are made for programs, be part of a shared library.
if(NOT SKBUILD)
  return()
endif()
if(NOT TARGET gpuwhy_static)
  message(FATAL_ERROR "A wheel needs static libraries: tools/install-deps.sh static")
endif()

# Small code for layers that work once a run; those that see every event stay fast.
foreach(layer config compare report net fleet capture serve bundle session api cli)
  target_compile_options(gpuwhy_${layer} PRIVATE -Os)
endforeach()

# The library asks no server: http_none.cc instead of libcurl and TLS.
get_property(layers GLOBAL PROPERTY GPUWHY_LAYERS)
add_library(gpuwhy_wheel_library MODULE src/net/http_none.cc cmake/static_parts.cc cmake/wheel_parts.cc)
list(REMOVE_ITEM layers gpuwhy_net gpuwhy_cli gpuwhy_api)
add_dependencies(gpuwhy_wheel_library ${layers} gpuwhy_api)
list(TRANSFORM layers REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE layer_files)
set(library_archives ${archives})
list(FILTER library_archives EXCLUDE REGEX "/lib(curl|ssl)\\.a$")
target_link_libraries(gpuwhy_wheel_library PRIVATE gpuwhy_flags -Wl,--whole-archive $<TARGET_FILE:gpuwhy_api>
  -Wl,--no-whole-archive -Wl,--start-group ${layer_files} -Wl,--end-group ${library_archives})
target_link_options(gpuwhy_wheel_library PRIVATE -static-libstdc++ -static-libgcc -Wl,-s -Wl,--gc-sections
  -Wl,-z,defs -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/library.map)
target_compile_definitions(gpuwhy_wheel_library PRIVATE GPUWHY_NO_MODULES)
set_target_properties(gpuwhy_wheel_library PROPERTIES OUTPUT_NAME gpuwhy UNITY_BUILD OFF
  LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/wheel" LINK_DEPENDS "${layer_files};${CMAKE_SOURCE_DIR}/cmake/library.map")
target_link_options(gpuwhy_static PRIVATE -Wl,-s -Wl,--gc-sections)

add_custom_target(gpuwhy_wheel DEPENDS gpuwhy_static gpuwhy_wheel_library gpuwhy_marks)
install(PROGRAMS $<TARGET_FILE:gpuwhy_static> DESTINATION "${SKBUILD_SCRIPTS_DIR}" RENAME gpuwhy COMPONENT wheel)
install(FILES $<TARGET_FILE:gpuwhy_wheel_library> $<TARGET_FILE:gpuwhy_marks> docs/agents/SKILL.md
  DESTINATION gpuwhy COMPONENT wheel)
