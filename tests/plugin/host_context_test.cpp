// SPDX-License-Identifier: MIT
#include "core/plugin/host_context.h"

#include <gtest/gtest.h>

#include <ciuic/host.hpp>

namespace ciuic::core {
namespace {

struct HostContextTest : ::testing::Test {
  Log log{Log::Options{0, 1, LogLevel::Off, "", false}};
  HostContext context{"tested", log};
  Host host{context.table()};
};

TEST_F(HostContextTest, StatusCarriesCodeMessageAndPeer) {
  const Error error =
      host.take(host.status(CIUIC_UNAVAILABLE, "rank 3 is gone", 3, CIUIC_STATUS_FATAL));
  EXPECT_EQ(error.code(), CIUIC_UNAVAILABLE);
  EXPECT_STREQ(error.what(), "rank 3 is gone");
  EXPECT_EQ(error.peer(), 3);
  EXPECT_EQ(error.flags(), uint32_t{CIUIC_STATUS_FATAL});
}

TEST_F(HostContextTest, MemoryIsAlignedAndAccounted) {
  {
    const Buffer buffer(host, {CIUIC_DEVICE_CPU, 0}, 1000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
    EXPECT_EQ(context.live_bytes(), 1000);
  }
  EXPECT_EQ(context.live_bytes(), 0);
}

TEST_F(HostContextTest, OtherDevicesHaveNoMemoryHere) {
  EXPECT_THROW((void)host.alloc({CIUIC_DEVICE_CUDA, 0}, 16), Error);
  EXPECT_EQ(context.live_bytes(), 0);
}

TEST_F(HostContextTest, ServicesAreFoundByName) {
  EXPECT_NE(host.find_service<ciuic_io_service>("ciuic.io"), nullptr);
  EXPECT_EQ(host.find_service<ciuic_comm_service>("ciuic.comm"), nullptr);
  EXPECT_THROW((void)host.service<ciuic_comm_service>("ciuic.comm"), Error);
  const int table = 0;
  context.add_service("ciuic.other", &table);
  EXPECT_EQ(host.find_service<int>("ciuic.other"), &table);
}

TEST_F(HostContextTest, GuardTurnsExceptionsIntoStatuses) {
  EXPECT_EQ(guard(host, [] {}), nullptr);
  EXPECT_EQ(host.take(guard(host, [] { throw Error(CIUIC_DEADLINE, "late"); })).code(),
            CIUIC_DEADLINE);
  EXPECT_EQ(host.take(guard(host, [] { throw std::bad_alloc(); })).code(), CIUIC_EXHAUSTED);
  EXPECT_EQ(host.take(guard(host, [] { throw std::runtime_error("x"); })).code(), CIUIC_INTERNAL);
  EXPECT_EQ(host.take(guard(host, [] { throw 7; })).code(), CIUIC_INTERNAL);
}

}  // namespace
}  // namespace ciuic::core
