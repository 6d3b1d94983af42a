# SPDX-License-Identifier: Apache-2.0
#
# What `cmake --install` and `cpack` put where: the program, its manual page and completions; the library, its headers and
# what find_package and pkg-config read.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS gpuwhy RUNTIME)
install(DIRECTORY include/gpuwhy DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES docs/agents/SKILL.md DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/gpuwhy/skills/gpuwhy)

# Packed without a time in them, so that two builds are the same bytes. The completions are asked of the program itself.
install(CODE "
  set(root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
  set(program \"\${root}/${CMAKE_INSTALL_BINDIR}/gpuwhy\")
  foreach(row \"bash:share/bash-completion/completions/gpuwhy\" \"zsh:share/zsh/vendor-completions/_gpuwhy\"
              \"fish:share/fish/vendor_completions.d/gpuwhy.fish\")
    string(REPLACE \":\" \";\" row \"\${row}\")
    list(GET row 0 shell)
    list(GET row 1 file)
    get_filename_component(folder \"\${root}/\${file}\" DIRECTORY)
    file(MAKE_DIRECTORY \"\${folder}\")
    execute_process(COMMAND \"\${program}\" completion \${shell} OUTPUT_FILE \"\${root}/\${file}\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  file(MAKE_DIRECTORY \"\${root}/share/man/man1\")
  execute_process(COMMAND gzip -9nc \"${CMAKE_SOURCE_DIR}/docs/gpuwhy.1\"
    OUTPUT_FILE \"\${root}/share/man/man1/gpuwhy.1.gz\" COMMAND_ERROR_IS_FATAL ANY)
")

install(TARGETS gpuwhy_library EXPORT gpuwhy LIBRARY
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT gpuwhy NAMESPACE gpuwhy:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gpuwhy
  FILE gpuwhy-targets.cmake)
file(WRITE ${CMAKE_BINARY_DIR}/gpuwhy-config.cmake
  "include(\"\${CMAKE_CURRENT_LIST_DIR}/gpuwhy-targets.cmake\")\n")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/gpuwhy-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/gpuwhy-config.cmake ${CMAKE_BINARY_DIR}/gpuwhy-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gpuwhy)
configure_file(cmake/gpuwhy.pc.in ${CMAKE_BINARY_DIR}/gpuwhy.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/gpuwhy.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(CPACK_PACKAGE_NAME gpuwhy)
set(CPACK_PACKAGE_VENDOR "gpuwhy")
set(CPACK_PACKAGE_CONTACT "gpuwhy developers <gpuwhy@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "deep profiling of LLM workloads on NVIDIA GPUs")
set(CPACK_PACKAGE_DESCRIPTION "Runs an LLM program bare, under Nsight Systems and under
Nsight Compute, and says where each nanosecond of the GPU went, how far
that is from the speed of light, and what to fix first.")
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_FILE_NAME "gpuwhy-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
if(GPUWHY_HISTORY)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libcurl4 | libcurl4t64")  # loaded at its first use, so no tool sees it
endif()
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${CMAKE_SOURCE_DIR}/packaging/debian/triggers")
install(FILES packaging/debian/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(CODE "
  execute_process(COMMAND gzip -9nc \"${CMAKE_SOURCE_DIR}/packaging/debian/changelog\"
    OUTPUT_FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATAROOTDIR}/doc/gpuwhy/changelog.gz\"
    COMMAND_ERROR_IS_FATAL ANY)
")
include(CPack)
