// SPDX-License-Identifier: MIT
//
// Model folders in other types and in several files: FP8 blocks read and written, exports, what
// config.json and the index say.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "checkpoint_host.h"
#include "plugins/checkpoint/safetensors/number_formats.h"

namespace ciuic::test {
namespace {

using plugins::safetensors::from_bf16;
using plugins::safetensors::kE4m3Values;
using plugins::safetensors::to_bf16;
using plugins::safetensors::to_e4m3;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr ciuic_dtype kE4m3{CIUIC_DTYPE_FLOAT8_E4M3FN, 8, 1};
constexpr int64_t kMiB = 1 << 20;

template <typename T>
std::vector<T> elements_of(const Value& v) {
  std::vector<T> elements(v.bytes.size() / sizeof(T));
  std::memcpy(elements.data(), v.bytes.data(), v.bytes.size());
  return elements;
}

template <typename T>
Value value_of(ciuic_dtype dtype, std::vector<int64_t> shape, const std::vector<T>& elements) {
  Value v;
  v.dtype = dtype;
  v.shape = std::move(shape);
  v.bytes.assign(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T));
  return v;
}

/// Values like weights, of any size: every block has its own magnitude.
Value weights(std::vector<int64_t> shape, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.02F);
  const int64_t columns = shape.back();
  int64_t count = 1;
  for (const int64_t s : shape) {
    count *= s;
  }
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t block = i / columns / 128 * 7 + i % columns / 128;
    values.push_back(normal(random) * std::exp2(static_cast<float>(block % 11) - 5));
  }
  return value_of(kF32, std::move(shape), values);
}

Value as_bf16(const Value& v) {
  std::vector<uint16_t> bits;
  for (const float f : elements_of<float>(v)) {
    bits.push_back(to_bf16(f));
  }
  return value_of(kBF16, v.shape, bits);
}

int64_t blocks(int64_t n) { return (n + 127) / 128; }

/// Codes and scales as DeepSeek's files have them, of any values.
std::pair<Value, Value> random_blocks(int64_t rows, int64_t columns, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> codes;
  for (int64_t i = 0; i < rows * columns; ++i) {
    const auto code = static_cast<uint8_t>(random());
    codes.push_back((code & 0x7f) == 0x7f ? code & 0x80 : code);
  }
  std::vector<float> scales;
  for (int64_t i = 0; i < blocks(rows) * blocks(columns); ++i) {
    scales.push_back(std::ldexp(1.0F + static_cast<float>(random() % 1000) / 1000,
                                static_cast<int>(random() % 20) - 15));
  }
  return {value_of(kE4m3, {rows, columns}, codes),
          value_of(kF32, {blocks(rows), blocks(columns)}, scales)};
}

/// code * scale of the block, element by element.
std::vector<float> dequantised(const Value& codes, const Value& scales) {
  const auto c = elements_of<uint8_t>(codes);
  const auto s = elements_of<float>(scales);
  std::vector<float> values;
  for (int64_t row = 0; row < codes.shape[0]; ++row) {
    for (int64_t column = 0; column < codes.shape[1]; ++column) {
      const int64_t block = row / 128 * scales.shape[1] + column / 128;
      values.push_back(kE4m3Values[c[static_cast<size_t>(row * codes.shape[1] + column)]] *
                       s[static_cast<size_t>(block)]);
    }
  }
  return values;
}

struct FolderTest : ::testing::Test {
  /// A folder whose files hold exactly these tensors.
  void write_folder(const State& tensors, const std::string& config = "{}") {
    std::filesystem::remove_all(hf);
    std::filesystem::create_directory(hf);
    write_file(hf + "/config.json", config);
    ASSERT_FALSE(plain.save(hf + "/model.safetensors", 1, tensors));
  }
  std::string refusal() {
    return expect_error(CIUIC_DATA_LOSS, [&] { (void)plain.rank(0).open(hf); }).what();
  }

