// SPDX-License-Identifier: MIT
#include "core/plugin/trampoline/trampoline.h"

#include <array>
#include <signal.h>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ciuic/host.hpp>
#include <ciuic/view.hpp>
#include <ciuic/work.hpp>

#include "core/plugin/host_context.h"
#include "core/plugin/trampoline/crumb_board.h"

namespace ciuic::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A precision plugin whose functions look at the breadcrumb that they run under.
struct Seen {
  std::vector<Crumb> crumbs;
  bool throws = false;
  bool is_destroyed = false;
};
Seen& seen(ciuic_instance* self) { return *reinterpret_cast<Seen*>(self); }

void look(ciuic_instance* self) {
  const CrumbStack* stack = CrumbStack::mine_if_any();
  Crumb crumb;
  ASSERT_NE(stack, nullptr);
  ASSERT_GT(stack->depth(), 0u);
  ASSERT_TRUE(stack->read(stack->depth() - 1, crumb));
  seen(self).crumbs.push_back(crumb);
  if (seen(self).throws) {
    throw std::runtime_error("over the line");
  }
}

ciuic_precision_vt make_table() {
  ciuic_precision_vt t{};
  t.struct_size = sizeof(t);
  t.hooks = [](ciuic_instance* self, uint32_t, ciuic_device) {
    look(self);
    return 6u;
  };
  t.update = [](ciuic_instance* self, const ciuic_precision_update*) {
    look(self);
    return static_cast<ciuic_status*>(nullptr);
  };
  t.loss_scale = [](ciuic_instance* self) {
    look(self);
    return 2.0;
  };
  return t;
}

struct TrampolineTest : ::testing::Test {
  TrampolineTest() {
    descriptor.struct_size = sizeof(descriptor);
    descriptor.kind = CIUIC_KIND_PRECISION;
    descriptor.name = "seeing";
    descriptor.version = "3.1.4";
    descriptor.vt = &table;
    descriptor.destroy = [](ciuic_instance* self) { seen(self).is_destroyed = true; };
  }
  std::unique_ptr<Layer> make() {
    guard = std::make_shared<CallGuard>(descriptor, context.table());
    return make_trampoline(descriptor, reinterpret_cast<ciuic_instance*>(&plugin), guard);
  }
  static const ciuic_precision_vt& vt(const Layer& layer) {
    return *static_cast<const ciuic_precision_vt*>(layer.table());
  }

  Log log{Log::Options{0, 1, LogLevel::Off, "", false}};
  HostContext context{"seeing", log};
  Host host{context.table()};
  ciuic_precision_vt table = make_table();
  ciuic_descriptor descriptor{};
  Seen plugin;
  std::shared_ptr<CallGuard> guard;
};

TEST_F(TrampolineTest, ACallRunsUnderItsName) {
  const auto layer = make();
  EXPECT_EQ(vt(*layer).hooks(layer->handle(), 1, {CIUIC_DEVICE_CPU, 0}), 6u);
  host.check(vt(*layer).update(layer->handle(), nullptr));
  ASSERT_EQ(plugin.crumbs.size(), 2u);
  EXPECT_EQ(plugin.crumbs[0].plugin->label, "seeing 3.1.4");
  EXPECT_STREQ(plugin.crumbs[0].function, "precision.hooks");
  EXPECT_EQ(plugin.crumbs[0].sequence, 1u);
  EXPECT_STREQ(plugin.crumbs[1].function, "precision.update");
  EXPECT_EQ(plugin.crumbs[1].sequence, 2u);
  EXPECT_NE(plugin.crumbs[0].ticket, plugin.crumbs[1].ticket);
  EXPECT_EQ(CrumbStack::mine().depth(), 0u);
}

TEST_F(TrampolineTest, WhatThePluginLacksTheHostLacks) {
  EXPECT_EQ(vt(*make()).gemm, nullptr);
  table.struct_size = offsetof(ciuic_precision_vt, loss_scale);  // of an older plugin
  const auto older = make();
  EXPECT_NE(vt(*older).hooks, nullptr);
  EXPECT_EQ(vt(*older).loss_scale, nullptr);
}

