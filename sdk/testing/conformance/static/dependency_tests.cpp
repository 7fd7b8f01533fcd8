// SPDX-License-Identifier: MIT
//
// The libraries that a plugin needs: the host's machine has them, or they come along.
#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <memory>

#include "elf_file.hpp"
#include "static_tests.hpp"

namespace ciuic::testing {
namespace {

/// Beginnings of names, up to the version: of the system, of the compilers, and of what ranks talk
/// and compute with. Anything else is linked statically or comes along ($ORIGIN).
constexpr const char* kKnown[] = {
    // C, C++, the compilers' own
    "ld-linux", "libc.so", "libm.so", "libmvec.so", "libdl.so", "libpthread.so", "librt.so",
    "libgcc_s.so", "libstdc++.so", "libc++.so", "libc++abi.so", "libunwind.so", "libatomic.so",
    "libgomp.so", "libquadmath.so", "libgfortran.so",
    // sanitizers
    "libasan.so", "libubsan.so", "libtsan.so", "liblsan.so", "libclang_rt.",
    // LibTorch
    "libtorch", "libc10", "libcaffe2", "libshm.so", "libgloo",
    // CUDA, ROCm and theirs
    "libcuda", "libcublas", "libcudnn", "libcufft", "libcurand", "libcusolver", "libcusparse",
    "libcufile", "libcupti", "libnvrtc", "libnvToolsExt", "libnvidia-ml", "libnvJitLink", "libnccl",
    "libnvshmem", "libamdhip64", "libhsa-runtime64", "librccl", "libroctracer", "libroctx",
    "libhipblas", "librocblas",
    // transports
    "libmpi", "libmpicxx", "libopen-", "libpmi", "libucp", "libucs", "libuct", "libucm", "libucc",
    "libfabric", "libibverbs", "librdmacm", "libmlx", "libnuma", "libhwloc", "liburing"};

constexpr const char* kOtherOpenMp[] = {"libomp.so", "libomp5", "libomp-", "libiomp5"};

template <size_t N>
bool begins_with_one(const std::string& name, const char* const (&beginnings)[N]) {
  return std::any_of(std::begin(beginnings), std::end(beginnings), [&](const char* beginning) {
    return name.compare(0, std::strlen(beginning), beginning) == 0;
  });
}

/// Does the run path, relative to $ORIGIN, lead to it?
bool comes_along(const ElfFile& file, const std::string& library, const std::string& needed) {
  const std::filesystem::path origin = std::filesystem::path(library).parent_path();
  for (const std::string& path : file.run_paths()) {
    for (size_t begin = 0; begin < path.size();) {
      const size_t end = std::min(path.find(':', begin), path.size());
      std::string part = path.substr(begin, end - begin);
      begin = end + 1;
      for (const char* word : {"$ORIGIN", "${ORIGIN}"}) {
        if (part.rfind(word, 0) == 0) {
          part = origin.string() + part.substr(std::strlen(word));
          if (std::filesystem::exists(std::filesystem::path(part) / needed)) {
            return true;
          }
        }
      }
    }
  }
  return false;
}

/// Resolved by the executable of an instrumented build, by design.
bool is_of_a_sanitizer(const std::string& name) {
  static constexpr const char* kBeginnings[] = {"__asan_",   "__ubsan_",      "__tsan_",
                                                "__lsan_",   "__sanitizer_",  "__msan_",
                                                "__sancov_", "__llvm_profile"};
  return begins_with_one(name, kBeginnings);
}

}  // namespace

void needs_known_libraries_only(const TestContext& t) {
  const ElfFile file(t.path);
  for (const std::string& needed : file.needed()) {
    require(!begins_with_one(needed, kOtherOpenMp),
            "it needs " + needed +
                ": LibTorch brings libgomp, and two OpenMP runtimes in one process oversubscribe "
                "the cores or abort; build with libgomp, or use the service ciuic.threads");
    require(begins_with_one(needed, kKnown) || comes_along(file, t.path, needed),
            "it needs " + needed +
                ", which hosts may not have; link it statically, or put it beside the plugin with "
                "a run path relative to $ORIGIN");
  }
}

/// dlsym on the library's own handle looks at it and at what it needs, but not at the executable.
void finds_every_symbol_in_what_it_needs(const TestContext& t) {
  const std::unique_ptr<void, int (*)(void*)> library(
      dlopen(t.path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD), dlclose);
  require(library != nullptr, "the library is not mapped any more");
  const ElfFile file(t.path);
  for (const ElfSymbol& s : file.dynamic_symbols()) {
    if (s.defined || s.binding != STB_GLOBAL || s.name.empty() || is_of_a_sanitizer(s.name)) {
      continue;
    }
    require(dlsym(library.get(), s.name.c_str()) != nullptr,
            "the symbol " + s.name +
                " is in none of the libraries that it needs, so it works only in hosts that happen "
                "to have it; link with the library that defines it, and with -z defs");
  }
}

}  // namespace ciuic::testing
