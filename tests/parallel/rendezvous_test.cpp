// SPDX-License-Identifier: MIT
//
// Ranks are threads here; each has its own connection, as a process would.
#include "core/parallel/rendezvous.h"

#include <arpa/inet.h>
#include <filesystem>
#include <fstream>
#include <future>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <c10/util/Logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ciuic/error.hpp>
#include <ciuic/testing/test_host.hpp>

#include "core/parallel/kv_service.h"

namespace ciuic::core {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// c10d's own log lines are not for users; the host turns them off likewise.
const bool kQuiet = (FLAGS_caffe2_log_level = 3) == 3;

std::string free_address() { return "tcp://127.0.0.1:" + std::to_string(free_port()); }

RendezvousOptions options(int rank, int world, const std::string& address,
                          std::chrono::milliseconds timeout = 10s) {
  RendezvousOptions o;
  o.rank = rank;
  o.world = world;
  o.address = address;
  o.run_id = "run a";
  o.timeout = timeout;
  return o;
}

struct Outcome {
  std::unique_ptr<Rendezvous> rendezvous;
  int32_t code = CIUIC_OK;
  int32_t peer = -1;
  std::string text;
  double seconds = 0;
};

Outcome try_join(const RendezvousOptions& o) {
  Outcome outcome;
  const auto start = Clock::now();
  try {
    outcome.rendezvous = join(o);
  } catch (const Error& e) {
    outcome.code = e.code();
    outcome.peer = e.peer();
    outcome.text = e.what();
  }
  outcome.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return outcome;
}

/// All at once; in the order given.
std::vector<Outcome> join_all(const std::vector<RendezvousOptions>& all) {
  std::vector<std::future<Outcome>> running;
  for (const RendezvousOptions& o : all) {
    running.push_back(std::async(std::launch::async, [o] { return try_join(o); }));
  }
  std::vector<Outcome> outcomes;
  for (auto& r : running) {
    outcomes.push_back(r.get());
  }
  return outcomes;
}

/// A file name that nobody has; removed at the end, with what was put beside it.
class TemporaryPath {
 public:
  TemporaryPath()
      : path_(std::filesystem::temp_directory_path() /
              ("rendezvous_" + std::to_string(::getpid()))) {}
  ~TemporaryPath() {
    for (const auto& entry : std::filesystem::directory_iterator(path_.parent_path())) {
      if (entry.path().string().starts_with(path_.string())) {
        std::filesystem::remove(entry.path());
      }
    }
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string address() const { return "file://" + path_.string(); }

 private:
  std::filesystem::path path_;
};

void send_bytes(int port, const std::string& bytes) {
  const int s = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(s, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0) {
    (void)!::send(s, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  ::close(s);
}

TEST(Rendezvous, AllRanksMeetAndShareAStore) {
  for (const int world : {1, 2, 5}) {
    const std::string address = free_address();
    std::vector<RendezvousOptions> all;
    for (int rank = world - 1; rank >= 0; --rank) {
      all.push_back(options(rank, world, address));
    }
    auto ranks = join_all(all);
    for (const Outcome& rank : ranks) {
      ASSERT_TRUE(rank.rendezvous) << rank.text;
      ASSERT_EQ(rank.rendezvous->members().size(), static_cast<size_t>(world));
      EXPECT_EQ(rank.rendezvous->members()[0], own_name());
    }
    Rendezvous& first = *ranks.front().rendezvous;
    Rendezvous& last = *ranks.back().rendezvous;
    first.set("key", std::string("a\0b", 3));
    EXPECT_EQ(last.get("key", 1s), std::string("a\0b", 3));
    EXPECT_EQ(last.add("counter", 2), 2);
    EXPECT_EQ(first.add("counter", 40), 42);
    EXPECT_TRUE(last.remove("key"));
    EXPECT_EQ(first.get("key", 0s), std::nullopt);
  }
}

TEST(Rendezvous, WaitingForAKeyHoldsNobodyUp) {
  const auto alone = join(options(0, 1, free_address()));
  auto waiting = std::async(std::launch::async, [&] { return alone->get("later", 5s); });
  const auto start = Clock::now();
  EXPECT_EQ(alone->get("never", 100ms), std::nullopt);
  EXPECT_LT(Clock::now() - start, 1s);
  alone->set("later", "now");
  EXPECT_EQ(waiting.get(), "now");
}

TEST(Rendezvous, MeetsThroughAFile) {
  const TemporaryPath file;
  std::ofstream(file.path()) << "an older run\n";  // left behind
  auto ranks = join_all({options(0, 2, file.address()), options(1, 2, file.address())});
  ASSERT_TRUE(ranks[0].rendezvous) << ranks[0].text;
  ASSERT_TRUE(ranks[1].rendezvous) << ranks[1].text;
  ranks[0].rendezvous->set("key", "value");
  EXPECT_EQ(ranks[1].rendezvous->get("key", 1s), "value");
}

TEST(Rendezvous, ReadsTheEnvironment) {
  ::unsetenv("MASTER_ADDR");
  ::unsetenv("MASTER_PORT");
  const Outcome none = try_join(options(0, 1, "env://"));
  EXPECT_EQ(none.code, CIUIC_INVALID);
  EXPECT_THAT(none.text, HasSubstr("MASTER_ADDR is not set"));
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  ::setenv("MASTER_PORT", "29500x", 1);
  EXPECT_EQ(try_join(options(0, 1, "env://")).code, CIUIC_INVALID);
  ::setenv("MASTER_PORT", std::to_string(free_port()).c_str(), 1);
  EXPECT_TRUE(try_join(options(0, 1, "env://")).rendezvous);
}

TEST(Rendezvous, TakesIpv6) {
  const Outcome alone = try_join(options(0, 1, "tcp://[::1]:0"));
  ASSERT_TRUE(alone.rendezvous) << alone.text;
  EXPECT_NE(alone.rendezvous->endpoint().port, 0);
}

TEST(Rendezvous, MissingRankIsNamedAtTheDeadline) {
  const std::string address = free_address();
  const auto ranks = join_all({options(0, 4, address, 1s), options(2, 4, address, 1s)});
  for (const Outcome& rank : ranks) {
    EXPECT_EQ(rank.code, CIUIC_DEADLINE);
    EXPECT_THAT(rank.text, HasSubstr("ranks 1, 3 of 4 did not join within 1 s"));
    EXPECT_EQ(rank.peer, rank.peer == -1 ? -1 : 1);
    EXPECT_LT(rank.seconds, 2);
  }
}

TEST(Rendezvous, MissingServerIsNamedAtTheDeadline) {
  const std::string address = free_address();
  const Outcome rank = try_join(options(1, 2, address, 500ms));
  EXPECT_EQ(rank.code, CIUIC_DEADLINE);
  EXPECT_THAT(rank.text, HasSubstr(address.substr(6)));
  EXPECT_EQ(rank.peer, 0);
  EXPECT_LT(rank.seconds, 1.5);
}

TEST(Rendezvous, RankThatComesTwiceIsRefusedEverywhere) {
  const std::string address = free_address();
  const auto ranks =
      join_all({options(0, 4, address), options(1, 4, address), options(1, 4, address)});
  for (const Outcome& rank : ranks) {
    EXPECT_EQ(rank.code, CIUIC_INVALID);
    EXPECT_THAT(rank.text, HasSubstr("rank 1 of 4 was started twice: " + own_name()));
    EXPECT_LT(rank.seconds, 5);
  }
}

TEST(Rendezvous, RankOutOfRangeIsRefusedEverywhere) {
  const std::string address = free_address();
  const auto ranks =
      join_all({options(0, 4, address), options(1, 4, address), options(5, 4, address)});
  for (const Outcome& rank : ranks) {
    EXPECT_EQ(rank.code, CIUIC_INVALID);
    EXPECT_THAT(rank.text, HasSubstr("rank 5 of 4 is out of range (" + own_name()));
    EXPECT_LT(rank.seconds, 5);
  }
  EXPECT_EQ(try_join(options(-1, 2, address)).code, CIUIC_INVALID);
}

TEST(Rendezvous, WorldsMustAgree) {
  const std::string address = free_address();
  const auto ranks = join_all({options(0, 2, address), options(1, 3, address)});
  for (const Outcome& rank : ranks) {
    EXPECT_EQ(rank.code, CIUIC_INVALID);
    EXPECT_THAT(rank.text, HasSubstr("started for 3 ranks, rank 0 for 2"));
  }
}

TEST(Rendezvous, AnotherRunIsNotJoined) {
  const std::string address = free_address();
  RendezvousOptions stranger = options(1, 2, address);
  stranger.run_id = "run b";
  auto first = std::async(std::launch::async, [&] { return try_join(options(0, 2, address)); });
  const Outcome refused = try_join(stranger);
  EXPECT_EQ(refused.code, CIUIC_INVALID);
  EXPECT_THAT(refused.text, HasSubstr("belongs to another run (\"run a\", this one is \"run b\")"));
  const Outcome second = try_join(options(1, 2, address));
  EXPECT_TRUE(second.rendezvous) << second.text;
  EXPECT_TRUE(first.get().rendezvous);
}

TEST(Rendezvous, PortInUseNamesItsOwner) {
  const std::string address = free_address();
  const auto owner = join(options(0, 1, address));
  const Outcome second = try_join(options(0, 1, address));
  EXPECT_EQ(second.code, CIUIC_UNAVAILABLE);
  EXPECT_THAT(second.text, HasSubstr("port " + std::to_string(owner->endpoint().port)));
  EXPECT_THAT(second.text, HasSubstr("pid " + std::to_string(::getpid())));
  EXPECT_LT(second.seconds, 5);
}

TEST(Rendezvous, SurvivesGarbageOnItsPort) {
  const std::string address = free_address();
  const int port = parse_endpoint(address.substr(6)).port;
  auto first = std::async(std::launch::async, [&] { return try_join(options(0, 2, address)); });
  while (!try_connect({"127.0.0.1", port}, 100ms).empty()) {
    std::this_thread::yield();
  }
  for (int i = 0; i < 50; ++i) {
    send_bytes(port, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    send_bytes(port, std::string(8, '\xFF'));
    send_bytes(port, std::string(65536, '\x16'));
  }
  const Outcome second = try_join(options(1, 2, address));
  ASSERT_TRUE(second.rendezvous) << second.text;
  const Outcome served = first.get();
  ASSERT_TRUE(served.rendezvous) << served.text;
  send_bytes(port, std::string(8, '\xFF'));
  served.rendezvous->set("key", "value");
  EXPECT_EQ(second.rendezvous->get("key", 1s), "value");
}

TEST(Rendezvous, SomethingElseOnThePortIsRefused) {
  const int silent = listen_on({"127.0.0.1", 0});  // accepts, and never answers
  const Outcome rank =
      try_join(options(1, 2, "tcp://127.0.0.1:" + std::to_string(port_of(silent)), 500ms));
  ::close(silent);
  EXPECT_EQ(rank.code, CIUIC_UNAVAILABLE) << rank.text;
  EXPECT_LT(rank.seconds, 4);
}

TEST(Rendezvous, StopEndsTheWait) {
  std::atomic<bool> stop = false;
  RendezvousOptions o = options(0, 2, free_address(), 20s);
  o.stop = &stop;
  auto rank = std::async(std::launch::async, [&] { return try_join(o); });
  std::this_thread::sleep_for(50ms);
  stop = true;
  const Outcome outcome = rank.get();
  EXPECT_EQ(outcome.code, CIUIC_CANCELLED);
  EXPECT_LT(outcome.seconds, 5);
}

TEST(Rendezvous, StoreThatIsGoneIsRankZerosFault) {
  const std::string address = free_address();
  auto ranks = join_all({options(0, 2, address), options(1, 2, address)});
  ASSERT_TRUE(ranks[1].rendezvous);
  ranks[0].rendezvous.reset();
  try {
    ranks[1].rendezvous->set("key", "value");
    ranks[1].rendezvous->set("key", "value");
    FAIL() << "nobody noticed";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), CIUIC_UNAVAILABLE);
    EXPECT_EQ(e.peer(), 0);
  }
}

TEST(Rendezvous, SaysWhatItWaitsFor) {
  std::vector<std::string> said;
  RendezvousOptions o = options(1, 2, free_address(), 200ms);
  o.progress = [&](std::string_view text) { said.emplace_back(text); };
  (void)try_join(o);
  ASSERT_FALSE(said.empty());
  EXPECT_THAT(said[0], HasSubstr("rank 1 waits for rank 0 at 127.0.0.1:"));
}

TEST(RendezvousSocket, ReadsEndpoints) {
  EXPECT_EQ(parse_endpoint("node7:29500").host, "node7");
  EXPECT_EQ(parse_endpoint("[fe80::1]:1").host, "fe80::1");
  EXPECT_EQ(parse_endpoint("[fe80::1]:1").text(), "[fe80::1]:1");
  for (const char* bad : {"", "node7", "node7:", ":1", "node7:x", "node7:65536", "node7:-1",
                          "fe80::1:1", "node7:1x"}) {
    EXPECT_THROW((void)parse_endpoint(bad), Error) << bad;
  }
}

TEST(RendezvousSocket, LiteralsAreTheirOwnResolution) {
  EXPECT_EQ(resolve({"10.77.0.1", 5})[0].host, "10.77.0.1");
  EXPECT_EQ(resolve({"::1", 5})[0].host, "::1");
  EXPECT_THROW((void)resolve({"no-such-host.invalid", 5}), Error);
}

TEST(KvService, KeepsPluginsApartAndReportsStatuses) {
  const auto alone = join(options(0, 1, free_address()));
  testing::TestHost host;
  const KvService one(host.table(), *alone, "one/0");
  const KvService two(host.table(), *alone, "two/0");
  const ciuic_kv_service& kv = *one.table();
  host.host().check(kv.set(kv.ctx, to_str("key"), to_str("value")));
  char buffer[16];
  size_t size = sizeof(buffer);
  host.host().check(kv.get(kv.ctx, to_str("key"), 0, buffer, &size));
  EXPECT_EQ(std::string(buffer, size), "value");
  size = 2;
  EXPECT_EQ(host.host().take(kv.get(kv.ctx, to_str("key"), 0, buffer, &size)).code(),
            CIUIC_EXHAUSTED);
  EXPECT_EQ(size, 5U);
  size = sizeof(buffer);
  const ciuic_kv_service& other = *two.table();
  EXPECT_EQ(host.host().take(other.get(other.ctx, to_str("key"), 0, buffer, &size)).code(),
            CIUIC_DEADLINE);
  int64_t count = 0;
  host.host().check(kv.add(kv.ctx, to_str("n"), 5, &count));
  EXPECT_EQ(count, 5);
  host.host().check(kv.remove(kv.ctx, to_str("key")));
  EXPECT_EQ(host.host().take(kv.get(kv.ctx, to_str("key"), 0, buffer, &size)).code(),
            CIUIC_DEADLINE);
  EXPECT_TRUE(host.balanced());
}

}  // namespace
}  // namespace ciuic::core
