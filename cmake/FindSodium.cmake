# libsodium ships a pkg-config file and no CMake package. Defines Sodium::Sodium.
find_path(Sodium_INCLUDE_DIR sodium.h)
find_library(Sodium_LIBRARY sodium)
if(Sodium_INCLUDE_DIR)
  file(STRINGS "${Sodium_INCLUDE_DIR}/sodium/version.h" _version REGEX "define SODIUM_VERSION_STRING ")
  string(REGEX REPLACE ".*\"([^\"]*)\".*" "\\1" Sodium_VERSION "${_version}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Sodium REQUIRED_VARS Sodium_LIBRARY Sodium_INCLUDE_DIR VERSION_VAR Sodium_VERSION
  REASON_FAILURE_MESSAGE "install libsodium-dev")
if(Sodium_FOUND AND NOT TARGET Sodium::Sodium)
  add_library(Sodium::Sodium UNKNOWN IMPORTED)
  set_target_properties(Sodium::Sodium PROPERTIES
    IMPORTED_LOCATION "${Sodium_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Sodium_INCLUDE_DIR}")
endif()
mark_as_advanced(Sodium_INCLUDE_DIR Sodium_LIBRARY)
