// SPDX-License-Identifier: MIT
//
// The native format when all goes well, and what it refuses.
#include <filesystem>
#include <numeric>
#include <random>
#include <sys/mount.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "checkpoint_host.h"

namespace ciuic::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr ciuic_dtype kAllTypes[] = {kF64,
                                     kF32,
                                     kF16,
                                     kBF16,
                                     kI64,
                                     kI32,
                                     {CIUIC_DTYPE_INT, 16, 1},
                                     {CIUIC_DTYPE_INT, 8, 1},
                                     kU8,
                                     {CIUIC_DTYPE_UINT, 16, 1},
                                     {CIUIC_DTYPE_UINT, 32, 1},
                                     {CIUIC_DTYPE_UINT, 64, 1},
                                     {CIUIC_DTYPE_BOOL, 8, 1},
                                     {CIUIC_DTYPE_FLOAT8_E4M3FN, 8, 1},
                                     {CIUIC_DTYPE_FLOAT8_E5M2, 8, 1}};

State awkward_state() {
  State state;
  uint32_t seed = 1;
  const std::vector<std::vector<int64_t>> shapes = {{},        {0},       {1},      {7},
                                                    {3, 0, 2}, {2, 3, 5}, {1, 1, 1}};
  for (const ciuic_dtype dtype : kAllTypes) {
    for (const auto& shape : shapes) {
      state.emplace("value/t" + std::to_string(seed), random_tensor(dtype, shape, seed));
      ++seed;
    }
  }
  for (const std::string& name :
       {std::string("value/../../etc/passwd"), std::string("/absolute"), std::string(".."),
        std::string("a[0:3]"), std::string("a"), std::string("__metadata__"),
        std::string("quote\"back\\slash\nline"),
        std::string("value/\xc3\xbc\xe4\xb8\xad\xf0\x9f\x98\x80"), std::string("blob"),
        std::string(4000, 'x')}) {
    state.emplace(name, random_tensor(kF32, {5}, ++seed));
  }
  state.emplace("empty blob", blob(""));
  state.emplace("config.json", blob(std::string("{\0\xff binary}", 11)));
  return state;
}

// ---- round trips ----

TEST(Sharded, RoundTripIsBitExact) {
  const TemporaryFolder folder;
  const State state = awkward_state();
  Cluster cluster("sharded");
  ASSERT_FALSE(cluster.save(folder / "step-00000001", 1, state));
  EXPECT_TRUE(cluster.load(folder / "step-00000001") == state);
  EXPECT_NO_THROW(cluster.rank(0).open(folder / "step-00000001").verify());
  EXPECT_THAT(tree(folder.path()), ElementsAre("step-00000001", "step-00000001/index.json",
                                               "step-00000001/shard-00000-of-00001.safetensors"));
}

TEST(Sharded, AThousandTensors) {
  const TemporaryFolder folder;
  State state;
  std::mt19937 random(7);
  for (uint32_t i = 0; i < 1000; ++i) {
    state.emplace("value/layers." + std::to_string(i),
                  random_tensor(kF32, {static_cast<int64_t>(random() % 300), 3}, i));
  }
  Cluster two("sharded", 2);
  ASSERT_FALSE(two.save(folder / "c", 5, state));
  EXPECT_TRUE(Cluster("sharded", 3).load(folder / "c") == state);
}

TEST(Sharded, AnyWorldReadsWhatAnyOtherWrote) {
  const State state = awkward_state();
  for (const int32_t writers : {1, 2, 3}) {
    const TemporaryFolder folder;
    ASSERT_FALSE(Cluster("sharded", writers).save(folder / "c", 9, state));
    for (const int32_t readers : {1, 2, 3, 5}) {
      EXPECT_TRUE(Cluster("sharded", readers).load(folder / "c") == state)
          << writers << " to " << readers;
    }
  }
}

TEST(Sharded, AnyRangeIsAssembled) {
  const TemporaryFolder folder;
  const State state = {{"w", random_tensor(kBF16, {101}, 3)}};
  ASSERT_FALSE(Cluster("sharded", 3).save(folder / "c", 1, state));
  Cluster one("sharded");
  const auto archive = one.rank(0).open(folder / "c");
  for (int64_t begin = 0; begin <= 101; begin += 5) {
    for (int64_t count = 0; begin + count <= 101; count += 7) {
      EXPECT_EQ(archive.get("w", state.at("w"), begin, count),
                state.at("w").bytes.substr(static_cast<size_t>(2 * begin),
                                           static_cast<size_t>(2 * count)));
    }
  }
}

