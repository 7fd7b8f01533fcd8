// SPDX-License-Identifier: MIT
//
// Safetensors files that lie (field bug B048): each is refused for its own reason, and what is
// legal though odd is read.
#include <chrono>
#include <cstdint>
#include <random>

#include <gmock/gmock.h>

#include "checkpoint_host.h"

namespace ciuic::test {
namespace {

using ::testing::HasSubstr;

std::string length_bytes(uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes += static_cast<char>((length >> (8 * i)) & 0xff);
  }
  return bytes;
}

/// A file with this header and so many bytes of data.
std::string file_of(const std::string& header, size_t data_bytes) {
  return length_bytes(header.size()) + header + std::string(data_bytes, 'd');
}

std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

/// "[1,1,...]"
std::string ones(int count) {
  std::string text = "[1";
  for (int i = 1; i < count; ++i) {
    text += ",1";
  }
  return text + "]";
}

struct Case {
  std::string name;
  std::string bytes;
  std::string reason;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> hostile() {
  const std::string good = tensor("F32", "[2]", "[0,8]");
  return {
      {"EmptyFile", "", "0 bytes, expected at least 8"},
      {"SevenBytes", "1234567", "7 bytes, expected at least 8"},
      {"LengthZero", length_bytes(0) + "{}", "header is empty"},
      {"LengthMax", length_bytes(UINT64_MAX) + "{}",
       "18446744073709551615 bytes, expected at most"},
      {"LengthBeyondFile", length_bytes(100) + "{}", "a header of 100 bytes in a file of 10"},
      {"LengthOneBeyondFile", length_bytes(3) + "{}", "a header of 3 bytes in a file of 10"},
      {"LengthOver100MB", length_bytes(100'000'001) + "{}", "expected at most 100000000"},
      {"LengthSignBit", length_bytes(uint64_t{1} << 63) + "{}",
       "9223372036854775808 bytes, expected at most"},
      {"StartsWithSpace", file_of(" {}", 0), "starts with \" \""},
      {"StartsWithArray", file_of("[]", 0), "starts with \"[\""},
      {"StartsWithMark", file_of("\xef\xbb\xbf{}", 0), "starts with \"\\xef\""},
      {"TextAfterJson", file_of("{}x", 0), "no valid JSON at byte"},
      {"TwoObjects", file_of("{}{}", 0), "no valid JSON at byte"},
      {"NulAfterJson", file_of(std::string("{}\0{}", 5), 0), "NUL byte at 2"},
      {"CutJson", file_of("{\"w\":" + good, 8), "no valid JSON"},
      {"TrailingComma", file_of("{\"w\":" + good + ",}", 8), "no valid JSON"},
      {"Comment", file_of("{/* */\"w\":" + good + "}", 8), "no valid JSON"},
      {"BadUtf8", file_of("{\"\xff\":" + good + "}", 8), "no valid JSON"},
      {"OverlongUtf8", file_of("{\"\xc0\xaf\":" + good + "}", 8), "no valid JSON"},
      {"LoneSurrogate", file_of("{\"\\ud800\":" + good + "}", 8), "no valid JSON"},
      {"NulInName", file_of("{\"a\\u0000b\":" + good + "}", 8), "\"a\\x00b\" holds a NUL"},
      {"DuplicateTensor",
       file_of("{\"w\":" + good + ",\"w\":" + tensor("F32", "[2]", "[8,16]") + "}", 16),
       "\"w\" stands twice"},
      {"DuplicateByEscape",
       file_of("{\"w\":" + good + ",\"\\u0077\":" + tensor("F32", "[2]", "[8,16]") + "}", 16),
       "\"w\" stands twice"},
      {"DuplicateField",
       file_of("{\"w\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
               8),
       "\"dtype\" stands twice"},
      {"DuplicateMetadata", file_of("{\"__metadata__\":{},\"__metadata__\":{}}", 0),
       "\"__metadata__\" stands twice"},
      {"DuplicateMetadataName", file_of("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0),
       "\"a\" stands twice"},
      {"MetadataNumber", file_of("{\"__metadata__\":{\"a\":1}}", 0),
       "\"a\" is a number, expected a string"},
      {"MetadataNested", file_of("{\"__metadata__\":{\"a\":{}}}", 0),
       "\"a\" is an object, expected a string"},
      {"MetadataList", file_of("{\"__metadata__\":[]}", 0), "__metadata__ is a list"},
      {"MetadataNull", file_of("{\"__metadata__\":null}", 0), "__metadata__ is null"},
      {"TensorIsNumber", file_of("{\"w\":3}", 0), "described by a number"},
      {"TensorIsList", file_of("{\"w\":[]}", 0), "described by a list"},
      {"NoDtype", file_of("{\"w\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8), "dtype is missing"},
      {"NoShape", file_of("{\"w\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8),
       "shape is missing"},
      {"NoOffsets", file_of("{\"w\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8),
       "data_offsets is missing"},
      {"UnknownDtype", file_of("{\"w\":" + tensor("F128", "[2]", "[0,8]") + "}", 8),
       "unknown dtype \"F128\""},
      {"LowerCaseDtype", file_of("{\"w\":" + tensor("f32", "[2]", "[0,8]") + "}", 8),
       "unknown dtype \"f32\""},
      {"DtypeNumber", file_of("{\"w\":{\"dtype\":3,\"shape\":[2],\"data_offsets\":[0,8]}}", 8),
       "dtype is a number"},
      {"ShapeString",
       file_of("{\"w\":{\"dtype\":\"F32\",\"shape\":\"2\",\"data_offsets\":[0,8]}}", 8),
       "shape is a string"},
      {"ShapeNegative", file_of("{\"w\":" + tensor("F32", "[-1,-2]", "[0,8]") + "}", 8),
       "shape holds the negative number -1"},
      {"ShapeFloat", file_of("{\"w\":" + tensor("F32", "[2.0]", "[0,8]") + "}", 8),
       "shape holds the number 2.0"},
      {"ShapeNested", file_of("{\"w\":" + tensor("F32", "[[2]]", "[0,8]") + "}", 8),
       "shape holds a list"},
      {"ShapeOverflow",
       file_of("{\"w\":" + tensor("F32", "[4611686018427387904,4]", "[0,8]") + "}", 8),
       "overflows 63 bits"},
      {"ShapeWrapsToZero",
       file_of("{\"w\":" + tensor("U8", "[4294967296,4294967296]", "[0,0]") + "}", 0),
       "overflows 63 bits"},
      {"BytesOverflow",
       file_of("{\"w\":" + tensor("F64", "[2305843009213693952]", "[0,0]") + "}", 0),
       "overflows 63 bits"},
      {"EmptyButOverflows",
       file_of("{\"w\":" + tensor("F32", "[0,4611686018427387904,4]", "[0,0]") + "}", 0),
       "overflows 63 bits"},
      {"DimensionBeyond63Bits",
       file_of("{\"w\":" + tensor("U8", "[18446744073709551615]", "[0,8]") + "}", 8),
       "does not fit 63 bits"},
      {"DimensionBeyond64Bits",
       file_of("{\"w\":" + tensor("U8", "[18446744073709551616]", "[0,8]") + "}", 8),
       "beyond 64 bits"},
      {"ManyDimensions", file_of("{\"w\":" + tensor("U8", ones(500), "[0,1]") + "}", 1),
       "more than 64 dimensions"},
      {"OffsetsReversed", file_of("{\"w\":" + tensor("F32", "[2]", "[8,0]") + "}", 8),
       "are reversed"},
      {"OffsetsNegative", file_of("{\"w\":" + tensor("F32", "[2]", "[-8,0]") + "}", 8),
       "data_offsets holds the negative number -8"},
      {"OffsetsFloat", file_of("{\"w\":" + tensor("F32", "[2]", "[0,8.0]") + "}", 8),
       "data_offsets holds the number 8.0"},
      {"OffsetsExponent", file_of("{\"w\":" + tensor("F32", "[2]", "[0,8e0]") + "}", 8),
       "data_offsets holds the number 8e0"},
      {"OffsetsOne", file_of("{\"w\":" + tensor("F32", "[2]", "[8]") + "}", 8),
       "data_offsets has 1 numbers"},
      {"OffsetsThree", file_of("{\"w\":" + tensor("F32", "[2]", "[0,8,8]") + "}", 8),
       "data_offsets has 3 numbers"},
      {"OffsetsString", file_of("{\"w\":" + tensor("F32", "[2]", "[\"0\",8]") + "}", 8),
       "data_offsets holds a string"},
      {"OffsetsNull", file_of("{\"w\":" + tensor("F32", "[2]", "null") + "}", 8),
       "data_offsets is null"},
      {"OffsetsTooLong", file_of("{\"w\":" + tensor("F32", "[2]", "[0,9]") + "}", 9),
       "hold 9 bytes, F32 [2] needs 8 bytes"},
      {"OffsetsTooShort", file_of("{\"w\":" + tensor("F32", "[2]", "[0,7]") + "}", 7),
       "hold 7 bytes, F32 [2] needs 8 bytes"},
      {"OffsetsWrap",
       file_of("{\"w\":" + tensor("F32", "[2]", "[18446744073709551612,4]") + "}", 8),
       "are reversed"},
      {"Hole", file_of("{\"a\":" + good + ",\"b\":" + tensor("F32", "[2]", "[12,20]") + "}", 20),
       "leave a hole"},
      {"HoleAtStart", file_of("{\"a\":" + tensor("F32", "[2]", "[4,12]") + "}", 12),
       "leave a hole"},
      {"Overlap", file_of("{\"a\":" + good + ",\"b\":" + tensor("F32", "[2]", "[4,12]") + "}", 12),
       "overlap another tensor"},
      {"SameBytes", file_of("{\"a\":" + good + ",\"b\":" + good + "}", 8),
       "overlap another tensor"},
      {"BeyondFile", file_of("{\"w\":" + tensor("F32", "[2]", "[0,8]") + "}", 4),
       "reach beyond the file's 4 bytes"},
      {"OneByteShort", file_of("{\"w\":" + good + "}", 7), "reach beyond the file's 7 bytes"},
      {"TrailingByte", file_of("{\"w\":" + good + "}", 9), "1 bytes after the last tensor"},
      {"TrailingWithoutTensors", file_of("{}", 5), "5 bytes after the last tensor"},
      {"DeepJson", file_of("{\"w\":{\"x\":" + std::string(1'000'000, '['), 0), "nested too deeply"},
      {"DeepObjects",
       file_of("{\"w\":{\"x\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":1}}}}}"
               "}}}}}}",
               0),
       "nested too deeply"},
  };
}

class HostileSafetensors : public ::testing::TestWithParam<Case> {};

TEST_P(HostileSafetensors, IsRefusedForItsReason) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  write_file(path, GetParam().bytes);
  Cluster cluster("safetensors");
  const auto start = std::chrono::steady_clock::now();
  const auto error = expect_error(CIUIC_DATA_LOSS, [&] { (void)cluster.rank(0).open(path); });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  EXPECT_THAT(error.what(), HasSubstr(GetParam().reason));
  EXPECT_THAT(error.what(), HasSubstr("x.safetensors: "));
}

INSTANTIATE_TEST_SUITE_P(Files, HostileSafetensors, ::testing::ValuesIn(hostile()),
                         [](const auto& test) { return test.param.name; });

// ---- each rule from both sides ----

/// What a rule allows, and the nearest that it does not.
struct Rule {
  const char* name;
  std::string allowed;
  std::string refused;
};
void PrintTo(const Rule& rule, std::ostream* out) { *out << rule.name; }

std::vector<Rule> rules() {
  const std::string good = tensor("F32", "[2]", "[0,8]");
  const auto one = [](const std::string& t, size_t data_bytes) {
    return file_of("{\"w\":" + t + "}", data_bytes);
  };
  const auto two = [](const std::string& a, const std::string& b, size_t data_bytes) {
    return file_of("{\"a\":" + a + ",\"b\":" + b + "}", data_bytes);
  };
  return {
      {"FileHasItsEightBytes", file_of("{}", 0), length_bytes(2).substr(0, 7)},
      {"HeaderEndsInsideTheFile", length_bytes(2) + "{}", length_bytes(3) + "{}"},
      {"HeaderHasAtMost100MB", file_of("{}" + std::string(99'999'998, ' '), 0),
       file_of("{}" + std::string(99'999'999, ' '), 0)},
      {"HeaderStartsWithABrace", file_of("{ }", 0), file_of(" {}", 0)},
      {"HeaderMayBePadded", file_of("{}  ", 0), file_of("{} .", 0)},
      {"HeaderIsUtf8", one(good, 8), file_of("{\"\xc3\":" + good + "}", 8)},
      {"NamesAreUtf8", file_of("{\"\xc3\xbc\":" + good + "}", 8),
       file_of("{\"\xc3(\":" + good + "}", 8)},
      {"HeaderIsJson", one(good, 8), file_of("{\"w\":" + good + "}}", 8)},
      {"NamesStandOnce", two(good, tensor("F32", "[2]", "[8,16]"), 16),
       file_of("{\"a\":" + good + ",\"a\":" + tensor("F32", "[2]", "[8,16]") + "}", 16)},
      {"BytesAreShapeTimesType", one(tensor("F16", "[3,2]", "[0,12]"), 12),
       one(tensor("F16", "[3,2]", "[0,11]"), 11)},
      {"AScalarHasOneElement", one(tensor("F64", "[]", "[0,8]"), 8),
       one(tensor("F64", "[]", "[0,0]"), 0)},
      {"AZeroDimensionHasNoBytes", one(tensor("F32", "[7,0]", "[0,0]"), 0),
       one(tensor("F32", "[7,0]", "[0,4]"), 4)},
      {"ProductsDoNotOverflow", one(tensor("U8", "[1,2,1]", "[0,2]"), 2),
       one(tensor("U8", "[2,9223372036854775807]", "[0,2]"), 2)},
      {"OffsetsStartAtZero", one(good, 8), one(tensor("F32", "[2]", "[1,9]"), 9)},
      {"OffsetsAreInOrder", one(good, 8), one(tensor("F32", "[2]", "[8,0]"), 8)},
      {"OffsetsLeaveNoHole", two(good, tensor("U8", "[1]", "[8,9]"), 9),
       two(good, tensor("U8", "[1]", "[9,10]"), 10)},
      {"OffsetsDoNotOverlap", two(good, tensor("U8", "[1]", "[8,9]"), 9),
       two(good, tensor("U8", "[1]", "[7,8]"), 8)},
      {"TheLastOffsetIsTheEnd", one(good, 8), one(good, 9)},
      {"TheEndIsTheLastOffset", one(good, 8), one(good, 7)},
      {"MetadataAreTexts", file_of("{\"__metadata__\":{\"a\":\"1\"}}", 0),
       file_of("{\"__metadata__\":{\"a\":1}}", 0)},
      {"NumbersAreNotLookedAt",
       file_of("{\"w\":" + tensor("F32", "[2]", "[0,8]") + "}", 0) +
           std::string("\x00\x00\xc0\x7f\x00\x00\x80\xff", 8),
       one(tensor("F33", "[2]", "[0,8]"), 8)},
  };
}

class SafetensorsRule : public ::testing::TestWithParam<Rule> {};

TEST_P(SafetensorsRule, HoldsFromBothSides) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  Cluster cluster("safetensors");
  write_file(path, GetParam().allowed);
  EXPECT_NO_THROW(cluster.rank(0).open(path).verify());
  write_file(path, GetParam().refused);
  expect_error(CIUIC_DATA_LOSS, [&] { (void)cluster.rank(0).open(path); });
}

