// SPDX-License-Identifier: MIT
#include "core/parallel/group.h"

#include <array>
#include <thread>

#include <gtest/gtest.h>

#include "core/parallel/collective.h"
#include "core/parallel/comm_service.h"

namespace ciuic::core {
namespace {

std::shared_ptr<CommunicatorPlugin> local(Log& log) {
  const Catalog catalog({std::string(CIUIC_BUILD_DIR) + "/plugins"});
  const FoundPlugin found = catalog.find(CIUIC_KIND_COMMUNICATOR, "local");
  std::vector<Problem> problems;
  const PluginOptions options =
      PluginOptions::from(nullptr, found.descriptor->options, "communicator.local", {}, problems);
  return std::make_shared<CommunicatorPlugin>(found, std::make_unique<HostContext>("local", log),
                                              options, Placement{});
}

struct GroupTest : ::testing::Test {
  Log log{Log::Options{0, 1, LogLevel::Off, "", false}};
  CommClock clock;
  Events events;
  Group group{"data", 2, local(log), 0, {0}, clock, events};
};

TEST_F(GroupTest, ShowsItselfToPlugins) {
  EXPECT_EQ(to_view(group.c().name), "data");
  EXPECT_EQ(group.c().id, 2u);
  EXPECT_EQ(group.c().size, 1);
  EXPECT_EQ(group.c().ranks[0], 0);
}

TEST_F(GroupTest, CollectivesGoThroughAndAreTimed) {
  std::array<double, 3> values{1, 2, 3};
  const Tensor tensor(values.data(), kF64, {3});
  ciuic_collective c{};
  c.struct_size = sizeof(c);
  c.op = CIUIC_OP_ALL_REDUCE;
  c.reduce = CIUIC_REDUCE_SUM;
  c.in = c.out = tensor.ptr();
  ciuic_work* work = nullptr;
  ASSERT_EQ(group.c().vt->submit(group.c().self, {&c, 1, sizeof(c)}, nullptr, &work), nullptr);
  const Work owned(work);
  EXPECT_EQ(values, (std::array<double, 3>{1, 2, 3}));
  EXPECT_GT(clock.take().busy, 0.0);
  EXPECT_EQ(clock.take().busy, 0.0);
}

TEST_F(GroupTest, OneRankAgreesWithItself) {
  std::array<double, 1> sums{5};
  reduce_in_place(group, sums, {}, "test");
  EXPECT_EQ(sums[0], 5);
  EXPECT_NO_THROW(agree(group, nullptr, "test"));
  const Failure mine(ExitCode::Storage, "full");
  EXPECT_THROW(agree(group, &mine, "test"), Failure);
  EXPECT_NO_THROW(barrier(group, "test"));
}

TEST_F(GroupTest, TheServiceFindsGroupsByNameAndId) {
  const HostContext host("tested", log);
  const CommService service(host.table(), {&group});
  const ciuic_comm_service& s = service.table();
  const ciuic_group* found = nullptr;
  ASSERT_EQ(s.find(s.ctx, to_str("data"), &found), nullptr);
  EXPECT_EQ(found, &group.c());
  ASSERT_EQ(s.by_id(s.ctx, 2, &found), nullptr);
  EXPECT_EQ(found, &group.c());
  EXPECT_EQ(Host(host.table()).take(s.find(s.ctx, to_str("pipeline"), &found)).code(),
            CIUIC_NOT_FOUND);
}

TEST_F(GroupTest, TheServiceSplitsGroupsOff) {
  const HostContext host("tested", log);
  const CommService service(host.table(), {&group});
  const ciuic_comm_service& s = service.table();
  const int32_t rank = 0;
  ciuic_split request{};
  request.struct_size = sizeof(request);
  request.ranks = &rank;
  request.count = 1;
  request.name = to_str("shard");
  const ciuic_group* own = nullptr;
  ASSERT_EQ(s.split(s.ctx, 2, &request, &own), nullptr);
  ASSERT_NE(own, nullptr);
  EXPECT_EQ(to_view(own->name), "shard");
  EXPECT_EQ(own->size, 1);
  EXPECT_NE(own->id, group.c().id);
  const ciuic_group* found = nullptr;
  ASSERT_EQ(s.by_id(s.ctx, own->id, &found), nullptr);
  EXPECT_EQ(found, own);

  const Host of(host.table());
  EXPECT_EQ(of.take(s.split(s.ctx, 77, &request, &own)).code(), CIUIC_NOT_FOUND);
  const int32_t stranger = 1;
  request.ranks = &stranger;
  EXPECT_EQ(of.take(s.split(s.ctx, 2, &request, &own)).code(), CIUIC_INVALID);
}

TEST(CommClock, OverlappingWorkCountsOnce) {
  CommClock clock;
  clock.begin();
  clock.begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  clock.end();
  clock.end();
  const double busy = clock.take().busy;
  EXPECT_GE(busy, 0.02);
  EXPECT_LT(busy, 0.039) << "two works of 20 ms at the same time are 20 ms";
}

}  // namespace
}  // namespace ciuic::core
