# Target `oclc_flags`: what every file of ours is compiled with.
add_library(oclc_flags INTERFACE)
target_compile_options(oclc_flags INTERFACE -Wall -Wextra -Wconversion $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
# g++ 12 warns wrongly about `"text" + std::string` (GCC bug 105651).
target_compile_options(oclc_flags INTERFACE $<$<AND:$<CXX_COMPILER_ID:GNU>,$<COMPILE_LANGUAGE:CXX>>:-Wno-restrict>)
target_compile_definitions(oclc_flags INTERFACE CL_TARGET_OPENCL_VERSION=300 OCLC_VERSION="${PROJECT_VERSION}")
target_include_directories(oclc_flags INTERFACE ${CMAKE_SOURCE_DIR})
if(OCLC_SANITIZE)
  add_compile_options(-fsanitize=${OCLC_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${OCLC_SANITIZE})
endif()
if(OCLC_COVERAGE)
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
endif()
find_program(OCLC_CCACHE ccache)
if(OCLC_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${OCLC_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${OCLC_CCACHE})
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)  # ccache serves files that read none
endif()
if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)  # precompiled, the standard library's headers are warned about too, and wrongly
  target_compile_options(oclc_flags INTERFACE
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<COMPILE_LANGUAGE:CXX>>:-Wno-stringop-overflow;-Wno-array-bounds>)
endif()
