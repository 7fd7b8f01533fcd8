// SPDX-License-Identifier: MIT
#include "core/plugin/thread_service.h"

#include <atomic>
#include <signal.h>

#include <gtest/gtest.h>

#include <ciuic/view.hpp>
#include <ciuic/work.hpp>

#include "core/plugin/host_context.h"

namespace ciuic::core {
namespace {

struct ThreadServiceTest : ::testing::Test {
  Log log{Log::Options{0, 1, LogLevel::Off, "", false}};
  HostContext context{"tested", log};
  Host host{context.table()};
  ThreadService service{
      context.table(), 3,
      [](int64_t count, int64_t, const std::function<void(int64_t, int64_t)>& body) {
        body(0, count / 2);
        body(count / 2, count);
      }};
  const ciuic_thread_service& table = service.table();
};

TEST_F(ThreadServiceTest, ParallelCoversTheRangeOnce) {
  std::array<int, 100> seen{};
  ASSERT_EQ(table.parallel(
                table.ctx, 100, 10,
                [](void* counts, int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    ++static_cast<int*>(counts)[i];
                  }
                },
                seen.data()),
            nullptr);
  for (const int n : seen) {
    EXPECT_EQ(n, 1);
  }
}

TEST_F(ThreadServiceTest, StartedThreadsBlockSignalsAndReportTheirStatus) {
  struct Seen {
    bool blocks = false;
    Host host;
  } seen{false, host};
  ciuic_work* raw = nullptr;
  ASSERT_EQ(table.start(
                table.ctx, to_str("worker"),
                [](void* out) -> ciuic_status* {
                  auto* s = static_cast<Seen*>(out);
                  sigset_t mask;
                  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
                  s->blocks = sigismember(&mask, SIGTERM) == 1;
                  return s->host.status(CIUIC_ABORTED, "told to");
                },
                &seen, &raw),
            nullptr);
  const Work work(raw);
  try {
    work.wait(host, 5'000'000'000);
    FAIL() << "the status is lost";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), CIUIC_ABORTED);
  }
  EXPECT_TRUE(seen.blocks);
}

TEST_F(ThreadServiceTest, PromiseEndsWhenFulfilled) {
  ciuic_work* raw = nullptr;
  ASSERT_EQ(table.promise(table.ctx, &raw), nullptr);
  const Work work(raw);
  int32_t done = 1;
  EXPECT_EQ(raw->ops->test(raw, &done), nullptr);
  EXPECT_EQ(done, 0);
  table.fulfil(table.ctx, raw, nullptr);
  EXPECT_EQ(raw->ops->test(raw, &done), nullptr);
  EXPECT_EQ(done, 1);
}

TEST_F(ThreadServiceTest, AllEndsWithTheFirstError) {
  std::array<ciuic_work*, 3> works{};
  ASSERT_EQ(table.promise(table.ctx, &works[0]), nullptr);
  ASSERT_EQ(table.promise(table.ctx, &works[2]), nullptr);  // works[1] is NULL: done already
  ciuic_work* raw = nullptr;
  ASSERT_EQ(table.all(table.ctx, to_array(works), &raw), nullptr);
  const Work all(raw);
  table.fulfil(table.ctx, works[2], host.status(CIUIC_DATA_LOSS, "bad"));
  int32_t done = 1;
  EXPECT_EQ(raw->ops->test(raw, &done), nullptr);
  EXPECT_EQ(done, 0);
  table.fulfil(table.ctx, works[0], nullptr);
  try {
    all.wait(host, 1'000'000'000);
    FAIL() << "the error is lost";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), CIUIC_DATA_LOSS);
  }
  const Work first(works[0]);
  const Work second(works[2]);
}

TEST_F(ThreadServiceTest, WaitPastItsTimeoutLeavesTheWorkRunning) {
  const Completion completion(host);
  const Work work = completion.work();
  EXPECT_THROW(work.wait(host, 1'000'000), Error);
  int calls = 0;
  work.get()->ops->on_done(
      work.get(), [](void* n, const ciuic_status*) { ++*static_cast<int*>(n); }, &calls);
  completion.finish();
  completion.finish();
  work.wait(host, 0);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace ciuic::core
