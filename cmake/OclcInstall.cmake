# cmake --install: the runtime with its headers, the CMake package `oclc` (target oclc::runtime), oclc.pc, the programs.
include(CMakePackageConfigHelpers)

install(TARGETS oclc_runtime EXPORT oclcTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT Runtime NAMELINK_COMPONENT Development)
install(TARGETS oclc_builder RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/oclc COMPONENT Runtime)
if(TARGET oclc_clblast)
  install(TARGETS oclc_clblast LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT Runtime)
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/runtime/include/oclc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT Development)
install(EXPORT oclcTargets NAMESPACE oclc:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/oclc COMPONENT Development)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/oclcConfig.cmake.in ${CMAKE_BINARY_DIR}/oclcConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/oclc)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/oclcConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/oclcConfig.cmake ${CMAKE_BINARY_DIR}/oclcConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/oclc COMPONENT Development)

# Relocatable: the prefix is found from the place of the file.
string(REGEX REPLACE "[^/]+" ".." OCLC_PREFIX_FROM_LIBDIR ${CMAKE_INSTALL_LIBDIR})
configure_file(${CMAKE_CURRENT_LIST_DIR}/oclc.pc.in ${CMAKE_BINARY_DIR}/oclc.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/oclc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT Development)

foreach(program oclc oclrun)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT Tools)
  endif()
endforeach()
