// SPDX-License-Identifier: MIT
#include "tools/ciuic/worker_process.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <unistd.h>

#include "core/launch/own_program.h"

namespace ciuic::tools {

namespace fs = std::filesystem;

std::string worker_path() {
  std::error_code ec;
  const fs::path worker = core::own_program().parent_path() / "ciuic-worker";
  if (!fs::exists(worker, ec)) {
    throw core::Failure(core::ExitCode::Environment, "ciuic-worker is not beside ciuic",
                        "build it (target ciuic-worker), or install both together",
                        {{"file", worker.string()}});
  }
  return worker.string();
}

void quieten_libtorch() {
  setenv("KINETO_LOG_LEVEL", "5",
         0);  // it looks for a GPU at load and complains when there is none
  setenv("TORCH_CPP_LOG_LEVEL", "FATAL",
         0);  // and prints with a stack trace when a peer's store connection ends
}

void become_worker(const std::string& command, const Arguments& arguments) {
  const std::string worker = worker_path();
  quieten_libtorch();
  std::vector<std::string> all{worker, command};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& a : all) {
    argv.push_back(a.data());
  }
  argv.push_back(nullptr);
  execv(worker.c_str(), argv.data());
  throw core::Failure(core::ExitCode::Environment,
                      std::string("cannot start the worker: ") + std::strerror(errno), "",
                      {{"file", worker}});
}

}  // namespace ciuic::tools