TEST(Sharded, LargeTensorsGoThroughInChunks) {
  const TemporaryFolder folder;
  const State state = {{"w", random_tensor(kF32, {3 << 20}, 3)},
                       {"v", random_tensor(kF32, {9}, 4)}};
  ASSERT_FALSE(Cluster("sharded", 2).save(folder / "c", 1, state));
  EXPECT_TRUE(Cluster("sharded", 3).load(folder / "c") == state);
  EXPECT_NO_THROW(Cluster("sharded").rank(0).open(folder / "c").verify());
}

TEST(Sharded, ShardsAreAlignedSafetensorsFiles) {
  const TemporaryFolder folder;
  ASSERT_FALSE(Cluster("sharded").save(folder / "c", 1, small_state(1)));
  Cluster plain("safetensors");
  const auto archive = plain.rank(0).open(folder / "c/shard-00000-of-00001.safetensors");
  EXPECT_EQ(
      archive.get("value/embedding.weight", small_state(1).at("value/embedding.weight"), 0, 20),
      small_state(1).at("value/embedding.weight").bytes);
}

TEST(Sharded, StridedTensorsComeAndGo) {
  const TemporaryFolder folder;
  std::vector<float> source(12);
  std::iota(source.begin(), source.end(), 0.0F);
  int64_t shape[] = {3, 4};
  int64_t columns[] = {1, 3};  // the transpose of a 4 x 3 matrix
  Tensor tensor(source.data(), kF32, {3, 4});
  ciuic_tensor transposed = tensor.c();
  transposed.t.shape = shape;
  transposed.t.strides = columns;
  Cluster cluster("sharded");
  {
    const auto archive = cluster.rank(0).begin(folder / "c", 1, {});
    archive.put_at("w", Place({3, 4}).c(), transposed);
    archive.commit();
  }
  const auto archive = cluster.rank(0).open(folder / "c");
  std::vector<float> plain(12);
  archive.get_at("w", Place({3, 4}).c(), Tensor(plain.data(), kF32, {3, 4}).c());
  EXPECT_THAT(plain, ElementsAre(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11));
  std::vector<float> back(12);
  transposed.t.data = back.data();
  archive.get_at("w", Place({3, 4}).c(), transposed);
  EXPECT_EQ(back, source);
}

TEST(Sharded, AStableTensorIsReadAtTheCommit) {
  const TemporaryFolder folder;
  std::vector<float> source(4, 1.0F);
  Cluster cluster("sharded");
  const auto archive = cluster.rank(0).begin(folder / "c", 1, {});
  archive.put_at("w", Place({4}).c(),
                 Tensor(source.data(), kF32, {4}, {CIUIC_DEVICE_CPU, 0}, CIUIC_TENSOR_STABLE).c());
  archive.commit();
  std::vector<float> read(4);
  cluster.rank(0)
      .open(folder / "c")
      .get_at("w", Place({4}).c(), Tensor(read.data(), kF32, {4}).c());
  EXPECT_EQ(read, source);
}

TEST(Sharded, DeviceTensorsGoThroughTheTensorService) {
  const TemporaryFolder folder;
  Cluster cluster("sharded");
  constexpr ciuic_device kDevice{CIUIC_DEVICE_CUDA, 0};
  const ciuic_stream stream{sizeof(ciuic_stream), 0, kDevice, nullptr};
  std::vector<float> source{1, 2, 3, 4};
  {
    const auto archive = cluster.rank(0).begin(folder / "c", 1, {});
    archive.put_at("w", Place({4}).c(),
                   Tensor(source.data(), kF32, {4}, kDevice, CIUIC_TENSOR_STABLE).c(), &stream);
    EXPECT_EQ(cluster.rank(0).device_calls().copies, 1);
    EXPECT_EQ(cluster.rank(0).device_calls().records, 1);
    archive.commit();
  }
  std::vector<float> read(4);
  cluster.rank(0)
      .open(folder / "c")
      .get_at("w", Place({4}).c(), Tensor(read.data(), kF32, {4}, kDevice).c(), &stream);
  EXPECT_EQ(read, source);
  EXPECT_EQ(cluster.rank(0).device_calls().copies, 2);
}

