// SPDX-License-Identifier: MIT
#include "core/train/state_io.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plugin/archive_opener.h"
#include "core/train/archive_model.h"
#include "core/train/model_files.h"
#include "core/train/tensor_bridge.h"
#include "tests/temporary_folder.h"

namespace ciuic::core {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct StateIoTest : ::testing::Test {
  void save(const std::vector<std::pair<std::string, at::Tensor>>& tensors,
            const std::string& config_json) {
    const auto plugin = opener.create("sharded");
    const Archive archive = plugin->begin(uri, 1, {});
    for (const auto& [key, tensor] : tensors) {
      const Place place(tensor.sizes().vec());
      archive.put(key, place.c(), to_abi(tensor).c());
    }
    archive.put_blob("config.json", config_json);
    archive.commit();
  }
  at::Tensor read(const TensorSource& source, const std::string& key, at::Tensor into,
                  bool& found) {
    const StateSource state(host.table(), source);
    const Place place(into.sizes().vec());
    const Tensor view = to_abi(into);
    const ciuic_place c = place.c();
    ciuic_work* work = nullptr;
    ciuic_status* status =
        state.reader().tensor(state.reader().ctx, to_str(key), &c, view.ptr(), nullptr, &work);
    found = status == nullptr;
    if (status != nullptr) {
      EXPECT_EQ(Host(host.table()).take(status).code(), CIUIC_NOT_FOUND);
    }
    return into;
  }

