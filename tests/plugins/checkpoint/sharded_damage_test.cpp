// SPDX-License-Identifier: MIT
//
// Damaged and hostile checkpoints: an error, never other bytes than were saved, never a crash.
#include <cstring>
#include <filesystem>
#include <random>

#include <gmock/gmock.h>
#include <xxhash.h>

#include "checkpoint_host.h"

namespace ciuic::test {
namespace {

using ::testing::HasSubstr;

class ShardedDamage : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_FALSE(Cluster("sharded", 2).save(uri_, 1, state_)); }

  /// Reads everything by whole pieces and in parts; what is delivered must be what was saved.
  /// Returns whether all of it was delivered.
  bool is_all_delivered() {
    try {
      const auto archive = reader_.rank(0).open(uri_);
      EXPECT_TRUE(archive.list().size() == state_.size());
      bool is_all = true;
      for (const auto& [key, v] : state_) {
        try {
          if (v.is_blob) {
            EXPECT_EQ(archive.get_blob(key), v.bytes);
            continue;
          }
          const int64_t n = v.elements();
          EXPECT_EQ(archive.get(key, v, 0, n), v.bytes) << key;
          if (n > 1) {
            EXPECT_EQ(archive.get(key, v, 1, n - 1),
                      v.bytes.substr(static_cast<size_t>(dtype_bytes(v.dtype))));
          }
        } catch (const Error& e) {
          EXPECT_EQ(e.code(), CIUIC_DATA_LOSS) << e.what();
          is_all = false;
        }
      }
      return is_all;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), CIUIC_DATA_LOSS) << e.what();
      return false;
    }
  }

  bool is_verified() {
    try {
      reader_.rank(0).open(uri_).verify();
      return true;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), CIUIC_DATA_LOSS) << e.what();
      return false;
    }
  }

  std::vector<std::string> files() {
    return {uri_ + "/index.json", uri_ + "/shard-00000-of-00002.safetensors",
            uri_ + "/shard-00001-of-00002.safetensors"};
  }

  TemporaryFolder folder_;
  std::string uri_ = folder_ / "c";
  State state_ = small_state(1);
  Cluster reader_{"sharded"};
};

TEST_F(ShardedDamage, EveryFlippedByteIsFound) {
  for (const std::string& file : files()) {
    const std::string good = read_file(file);
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
      write_file(file, bad);
      EXPECT_FALSE(is_verified()) << file << " byte " << i;
      (void)is_all_delivered();
      if (HasFailure()) {
        return;
      }
    }
    write_file(file, good);
  }
  EXPECT_TRUE(is_verified());
  EXPECT_TRUE(is_all_delivered());
}

TEST_F(ShardedDamage, EveryTruncationIsFound) {
  for (const std::string& file : files()) {
    const std::string good = read_file(file);
    for (size_t bytes = 0; bytes < good.size(); ++bytes) {
      write_file(file, good.substr(0, bytes));
      EXPECT_FALSE(is_all_delivered()) << file << " cut to " << bytes;
    }
    write_file(file, good + '\0');
    EXPECT_FALSE(is_all_delivered());
    write_file(file, std::string(good.size(), '\0'));
    EXPECT_FALSE(is_all_delivered());
    write_file(file, good);
  }
}

TEST_F(ShardedDamage, AMissingFileIsNamed) {
  for (const std::string& file : files()) {
    const std::string good = read_file(file);
    std::filesystem::remove(file);
    const auto error = expect_error(CIUIC_DATA_LOSS, [&] { (void)reader_.rank(0).open(uri_); });
    EXPECT_THAT(error.what(), HasSubstr(std::filesystem::path(file).filename().string()));
    write_file(file, good);
  }
}

TEST_F(ShardedDamage, AFileThatGoesMissingWhileOpenIsDamageNotAMissingKey) {
  const auto archive = reader_.rank(0).open(uri_);
  std::filesystem::remove(files()[1]);
  std::filesystem::remove(files()[2]);
  expect_error(CIUIC_DATA_LOSS, [&] { (void)archive.get_blob("config.json"); });
}

TEST_F(ShardedDamage, ShardsOfAnotherStepOrRankAreFound) {
  ASSERT_FALSE(
      Cluster("sharded", 2).save(folder_ / "later", 2, state_));  // the same values at another step
  const std::string good = read_file(files()[1]);
  write_file(files()[1], read_file(folder_ / "later/shard-00000-of-00002.safetensors"));
  EXPECT_THAT(expect_error(CIUIC_DATA_LOSS, [&] { reader_.rank(0).open(uri_).verify(); }).what(),
              HasSubstr("its step is 2, the index says 1"));
  write_file(files()[1], good);

  const State equal = {{"w", random_tensor(kF32, {8}, 5)}};
  ASSERT_FALSE(Cluster("sharded", 2).save(uri_, 1, equal));
  const std::string first = uri_ + "/shard-00000-of-00002.r1.safetensors";
  const std::string second = uri_ + "/shard-00001-of-00002.r1.safetensors";
  ASSERT_EQ(std::filesystem::file_size(first), std::filesystem::file_size(second));
  std::filesystem::rename(first, folder_ / "x");
  std::filesystem::rename(second, first);
  std::filesystem::rename(folder_ / "x", second);
  expect_error(CIUIC_DATA_LOSS, [&] { reader_.rank(0).open(uri_).verify(); });
  expect_error(CIUIC_DATA_LOSS,
               [&] { (void)reader_.rank(0).open(uri_).get("w", equal.at("w"), 0, 8); });
  expect_error(CIUIC_DATA_LOSS,
               [&] { (void)reader_.rank(0).open(uri_).get("w", equal.at("w"), 1, 2); });
}

