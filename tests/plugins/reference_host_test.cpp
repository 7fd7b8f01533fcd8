// SPDX-License-Identifier: MIT
//
// The measure must be right before anything is measured: values of the reference communicator
// worked out by hand, and the faults that the reference host is there to see.
#include <array>
#include <atomic>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ciuic/testing/rank_group.hpp>

#include "plugins.h"

namespace ciuic::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ciuic_collective collective(uint32_t op, uint32_t reduce, const Tensor* in, const Tensor* out,
                            int32_t peer = 0) {
  ciuic_collective c{};
  c.struct_size = sizeof(c);
  c.op = op;
  c.reduce = reduce;
  c.peer = peer;
  c.in = in == nullptr ? nullptr : in->ptr();
  c.out = out == nullptr ? nullptr : out->ptr();
  return c;
}

Work submit(const Rank& rank, const std::vector<ciuic_collective>& c, const char* group = "world") {
  const ciuic_group& g = rank.group(group);
  ciuic_work* work = nullptr;
  rank.host.host().check(g.vt->submit(g.self, to_array(c), nullptr, &work));
  return Work(work);
}
void run(const Rank& rank, const ciuic_collective& c) { submit(rank, {c}).wait(rank.host.host()); }

// Rank r contributes 2 (r + 1): 2, 4, 6.
TEST(ReferenceCommunicator, FieldBug_B018_SumsAndAverages) {
  for (const int world : {2, 3}) {
    for (const int64_t n : {1, 5, 7}) {
      RankGroup ranks(world);
      ranks.run([&](Rank& rank) {
        const auto mine = static_cast<float>(2 * (rank.rank() + 1));
        const auto reduced = [&](uint32_t op, uint32_t reduce, int64_t in_elements) {
          std::vector<float> from(static_cast<size_t>(in_elements), mine);
          std::vector<float> to(static_cast<size_t>(n), -1);
          const Tensor in(from.data(), kF32, {in_elements});
          const Tensor out(to.data(), kF32, {n});
          run(rank, collective(op, reduce, &in, &out));
          return to;
        };
        const float sum = world == 2 ? 6 : 12;
        const float average = world == 2 ? 3 : 4;
        EXPECT_THAT(reduced(CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_SUM, n), Each(sum));
        EXPECT_THAT(reduced(CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_AVG, n), Each(average));
        EXPECT_THAT(reduced(CIUIC_OP_REDUCE_SCATTER, CIUIC_REDUCE_SUM, n * world), Each(sum));
        EXPECT_THAT(reduced(CIUIC_OP_REDUCE_SCATTER, CIUIC_REDUCE_AVG, n * world), Each(average));
      });
    }
  }
}

TEST(ReferenceCommunicator, MovesData) {
  RankGroup ranks(3);
  ranks.run([](Rank& rank) {
    const int32_t r = rank.rank();
    std::vector<int32_t> own{r * 10, r * 10 + 1};
    std::vector<int32_t> six{r * 100,     r * 100 + 1, r * 100 + 2,
                             r * 100 + 3, r * 100 + 4, r * 100 + 5};
    std::vector<int32_t> to(6, -1);
    std::vector<int32_t> two(2, -1);
    const Tensor in(own.data(), kI32, {2});
    const Tensor wide(six.data(), kI32, {6});
    const Tensor out(to.data(), kI32, {6});
    const Tensor small(two.data(), kI32, {2});
    run(rank, collective(CIUIC_OP_ALL_GATHER, 0, &in, &out));
    EXPECT_THAT(to, ElementsAre(0, 1, 10, 11, 20, 21));
    run(rank, collective(CIUIC_OP_ALL_TO_ALL, 0, &wide, &out));
    EXPECT_THAT(to,
                ElementsAre(2 * r, 2 * r + 1, 100 + 2 * r, 101 + 2 * r, 200 + 2 * r, 201 + 2 * r));
    run(rank, collective(CIUIC_OP_SCATTER, 0, &wide, &small, 1));
    EXPECT_THAT(two, ElementsAre(100 + 2 * r, 101 + 2 * r));
    run(rank, collective(CIUIC_OP_BROADCAST, 0, nullptr, &in, 2));
    EXPECT_THAT(own, ElementsAre(20, 21));
    run(rank, collective(CIUIC_OP_BARRIER, 0, nullptr, nullptr));
  });
}