  TemporaryFolder folder;
  const std::string hf = folder / "hf";
  Cluster plain{"safetensors"};
};

// ---- reading FP8 ----

struct Fp8Folder : FolderTest {};

TEST_F(Fp8Folder, IsListedAsFp32WithoutScales) {
  const auto [codes, scales] = random_blocks(200, 300, 1);
  write_folder({{"a.weight", codes}, {"a.weight_scale_inv", scales}});
  const auto archive = plain.rank(0).open(hf);
  const State listed = archive.list();
  ASSERT_EQ(listed.size(), 2U);
  EXPECT_TRUE(same(listed.at("value/a.weight").dtype, kF32));
  EXPECT_EQ(listed.at("value/a.weight").shape, (std::vector<int64_t>{200, 300}));
  EXPECT_EQ(elements_of<float>(archive.read().at("value/a.weight")), dequantised(codes, scales));
  EXPECT_NO_THROW(archive.verify());
  expect_error(CIUIC_NOT_FOUND, [&] {
    (void)archive.get("value/a.weight_scale_inv", scales, 0, scales.elements());
  });
  expect_error(CIUIC_INVALID, [&] { (void)archive.get("value/a.weight", codes, 0, 1); });
}

TEST_F(Fp8Folder, RaggedShapesAreReadExactly) {
  uint32_t seed = 1;
  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{{1, 1},
                                                                              {1, 129},
                                                                              {129, 1},
                                                                              {127, 128},
                                                                              {128, 128},
                                                                              {256, 384},
                                                                              {257, 130},
                                                                              {5, 1000},
                                                                              {0, 5},
                                                                              {5, 0}}) {
    const auto [codes, scales] = random_blocks(rows, columns, ++seed);
    write_folder({{"a.weight", codes}, {"a.weight_scale_inv", scales}});
    EXPECT_EQ(elements_of<float>(plain.load(hf).at("value/a.weight")), dequantised(codes, scales))
        << rows << " x " << columns;
  }
}

TEST_F(Fp8Folder, AnyRangeIsReadExactly) {
  const auto [codes, scales] = random_blocks(300, 333, 7);
  const std::vector<float> expected = dequantised(codes, scales);
  write_folder({{"a.weight", codes}, {"a.weight_scale_inv", scales}});
  const auto archive = plain.rank(0).open(hf);
  const Value like = archive.list().at("value/a.weight");
  constexpr uint32_t kSeed = 99;
  std::mt19937 random(kSeed);
  for (int i = 0; i < 300; ++i) {
    const auto total = static_cast<int64_t>(expected.size());
    const auto begin = static_cast<int64_t>(random() % expected.size());
    const int64_t length = i % 2 == 0 ? static_cast<int64_t>(random() % 400)
                                      : static_cast<int64_t>(random() % expected.size());
    const int64_t count = std::min(total - begin, length);
    Value part;
    part.bytes = archive.get("value/a.weight", like, begin, count);
    ASSERT_EQ(elements_of<float>(part),
              std::vector<float>(expected.begin() + begin, expected.begin() + begin + count))
        << "seed " << kSeed << ", [" << begin << ", +" << count << ")";
  }
  // At other world sizes a tensor is cut anywhere.
  for (const int world : {2, 3, 7}) {
    EXPECT_EQ(elements_of<float>(Cluster("safetensors", world).load(hf).at("value/a.weight")),
              expected);
  }
}

TEST_F(Fp8Folder, PowersOfTwoAsScalesAreExact) {
  auto [codes, scales] = random_blocks(130, 260, 3);
  std::vector<float> powers;
  for (int64_t i = 0; i < scales.elements(); ++i) {
    powers.push_back(std::ldexp(1.0F, static_cast<int>(i) - 9));
  }
  scales = value_of(kF32, scales.shape, powers);
  write_folder({{"a.weight", codes}, {"a.weight_scale_inv", scales}});
  EXPECT_EQ(elements_of<float>(plain.load(hf).at("value/a.weight")), dequantised(codes, scales));
}

