// SPDX-License-Identifier: MIT
#include "liveness.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <unistd.h>

namespace ciuic::plugins {
namespace {

std::string machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  file >> boot;
  std::error_code ignored;
  return boot + "/" + std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string();
}

struct Process {
  char state = 0;  // 0: there is none
  std::string start;
};

/// Fields of /proc/<pid>/stat after the name, which may hold spaces.
Process look_at(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  const std::string line{std::istreambuf_iterator<char>(file), {}};
  Process process;
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) {
    return process;
  }
  std::istringstream fields(line.substr(name_end + 1));
  fields >> process.state;
  constexpr int kBetween = 18;  // the start time is field 22, the state field 3
  for (int i = 0; i < kBetween; ++i) {
    fields >> process.start;
  }
  fields >> process.start;
  return process;
}

struct Identity {
  std::string machine, pid, start;
};

Identity parse(const std::string& text) {
  std::istringstream fields(text);
  Identity identity;
  std::getline(fields, identity.machine, '|');
  std::getline(fields, identity.pid, '|');
  std::getline(fields, identity.start, '|');
  return identity;
}

}  // namespace

std::string own_identity() {
  const std::string pid = std::to_string(::getpid());
  return machine() + "|" + pid + "|" + look_at(pid).start;
}

std::string death_of(const std::string& identity) {
  const Identity peer = parse(identity);
  if (peer.pid.empty() || peer.machine != machine()) {
    return "";
  }
  const Process now = look_at(peer.pid);
  const bool alive =
      now.state != 0 && now.state != 'Z' && now.state != 'X' && now.start == peer.start;
  return alive ? "" : "its process " + peer.pid + " has ended";
}

std::string stop_of(const std::string& identity) {
  const Identity peer = parse(identity);
  if (peer.pid.empty() || peer.machine != machine()) {
    return "";
  }
  const char state = look_at(peer.pid).state;
  return state == 'T' || state == 't' ? "its process " + peer.pid + " is stopped" : "";
}

}  // namespace ciuic::plugins
