# Debian's libxxhash-dev ships no CMake package. Used header-only (XXH_INLINE_ALL).
find_path(xxHash_INCLUDE_DIR xxhash.h)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(xxHash REQUIRED_VARS xxHash_INCLUDE_DIR)
if(xxHash_FOUND AND NOT TARGET xxHash::xxHash)
  add_library(xxHash::xxHash INTERFACE IMPORTED)
  target_include_directories(xxHash::xxHash SYSTEM INTERFACE "${xxHash_INCLUDE_DIR}")
  target_compile_definitions(xxHash::xxHash INTERFACE XXH_INLINE_ALL)
endif()