TEST_F(Fp8Folder, ScalesMayLieInAnotherFile) {
  const auto [codes, scales] = random_blocks(300, 130, 5);
  std::filesystem::create_directory(hf);
  write_file(hf + "/config.json", "{}");
  ASSERT_FALSE(plain.save(hf + "/a.safetensors", 1, {{"w.weight", codes}}));
  ASSERT_FALSE(plain.save(hf + "/b.safetensors", 1, {{"w.weight_scale_inv", scales}}));
  write_file(hf + "/model.safetensors.index.json",
             R"({"weight_map":{"w.weight":"a.safetensors","w.weight_scale_inv":"b.safetensors"}})");
  EXPECT_EQ(elements_of<float>(plain.load(hf).at("value/w.weight")), dequantised(codes, scales));
}

TEST_F(Fp8Folder, AllThatDoesNotFitIsSaidAtOnce) {
  const auto [codes, scales] = random_blocks(200, 300, 1);
  const Value half = random_tensor(kBF16, {2, 3}, 1);
  write_folder({{"missing.weight", codes},
                {"shape.weight", codes},
                {"shape.weight_scale_inv", random_tensor(kF32, {3, 2}, 1)},
                {"type.weight", codes},
                {"type.weight_scale_inv", half},
                {"vector.weight", random_blocks(1, 5, 1).first},
                {"vector5.weight", value_of(kE4m3, {5}, std::vector<uint8_t>(5, 1))},
                {"stray.weight_scale_inv", scales},
                {"plain.weight", half},
                {"plain.weight_scale_inv", scales},
                {"good.weight", codes},
                {"good.weight_scale_inv", scales}});
  const std::string said = refusal();
  EXPECT_THAT(said, HasSubstr("missing.weight: an FP8 weight without its scales "
                              "missing.weight_scale_inv"));
  EXPECT_THAT(said, HasSubstr("shape.weight_scale_inv: got F32 [3, 2], expected F32 [2, 3]"));
  EXPECT_THAT(said, HasSubstr("type.weight_scale_inv: got BF16 [2, 3], expected F32 [2, 3]"));
  EXPECT_THAT(said, HasSubstr("vector.weight: an FP8 weight without"));
  EXPECT_THAT(said, HasSubstr("vector5.weight: an FP8 weight of shape [5], expected a matrix"));
  EXPECT_THAT(said, HasSubstr("stray.weight_scale_inv: scales without a weight"));
  EXPECT_THAT(said, HasSubstr("plain.weight_scale_inv: scales, but plain.weight is BF16"));
  EXPECT_THAT(said, Not(HasSubstr("good")));
}

TEST_F(Fp8Folder, NumbersThatAreNoneAreNamedAndVerifyListsAll) {
  auto [codes, scales] = random_blocks(200, 300, 1);
  Value with_nan = codes;
  with_nan.bytes[150 * 300 + 7] = 0x7f;
  with_nan.bytes[199 * 300] = static_cast<char>(0xff);
  Value infinite = scales;
  const float infinity = INFINITY;
  std::memcpy(infinite.bytes.data() + 4 * 4, &infinity, 4);
  write_folder({{"a.weight", with_nan},
                {"a.weight_scale_inv", scales},
                {"b.weight", codes},
                {"b.weight_scale_inv", infinite}});
  const auto archive = plain.rank(0).open(hf);
  const Value like = archive.list().at("value/a.weight");
  EXPECT_THAT(
      expect_error(CIUIC_DATA_LOSS, [&] { (void)archive.get("value/a.weight", like, 0, 60000); })
          .what(),
      HasSubstr("a.weight: NaN at [150, 7]"));
  EXPECT_NO_THROW((void)archive.get("value/a.weight", like, 0, 150 * 300 + 7));
  EXPECT_THAT(
      expect_error(CIUIC_DATA_LOSS, [&] { (void)archive.get("value/b.weight", like, 0, 60000); })
          .what(),
      HasSubstr("b.weight_scale_inv: row 1 holds a scale that is not finite"));
  const std::string said = expect_error(CIUIC_DATA_LOSS, [&] { archive.verify(); }).what();
  EXPECT_THAT(said, HasSubstr("a.weight: 2 NaN"));
  EXPECT_THAT(said, HasSubstr("b.weight_scale_inv: 1 scales that are not finite"));
  EXPECT_THAT(expect_error(CIUIC_DATA_LOSS, [&] { archive.verify("value/a.weight"); }).what(),
              HasSubstr("2 NaN"));
}