TEST(ReferenceCommunicator, HonoursUnevenCounts) {
  RankGroup ranks(2);
  ranks.run([](Rank& rank) {
    const std::array<int64_t, 2> counts{1, 2};
    std::vector<float> from{1, 2, 3};
    std::vector<float> to(static_cast<size_t>(rank.rank()) + 1, -1);
    const Tensor in(from.data(), kF32, {3});
    const Tensor out(to.data(), kF32, {static_cast<int64_t>(to.size())});
    ciuic_collective c = collective(CIUIC_OP_REDUCE_SCATTER, CIUIC_REDUCE_SUM, &in, &out);
    c.in_counts = counts.data();
    run(rank, c);
    EXPECT_EQ(to, rank.rank() == 0 ? std::vector<float>({2}) : std::vector<float>({4, 6}));
  });
}

TEST(ReferenceCommunicator, SendsToAPeer) {
  RankGroup ranks(2);
  ranks.run([](Rank& rank) {
    float from = static_cast<float>(rank.rank()) + 1;
    float to = 0;
    const Tensor in(&from, kF32, {1});
    const Tensor out(&to, kF32, {1});
    const int32_t other = 1 - rank.rank();
    submit(rank, {collective(CIUIC_OP_SEND, 0, &in, nullptr, other),
                  collective(CIUIC_OP_RECV, 0, nullptr, &out, other)})
        .wait(rank.host.host());
    EXPECT_EQ(to, static_cast<float>(other) + 1);
  });
}

TEST(ReferenceCommunicator, RefusesRanksThatDisagree) {
  RankGroup ranks(2);
  ranks.run([](Rank& rank) {
    float x = 1;
    const Tensor t(&x, kF32, {1});
    const uint32_t reduce = rank.rank() == 0 ? CIUIC_REDUCE_SUM : CIUIC_REDUCE_MAX;
    const Error e = error_of([&] { run(rank, collective(CIUIC_OP_ALL_REDUCE, reduce, &t, &t)); });
    EXPECT_EQ(e.code(), CIUIC_INVALID);
  });
}

TEST(ReferenceCommunicator, NamesTheRankThatLeft) {
  RankGroup ranks(3);
  std::atomic<int> told{0};
  EXPECT_THROW(ranks.run([&](Rank& rank) {
    if (rank.rank() == 1) {
      throw Error(CIUIC_INTERNAL, "rank 1 fails");
    }
    const Error e = error_of([&] { run(rank, collective(CIUIC_OP_BARRIER, 0, nullptr, nullptr)); });
    EXPECT_EQ(e.code(), CIUIC_UNAVAILABLE);
    EXPECT_EQ(e.peer(), 1);
    ++told;
  }),
               Error);
  EXPECT_EQ(told, 2);
}

TEST(ReferenceCommunicator, SplitsThroughTheService) {
  RankGroup ranks(4);
  ranks.run([](Rank& rank) {
    const Host host = rank.host.host();
    const auto& comm = host.service<ciuic_comm_service>("ciuic.comm");
    const std::array<int32_t, 2> members{rank.rank() % 2, rank.rank() % 2 + 2};
    ciuic_split request{};
    request.struct_size = sizeof(request);
    request.ranks = members.data();
    request.count = 2;
    request.name = to_str("half");
    const ciuic_group* half = nullptr;
    host.check(comm.split(comm.ctx, rank.group("world").id, &request, &half));
    ASSERT_NE(half, nullptr);
    EXPECT_EQ(half->size, 2);
    EXPECT_EQ(half->ranks[half->rank], rank.rank());
    double x = rank.rank();
    const Tensor t(&x, kF64, {1});
    submit(rank, {collective(CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_SUM, &t, &t)}, "half").wait(host);
    EXPECT_EQ(x, rank.rank() % 2 == 0 ? 2 : 4);
    const ciuic_group* none = nullptr;
    EXPECT_EQ(error_of([&] { host.check(comm.find(comm.ctx, to_str("nope"), &none)); }).code(),
              CIUIC_NOT_FOUND);
  });
}

