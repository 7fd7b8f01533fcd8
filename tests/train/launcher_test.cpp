// SPDX-License-Identifier: MIT
//
// The launcher with shell scripts as ranks: what it returns, and that nothing outlives it.
#include "core/launch/launcher.h"

#include <chrono>
#include <cstdio>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

namespace ciuic::core {
namespace {

using namespace std::chrono_literals;

struct LauncherTest : ::testing::Test {
  /// A rank that is a script. `finish CODE` ends it as a rank does that is done, `exit` as a plugin would.
  LaunchRequest request(const std::string& script, int ranks) {
    LaunchRequest r;
    const std::string head =
        "#!/bin/bash\n"
        "while [ $# -gt 0 ]; do [ $1 = --report-fd ] && report=$2; shift; done\n"
        "export report\n"
        "finish() { printf '\\0done %d\\n' $1 >&$report; exit $1; }\n";
    r.worker = folder.write("rank.sh", head + script);
    chmod(r.worker.c_str(), 0755);
    r.ranks = ranks;
    r.needs_store = false;
    return r;
  }
  /// In a child, since a launcher owns its process's signals.
  pid_t start(const LaunchRequest& r) {
    const pid_t pid = fork();
    if (pid == 0) {
      _exit(launch(r));
    }
    return pid;
  }
  static int wait_for(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  void wait_for_file(const std::string& name) {
    for (int i = 0; i < 500 && !std::filesystem::exists(folder.file(name)); ++i) {
      std::this_thread::sleep_for(10ms);
    }
    ASSERT_TRUE(std::filesystem::exists(folder.file(name)));
  }
  TemporaryFolder folder;
};

TEST_F(LauncherTest, AllDoneIsZero) { EXPECT_EQ(wait_for(start(request("finish 0", 3))), 0); }

TEST_F(LauncherTest, RanksKnowWhoTheyAre) {
  const std::string out = folder.file("who");
  EXPECT_EQ(
      wait_for(start(request(
          "echo $RANK/$WORLD_SIZE/$LOCAL_RANK/$OMP_NUM_THREADS > " + out + "$RANK; finish 0", 2))),
      0);
  EXPECT_EQ(read_text(out + "0"), "0/2/0/1\n");
  EXPECT_EQ(read_text(out + "1"), "1/2/1/1\n");
}

TEST_F(LauncherTest, TheFirstFailureIsTheAnswerAndTakesTheOthersDown) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(wait_for(start(request("[ $RANK = 1 ] && finish 6; exec sleep 60", 2))), 6);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST_F(LauncherTest, ALostPeerGivesWayToItsCause) {
  EXPECT_EQ(wait_for(start(request("[ $RANK = 0 ] && finish 5; sleep 0.3; finish 6", 2))), 6);
}

TEST_F(LauncherTest, ARankEndedByASignalIsFive) {
  EXPECT_EQ(wait_for(start(request("[ $RANK = 1 ] && kill -9 $$; exec sleep 60", 2))), 5);
}

TEST_F(LauncherTest, AnExitCodeOfARankThatIsNotDoneCountsForNothing) {
  for (const char* code : {"0", "75", "2", "130"}) {
    EXPECT_EQ(wait_for(start(request(std::string("exit ") + code, 1))), 5) << code;
  }
}

TEST_F(LauncherTest, TheRankThatLeftIsToBlameAndNotItsPeer) {
  const std::string said = folder.file("said");
  for (const char* script : {"[ $RANK = 1 ] && exit 0; sleep 0.3; finish 5",
                             "[ $RANK = 1 ] && { sleep 0.3; exit 0; }; finish 5",
                             "[ $RANK = 1 ] && { sleep 0.3; exit 75; }; finish 75"}) {
    const LaunchRequest r = request(script, 2);
    const pid_t pid = fork();
    if (pid == 0) {
      const int code = freopen(said.c_str(), "w", stderr) == nullptr ? 42 : launch(r);
      std::fflush(stderr);
      _exit(code);
    }
    EXPECT_EQ(wait_for(pid), 5);
    EXPECT_THAT(read_text(said), ::testing::HasSubstr("rank 1 ended before it was done"));
  }
}

TEST_F(LauncherTest, WhatAPluginStartedDoesNotHoldTheLauncher) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(wait_for(start(request("sleep 20 & exit 3", 1))), 5);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST_F(LauncherTest, AStopRequestReachesEveryRankOnce) {
  // A rank is started with stop signals blocked and unblocks them when it is ready, which a shell cannot.
  const std::string script =
      "exec /usr/bin/python3 - <<'END'\n"
      "import os, signal, time\n"
      "rank = os.environ['RANK']\n"
      "folder = '" +
      folder.path() +
      "/'\n"
      "def stop(*_):\n"
      "    open(folder + 'stops' + rank, 'a').write('x\\n')\n"
      "    os.write(int(os.environ['report']), b'\\0done 75\\n')\n"
      "    raise SystemExit(75)\n"
      "signal.signal(signal.SIGTERM, stop)\n"
      "open(folder + 'ready' + rank, 'w')\n"
      "time.sleep(0.2)\n"
      "signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])\n"
      "time.sleep(60)\n"
      "END\n";
  const pid_t pid = start(request(script, 2));
  wait_for_file("ready0");
  wait_for_file("ready1");
  kill(pid, SIGTERM);
  EXPECT_EQ(wait_for(pid), 75);
  EXPECT_EQ(read_text(folder.file("stops0")), "x\n");
  EXPECT_EQ(read_text(folder.file("stops1")), "x\n");
}

TEST_F(LauncherTest, ASecondSignalStopsAtOnce) {
  const std::string script =
      "trap '' TERM INT\ntouch " + folder.file("ready") + "$RANK\nwhile true; do sleep 0.05; done";
  const pid_t pid = start(request(script, 2));
  wait_for_file("ready0");
  wait_for_file("ready1");
  const auto begin = std::chrono::steady_clock::now();
  kill(pid, SIGINT);
  std::this_thread::sleep_for(200ms);
  kill(pid, SIGINT);
  EXPECT_EQ(wait_for(pid), 130);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 8s);
}

TEST_F(LauncherTest, AWorkerThatIsNotThereIsSaid) {
  LaunchRequest r = request("finish 0", 1);
  r.worker = folder.file("nothing");
  const pid_t pid = fork();
  if (pid == 0) {
    try {
      launch(r);
    } catch (const std::exception&) {
      _exit(42);
    }
    _exit(0);
  }
  EXPECT_EQ(wait_for(pid), 42);
}

}  // namespace
}  // namespace ciuic::core