TEST_F(Fp8Folder, ConfigIsThatOfPlainWeights) {
  const auto [codes, scales] = random_blocks(2, 3, 1);
  const State tensors = {{"a.weight", codes}, {"a.weight_scale_inv", scales}};
  const auto config = [&](const std::string& quantization) {
    write_folder(tensors, R"({"hidden_size": 4, "quantization_config": )" + quantization + "}");
    return plain.load(hf).at("config.json").bytes;
  };
  for (const char* ours :
       {R"({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]})",
        R"({"quant_method": "fp8", "scale_fmt": "ue8m0", "weight_block_size": [128, 128]})"}) {
    EXPECT_EQ(nlohmann::json::parse(config(ours)), nlohmann::json({{"hidden_size", 4}}));
  }
  EXPECT_THAT(config(R"({"quant_method": "gptq"})"), HasSubstr("gptq"));  // not ours to judge
  write_folder(
      tensors,
      R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [64, 128]}})");
  EXPECT_THAT(refusal(), HasSubstr("weight_block_size [64,128], only [128, 128] can be read"));
}

// ---- writing ----

struct ExportFolder : FolderTest {
  State loaded_plain(const std::string& file) { return plain.load(hf + "/" + file); }
  void save(const State& state, const OptionValues& options, bool is_announced = true) {
    std::filesystem::remove_all(hf);
    const auto error = Cluster("safetensors", 1, nullptr, options).save(hf, 1, state, is_announced);
    ASSERT_FALSE(error) << error->what();
  }
  nlohmann::json config() { return nlohmann::json::parse(read_file(hf + "/config.json")); }
};