TEST_F(TrampolineTest, AnEscapedExceptionIsAStatusThatStays) {
  const auto layer = make();
  plugin.throws = true;
  try {
    host.check(vt(*layer).update(layer->handle(), nullptr));
    FAIL() << "no status";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), CIUIC_INTERNAL);
    EXPECT_THAT(e.what(), HasSubstr("it threw out of precision.update, call 1: over the line"));
  }
  EXPECT_EQ(CrumbStack::mine().depth(), 0u);
  plugin.throws = false;
  EXPECT_THROW(host.check(vt(*layer).update(layer->handle(), nullptr)), Error);
  EXPECT_EQ(plugin.crumbs.size(), 1u) << "it was called again";
}

TEST_F(TrampolineTest, AnExceptionOutOfAValueIsKeptForTheHost) {
  const auto layer = make();
  plugin.throws = true;
  EXPECT_EQ(vt(*layer).loss_scale(layer->handle()), 0.0);
  EXPECT_TRUE(layer->guard()->has_escaped());
  EXPECT_THAT(layer->guard()->escaped(), HasSubstr("precision.loss_scale"));
}

TEST_F(TrampolineTest, AStatusThatTheHostDidNotMakeIsThePluginsFault) {
  table.update = [](ciuic_instance*, const ciuic_precision_update*) {
    static std::array<uint64_t, 16> garbage{42};
    return reinterpret_cast<ciuic_status*>(garbage.data());
  };
  const auto layer = make();
  try {
    host.check(vt(*layer).update(layer->handle(), nullptr));
    FAIL() << "no status";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), CIUIC_INTERNAL);
    EXPECT_THAT(e.what(), HasSubstr("none of the host's"));
  }
}

TEST_F(TrampolineTest, APointerThatIsNoStatusCrashesInsideOfTheCall) {
  table.update = [](ciuic_instance*, const ciuic_precision_update*) {
    return reinterpret_cast<ciuic_status*>(uintptr_t{8});
  };
  descriptor.version = "3.1.5";  // named after the board is there, as in a rank
  const CrumbBoard board;
  const pid_t pid = fork();
  if (pid == 0) {
    CrumbBoard::use(board.fd());
    signal(SIGSEGV, [](int) { _exit(7); });  // the crumbs stay, and no sanitizer reports
    std::thread([&] {
      const auto layer = make();
      (void)host.take(vt(*layer).update(layer->handle(), nullptr));
    }).join();
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_THAT(board.inside(pid), ElementsAre("plugin seeing 3.1.5 in precision.update, call 1"));
}

TEST(TrampolineCalls, WhatWaitsForPeersHasTheLongerLimit) {
  EXPECT_TRUE((kWaitsForPeers<ciuic_communicator_vt, 2>));
  EXPECT_FALSE((kWaitsForPeers<ciuic_communicator_vt, 1>)) << "submit: its work waits";
  EXPECT_FALSE((kWaitsForPeers<ciuic_profiler_vt, 2>));
}

TEST_F(TrampolineTest, ItsEndIsThePluginsEnd) {
  make().reset();
  EXPECT_TRUE(plugin.is_destroyed);
}

TEST(CrumbStack, DeeperCallsAreCountedAndNotKept) {
  const PluginIdentity plugin{CIUIC_KIND_PROFILER, "deep 1"};
  CrumbStack& stack = CrumbStack::mine();
  std::vector<std::unique_ptr<CrumbScope>> scopes;
  for (uint64_t i = 1; i <= CrumbStack::kDeepest + 4; ++i) {
    scopes.push_back(std::make_unique<CrumbScope>(plugin, "profiler.emit", i));
  }
  Crumb crumb;
  ASSERT_EQ(stack.depth(), uint32_t{CrumbStack::kDeepest});
  ASSERT_TRUE(stack.read(CrumbStack::kDeepest - 1, crumb));
  EXPECT_EQ(crumb.sequence, uint64_t{CrumbStack::kDeepest});
  while (!scopes.empty()) {
    scopes.pop_back();
  }
  EXPECT_EQ(stack.depth(), 0u);
}

TEST(CrumbStack, AnEndedThreadsStackServesTheNext) {
  const auto count = [] {
    size_t n = 0;
    for (const CrumbStack* s = CrumbStack::first(); s != nullptr; s = s->next()) {
      ++n;
    }
    return n;
  };
  std::thread([] { CrumbStack::mine(); }).join();
  const size_t before = count();
  for (int i = 0; i < 20; ++i) {
    std::thread([] { CrumbStack::mine(); }).join();
  }
  EXPECT_EQ(count(), before);
}

}  // namespace
}  // namespace ciuic::core