INSTANTIATE_TEST_SUITE_P(Format, SafetensorsRule, ::testing::ValuesIn(rules()),
                         [](const auto& test) { return std::string(test.param.name); });

// Whatever bytes: an error that says damaged, or tensors that lie inside the file.
TEST(MutatedSafetensors, NeverCrashes) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  const std::string good =
      file_of("{\"__metadata__\":{\"k\":\"v\"},\"a\":" + tensor("F32", "[2,3]", "[0,24]") +
                  ",\"b\":" + tensor("BF16", "[0]", "[24,24]") + "}",
              24);
  Cluster cluster("safetensors");
  constexpr uint32_t kSeed = 20250101;
  std::mt19937 random(kSeed);
  constexpr char kAlphabet[] = "{}[]\",:0123456789-.eFab\\u\0\xff ";  // with a NUL inside
  const std::string alphabet(kAlphabet, sizeof(kAlphabet) - 1);
  for (int i = 0; i < 4000; ++i) {
    std::string bad = good;
    for (uint32_t k = 0; k <= random() % 4; ++k) {
      const size_t at = random() % bad.size();
      switch (random() % 4) {
        case 0:
          bad[at] = static_cast<char>(random());
          break;
        case 1:
          bad[at] = alphabet[random() % alphabet.size()];
          break;
        case 2:
          bad.erase(at, 1 + random() % 9);
          break;
        default:
          bad.insert(at, bad.substr(random() % bad.size(), random() % 9));
          break;
      }
      if (bad.empty()) {
        bad = "x";
      }
    }
    write_file(path, bad);
    try {
      (void)cluster.rank(0).open(path).read();
    } catch (const Error& e) {
      ASSERT_EQ(e.code(), CIUIC_DATA_LOSS)
          << "seed " << kSeed << " round " << i << ": " << e.what();
    }
  }
}

