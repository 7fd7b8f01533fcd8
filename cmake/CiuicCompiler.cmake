# One place for language level, warnings, sanitizers, ccache and output folders.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CIUIC_PLUGIN_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/plugins")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# ccache when present: a second clean build takes seconds. The sloppiness is what precompiled headers need.
find_program(CIUIC_CCACHE ccache)
if(CIUIC_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CIUIC_CCACHE})
endif()

# ciuic::flags: private to every target of the tree, never exported.
add_library(ciuic_flags INTERFACE)
add_library(ciuic::flags ALIAS ciuic_flags)
target_compile_options(ciuic_flags INTERFACE
  -Wall -Wextra -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual> -Wno-psabi
  # False alarms of GCC 12 on std::string and std::optional at -O3 (GCC bugs 105651, 105562).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  $<$<BOOL:${CIUIC_WERROR}>:-Werror> $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
if(CIUIC_SANITIZE)
  target_compile_options(ciuic_flags INTERFACE -fsanitize=${CIUIC_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(ciuic_flags INTERFACE -fsanitize=${CIUIC_SANITIZE})
endif()