TEST(Sharded, ABoxThatIsARangeIsTakenAndAnotherRefused) {
  const TemporaryFolder folder;
  Cluster cluster("sharded");
  std::vector<float> data{1, 2, 3, 4, 5, 6};
  const int64_t global[] = {2, 3};
  const auto place = [&](const int64_t* offset, const int64_t* box) {
    return ciuic_place{sizeof(ciuic_place), 0, 2, 0, global, offset, box, 0};
  };
  const int64_t row0[] = {0, 0};
  const int64_t row1[] = {1, 0};
  const int64_t row[] = {1, 3};
  {
    const auto archive = cluster.rank(0).begin(folder / "c", 1, {});
    archive.put_at("w", place(row1, row), Tensor(data.data() + 3, kF32, {1, 3}).c());
    archive.put_at("w", place(row0, row), Tensor(data.data(), kF32, {1, 3}).c());
    archive.commit();
  }
  const auto archive = cluster.rank(0).open(folder / "c");
  std::vector<float> read(6);
  archive.get_at("w", Place({2, 3}).c(), Tensor(read.data(), kF32, {2, 3}).c());
  EXPECT_EQ(read, data);
  archive.get_at("w", place(row1, row), Tensor(read.data(), kF32, {3}).c());
  EXPECT_THAT(read, ElementsAre(4, 5, 6, 4, 5, 6));

  const int64_t column[] = {2, 1};
  const auto error = expect_error(CIUIC_UNIMPLEMENTED, [&] {
    archive.get_at("w", place(row0, column), Tensor(read.data(), kF32, {2, 1}).c());
  });
  EXPECT_THAT(error.what(), HasSubstr("not contiguous"));
  const int64_t outside[] = {1, 1};
  expect_error(CIUIC_INVALID, [&] {
    archive.get_at("w", place(outside, row), Tensor(read.data(), kF32, {3}).c());
  });
}

// docs/checkpoint_format.md shows this checkpoint: the format may not drift away from its
// specification.
TEST(Sharded, TheSpecificationsExampleIsTrue) {
  const TemporaryFolder folder;
  Value w = random_tensor(kF32, {2, 3}, 1);
  const float elements[] = {0, 1, 2, 3, 4, 5};
  w.bytes.assign(reinterpret_cast<const char*>(elements), sizeof(elements));
  ASSERT_FALSE(
      Cluster("sharded", 2).save(folder / "c", 7, {{"value/w", w}, {"config.json", blob("{}")}}));
  const std::string page = read_file(std::string(CIUIC_SOURCE_DIR) + "/docs/checkpoint_format.md");
  EXPECT_THAT(page, HasSubstr("```json\n" + read_file(folder / "c/index.json") + "```"));
}

// ---- refusals ----

TEST(Sharded, MissingElementsFailOnAllRanks) {
  const TemporaryFolder folder;
  const State state = small_state(1);
  const auto errors = Cluster("sharded", 2).run([&](Rank& rank) {
    const auto archive = rank.begin(folder / "c", 1, {});
    archive.put("w", state.at("value/embedding.weight"), rank.rank() * 10,
                rank.rank() == 0 ? 9 : 10);
    archive.commit();
  });
  for (const auto& e : errors) {
    ASSERT_TRUE(e);
    EXPECT_EQ(e->code(), CIUIC_INVALID);
    EXPECT_THAT(e->what(), HasSubstr("w: element 9 of 20 comes from nowhere"));
  }
  EXPECT_TRUE(tree(folder.path()).empty());
}

TEST(Sharded, ElementsPutTwiceNameBothRanks) {
  const TemporaryFolder folder;
  const State state = small_state(1);
  const auto errors = Cluster("sharded", 2).run([&](Rank& rank) {
    const auto archive = rank.begin(folder / "c", 1, {});
    archive.put("w", state.at("value/embedding.weight"), rank.rank() * 9,
                rank.rank() == 0 ? 10 : 11);
    archive.commit();
  });
  ASSERT_TRUE(errors[1]);
  EXPECT_EQ(errors[1]->code(), CIUIC_INVALID);
  EXPECT_THAT(
      errors[1]->what(),
      HasSubstr("element 9 comes from shard-00000-of-00002.safetensors and from shard-00001"));
}

