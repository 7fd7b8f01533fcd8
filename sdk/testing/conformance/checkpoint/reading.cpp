// SPDX-License-Identifier: MIT
//
// list and get.
#include <cstring>
#include <random>

#include <ciuic/testing/numbers.hpp>

#include "checkpoint_tests.hpp"
#include "ranks.hpp"

namespace ciuic::testing::checkpoint {
namespace {

/// A checkpoint of the model state and an instance to read it with.
struct Saved {
  explicit Saved(const TestContext& context) : state(model_state(context.seed)) {
    files.make_directory(kFolder);
    ranks = std::make_unique<Ranks>(context, files, plan);
    ranks->save(kUri, 1, state);
  }
  State state;
  MemoryFiles files;
  IoPlan plan;
  std::unique_ptr<Ranks> ranks;
};

constexpr const char* kMatrix = "value/embedding.weight";  // f32 [5, 4]

}  // namespace

void list_is_complete(const TestContext& context) {
  const Saved saved(context);
  const OpenArchive archive = saved.ranks->rank().open(kUri);
  State expected = saved.state;
  for (auto& [key, v] : expected) {
    v.bytes.clear();
  }
  for (const char* when : {"first list", "list after a get"}) {
    State got = archive.list();
    const std::string wrong = difference(got, expected);
    require(wrong.empty(), std::string(when) + ": " + wrong);
    (void)archive.get(kMatrix, saved.state.at(kMatrix), {0, 20});
  }
}

void get_ranges(const TestContext& context) {
  const Saved saved(context);
  const OpenArchive archive = saved.ranks->rank().open(kUri);
  for (const auto& [key, v] : saved.state) {
    const int64_t width = v.is_blob ? 0 : dtype_bytes(v.dtype);
    for (int64_t begin = 0; !v.is_blob && begin < v.elements(); ++begin) {
      for (const int64_t count : {int64_t{0}, int64_t{1}, v.elements() - begin}) {
        const std::string got = archive.get(key, v, {begin, count});
        require(got == v.bytes.substr(static_cast<size_t>(begin * width),
                                      static_cast<size_t>(count * width)),
                "get of elements [" + std::to_string(begin) + ", +" + std::to_string(count) +
                    ") of " + key + ", " + describe(v) + ": other bits than saved");
      }
    }
  }
}

void get_boxes(const TestContext& context) {
  const Saved saved(context);
  const Value& v = saved.state.at(kMatrix);
  const OpenArchive archive = saved.ranks->rank().open(kUri);
  // First whole rows, which lie together in every layout; then boxes that do not.
  for (int64_t column = 0; column < 4; ++column) {
    for (int64_t row = 0; row < 5; ++row) {
      const std::vector<int64_t> box = {5 - row, 4 - column};
      const Place place(v.shape, {row, column}, box, 0);
      std::string bytes(static_cast<size_t>(box[0] * box[1] * 4), '\xA5');
      const Tensor into(bytes.data(), v.dtype, box);
      try {
        archive.get_at(kMatrix, place.c(), into.c());
      } catch (const Error& e) {
        require(column > 0 && e.code() == CIUIC_UNIMPLEMENTED,
                std::string("get of a box of ") + kMatrix + ": " + e.what());
        throw NotOffered(std::string(e.what()) + " (boxes of whole rows pass)");
      }
      for (int64_t i = 0; i < box[0] * box[1]; ++i) {
        const auto at = static_cast<size_t>(global_index(place.c(), i)) * 4;
        require(std::memcmp(&bytes[static_cast<size_t>(i) * 4], &v.bytes[at], 4) == 0,
                "get of the box at (" + std::to_string(row) + ", " + std::to_string(column) +
                    ") of " + kMatrix + ": element " + std::to_string(i) + " has other bits");
      }
    }
  }
}

void get_mismatch(const TestContext& context) {
  const Saved saved(context);
  const OpenArchive archive = saved.ranks->rank().open(kUri);
  const Value& v = saved.state.at(kMatrix);
  const auto like = [&](ciuic_dtype dtype, std::vector<int64_t> shape) {
    return random_tensor(dtype, std::move(shape), 0);
  };
  const auto refused = [&](const char* what, const Value& as, Share share) {
    expect_error({CIUIC_INVALID}, what, [&] { (void)archive.get(kMatrix, as, share); });
  };
  refused("get of an f32 tensor as i32 (same width)", like(kI32, v.shape), {0, 20});
  refused("get of an f32 tensor as bf16", like(kBF16, v.shape), {0, 20});
  refused("get of [5,4] with the global shape [4,5]", like(kF32, {4, 5}), {0, 20});
  refused("get of [5,4] with the global shape [20]", like(kF32, {20}), {0, 20});
  refused("get of [5,4] with the global shape [6,4]", like(kF32, {6, 4}), {0, 24});
  refused("get of elements 15 to 25 of 20", v, {15, 10});
  refused("get of a place that begins at -1", v, {-1, 4});
  expect_error({CIUIC_NOT_FOUND}, "get of a key that is not there", [&] {
    (void)archive.get("value/absent", v, {0, 20});
  });
  expect_error({CIUIC_NOT_FOUND}, "get_blob of a key that is not there",
               [&] { (void)archive.get_blob("absent.json"); });
  expect_error({CIUIC_INVALID, CIUIC_NOT_FOUND}, "get of a blob as a tensor", [&] {
    (void)archive.get("config.json", like(kU8, {18}), {0, 18});
  });
  expect_error({CIUIC_INVALID, CIUIC_NOT_FOUND}, "get_blob of a tensor",
               [&] { (void)archive.get_blob(kMatrix); });
  expect_error({CIUIC_NOT_FOUND}, "verify of a key that is not there",
               [&] { archive.verify("value/absent"); });
  require(archive.get(kMatrix, v, {0, 20}) == v.bytes,
          "after refused calls a good get returns other bits");
}

void read_while_saving(const TestContext& context) {
  const Saved saved(context);
  const State later = model_state(context.seed + 50);
  const std::string uri = std::string(kUri) + "-later";
  const OpenArchive reader = saved.ranks->rank().open(kUri);
  {
    const OpenArchive writer = saved.ranks->rank().begin(uri, 2, later);
    for (const auto& [key, v] : later) {
      v.is_blob ? writer.put_blob(key, v.bytes) : writer.put(key, v, {0, v.elements()});
      const std::string wrong = difference(reader.read(), saved.state);
      require(wrong.empty(), "read while another checkpoint is saved: " + wrong);
    }
    writer.commit();
  }
  require_saved(context, const_cast<MemoryFiles&>(saved.files), uri, later,
                "saved beside a reader");
  require(difference(reader.read(), saved.state).empty(), "the open archive changed");
}

}  // namespace ciuic::testing::checkpoint
