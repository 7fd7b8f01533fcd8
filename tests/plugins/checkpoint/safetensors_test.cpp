// SPDX-License-Identifier: MIT
//
// Plain files and Hugging Face folders.
#include <filesystem>

#include <gmock/gmock.h>

#include "checkpoint_host.h"

namespace ciuic::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

State model() {
  return {{"config.json", blob("{\"hidden_size\":4}")},
          {"value/model.embed_tokens.weight", random_tensor(kF32, {16, 4}, 1)},
          {"value/model.norm.weight", random_tensor(kF32, {4}, 2)},
          {"value/lm_head.weight", random_tensor(kF32, {16, 4}, 3)}};
}

// ---- one file ----

TEST(SafetensorsFile, RoundTripIsBitExact) {
  const TemporaryFolder folder;
  State state = {{"__metadata__", blob("{\"format\":\"pt\",\"note\":\"x\"}")}};
  uint32_t seed = 0;
  for (const ciuic_dtype dtype :
       {kF64, kF32, kF16, kBF16, kI64, kI32, kU8, ciuic_dtype{CIUIC_DTYPE_BOOL, 8, 1},
        ciuic_dtype{CIUIC_DTYPE_FLOAT8_E4M3FN, 8, 1}}) {
    for (const auto& shape :
         std::vector<std::vector<int64_t>>{{}, {0}, {3}, {2, 0, 3}, {2, 3, 5}}) {
      ++seed;
      state.emplace("t" + std::to_string(seed), random_tensor(dtype, shape, seed));
    }
  }
  state.emplace("../up", random_tensor(kF32, {3}, 1));
  Cluster cluster("safetensors");
  ASSERT_FALSE(cluster.save(folder / "a.safetensors", 1, state));
  EXPECT_TRUE(cluster.load(folder / "a.safetensors") == state);
  EXPECT_NO_THROW(cluster.rank(0).open(folder / "a.safetensors").verify());
  EXPECT_THAT(tree(folder.path()), ElementsAre("a.safetensors"));
}

TEST(SafetensorsFile, ReplacesAFileAndSparesAFolder) {
  const TemporaryFolder folder;
  Cluster cluster("safetensors");
  const State first = {{"w", random_tensor(kF32, {3}, 1)}};
  const State second = {{"w", random_tensor(kF32, {4}, 2)}};
  ASSERT_FALSE(cluster.save(folder / "a.safetensors", 1, first));
  ASSERT_FALSE(cluster.save(folder / "a.safetensors", 1, second));
  EXPECT_TRUE(cluster.load(folder / "a.safetensors") == second);
  std::filesystem::create_directory(folder / "b.safetensors");
  EXPECT_EQ(cluster.save(folder / "b.safetensors", 1, first)->code(), CIUIC_EXISTS);
}

TEST(SafetensorsFile, PiecesMayComeInAnyOrder) {
  const TemporaryFolder folder;
  const Value w = random_tensor(kF32, {10}, 1);
  Cluster cluster("safetensors");
  {
    const auto archive = cluster.rank(0).begin(folder / "a.safetensors", 1, {});
    archive.put("w", w, 7, 3);
    archive.put("w", w, 0, 2);
    archive.put("w", w, 2, 5);
    archive.commit();
  }
  EXPECT_EQ(cluster.load(folder / "a.safetensors").at("w").bytes, w.bytes);
}

TEST(SafetensorsFile, HoldsTensorsAndMetadataOnly) {
  const TemporaryFolder folder;
  Cluster cluster("safetensors");
  const auto save = [&](const State& state, bool is_announced) {
    const auto error = cluster.save(folder / "a.safetensors", 1, state, is_announced);
    return error ? error->code() : CIUIC_OK;
  };
  for (const bool is_announced : {true, false}) {
    EXPECT_EQ(save({{"config.json", blob("{}")}}, is_announced), CIUIC_UNIMPLEMENTED);
    EXPECT_EQ(save({{"__metadata__", random_tensor(kF32, {1}, 1)}}, is_announced),
              CIUIC_UNIMPLEMENTED);
    EXPECT_EQ(save({{"__metadata__", blob("{\"a\":1}")}}, is_announced), CIUIC_INVALID);
    EXPECT_EQ(save({{"__metadata__", blob("no json")}}, is_announced), CIUIC_INVALID);
  }
  EXPECT_TRUE(tree(folder.path()).empty());
}