  TemporaryFolder folder;
  const std::string uri = folder.file("archive");
  Log log{Log::Options{0, 1, LogLevel::Off, "", false}};
  HostContext host{"tested", log};
  Catalog catalog{{std::string(CIUIC_BUILD_DIR) + "/plugins"}};
  ArchiveOpener opener{catalog, log};
  ModelConfig tiny = preset("tiny");
};

TEST_F(StateIoTest, MasterAndValueServeForEachOther) {
  const at::Tensor a = at::arange(6, at::kFloat).reshape({2, 3});
  save({{"value/a", a}, {"master/b", a.add(1)}}, "{}");
  const OpenArchive archive = opener.open(uri);
  const ArchiveSource source(*archive);
  bool found = false;
  EXPECT_TRUE(at::equal(read(source, "master/a", at::empty({2, 3}), found), a));
  EXPECT_TRUE(found);
  EXPECT_TRUE(at::equal(read(source, "value/b", at::empty({2, 3}), found), a.add(1)));
  EXPECT_TRUE(found);
  read(source, "moment/m/a", at::empty({2, 3}), found);
  EXPECT_FALSE(found);
}

TEST_F(StateIoTest, DtypesAreConverted) {
  const at::Tensor a = at::arange(6, at::kFloat).reshape({2, 3});
  save({{"value/a", a}}, "{}");
  const OpenArchive archive = opener.open(uri);
  const ArchiveSource source(*archive);
  bool found = false;
  const at::Tensor low = read(source, "value/a", at::empty({2, 3}, at::kBFloat16), found);
  EXPECT_TRUE(at::equal(low.to(at::kFloat), a));
}

TEST_F(StateIoTest, InitialValuesAreTheSameInSlices) {
  const InitialValues source(tiny, 1234);
  const std::vector<int64_t> shape{tiny.vocab_size, tiny.hidden_size};
  at::Tensor whole = at::empty(shape);
  const std::string key = "value/model.embed_tokens.weight";
  ASSERT_TRUE(source.read(key, Place(shape).c(), whole));
  at::Tensor part = at::empty({100});
  ASSERT_TRUE(source.read(key, Place(shape, 777).c(), part));
  EXPECT_TRUE(at::equal(part, whole.reshape({-1}).narrow(0, 777, 100)));
  EXPECT_FALSE(source.read("moment/exp_avg/model.embed_tokens.weight", Place(shape).c(), whole));
}

TEST_F(StateIoTest, AllTensorsThatDoNotFitAreListed) {
  save({{"value/model.embed_tokens.weight", at::empty({2, 2})}, {"value/surplus", at::empty({1})}},
       tiny.to_json().dump());
  const OpenArchive archive = opener.open(uri);
  try {
    check_tensors(ArchiveSource(*archive), tiny, uri);
    FAIL() << "accepted";
  } catch (const Failure& f) {
    EXPECT_EQ(f.code(), ExitCode::Storage);
    EXPECT_THAT(format(f),
                AllOf(HasSubstr("model.embed_tokens.weight: got [2, 2], expected [259, 128]"),
                      HasSubstr("belongs to no parameter: surplus"),
                      HasSubstr("missing: model.norm.weight")));
  }
}

/// A file with every tensor of `config`.
std::vector<std::pair<std::string, at::Tensor>> all_tensors(const ModelConfig& config) {
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (const ParameterSpec& spec : parameter_specs(config)) {
    all.emplace_back("value/" + spec.name, at::ones(spec.shape));
  }
  for (const BufferSpec& buffer : buffer_specs(config)) {
    all.emplace_back("value/" + buffer.name, at::zeros(buffer.shape));
  }
  return all;
}

std::string mtp_name(const ModelConfig& config, const std::string& rest) {
  return "model.layers." + std::to_string(config.num_hidden_layers) + "." + rest;
}

TEST_F(StateIoTest, DerivedBuffersOfOldExportsAreNoTensorsTooMany) {
  auto tensors = all_tensors(tiny);
  tensors.emplace_back("value/model.layers.0.self_attn.rotary_emb.inv_freq", at::ones({4}));
  save(tensors, tiny.to_json().dump());
  const OpenArchive archive = opener.open(uri);
  EXPECT_NO_THROW(check_tensors(ArchiveSource(*archive), tiny, uri));
}

TEST_F(StateIoTest, MtpLayersOfTheFolderMayStayUnused) {
  ModelConfig with = tiny;
  with.num_nextn_predict_layers = 1;
  auto tensors = all_tensors(tiny);
  tensors.emplace_back("value/" + mtp_name(tiny, "enorm.weight"), at::ones({tiny.hidden_size}));
  save(tensors, with.to_json().dump());
  const OpenArchive archive = opener.open(uri);
  const ArchiveSource source(*archive);
  EXPECT_EQ(model_of(*archive).num_nextn_predict_layers, 1);
  EXPECT_NO_THROW(check_tensors(source, tiny, uri));
}

TEST_F(StateIoTest, MtpLayersThatOnlyTheConfigurationHasAreDroppedWithANote) {
  ModelConfig with = tiny;
  with.num_nextn_predict_layers = 1;
  save(all_tensors(tiny), with.to_json().dump());
  const OpenArchive archive = opener.open(uri);
  const ArchivedModel found = read_model(*archive);
  EXPECT_EQ(found.config.num_nextn_predict_layers, 0);
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_THAT(found.notes[0], HasSubstr("num_nextn_predict_layers = 1"));
}

TEST_F(StateIoTest, CopiesAreComparedWithTheirParameters) {
  ModelConfig with = tiny;
  with.num_nextn_predict_layers = 1;
  auto tensors = all_tensors(tiny);
  const std::vector<int64_t> shape{tiny.vocab_size, tiny.hidden_size};
  const std::string embedding = mtp_name(tiny, "embed_tokens.weight");
  const std::string head = mtp_name(tiny, "shared_head.head.weight");
  tensors.emplace_back("value/" + embedding, at::ones(shape).to(at::kBFloat16));
  at::Tensor other = at::ones(shape);
  other.view({-1})[shape[0] * shape[1] - 1] = 2;
  tensors.emplace_back("value/" + head, other);
  save(tensors, with.to_json().dump());
  const OpenArchive archive = opener.open(uri);
  try {
    check_copies(ArchiveSource(*archive), with, uri);
    FAIL() << "accepted";
  } catch (const Failure& f) {
    EXPECT_EQ(f.code(), ExitCode::Storage);
    EXPECT_THAT(format(f), AllOf(HasSubstr(head + ": differs from lm_head.weight"),
                                 Not(HasSubstr(embedding))));
  }
}

TEST_F(StateIoTest, CorrectionBiasesAreAllThereOrNone) {
  auto tensors = all_tensors(tiny);
  const std::string last = tensors.back().first;
  const auto check = [&] {
    save(tensors, tiny.to_json().dump());
    const OpenArchive archive = opener.open(uri);
    check_tensors(ArchiveSource(*archive), tiny, uri);
  };
  tensors.pop_back();
  try {
    check();
    FAIL() << "accepted";
  } catch (const Failure& f) {
    EXPECT_THAT(format(f), HasSubstr("missing: " + last.substr(6)));
  }
  std::erase_if(tensors, [](const auto& t) {
    return t.first.find("e_score_correction_bias") != std::string::npos;
  });
  EXPECT_NO_THROW(check());
}

TEST_F(StateIoTest, IntegersAreNoWeights) {
  auto tensors = all_tensors(tiny);
  tensors[0].second = tensors[0].second.to(at::kInt);
  save(tensors, tiny.to_json().dump());
  const OpenArchive archive = opener.open(uri);
  try {
    check_tensors(ArchiveSource(*archive), tiny, uri);
    FAIL() << "accepted";
  } catch (const Failure& f) {
    EXPECT_THAT(format(f), HasSubstr("expected a floating-point type"));
  }
}

TEST_F(StateIoTest, AnotherModelIsStorageFailureThatNamesTheFields) {
  ModelConfig other = tiny;
  other.hidden_size = 256;
  save({}, other.to_json().dump());
  const OpenArchive archive = opener.open(uri);
  EXPECT_NO_THROW(check_same_model(*archive, other));
  try {
    check_same_model(*archive, tiny);
    FAIL() << "accepted";
  } catch (const Failure& f) {
    EXPECT_EQ(f.code(), ExitCode::Storage);
    EXPECT_THAT(f.what(), HasSubstr("hidden_size 256 there, 128 here"));
  }
}

TEST_F(StateIoTest, WhatNoPluginKnowsIsRefused) {
  folder.write("text.txt", "hello");
  EXPECT_THROW((void)opener.open(folder.file("text.txt")), Failure);
  EXPECT_THROW((void)opener.open(folder.file("nothing")), Failure);
}

}  // namespace
}  // namespace ciuic::core