State deepseek_model() {
  const std::string layer = "value/model.layers.0.";
  State state = {{"config.json", blob("{\"hidden_size\": 130, \"dtype\": \"float32\"}")}};
  uint32_t seed = 0;
  for (const char* name :
       {"self_attn.q_a_proj", "self_attn.q_b_proj", "self_attn.kv_a_proj_with_mqa",
        "self_attn.kv_b_proj", "self_attn.o_proj", "mlp.experts.3.gate_proj",
        "mlp.experts.3.down_proj", "mlp.shared_experts.up_proj", "mlp.gate", "eh_proj",
        "shared_head.head", "embed_tokens"}) {
    state.emplace(layer + name + ".weight", weights({129 + seed, 260}, seed + 1));
    ++seed;
  }
  for (const char* name : {"input_layernorm.weight", "self_attn.q_a_layernorm.weight",
                           "enorm.weight", "self_attn.q_a_proj.bias", "shared_head.norm.weight"}) {
    state.emplace(layer + name, weights({130}, ++seed));
  }
  state.emplace(layer + "mlp.gate.e_score_correction_bias", weights({8}, ++seed));
  state.emplace("value/model.embed_tokens.weight", weights({259, 130}, ++seed));
  state.emplace("value/lm_head.weight", weights({259, 130}, ++seed));
  state.emplace("value/model.norm.weight", weights({130}, ++seed));
  return state;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_F(ExportFolder, Bf16RoundsAllButTheCorrectionBias) {
  const State model = deepseek_model();
  for (const bool is_announced : {true, false}) {
    save(model, {{"dtype", "bf16"}}, is_announced);
    for (const auto& [name, v] : loaded_plain("model.safetensors")) {
      if (name != "__metadata__") {
        const Value& put = model.at("value/" + name);
        const bool stays = has(name, "e_score_correction_bias");
        EXPECT_TRUE(v == (stays ? put : as_bf16(put))) << name;
      }
    }
    EXPECT_EQ(config()["dtype"], "bfloat16");
    EXPECT_EQ(config()["torch_dtype"], "bfloat16");
    EXPECT_EQ(config()["hidden_size"], 130);
    EXPECT_FALSE(config().contains("quantization_config"));
  }
}

TEST_F(ExportFolder, Fp32WidensExactly) {
  State model = {{"config.json", blob("{\"quantization_config\": {\"quant_method\": \"fp8\"}}")},
                 {"value/half", random_tensor(kF16, {70}, 1)},
                 {"value/brain", random_tensor(kBF16, {70}, 2)},
                 {"value/whole", random_tensor(kI64, {3}, 3)}};
  save(model, {{"dtype", "fp32"}});
  const State read = plain.load(hf);
  EXPECT_TRUE(same(read.at("value/half").dtype, kF32));
  const auto brain = elements_of<uint16_t>(model.at("value/brain"));
  const auto wide = elements_of<float>(read.at("value/brain"));
  for (size_t i = 0; i < brain.size(); ++i) {
    const float expected = from_bf16(brain[i]);
    EXPECT_EQ(std::memcmp(&wide[i], &expected, sizeof(float)), 0);
  }
  EXPECT_TRUE(read.at("value/whole") == model.at("value/whole"));
  EXPECT_EQ(config()["dtype"], "float32");
  EXPECT_FALSE(config().contains("quantization_config"));
}

/// amax / 448 per block, and the nearest code of value / scale.
void expect_quantised(const Value& put, const Value& codes, const Value& scales,
                      const std::string& name) {
  const auto x = elements_of<float>(put);
  const auto c = elements_of<uint8_t>(codes);
  const auto s = elements_of<float>(scales);
  const int64_t columns = put.shape[1];
  std::vector<float> amax(s.size(), 0);
  const auto block = [&](size_t i) {
    const auto at = static_cast<int64_t>(i);
    return static_cast<size_t>(at / columns / 128 * scales.shape[1] + at % columns / 128);
  };
  for (size_t i = 0; i < x.size(); ++i) {
    amax[block(i)] = std::max(amax[block(i)], std::fabs(x[i]));
  }
  for (size_t b = 0; b < s.size(); ++b) {
    ASSERT_EQ(s[b], amax[b] == 0 ? 1 : amax[b] / 448) << name;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(c[i], to_e4m3(x[i] / s[block(i)])) << name << " at " << i;
  }
}

TEST_F(ExportFolder, Fp8QuantisesTheMatricesThatDeepSeekDoes) {
  const State model = deepseek_model();
  for (const bool is_announced : {true, false}) {
    save(model, {{"dtype", "fp8_block"}}, is_announced);
    const State file = loaded_plain("model.safetensors");
    for (const auto& [key, put] : model) {
      if (put.is_blob) {
        continue;
      }
      const std::string name = key.substr(6);
      const bool stays_fp32 = has(name, "e_score_correction_bias");
      const bool is_fp8 = has(name, "_proj") && has(name, ".weight") && !has(name, "eh_proj");
      if (is_fp8) {
        ASSERT_TRUE(same(file.at(name).dtype, kE4m3)) << name;
        ASSERT_EQ(file.at(name + "_scale_inv").shape,
                  (std::vector<int64_t>{blocks(put.shape[0]), blocks(put.shape[1])}));
        expect_quantised(put, file.at(name), file.at(name + "_scale_inv"), name);
      } else {
        EXPECT_TRUE(file.at(name) == (stays_fp32 ? put : as_bf16(put))) << name;
        EXPECT_EQ(file.count(name + "_scale_inv"), 0U);
      }
    }
    EXPECT_EQ(config()["quantization_config"],
              nlohmann::json::parse(R"({"quant_method": "fp8", "fmt": "e4m3",
                "activation_scheme": "dynamic", "weight_block_size": [128, 128]})"));
    EXPECT_EQ(config()["dtype"], "bfloat16");
  }
}

TEST_F(ExportFolder, Fp8OfPiecesIsThatOfTheWhole) {
  const State model = deepseek_model();
  save(model, {{"dtype", "fp8_block"}});
  const std::string whole = read_file(hf + "/model.safetensors");
  std::filesystem::remove_all(hf);
  Cluster cluster("safetensors", 1, nullptr, {{"dtype", "fp8_block"}});
  const auto archive = cluster.rank(0).begin(hf, 1, model);
  for (const auto& [key, v] : model) {
    if (v.is_blob) {
      archive.put(key, v);
      continue;
    }
    for (int64_t end = v.elements(); end > 0; end -= 777) {  // from behind
      const int64_t begin = std::max<int64_t>(0, end - 777);
      archive.put(key, v, begin, end - begin);
    }
  }
  archive.commit();
  EXPECT_TRUE(read_file(hf + "/model.safetensors") == whole);
}

TEST_F(ExportFolder, Fp8ThroughBf16IsAFixedPoint) {
  // As another program quantised it: not with amax / 448.
  const auto [codes, scales] = random_blocks(300, 333, 11);
  const auto [more, scales_of_more] = random_blocks(127, 129, 12);
  write_folder({{"a_proj.weight", codes},
                {"a_proj.weight_scale_inv", scales},
                {"b_proj.weight", more},
                {"b_proj.weight_scale_inv", scales_of_more}});
  std::string last;
  for (int pass = 1; pass <= 3; ++pass) {
    State state = plain.load(hf);  // fp32
    const std::string bf16_folder = folder / ("bf16-" + std::to_string(pass));
    ASSERT_FALSE(
        Cluster("safetensors", 1, nullptr, {{"dtype", "bf16"}}).save(bf16_folder, 1, state));
    state = plain.load(bf16_folder);
    ASSERT_TRUE(same(state.at("value/a_proj.weight").dtype, kBF16));
    save(state, {{"dtype", "fp8_block"}});
    const std::string bytes = read_file(hf + "/model.safetensors");
    if (pass > 1) {
      EXPECT_TRUE(bytes == last) << "pass " << pass;
    }
    last = bytes;
  }
}

TEST_F(ExportFolder, ZeroAndTinyBlocks) {
  std::vector<float> values(256 * 128, 0.0F);
  values[128 * 128] = 1e-44F;  // the second block; amax / 448 would be 0
  values[128 * 128 + 1] = -1e-37F;
  State state = {{"config.json", blob("{}")},
                 {"value/a_proj.weight", value_of(kF32, {256, 128}, values)}};
  save(state, {{"dtype", "fp8_block"}});
  const auto scales =
      elements_of<float>(loaded_plain("model.safetensors").at("a_proj.weight_scale_inv"));
  EXPECT_EQ(scales[0], 1.0F);
  EXPECT_EQ(scales[1], std::numeric_limits<float>::min());
  const auto read = elements_of<float>(plain.load(hf).at("value/a_proj.weight"));
  EXPECT_EQ(read[0], 0.0F);
  EXPECT_NEAR(read[128 * 128 + 1], -1e-37F, 1e-38F);
}

TEST_F(ExportFolder, WhatFp8CannotHoldIsRefused) {
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    std::vector<float> values(130 * 4, 1.0F);
    values[129 * 4] = bad;
    const State state = {{"config.json", blob("{}")},
                         {"value/a_proj.weight", value_of(kF32, {130, 4}, values)}};
    const auto error =
        Cluster("safetensors", 1, nullptr, {{"dtype", "fp8_block"}}).save(hf, 1, state);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), CIUIC_INVALID);
    EXPECT_THAT(error->what(),
                HasSubstr("a_proj.weight holds a value that is not finite (rows 128 to 129)"));
    EXPECT_TRUE(tree(folder.path()).empty());
  }
}

