// SPDX-License-Identifier: MIT
//
// Every file access of a save fails once, or is the last one that happens. Whatever then lies
// there: the old checkpoint still opens, the new one is whole or absent, and the next good save
// leaves no stray file.
#include <filesystem>

#include <gmock/gmock.h>

#include "checkpoint_host.h"

namespace ciuic::test {
namespace {

using ::testing::HasSubstr;

struct Fault {
  const char* name;
  int32_t code;
  bool is_final;      // all later calls fail too: what a kill leaves
  bool is_power_cut;  // and what was not synced is zeros
  int32_t world;
  bool is_over;  // the save goes over an existing checkpoint
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class SaveFaults : public ::testing::TestWithParam<Fault> {};

/// Loads fully, verified; nothing when there is no checkpoint.
std::optional<State> load_if_whole(const std::string& uri) {
  Cluster reader("sharded");
  try {
    const auto archive = reader.rank(0).open(uri);
    archive.verify();
    return archive.read();
  } catch (const Error& e) {
    EXPECT_TRUE(e.code() == CIUIC_NOT_FOUND ||
                (e.code() == CIUIC_DATA_LOSS &&
                 std::string(e.what()).find("incomplete") != std::string::npos))
        << e.what();
    return std::nullopt;
  }
}

TEST_P(SaveFaults, OldOrNewButNeverAMix) {
  const Fault& fault = GetParam();
  const State before = small_state(1);
  const State after = small_state(100);
  int64_t call = 1;
  for (;; ++call) {
    SCOPED_TRACE("fault at call " + std::to_string(call));
    const TemporaryFolder folder;
    FaultPlan plan;
    const std::string old_uri = folder / "step-1";
    const std::string uri = fault.is_over ? old_uri : folder / "step-2";
    ASSERT_FALSE(Cluster("sharded", fault.world).save(old_uri, 1, before));

    plan.fail_at(call, fault.code, fault.is_final);
    std::optional<Error> error;
    {
      Cluster faulty("sharded", fault.world, &plan);
      error = faulty.save(uri, 2, after);
    }
    if (!plan.has_failed()) {
      EXPECT_FALSE(error);
      break;
    }
    if (fault.is_power_cut) {
      plan.zero_unsynced_files();
    }

    const auto old = load_if_whole(old_uri);
    const auto now = load_if_whole(uri);
    ASSERT_TRUE(old);
    if (!fault.is_over) {
      EXPECT_TRUE(*old == before);
    }
    EXPECT_TRUE(!now || *now == after || (fault.is_over && *now == before));
    if (!error) {
      EXPECT_TRUE(now && *now == after) << "reported as saved";
    } else if (!fault.is_final && fault.world == 1) {
      EXPECT_EQ(error->code(), fault.code) << error->what();
      EXPECT_THAT(error->what(), HasSubstr("injected fault"));
    }

    Cluster good("sharded", fault.world);
    ASSERT_FALSE(good.save(uri, 2, after));
    EXPECT_TRUE(good.load(uri) == after);
    const size_t expected = (fault.is_over ? 1U : 2U) * (2U + static_cast<size_t>(fault.world));
    EXPECT_EQ(tree(folder.path()).size(), expected)
        << ::testing::PrintToString(tree(folder.path()));
  }
  EXPECT_GT(call, 15) << "the faults did not reach the save";
}

INSTANTIATE_TEST_SUITE_P(
    Io, SaveFaults,
    ::testing::Values(Fault{"NoSpaceOnce", CIUIC_EXHAUSTED, false, false, 1, false},
                      Fault{"NoSpaceOnceOver", CIUIC_EXHAUSTED, false, false, 1, true},
                      Fault{"IoErrorOnceTwoRanks", CIUIC_DATA_LOSS, false, false, 2, false},
                      Fault{"IoErrorOnceTwoRanksOver", CIUIC_DATA_LOSS, false, false, 2, true},
                      Fault{"Killed", CIUIC_DATA_LOSS, true, false, 1, false},
                      Fault{"KilledOver", CIUIC_DATA_LOSS, true, false, 1, true},
                      Fault{"KilledTwoRanksOver", CIUIC_DATA_LOSS, true, false, 2, true},
                      Fault{"PowerCut", CIUIC_DATA_LOSS, true, true, 1, false},
                      Fault{"PowerCutOver", CIUIC_DATA_LOSS, true, true, 1, true},
                      Fault{"PowerCutThreeRanks", CIUIC_DATA_LOSS, true, true, 3, false}),
    [](const auto& test) { return std::string(test.param.name); });

// A failure that is reported leaves no folder aside behind, unless removing it failed too.
TEST(SaveFaults, AFailedSaveCleansUpBehindItself) {
  for (int64_t call = 1;; ++call) {
    SCOPED_TRACE("fault at call " + std::to_string(call));
    const TemporaryFolder folder;
    FaultPlan plan;
    plan.fail_at(call, CIUIC_EXHAUSTED, false);
    const auto error = Cluster("sharded", 2, &plan).save(folder / "c", 1, small_state(1));
    if (!plan.has_failed()) {
      break;
    }
    EXPECT_FALSE(std::filesystem::exists(folder / "c.partial"));
  }
}

// ---- order ----

size_t position(const std::vector<std::string>& log, const std::string& line, size_t from = 0) {
  for (size_t i = from; i < log.size(); ++i) {
    if (log[i] == line) {
      return i;
    }
  }
  ADD_FAILURE() << "no \"" << line << "\" in " << ::testing::PrintToString(log);
  return log.size();
}

TEST(SaveOrder, DataThenIndexThenNameThenFolder) {
  const TemporaryFolder folder;
  FaultPlan plan;
  ASSERT_FALSE(Cluster("sharded", 2, &plan).save(folder / "c", 1, small_state(1)));
  const auto log = plan.log();
  const std::string aside = folder / "c.partial";
  const size_t index = position(log, "write " + aside + "/index.json");
  for (const char* shard :
       {"/shard-00000-of-00002.safetensors", "/shard-00001-of-00002.safetensors"}) {
    EXPECT_LT(position(log, "write " + aside + shard), position(log, "sync " + aside + shard));
    EXPECT_LT(position(log, "sync " + aside + shard), index);
  }
  const size_t index_sync = position(log, "sync " + aside + "/index.json");
  const size_t aside_sync = position(log, "sync_directory " + aside);
  const size_t rename = position(log, "rename " + aside + " " + (folder / "c"));
  EXPECT_LT(index, index_sync);
  EXPECT_LT(index_sync, aside_sync);
  EXPECT_LT(aside_sync, rename);
  EXPECT_LT(rename, position(log, "sync_directory " + folder.path()));
}

TEST(SaveOrder, AnOldCheckpointIsReplacedByItsIndex) {
  const TemporaryFolder folder;
  FaultPlan plan;
  Cluster cluster("sharded", 1, &plan);
  ASSERT_FALSE(cluster.save(folder / "c", 1, small_state(1)));
  plan.clear_log();
  ASSERT_FALSE(cluster.save(folder / "c", 1, small_state(2)));
  const auto log = plan.log();
  const std::string path = folder / "c";
  const std::string aside = path + ".partial";
  const std::string shard = "/shard-00000-of-00001";
  const size_t move =
      position(log, "rename " + aside + shard + ".safetensors " + path + shard + ".r1.safetensors");
  const size_t sync = position(log, "sync_directory " + path, move);
  const size_t swap = position(log, "rename " + aside + "/index.json " + path + "/index.json");
  const size_t second_sync = position(log, "sync_directory " + path, swap);
  EXPECT_LT(position(log, "sync " + aside + "/index.json"), swap);
  EXPECT_LT(sync, swap);
  EXPECT_LT(second_sync, position(log, "remove " + path + shard + ".safetensors"));
}

// ---- the same for a model folder and a file ----

TEST(SafetensorsFaults, OldOrNewButNeverAMix) {
  const State before = {{"w", random_tensor(kF32, {30}, 1)}};
  const State after = {{"w", random_tensor(kF32, {31}, 2)}};
  State model = {{"config.json", blob("{}")}, {"value/w", random_tensor(kF32, {31}, 2)}};
  for (const bool is_file : {true, false}) {
    for (const bool is_final : {true, false}) {
      int64_t call = 1;
      for (;; ++call) {
        SCOPED_TRACE("fault at call " + std::to_string(call));
        const TemporaryFolder folder;
        Cluster good("safetensors");
        FaultPlan plan;
        const std::string uri = folder / (is_file ? "model.safetensors" : "model");
        if (is_file) {
          ASSERT_FALSE(good.save(uri, 1, before));
        }
        plan.fail_at(call, CIUIC_DATA_LOSS, is_final);
        const auto error = Cluster("safetensors", 1, &plan).save(uri, 1, is_file ? after : model);
        if (!plan.has_failed()) {
          EXPECT_FALSE(error);
          break;
        }
        plan.zero_unsynced_files();
        if (is_file) {
          const State now = good.load(uri);
          EXPECT_TRUE(now == before || now == after);
        } else if (std::filesystem::exists(uri)) {
          EXPECT_TRUE(good.load(uri) == model);
          std::filesystem::remove_all(uri);
        }
        ASSERT_FALSE(good.save(uri, 1, is_file ? after : model));
        EXPECT_EQ(tree(folder.path()).size(), is_file ? 1U : 3U)
            << ::testing::PrintToString(tree(folder.path()));
      }
      EXPECT_GT(call, 6);
    }
  }
}

}  // namespace
}  // namespace ciuic::test