// ---- a model folder ----

TEST(SafetensorsFolder, RoundTripIsBitExact) {
  const TemporaryFolder folder;
  Cluster cluster("safetensors");
  ASSERT_FALSE(cluster.save(folder / "hf", 1, model()));
  EXPECT_TRUE(cluster.load(folder / "hf") == model());
  EXPECT_TRUE(Cluster("safetensors", 3).load(folder / "hf") == model());
  EXPECT_THAT(tree(folder.path()), ElementsAre("hf", "hf/config.json", "hf/model.safetensors"));
  EXPECT_EQ(read_file(folder / "hf/config.json"), "{\"hidden_size\":4}");
  const State plain = cluster.load(folder / "hf/model.safetensors");
  EXPECT_EQ(plain.at("lm_head.weight").bytes, model().at("value/lm_head.weight").bytes);
  EXPECT_EQ(plain.at("__metadata__").bytes, "{\"format\":\"pt\"}");
}

TEST(SafetensorsFolder, HoldsValuesOnly) {
  const TemporaryFolder folder;
  Cluster cluster("safetensors");
  for (const bool is_announced : {true, false}) {
    for (const std::string& key :
         {std::string("moment/exp_avg/w"), std::string("master/w"), std::string("value/")}) {
      State state = model();
      state.emplace(key, random_tensor(kF32, {2}, 1));
      const auto error = cluster.save(folder / "hf", 1, state, is_announced);
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), CIUIC_UNIMPLEMENTED);
      EXPECT_THAT(error->what(), HasSubstr("safetensors holds values only; got " + key +
                                           "; use sharded for training"));
    }
    State state = model();
    state.emplace("train.json", blob("{}"));
    EXPECT_EQ(cluster.save(folder / "hf", 1, state, is_announced)->code(), CIUIC_UNIMPLEMENTED);
    state = model();
    state.emplace("value/__metadata__", random_tensor(kF32, {2}, 1));
    EXPECT_EQ(cluster.save(folder / "hf", 1, state, is_announced)->code(), CIUIC_INVALID);
    state = model();
    state.erase("config.json");
    EXPECT_EQ(cluster.save(folder / "hf", 1, state, is_announced)->code(), CIUIC_INVALID);
  }
  EXPECT_TRUE(tree(folder.path()).empty());
}

TEST(SafetensorsFolder, MissingElementsAreNamed) {
  const TemporaryFolder folder;
  Cluster cluster("safetensors");
  const auto archive = cluster.rank(0).begin(folder / "hf", 1, {});
  archive.put("config.json", blob("{}"));
  archive.put("value/w", random_tensor(kF32, {10}, 1), 0, 9);
  EXPECT_THAT(expect_error(CIUIC_INVALID, [&] { archive.commit(); }).what(),
              HasSubstr("value/w: element 9 of 10 comes from nowhere"));
}

TEST(SafetensorsFolder, AFolderIsNotReplaced) {
  const TemporaryFolder folder;
  Cluster cluster("safetensors");
  ASSERT_FALSE(cluster.save(folder / "hf", 1, model()));
  EXPECT_EQ(cluster.save(folder / "hf", 1, model())->code(), CIUIC_EXISTS);
  EXPECT_TRUE(cluster.load(folder / "hf") == model());
}

TEST(SafetensorsFolder, RankZeroMayPutAllAndOthersNothing) {
  const TemporaryFolder folder;
  Cluster cluster("safetensors", 2);
  const auto save = [&](bool is_shared) {
    return cluster.run([&, is_shared](Rank& rank) {
      const auto archive = rank.begin(folder / "hf", 1, model());
      for (const auto& [key, v] : model()) {
        if (rank.rank() == 0) {
          archive.put(key, v);
        } else if (is_shared && !v.is_blob) {
          archive.put(key, v, 0, 1);
        } else if (!v.is_blob) {
          archive.put(key, v, 0, 0);  // a share without elements is nothing
        }
      }
      archive.commit();
    });
  };
  for (const auto& e : save(true)) {
    ASSERT_TRUE(e);
    EXPECT_EQ(e->code(), CIUIC_UNIMPLEMENTED);
    EXPECT_THAT(e->what(), HasSubstr("rank 1 of 2 put value/"));
  }
  for (const auto& e : save(false)) {
    EXPECT_FALSE(e);
  }
  EXPECT_TRUE(cluster.load(folder / "hf") == model());
}