// ---- hostile indexes, with a right checksum ----

struct Edit {
  const char* name;
  const char* from;
  const char* to;
  const char* reason;
};

void PrintTo(const Edit& edit, std::ostream* out) { *out << edit.name; }

class HostileIndex : public ShardedDamage, public ::testing::WithParamInterface<Edit> {};

std::string sign(std::string text) {
  text.resize(text.rfind("\"xxh64\":\""));
  char sum[17];
  std::snprintf(sum, sizeof(sum), "%016llx",
                static_cast<unsigned long long>(XXH64(text.data(), text.size(), 0)));
  return text + "\"xxh64\":\"" + sum + "\"}\n";
}

TEST_P(HostileIndex, IsRefusedForItsReason) {
  std::string text = read_file(files()[0]);
  const size_t at = text.find(GetParam().from);
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, std::strlen(GetParam().from), GetParam().to);
  write_file(files()[0], sign(text));
  const int32_t code =
      std::string_view(GetParam().name) == "Version" ? CIUIC_UNIMPLEMENTED : CIUIC_DATA_LOSS;
  EXPECT_THAT(expect_error(code, [&] { (void)reader_.rank(0).open(uri_); }).what(),
              HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    Edits, HostileIndex,
    ::testing::Values(
        Edit{"Version", "\"version\":1", "\"version\":2", "version 2, this plugin reads version 1"},
        Edit{"DuplicateName", "\"step\":1", "\"step\":1,\"step\":2", "\"step\" stands twice"},
        Edit{"NegativeStep", "\"step\":1", "\"step\":-1", "\"step\" is -1"},
        Edit{"World", "\"world\":2", "\"world\":3", "2 files of 3 ranks"},
        Edit{"ParentFile", "\"name\":\"shard-00000", "\"name\":\"../shard-00000",
             "no name of a file"},
        Edit{"AbsoluteFile", "\"name\":\"shard-00000", "\"name\":\"/shard-00000",
             "no name of a file"},
        Edit{"NulFile", "\"name\":\"shard-00000", "\"name\":\"\\u0000shard-00000",
             "no name of a file"},
        Edit{"SameFile", "\"name\":\"shard-00001", "\"name\":\"shard-00000", "listed twice"},
        Edit{"SameKey", "\"key\":\"train.json\"", "\"key\":\"config.json\"", "listed twice"},
        Edit{"NoSuchFile", "{\"file\":0", "{\"file\":2", "file number 2 of 2"},
        Edit{"HugeFile", "{\"file\":0", "{\"file\":18446744073709551615", "file number"},
        Edit{"UnknownType", "\"dtype\":\"F32\"", "\"dtype\":\"F31\"", "unknown dtype"},
        Edit{"HugeShape", "\"shape\":[5,4]", "\"shape\":[4611686018427387904,4]", "overflows"},
        Edit{"NegativeShape", "\"shape\":[5,4]", "\"shape\":[-5,-4]", "from 0 to 2^63-1"},
        Edit{"FloatShape", "\"shape\":[5,4]", "\"shape\":[5.0,4]", "from 0 to 2^63-1"},
        Edit{"LargerShape", "\"shape\":[5,4]", "\"shape\":[5,5]",
             "element 20 of 25 comes from nowhere"},
        Edit{"Hole", "\"begin\":10", "\"begin\":9", "comes from"},
        Edit{"OffsetBeyond", "\"offset\":", "\"offset\":9", "of a file of"},
        Edit{"HugeElements", "\"elements\":10", "\"elements\":9223372036854775807", "of 20"},
        Edit{"BadChecksum", "\"xxh64\":\"", "\"xxh64\":\"+", "expected 16 hex digits"},
        Edit{"BlobThatIsNone", "\"blob\":true", "\"blob\":false",
             "a blob that is no list of bytes"},
        Edit{"NoEntries", "\"entries\":[", "\"entries\":7,\"other\":[", "\"entries\" is a number"},
        Edit{"NoJson", "\"files\":[", "\"files\":[[", "no valid JSON"}),
    [](const auto& test) { return std::string(test.param.name); });

// Any change, under a right checksum: an error, or values; never a crash.
TEST_F(ShardedDamage, MutatedIndexesNeverCrash) {
  const std::string good = read_file(files()[0]);
  constexpr uint32_t kSeed = 20250102;
  std::mt19937 random(kSeed);
  const std::string alphabet = "{}[]\",:0123456789-.e";
  for (int i = 0; i < 4000; ++i) {
    std::string bad = good;
    for (uint32_t k = 0; k <= random() % 3; ++k) {
      bad[random() % (bad.size() - 40)] = alphabet[random() % alphabet.size()];
    }
    write_file(files()[0], sign(bad));
    try {
      const auto archive = reader_.rank(0).open(uri_);
      archive.verify();
      (void)archive.read();
    } catch (const Error& e) {
      ASSERT_TRUE(e.code() == CIUIC_DATA_LOSS || e.code() == CIUIC_UNIMPLEMENTED)
          << "seed " << kSeed << " round " << i << ": " << e.what();
    }
  }
}

TEST_F(ShardedDamage, DeepJsonIsRefused) {
  std::string text =
      "{\"format\":\"ciuic-sharded\",\"version\":1,\"files\":" + std::string(100000, '[') + "\n";
  write_file(files()[0], sign(text + "\"xxh64\":\""));
  EXPECT_THAT(expect_error(CIUIC_DATA_LOSS, [&] { (void)reader_.rank(0).open(uri_); }).what(),
              HasSubstr("nested deeper"));
}

}  // namespace
}  // namespace ciuic::test
