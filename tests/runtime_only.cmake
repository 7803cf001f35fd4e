# The tests of the runtime and of the package format alone, which need neither the compiler nor its libraries: OCLC_RUNTIME_ONLY with
# OCLC_RUNTIME_TESTS, for systems where the compiler does not build. Not added to ctest: a cross-compiled program
# lists its cases by an emulator.
find_path(OCLC_DOCTEST doctest/doctest.h REQUIRED)
add_library(oclc_doctest_main OBJECT doctest_main.cpp)
target_include_directories(oclc_doctest_main SYSTEM PRIVATE ${OCLC_DOCTEST})
foreach(folder package runtime)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp ${folder}/*.c)
  add_executable(test_${folder} ${sources} $<TARGET_OBJECTS:oclc_doctest_main>)
  target_link_libraries(test_${folder} PRIVATE oclc_flags oclc_runtime oclc_package OpenCL::OpenCL Threads::Threads ${CMAKE_DL_LIBS})
  target_include_directories(test_${folder} SYSTEM PRIVATE ${OCLC_DOCTEST})
  target_compile_definitions(test_${folder} PRIVATE OCLC_SOURCE_DIR="${PROJECT_SOURCE_DIR}" OCLC_BINARY_DIR="${PROJECT_BINARY_DIR}"
    CL_USE_DEPRECATED_OPENCL_1_2_APIS)
endforeach()
add_executable(released_late runtime/programs/released_late.cpp)
target_link_libraries(released_late PRIVATE oclc_flags oclc_runtime oclc_package OpenCL::OpenCL)