TEST_F(ExportFolder, TypesThatAreNotConvertedAreRefused) {
  for (const bool is_announced : {true, false}) {
    const auto save_one = [&](const std::string& name, ciuic_dtype dtype, const char* type) {
      const auto error =
          Cluster("safetensors", 1, nullptr, {{"dtype", type}})
              .save(hf, 1, {{"config.json", blob("{}")}, {name, random_tensor(dtype, {2, 2}, 1)}},
                    is_announced);
      ASSERT_TRUE(error) << name << type;
      EXPECT_EQ(error->code(), CIUIC_UNIMPLEMENTED) << error->what();
    };
    save_one("value/a", kF64, "bf16");
    save_one("value/a", kF64, "fp8_block");
    save_one("value/a", kE4m3, "as_stored");
    save_one("value/a.weight_scale_inv", kF32, "as_stored");
  }
  EXPECT_TRUE(tree(folder.path()).empty());
}

// ---- several files ----

State large_model() {
  State state = {{"config.json", blob("{}")}};
  for (int layer = 0; layer < 12; ++layer) {
    const std::string name = "value/model.layers." + std::to_string(layer);
    state.emplace(name + ".mlp.up_proj.weight", weights({300, 400}, static_cast<uint32_t>(layer)));
    state.emplace(name + ".norm.weight", weights({400}, 50U + static_cast<uint32_t>(layer)));
  }
  return state;
}