TEST(Sharded, WhatWasAnnouncedMustCome) {
  const TemporaryFolder folder;
  Cluster cluster("sharded");
  const State announced = small_state(1);
  const auto save = [&](const State& put) {
    const auto archive = cluster.rank(0).begin(folder / "c", 1, announced);
    for (const auto& [key, v] : put) {
      archive.put(key, v);
    }
    archive.commit();
  };
  State less = announced;
  less.erase("moment/step");
  EXPECT_THAT(expect_error(CIUIC_INVALID, [&] { save(less); }).what(),
              HasSubstr("moment/step was announced"));
  State more = announced;
  more.emplace("value/more", random_tensor(kF32, {2}, 1));
  EXPECT_THAT(expect_error(CIUIC_INVALID, [&] { save(more); }).what(),
              HasSubstr("value/more was put, but not"));
  State other = announced;
  other["moment/step"] = random_tensor(kF32, {}, 1);
  EXPECT_THAT(expect_error(CIUIC_INVALID, [&] { save(other); }).what(),
              HasSubstr("got F32 [], announced at begin was I64 []"));
  EXPECT_TRUE(tree(folder.path()).empty());
}

TEST(Sharded, RanksThatSaveDifferentThingsAreRefused) {
  const TemporaryFolder folder;
  const auto errors = Cluster("sharded", 3).run([&](Rank& rank) {
    (void)rank.begin(folder / "c", rank.rank() == 2 ? 8 : 7, {});
  });
  for (const auto& e : errors) {
    ASSERT_TRUE(e);
    EXPECT_EQ(e->code(), CIUIC_INVALID);
    EXPECT_THAT(e->what(), HasSubstr("differ between ranks"));
  }
}

TEST(Sharded, AFailureOfOneRankIsNamedOnAll) {
  const TemporaryFolder folder;
  const auto errors = Cluster("sharded", 3).run([&](Rank& rank) {
    const auto archive = rank.begin(folder / "c", 1, {});
    if (rank.rank() == 1) {
      EXPECT_THROW(archive.put(std::string("a\0b", 3), random_tensor(kF32, {1}, 1)), Error);
    }
    archive.commit();
  });
  for (const auto& e : errors) {
    ASSERT_TRUE(e);
    EXPECT_EQ(e->code(), CIUIC_INVALID);
    EXPECT_EQ(e->peer(), 1);
    EXPECT_STREQ(e->what(), "rank 1: key a\\x00b holds a NUL byte");
  }
  EXPECT_TRUE(tree(folder.path()).empty());
}

TEST(Sharded, BadKeysTensorsAndPathsAreRefused) {
  const TemporaryFolder folder;
  Cluster cluster("sharded");
  const Rank& rank = cluster.rank(0);
  const auto put = [&](const std::string& key, const Value& v) {
    const auto archive = rank.begin(folder / "c", 1, {});
    archive.put(key, v);
  };
  const Value v = random_tensor(kF32, {2}, 1);
  expect_error(CIUIC_INVALID, [&] { put("", v); });
  expect_error(CIUIC_INVALID, [&] { put(std::string("a\0", 2), v); });
  expect_error(CIUIC_INVALID, [&] { put("\xff", v); });
  expect_error(CIUIC_INVALID, [&] { put("\xc0\x80", v); });
  expect_error(CIUIC_INVALID, [&] { put("int4", random_tensor({CIUIC_DTYPE_INT, 4, 1}, {2}, 1)); });
  expect_error(CIUIC_INVALID, [&] { (void)rank.begin("", 1, {}); });
  expect_error(CIUIC_INVALID, [&] { (void)rank.begin("/", 1, {}); });
  expect_error(CIUIC_INVALID, [&] { (void)rank.begin(folder / std::string("a\0b", 3), 1, {}); });
  expect_error(CIUIC_UNIMPLEMENTED, [&] { (void)rank.begin("s3://bucket/x", 1, {}); });
  EXPECT_TRUE(tree(folder.path()).empty());
}