TEST(SafetensorsFolder, AModelInSeveralFilesIsRead) {
  const TemporaryFolder folder;
  Cluster cluster("safetensors");
  std::filesystem::create_directory(folder / "hf");
  const std::string index = folder / "hf/model.safetensors.index.json";
  const State first = {{"a", random_tensor(kF32, {3}, 1)}, {"b", random_tensor(kBF16, {2}, 2)}};
  const State second = {{"c", random_tensor(kF32, {5}, 3)}};
  ASSERT_FALSE(cluster.save(folder / "hf/model-00001-of-00002.safetensors", 1, first));
  ASSERT_FALSE(cluster.save(folder / "hf/model-00002-of-00002.safetensors", 1, second));
  write_file(folder / "hf/config.json", "{}");
  const auto map = [&](const std::string& entries) {
    write_file(index, "{\"metadata\":{},\"weight_map\":" + entries + "}");
  };
  const std::string good =
      "\"a\":\"model-00001-of-00002.safetensors\",\"b\":\"model-00001-of-00002.safetensors\"";
  map("{" + good + ",\"c\":\"model-00002-of-00002.safetensors\"}");
  const State state = cluster.load(folder / "hf");
  EXPECT_EQ(state.size(), 4U);
  EXPECT_EQ(state.at("value/b").bytes, first.at("b").bytes);
  EXPECT_TRUE(same(state.at("value/b").dtype, kBF16));
  EXPECT_EQ(state.at("value/c").bytes, second.at("c").bytes);
  EXPECT_NO_THROW(cluster.rank(0).open(folder / "hf").verify());

  const auto refused = [&](const std::string& entries, const char* reason) {
    map(entries);
    EXPECT_THAT(
        expect_error(CIUIC_DATA_LOSS, [&] { (void)cluster.rank(0).open(folder / "hf"); }).what(),
        HasSubstr(reason));
  };
  refused("[]", "\"weight_map\" is no object");
  refused("{" + good + ",\"c\":3}", "no name of a file");
  refused("{" + good + ",\"c\":\"../x.safetensors\"}", "no name of a file");
  refused("{" + good + ",\"c\":\"/etc/passwd\"}", "no name of a file");
  refused("{" + good + ",\"c\":\"a\\u0000b\"}", "no name of a file");
  refused("{" + good + ",\"c\":\"..\"}", "no name of a file");
  refused("{" + good + ",\"c\":\"model-3.safetensors\"}", "model-3.safetensors: missing");
  refused("{" + good + ",\"c\":\"model-00001-of-00002.safetensors\"}", "\"c\" is not in");
  refused("{\"a\":\"model-00001-of-00002.safetensors\"}", "names 1 tensors, the files hold 2");
  refused("{" + good + "," + good + "}", "stands twice");
}

