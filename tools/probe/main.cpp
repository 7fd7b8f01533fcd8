// SPDX-License-Identifier: MIT
//
// ciuic-probe: runs the code of plugins in a process that may crash or hang, so that ciuic need not.
// Started by ciuic alone (core/plugin/probe.cpp): a request as JSON on stdin, answers as lines on
// descriptor 3. Links no LibTorch; a plugin that does brings it along.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <iostream>
#include <iterator>
#include <span>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/plugin/open_file.h"
#include "tools/probe/answer.h"
#include "tools/probe/probed_library.h"
#include "tools/probe/supervisor.h"

namespace ciuic::tools {
namespace {

using nlohmann::json;

void lower(__rlimit_resource resource, rlim_t most) {
  rlimit limit{};
  if (getrlimit(resource, &limit) == 0) {
    limit.rlim_cur = std::min(limit.rlim_cur, most);
    limit.rlim_max = std::min(limit.rlim_max, most);
    setrlimit(resource, &limit);
  }
}

/// Enough for any library to load, LibTorch with it; not enough to take the machine along.
void set_limits(int cpu_seconds) {
  lower(RLIMIT_CORE, 0);
  lower(RLIMIT_CPU, static_cast<rlim_t>(cpu_seconds));
  lower(RLIMIT_NOFILE, 1024);
  lower(RLIMIT_NPROC, 4096);
  lower(RLIMIT_FSIZE, 1 << 20);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  lower(RLIMIT_AS, rlim_t{64} << 30);
  lower(RLIMIT_DATA, rlim_t{8} << 30);
#endif
}

/// Says on disk what is looked at, until the next or the end; see core/plugin/probe_mark.h.
void write_mark(const std::string& path, const std::string& text) {
  if (!path.empty()) {
    const core::OpenFile file(open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW));
    // Without a mark it is looked at all the same.
    (void)(file && file.write_all(std::as_bytes(std::span(text))));
  }
}

void probe(const json& request) {
  const auto id = request.at("id").get<size_t>();
  try {
    ProbedLibrary library(id, request.at("path").get<std::string>());
    json answer = library.describe();
    answer["id"] = id;
    answer["stays"] = library.stays_after_close();
    say(answer);
  } catch (const ProbeRefusal& refusal) {
    say({{"id", id}, {"refused", refusal.step}, {"reason", refusal.reason}});
  }
}

void validate_one(const json& request) {
  const auto id = request.at("id").get<size_t>();
  try {
    const ProbedLibrary library(id, request.at("path").get<std::string>());
    announce(id, "validate");
    const ciuic_descriptor* d =
        library.find(request.at("kind").get<uint32_t>(), request.at("name").get<std::string>());
    if (d == nullptr) {
      throw ProbeRefusal{"validate", "it does not show this plugin any more"};
    }
    say({{"id", id}, {"validated", validate(*d, request)}});
  } catch (const ProbeRefusal& refusal) {
    say({{"id", id}, {"refused", refusal.step}, {"reason", refusal.reason}});
  }
}

int run() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  const json request = json::parse(text);
  set_limits(request.at("cpu_seconds").get<int>());
  const auto mark = request.at("mark").get<std::string>();
  for (const json& file : request.at("files")) {
    write_mark(mark, file.at("mark").get<std::string>());
    probe(file);
  }
  for (const json& one : request.at("validate")) {
    write_mark(mark, one.at("mark").get<std::string>());
    validate_one(one);
  }
  say({{"done", true}});
  return 0;
}

}  // namespace
}  // namespace ciuic::tools

int main() {
  prctl(PR_SET_DUMPABLE, 0);
  // The child ends by _exit: destructors of plugins and of what they brought along are not what was
  // asked about.
  ciuic::tools::supervise([] {
    try {
      return ciuic::tools::run();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "ciuic-probe: %s\n", e.what());
    }
    return 70;
  });
}