TEST(Sharded, GetRefusesWhatIsNotStored) {
  const TemporaryFolder folder;
  ASSERT_FALSE(Cluster("sharded").save(folder / "c", 1, small_state(1)));
  Cluster cluster("sharded");
  const auto archive = cluster.rank(0).open(folder / "c");
  expect_error(CIUIC_NOT_FOUND,
               [&] { (void)archive.get("value/none", random_tensor(kF32, {1}, 1), 0, 1); });
  expect_error(CIUIC_NOT_FOUND, [&] { (void)archive.get_blob("none"); });
  expect_error(CIUIC_NOT_FOUND, [&] { archive.verify("none"); });
  expect_error(CIUIC_INVALID, [&] { (void)archive.get_blob("moment/step"); });
  expect_error(CIUIC_INVALID,
               [&] { (void)archive.get("config.json", random_tensor(kU8, {17}, 1), 0, 17); });
  expect_error(CIUIC_INVALID,
               [&] { (void)archive.get("moment/step", random_tensor(kF64, {}, 1), 0, 1); });
  expect_error(CIUIC_INVALID, [&] {
    (void)archive.get("value/embedding.weight", random_tensor(kF32, {4, 5}, 1), 0, 20);
  });
  expect_error(CIUIC_INVALID, [&] {
    (void)archive.get("value/embedding.weight", random_tensor(kF32, {5, 4}, 1), 1, 20);
  });
  expect_error(CIUIC_PRECONDITION, [&] { archive.commit(); });
}

// ---- life ----

TEST(Sharded, CloseWithoutCommitLeavesNothing) {
  const TemporaryFolder folder;
  Cluster cluster("sharded", 2);
  cluster.run([&](Rank& rank) {
    const auto archive = rank.begin(folder / "c", 1, {});
    archive.put("w", random_tensor(kF32, {4}, 1), rank.rank() * 2, 2);
  });
  EXPECT_TRUE(tree(folder.path()).empty());
}

TEST(Sharded, ASaveIsOverAfterItsCommit) {
  const TemporaryFolder folder;
  Cluster cluster("sharded");
  const auto archive = cluster.rank(0).begin(folder / "c", 1, {});
  archive.commit();
  expect_error(CIUIC_PRECONDITION, [&] { archive.put("w", random_tensor(kF32, {4}, 1)); });
  expect_error(CIUIC_PRECONDITION, [&] { archive.commit(); });
  expect_error(CIUIC_PRECONDITION, [&] { archive.verify(); });
  EXPECT_TRUE(cluster.load(folder / "c").empty());
}

TEST(Sharded, TheSameStepMayBeSavedAgain) {
  const TemporaryFolder folder;
  for (uint32_t round = 1; round <= 3; ++round) {
    for (const int32_t world : {2, 1, 3}) {
      Cluster cluster("sharded", world);
      ASSERT_FALSE(cluster.save(folder / "c/", round, small_state(round)));
      EXPECT_TRUE(cluster.load(folder / "c") == small_state(round));
      EXPECT_NO_THROW(cluster.rank(0).open(folder / "c").verify());
      EXPECT_EQ(tree(folder.path()).size(), 2 + static_cast<size_t>(world)) << "stray files";
    }
  }
}

TEST(Sharded, AReaderOfTheReplacedCheckpointGetsAnErrorNotTheNewBytes) {
  const TemporaryFolder folder;
  Cluster cluster("sharded");
  ASSERT_FALSE(cluster.save(folder / "c", 1, small_state(1)));
  const auto old = cluster.rank(0).open(folder / "c");
  ASSERT_FALSE(cluster.save(folder / "c", 1, small_state(2)));
  expect_error(CIUIC_DATA_LOSS, [&] { (void)old.read(); });
}

TEST(Sharded, WhatIsNotOursIsNeitherReplacedNorRemoved) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "photos");
  write_file(folder / "photos/index.json", "{\"album\":1}");
  write_file(folder / "notes", "text");
  std::filesystem::create_directory(folder / "empty");
  Cluster cluster("sharded");
  expect_error(CIUIC_EXISTS, [&] { (void)cluster.rank(0).begin(folder / "photos", 1, {}); });
  expect_error(CIUIC_EXISTS, [&] { (void)cluster.rank(0).begin(folder / "notes", 1, {}); });
  expect_error(CIUIC_UNIMPLEMENTED, [&] { cluster.rank(0).remove(folder / "photos"); });
  expect_error(CIUIC_UNIMPLEMENTED, [&] { cluster.rank(0).remove(folder / "notes"); });
  expect_error(CIUIC_UNIMPLEMENTED, [&] { cluster.rank(0).remove(folder / "empty"); });
  EXPECT_THAT(tree(folder.path()), ElementsAre("empty", "notes", "photos", "photos/index.json"));
  EXPECT_FALSE(cluster.save(folder / "empty", 1, small_state(1)));
}

