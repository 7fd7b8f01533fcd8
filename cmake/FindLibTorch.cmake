# Finds LibTorch as headers + libtorch_cpu + libc10 and nothing else. LibTorch's own TorchConfig.cmake asks for a CUDA
# toolkit and links libtorch_cuda, which a CPU run must not load.
#
# Looked for: CMAKE_PREFIX_PATH (the user's own, for example .../site-packages/torch), then .deps/libtorch/torch,
# which tools/setup unpacks from the pinned wheel.
#
# Defines LibTorch::LibTorch.
set(_hints "${CMAKE_CURRENT_LIST_DIR}/../.deps/libtorch/torch")
find_path(LibTorch_INCLUDE_DIR ATen/core/Tensor.h PATH_SUFFIXES include HINTS ${_hints})
find_path(LibTorch_API_INCLUDE_DIR torch/csrc/distributed/c10d/TCPStore.hpp
          HINTS ${LibTorch_INCLUDE_DIR} PATH_SUFFIXES include)
find_library(LibTorch_CPU_LIBRARY torch_cpu PATH_SUFFIXES lib HINTS ${_hints})
find_library(LibTorch_C10_LIBRARY c10 PATH_SUFFIXES lib HINTS ${_hints})

# torch/headeronly/version.h spells the version in three numbers; the string beside it is put together by the preprocessor.
set(_version_header "${LibTorch_INCLUDE_DIR}/torch/headeronly/version.h")
if(EXISTS "${_version_header}")
  set(LibTorch_VERSION "")
  foreach(_part MAJOR MINOR PATCH)
    file(STRINGS "${_version_header}" _v REGEX "define TORCH_VERSION_${_part} ")
    string(REGEX MATCH "[0-9]+" _v "${_v}")
    string(APPEND LibTorch_VERSION ".${_v}")
  endforeach()
  string(SUBSTRING "${LibTorch_VERSION}" 1 -1 LibTorch_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "run tools/setup, or point CMAKE_PREFIX_PATH at your own LibTorch")

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  target_include_directories(LibTorch::LibTorch SYSTEM INTERFACE "${LibTorch_INCLUDE_DIR}")
  # Per-operator headers keep a file at 2 s instead of 7 s (docs/architecture.md, "Compile times").
  target_compile_definitions(LibTorch::LibTorch INTERFACE AT_PER_OPERATOR_HEADERS)
  target_link_libraries(LibTorch::LibTorch INTERFACE "${LibTorch_CPU_LIBRARY}" "${LibTorch_C10_LIBRARY}")
  # libtorch_cpu finds libcudart and libcupti through its own RPATH at run time; the linker needs no look at them.
  target_link_options(LibTorch::LibTorch INTERFACE -Wl,--allow-shlib-undefined)
endif()
mark_as_advanced(LibTorch_INCLUDE_DIR LibTorch_API_INCLUDE_DIR LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY)