TEST(TestHost, SeesLeaksAndOverruns) {
  TestHost host;
  char* memory = static_cast<char*>(host.host().alloc({CIUIC_DEVICE_CPU, 0}, 10));
  EXPECT_FALSE(host.balanced());
  EXPECT_EQ(memory[0], static_cast<char>(0xFF)) << "not zero by luck";
  memory[10] = 0;
  host.host().dealloc({CIUIC_DEVICE_CPU, 0}, memory, 10);
  EXPECT_EQ(host.live_bytes(), 0);
  EXPECT_EQ(host.memory_faults(), 1);
  EXPECT_FALSE(host.balanced());
}

TEST(TestHost, CountsStatuses) {
  TestHost host;
  ciuic_status* status = host.host().status(CIUIC_INVALID, "text", 3);
  EXPECT_EQ(host.live_statuses(), 1);
  const Error e = host.host().take(status);
  EXPECT_EQ(e.peer(), 3);
  EXPECT_TRUE(host.balanced());
}

TEST(ReferenceThreads, SplitsJoinsAndPromises) {
  const TestHost host;
  ReferenceThreads threads(host.host(), 3);
  const ciuic_thread_service& t = *threads.table();
  std::vector<int> hits(100);
  host.host().check(t.parallel(
      t.ctx, 100, 7,
      [](void* context, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          ++(*static_cast<std::vector<int>*>(context))[static_cast<size_t>(i)];
        }
      },
      &hits));
  EXPECT_THAT(hits, Each(1));

  ciuic_work* first = nullptr;
  ciuic_work* second = nullptr;
  host.host().check(t.promise(t.ctx, &first));
  host.host().check(t.promise(t.ctx, &second));
  const std::vector<ciuic_work*> both{first, second};
  ciuic_work* all = nullptr;
  host.host().check(t.all(t.ctx, to_array(both), &all));
  const Work joined(all);
  const Work keep_first(first);
  const Work keep_second(second);
  t.fulfil(t.ctx, first, nullptr);
  EXPECT_EQ(error_of([&] { joined.wait(host.host(), 0); }).code(), CIUIC_DEADLINE);
  t.fulfil(t.ctx, second, host.host().status(CIUIC_DATA_LOSS, "gone"));
  EXPECT_EQ(error_of([&] { joined.wait(host.host()); }).code(), CIUIC_DATA_LOSS);
  EXPECT_TRUE(host.balanced());
}

TEST(MemoryState, KnowsWhatWasWrittenTwice) {
  const TestHost host;
  MemoryState state;
  const ciuic_writer* writer = state.writer(host.host());
  std::vector<float> values{1, 2, 3};
  const auto write = [&](int64_t begin, int64_t count) {
    const Tensor t(values.data() + begin, kF32, {count});
    const Place place({3}, begin);
    const ciuic_place c = place.c();
    host.host().check(writer->tensor(writer->ctx, to_str("k"), &c, t.ptr(), nullptr));
  };
  write(0, 2);
  EXPECT_THAT(state.uneven(), ElementsAre("k"));
  write(2, 1);
  EXPECT_TRUE(state.uneven().empty());
  write(1, 1);
  EXPECT_THAT(state.uneven(), ElementsAre("k"));
}

}  // namespace
}  // namespace ciuic::testing