TEST(LegalSafetensors, OddButLegalIsRead) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  Cluster cluster("safetensors");
  const auto entries = [&](const std::string& bytes) {
    write_file(path, bytes);
    const auto archive = cluster.rank(0).open(path);
    archive.verify();
    return archive.read();
  };
  EXPECT_TRUE(entries(file_of("{}", 0)).empty());
  EXPECT_TRUE(entries(file_of("{}   \n\t ", 0)).empty());
  EXPECT_EQ(entries(file_of("{\"a\":" + tensor("F32", "[]", "[0,4]") + "}", 4)).at("a").bytes,
            "dddd");
  EXPECT_EQ(entries(file_of("{\"a\":" + tensor("F32", "[0,3]", "[0,0]") +
                                ",\"b\":" + tensor("U8", "[2]", "[0,2]") +
                                ",\"c\":" + tensor("F32", "[0]", "[2,2]") + "}",
                            2))
                .size(),
            3U);
  // Out of order, unaligned, and with a field that we do not know.
  const State odd = entries(file_of("{\"b\":" + tensor("F32", "[1]", "[1,5]") +
                                        ",\"a\":{\"extra\":[1,{\"y\":null}],\"dtype\":\"BOOL\","
                                        "\"data_offsets\":[0,1],\"shape\":[1]},"
                                        "\"__metadata__\":{}}",
                                    5));
  EXPECT_EQ(odd.at("a").bytes + odd.at("b").bytes, "ddddd");
  EXPECT_EQ(entries(file_of("{\"__metadata__\":{\"format\":\"pt\"}}", 0)).at("__metadata__").bytes,
            "{\"format\":\"pt\"}");
}

}  // namespace
}  // namespace ciuic::test
