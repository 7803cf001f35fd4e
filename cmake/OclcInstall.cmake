# cmake --install, by components: Runtime (the library that executes plans), Images and Clblast (what it loads for plans that ask for it),
# Compiler (liboclc_compiler), Development (headers, the CMake package `oclc` with oclc::runtime and oclc::compiler, oclc.pc, oclc-compiler.pc),
# Tools (oclc, oclrun, man pages, completion), Documents.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/oclc)

install(TARGETS oclc_runtime EXPORT oclcTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT Runtime NAMELINK_COMPONENT Development)
install(TARGETS oclc_builder RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/oclc COMPONENT Runtime)
install(TARGETS oclc_images LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT Images)
if(TARGET oclc_clblast)
  install(TARGETS oclc_clblast LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT Clblast)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime/include/oclc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT Development)
install(EXPORT oclcTargets NAMESPACE oclc:: DESTINATION ${package_dir} COMPONENT Development)

if(TARGET oclc_compiler_library)
  set_target_properties(oclc_compiler_library PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/oclc")
  install(TARGETS oclc_compiler_library EXPORT oclcCompilerTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT Compiler NAMELINK_COMPONENT Development)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/compiler_library/include/oclc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT Development)
  # The C++ builder, layers and typed networks, with what their headers include; they need no other package's headers.
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/compiler DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/oclc-cpp COMPONENT Development FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/frontends/cpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/oclc-cpp/frontends COMPONENT Development FILES_MATCHING PATTERN "*.h")
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/frontends/op DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/oclc-cpp/frontends COMPONENT Development FILES_MATCHING PATTERN "*.h")
  install(FILES ${PROJECT_SOURCE_DIR}/frontends/onnx/import.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/oclc-cpp/frontends/onnx COMPONENT Development)
  install(FILES ${PROJECT_SOURCE_DIR}/runtime/package/writer.h ${PROJECT_SOURCE_DIR}/runtime/package/quantized_constants.h
    ${PROJECT_SOURCE_DIR}/runtime/package/error.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/oclc-cpp/runtime/package COMPONENT Development)
  install(EXPORT oclcCompilerTargets NAMESPACE oclc:: DESTINATION ${package_dir} COMPONENT Development)
  include(OclcBundle)
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/oclcConfig.cmake.in ${PROJECT_BINARY_DIR}/oclcConfig.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/oclcConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/oclcConfig.cmake ${PROJECT_BINARY_DIR}/oclcConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT Development)

# Relocatable: the prefix is found from the place of the file.
string(REGEX REPLACE "[^/]+" ".." OCLC_PREFIX_FROM_LIBDIR ${CMAKE_INSTALL_LIBDIR})
set(pc_files oclc)
if(TARGET oclc_compiler_library)
  list(APPEND pc_files oclc-compiler)
endif()
foreach(name ${pc_files})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT Development)
endforeach()

# Programs with the pages and scripts that they print themselves, out of their tables of options.
foreach(program oclc oclrun)
  if(NOT TARGET ${program})
    continue()
  endif()
  set_target_properties(${program} PROPERTIES INSTALL_RPATH
    "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/oclc")
  install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT Tools)
  if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
    continue()
  endif()
  set(texts ${PROJECT_BINARY_DIR}/manual/${program})
  add_custom_command(OUTPUT ${texts}.1 ${texts}.bash ${texts}.zsh ${texts}.fish
    COMMAND ${program} --man > ${texts}.1
    COMMAND ${program} --completion bash > ${texts}.bash
    COMMAND ${program} --completion zsh > ${texts}.zsh
    COMMAND ${program} --completion fish > ${texts}.fish
    DEPENDS ${program} VERBATIM)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/manual)
  add_custom_target(${program}_manual ALL DEPENDS ${texts}.1)
  install(FILES ${texts}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT Tools)
  install(FILES ${texts}.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ${program} COMPONENT Tools)
  install(FILES ${texts}.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _${program} COMPONENT Tools)
  install(FILES ${texts}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME ${program}.fish COMPONENT Tools)
endforeach()

# Documents, and the licence in each component.
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT Documents)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT Documents FILES_MATCHING PATTERN "*.md")
set(OCLC_COMPONENTS Runtime Images)
if(TARGET oclc_clblast)
  list(APPEND OCLC_COMPONENTS Clblast)
endif()
if(TARGET oclc_compiler_library)
  list(APPEND OCLC_COMPONENTS Compiler)
endif()
list(APPEND OCLC_COMPONENTS Development Tools Documents)
foreach(component ${OCLC_COMPONENTS})
  string(TOLOWER ${component} folder)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/oclc-${folder} RENAME copyright COMPONENT ${component})
endforeach()