TEST(SafetensorsFolder, OpenTellsForeignMissingAndDamagedApart) {
  const TemporaryFolder folder;
  Cluster cluster("safetensors");
  const auto open = [&](const std::string& name) {
    return [&, name] { (void)cluster.rank(0).open(folder / name); };
  };
  expect_error(CIUIC_NOT_FOUND, open("none"));
  expect_error(CIUIC_NOT_FOUND, open("none.safetensors"));
  std::filesystem::create_directory(folder / "empty");
  expect_error(CIUIC_UNIMPLEMENTED, open("empty"));
  write_file(folder / "empty/config.json", "{}");
  expect_error(CIUIC_UNIMPLEMENTED, open("empty"));
  std::filesystem::create_directory(folder / "dir.safetensors");
  expect_error(CIUIC_UNIMPLEMENTED, open("dir.safetensors"));
  write_file(folder / "text", "hello");
  expect_error(CIUIC_UNIMPLEMENTED, open("text"));
  ASSERT_FALSE(Cluster("sharded").save(folder / "sharded", 1, small_state(1)));
  expect_error(CIUIC_UNIMPLEMENTED, open("sharded"));

  ASSERT_FALSE(cluster.save(folder / "hf", 1, model()));
  expect_error(CIUIC_UNIMPLEMENTED, [&] { (void)Cluster("sharded").rank(0).open(folder / "hf"); });
  const std::string good = read_file(folder / "hf/model.safetensors");
  write_file(folder / "hf/model.safetensors", good.substr(0, good.size() - 1));
  expect_error(CIUIC_DATA_LOSS, open("hf"));
  write_file(folder / "hf/model.safetensors", good);
  write_file(folder / "hf/config.json", "{\"cut\":");
  expect_error(CIUIC_DATA_LOSS, open("hf"));
}

TEST(SafetensorsFolder, AFileThatShrinksWhileOpenIsAnError) {
  const TemporaryFolder folder;
  Cluster cluster("safetensors");
  ASSERT_FALSE(cluster.save(folder / "hf", 1, model()));
  const auto archive = cluster.rank(0).open(folder / "hf");
  const std::string good = read_file(folder / "hf/model.safetensors");
  write_file(folder / "hf/model.safetensors", good.substr(0, good.size() - 300));
  expect_error(CIUIC_DATA_LOSS, [&] { archive.verify(); });
  expect_error(CIUIC_DATA_LOSS, [&] { (void)archive.read(); });
}

TEST(SafetensorsFolder, GetRefusesWhatIsNotStored) {
  const TemporaryFolder folder;
  Cluster cluster("safetensors");
  ASSERT_FALSE(cluster.save(folder / "hf", 1, model()));
  const auto archive = cluster.rank(0).open(folder / "hf");
  const Value w = model().at("value/model.norm.weight");
  EXPECT_EQ(archive.get("value/model.norm.weight", w, 1, 2), w.bytes.substr(4, 8));
  expect_error(CIUIC_NOT_FOUND, [&] { (void)archive.get("value/none", w, 0, 1); });
  expect_error(CIUIC_NOT_FOUND, [&] { (void)archive.get_blob("train.json"); });
  expect_error(CIUIC_INVALID, [&] {
    (void)archive.get("value/model.norm.weight", random_tensor(kBF16, {4}, 1), 0, 4);
  });
  expect_error(CIUIC_INVALID, [&] {
    (void)archive.get("value/model.norm.weight", random_tensor(kF32, {2, 2}, 1), 0, 4);
  });
  expect_error(CIUIC_INVALID, [&] { (void)archive.get("value/model.norm.weight", w, 2, 3); });
}

TEST(SafetensorsFolder, RemoveTakesOnlyWhatItCanRead) {
  const TemporaryFolder folder;
  Cluster cluster("safetensors");
  ASSERT_FALSE(cluster.save(folder / "hf", 1, model()));
  ASSERT_FALSE(cluster.save(folder / "a.safetensors", 1, {{"w", random_tensor(kF32, {3}, 1)}}));
  std::filesystem::create_directory(folder / "other");
  cluster.rank(0).remove(folder / "hf");
  cluster.rank(0).remove(folder / "a.safetensors");
  expect_error(CIUIC_UNIMPLEMENTED, [&] { cluster.rank(0).remove(folder / "other"); });
  expect_error(CIUIC_NOT_FOUND, [&] { cluster.rank(0).remove(folder / "hf"); });
  EXPECT_THAT(tree(folder.path()), ElementsAre("other"));
}

TEST(SafetensorsFolder, TooLittleSpaceIsSaidFirst) {
  const TemporaryFolder folder;
  FaultPlan plan;
  plan.set_space(100);
  Cluster cluster("safetensors", 1, &plan);
  const auto error = cluster.save(folder / "hf", 1, model());
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), CIUIC_EXHAUSTED);
  EXPECT_THAT(error->what(), HasSubstr("100 are free"));
  EXPECT_TRUE(tree(folder.path()).empty());
}

}  // namespace
}  // namespace ciuic::test