TEST_F(ExportFolder, ShardsAreNamedIndexedAndReadBack) {
  const State model = large_model();
  for (const bool is_announced : {true, false}) {
    save(model, {{"max_file_size", 2 * kMiB}}, is_announced);
    EXPECT_THAT(tree(hf),
                ElementsAre("config.json", "model-00001-of-00003.safetensors",
                            "model-00002-of-00003.safetensors", "model-00003-of-00003.safetensors",
                            "model.safetensors.index.json"));
    const auto index = nlohmann::json::parse(read_file(hf + "/model.safetensors.index.json"));
    EXPECT_EQ(index["metadata"]["total_size"], 12 * (300 * 400 + 400) * 4);
    EXPECT_EQ(index["weight_map"].size(), 24U);
    // Layer by layer, 2 before 10.
    EXPECT_EQ(index["weight_map"]["model.layers.2.norm.weight"],
              "model-00001-of-00003.safetensors");
    EXPECT_EQ(index["weight_map"]["model.layers.10.norm.weight"],
              "model-00003-of-00003.safetensors");
    EXPECT_TRUE(plain.load(hf) == model);
    EXPECT_EQ(loaded_plain("model-00001-of-00003.safetensors").at("__metadata__").bytes,
              "{\"format\":\"pt\"}");
    for (int n = 1; n <= 3; ++n) {
      EXPECT_LT(std::filesystem::file_size(hf + "/model-0000" + std::to_string(n) +
                                           "-of-00003.safetensors"),
                2U * kMiB + 10'000);
    }
  }
}

TEST_F(ExportFolder, TypeAndShardsTogether) {
  save(large_model(), {{"dtype", "fp8_block"}, {"max_file_size", kMiB}});
  const std::string first = "model-00001-of-00002.safetensors";
  const auto index = nlohmann::json::parse(read_file(hf + "/model.safetensors.index.json"));
  for (const auto& [name, file] : index["weight_map"].items()) {
    if (has(name, "_scale_inv")) {
      EXPECT_EQ(file, index["weight_map"][name.substr(0, name.size() - 10)]);
    }
  }
  EXPECT_EQ(index["metadata"]["total_size"], 12 * (300 * 400 + 3 * 4 * 4 + 400 * 2));
  const State read = plain.load(hf);
  const State file = loaded_plain(first);
  const std::string name = "model.layers.0.mlp.up_proj.weight";
  EXPECT_EQ(elements_of<float>(read.at("value/" + name)),
            dequantised(file.at(name), file.at(name + "_scale_inv")));
}

TEST_F(ExportFolder, ATensorThatIsLargerHasItsOwnFile) {
  State model = large_model();
  model.emplace("value/model.embed_tokens.weight", weights({1000, 800}, 77));  // 3.2 MB
  save(model, {{"max_file_size", kMiB}});
  EXPECT_TRUE(plain.load(hf) == model);
  EXPECT_EQ(loaded_plain("model-00001-of-00007.safetensors").size(), 2U);  // with its metadata
}

TEST_F(ExportFolder, BytesAreTheSameAnnouncedOrNot) {
  for (const char* type : {"as_stored", "bf16", "fp8_block"}) {
    save(large_model(), {{"dtype", type}}, true);
    const std::string announced = read_file(hf + "/model.safetensors");
    save(large_model(), {{"dtype", type}}, false);
    EXPECT_TRUE(read_file(hf + "/model.safetensors") == announced) << type;
  }
}

TEST_F(ExportFolder, NothingIsVisibleBeforeTheCommitAndNothingStaysWithoutIt) {
  Cluster cluster("safetensors", 1, nullptr, {{"max_file_size", kMiB}});
  {
    const State model = large_model();
    const auto archive = cluster.rank(0).begin(hf, 1, model);
    for (const auto& [key, v] : model) {
      archive.put(key, v);
    }
    EXPECT_FALSE(std::filesystem::exists(hf));
    EXPECT_TRUE(std::filesystem::exists(hf + ".partial/model-00001-of-00006.safetensors"));
  }
  EXPECT_TRUE(tree(folder.path()).empty());
}

TEST_F(ExportFolder, EveryFaultLeavesTheFolderWholeOrAbsent) {
  const State model = large_model();
  for (const bool is_final : {true, false}) {
    int64_t call = 1;
    for (;; ++call) {
      SCOPED_TRACE("fault at call " + std::to_string(call));
      std::filesystem::remove_all(hf);
      FaultPlan plan;
      plan.fail_at(call, CIUIC_EXHAUSTED, is_final);
      const auto error =
          Cluster("safetensors", 1, &plan, {{"max_file_size", 4 * kMiB}, {"dtype", "bf16"}})
              .save(hf, 1, model);
      if (!plan.has_failed()) {
        EXPECT_FALSE(error);
        break;
      }
      plan.zero_unsynced_files();
      if (std::filesystem::exists(hf)) {
        EXPECT_EQ(plain.load(hf).size(), model.size());
      } else {
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code(), CIUIC_EXHAUSTED) << error->what();
      }
    }
    EXPECT_GT(call, 12);
    EXPECT_FALSE(std::filesystem::exists(hf + ".partial"));
  }
}

TEST_F(ExportFolder, AFaultOfRankZeroReachesAllRanks) {
  for (int64_t call = 1;; ++call) {
    SCOPED_TRACE("fault at call " + std::to_string(call));
    std::filesystem::remove_all(hf);
    FaultPlan plan;
    plan.fail_at(call, CIUIC_EXHAUSTED, false);
    Cluster cluster("safetensors", 3, &plan, {{"max_file_size", 2 * kMiB}});
    const State model = large_model();
    const auto errors = cluster.run([&](Rank& rank) {
      const auto archive = rank.begin(hf, 1, model);
      for (const auto& [key, v] : model) {
        if (rank.rank() == 0) {
          archive.put(key, v);
        }
      }
      archive.commit();
    });
    if (!plan.has_failed()) {
      EXPECT_FALSE(errors[0] || errors[1] || errors[2]);
      break;
    }
    EXPECT_EQ(errors[0].has_value(), errors[1].has_value());
    EXPECT_EQ(errors[0].has_value(), errors[2].has_value());
  }
}

}  // namespace
}  // namespace ciuic::test