TEST(Sharded, RemoveTakesAwayCheckpointAndRests) {
  const TemporaryFolder folder;
  Cluster cluster("sharded");
  ASSERT_FALSE(cluster.save(folder / "c", 1, small_state(1)));
  std::filesystem::create_directory(folder / "c.partial");
  std::filesystem::create_directory(folder / "c.removed");
  cluster.rank(0).remove(folder / "c");
  EXPECT_TRUE(tree(folder.path()).empty());
  expect_error(CIUIC_NOT_FOUND, [&] { cluster.rank(0).remove(folder / "c"); });
}

TEST(Sharded, OpenTellsForeignMissingAndDamagedApart) {
  const TemporaryFolder folder;
  Cluster cluster("sharded");
  const auto open = [&](const std::string& name) {
    return [&, name] { (void)cluster.rank(0).open(folder / name); };
  };
  ASSERT_FALSE(cluster.save(folder / "good", 1, small_state(1)));
  expect_error(CIUIC_NOT_FOUND, open("none"));
  expect_error(CIUIC_NOT_FOUND, open("good/index.json/below"));

  write_file(folder / "file", "text");
  expect_error(CIUIC_UNIMPLEMENTED, open("file"));
  std::filesystem::create_directory(folder / "empty");
  expect_error(CIUIC_UNIMPLEMENTED, open("empty"));
  std::filesystem::create_directory(folder / "foreign");
  write_file(folder / "foreign/index.json", "{\"weight_map\":{}}");
  expect_error(CIUIC_UNIMPLEMENTED, open("foreign"));

  const std::string shard = "/shard-00000-of-00001.safetensors";
  std::filesystem::create_directory(folder / "torn");
  std::filesystem::copy(folder / ("good" + shard), folder / ("torn" + shard));
  EXPECT_THAT(expect_error(CIUIC_DATA_LOSS, open("torn")).what(), HasSubstr("is incomplete"));
  write_file(folder / "torn/index.json", "{}");
  expect_error(CIUIC_DATA_LOSS, open("torn"));
  std::filesystem::create_directory(folder / "killed.partial");
  expect_error(CIUIC_NOT_FOUND, open("killed"));
  std::filesystem::copy(folder / ("good" + shard), folder / ("killed.partial" + shard));
  EXPECT_THAT(expect_error(CIUIC_DATA_LOSS, open("killed")).what(), HasSubstr("is incomplete"));
}

// ---- space ----

TEST(Sharded, TooLittleSpaceIsSaidBeforeAnythingIsWritten) {
  const TemporaryFolder folder;
  FaultPlan plan;
  plan.set_space(1000);
  Cluster cluster("sharded", 2, &plan);
  for (const bool is_announced : {true, false}) {
    const auto error =
        cluster.save(folder / "c", 1, {{"w", random_tensor(kF32, {1 << 20}, 1)}}, is_announced);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), CIUIC_EXHAUSTED);
    EXPECT_THAT(error->what(), HasSubstr("needs "));
    EXPECT_THAT(error->what(), HasSubstr("1000 are free"));
    EXPECT_THAT(plan.log(), ::testing::Not(::testing::Contains(StartsWith("write "))));
    EXPECT_TRUE(tree(folder.path()).empty());
  }
}

TEST(Sharded, AFullDiskKeepsTheOldCheckpoint) {
  const TemporaryFolder folder;
  if (::geteuid() != 0 || ::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=4m") != 0) {
    GTEST_SKIP() << "mounting a small tmpfs needs root";
  }
  {
    FaultPlan plan;
    Cluster cluster("sharded", 2, &plan);
    const State first = {{"w", random_tensor(kF32, {600000}, 1)}};
    const State second = {{"w", random_tensor(kF32, {600000}, 2)}};
    EXPECT_FALSE(cluster.save(folder / "a", 1, first));
    for (const uint64_t lie : {uint64_t{0}, uint64_t{1} << 40}) {  // 0: the truth
      if (lie != 0) {
        plan.set_space(lie);
      }
      const auto error = cluster.save(folder / "b", 2, second);
      EXPECT_TRUE(error);
      if (error) {
        EXPECT_EQ(error->code(), CIUIC_EXHAUSTED) << error->what();
        EXPECT_THAT(error->what(), HasSubstr(lie == 0 ? "are free" : "No space left on device"));
      }
      EXPECT_EQ(tree(folder.path()).size(), 4U) << "stray files";
      EXPECT_TRUE(cluster.load(folder / "a") == first);
    }
  }
  ::umount(folder.path().c_str());
}

}  // namespace
}  // namespace ciuic::test
