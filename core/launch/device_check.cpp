// SPDX-License-Identifier: MIT
#include "core/launch/device_check.h"

#include <dlfcn.h>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

/// How many CUDA devices the driver shows; 0 without a driver.
int cuda_devices() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) {
    return 0;
  }
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  int devices = 0;
  return init != nullptr && count != nullptr && init(0) == 0 && count(&devices) == 0 ? devices : 0;
}

}  // namespace

void check_device(const std::string& device) {
  if (device != "cuda") {
    return;
  }
  const std::string here = cuda_devices() == 0 ? ", and this machine shows no CUDA device" : "";
  throw Failure(ExitCode::Environment,
                "run.device = \"cuda\" is not built yet in this version" + here,
                "set run.device = \"cpu\"");
}

}  // namespace ciuic::core
