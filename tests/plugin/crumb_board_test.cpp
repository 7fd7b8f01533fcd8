// SPDX-License-Identifier: MIT
//
// What a process was inside of, read by another when it is gone.
#include "core/plugin/trampoline/crumb_board.h"

#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plugin/trampoline/breadcrumb.h"
#include "core/plugin/trampoline/slots.h"

namespace ciuic::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Runs `body` in a process that uses the board, and waits for its end. Its id.
template <typename Body>
pid_t in_process(const CrumbBoard& board, Body body) {
  const pid_t pid = fork();
  if (pid == 0) {
    CrumbBoard::use(board.fd());
    std::thread([&] { body(); }).join();  // this thread has a stack of the parent's already
    _exit(1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return pid;
}

TEST(CrumbBoard, OutlivesTheProcessThatAPluginEnds) {
  const CrumbBoard board;
  EXPECT_FALSE(board.is_in_use());
  const pid_t pid = in_process(board, [] {
    const PluginIdentity& outer = identity_of(CIUIC_KIND_SHARDING, "outer", "1.0.0");
    const PluginIdentity& inner = identity_of(CIUIC_KIND_OPTIMIZER, "inner", "2.0.0");
    const CrumbScope a(outer, kStateSaveCall, 3);
    const CrumbScope b(inner, kCreateCall, 7);
    _exit(0);
  });
  EXPECT_TRUE(board.is_in_use());
  EXPECT_THAT(board.inside(pid), ElementsAre("plugin inner 2.0.0 in create, call 7"));
}

TEST(CrumbBoard, WhatReturnedIsNotThere) {
  const CrumbBoard board;
  const pid_t pid = in_process(board, [] {
    const PluginIdentity& plugin = identity_of(CIUIC_KIND_SHARDING, "outer", "1.0.0");
    { const CrumbScope a(plugin, kStateSaveCall, 3); }
    _exit(0);
  });
  EXPECT_THAT(board.inside(pid), IsEmpty());
}

TEST(CrumbBoard, ACallIsBlamedBeforeOneThatWaits) {
  const CrumbBoard board;
  const pid_t pid = in_process(board, [] {
    const PluginIdentity& waits = identity_of(CIUIC_KIND_COMMUNICATOR, "waits", "1.0.0");
    const PluginIdentity& leaves = identity_of(CIUIC_KIND_PROFILER, "leaves", "1.0.0");
    const CrumbScope a(waits, kCreateCall, 3, true);
    std::thread([&] {
      const CrumbScope b(leaves, "unnamed", 1);
      _exit(0);
    }).join();
  });
  EXPECT_THAT(board.inside(pid),
              ElementsAre("plugin leaves 1.0.0 in ?, call 1",
                          "plugin waits 1.0.0 in create (waiting for peers), call 3"));
}

TEST(CrumbBoard, ThousandsOfThreadsAndNamesDoNotOverflowIt) {
  const CrumbBoard board;
  in_process(board, [] {
    for (int i = 0; i < 2000; ++i) {
      identity_of(CIUIC_KIND_PROFILER, "many", std::to_string(i));
    }
    std::vector<void*> rooms;
    while (void* room = CrumbBoard::room_for_stack()) {
      rooms.push_back(room);
    }
    _exit(rooms.size() > 10 && CrumbBoard::room_for_stack() == nullptr ? 0 : 1);
  });
}

}  // namespace
}  // namespace ciuic::core
