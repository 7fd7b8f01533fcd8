// SPDX-License-Identifier: MIT
//
// What was saved comes back, bit for bit.
#include <chrono>
#include <cstring>

#include <ciuic/testing/disk_files.hpp>
#include <ciuic/testing/numbers.hpp>

#include "checkpoint_tests.hpp"
#include "ranks.hpp"

namespace ciuic::testing::checkpoint {
namespace {

/// Saves and reads back on one rank.
void round_trip(const TestContext& context, const State& state) {
  MemoryFiles files;
  files.make_directory(kFolder);
  IoPlan plan;
  Ranks ranks(context, files, plan);
  ranks.save(kUri, 1, state);
  const std::string wrong = difference(ranks.load(kUri), state);
  require(wrong.empty(), "saved and read back: " + wrong);
  ranks.rank().open(kUri).verify();
  ranks.finish();
}

/// A state around the tensors that a test is about.
State with_config(State state) {
  state.emplace("config.json", blob("{}"));
  return state;
}

}  // namespace

void round_trip_model(const TestContext& context) {
  try {
    round_trip(context, model_state(context.seed));
  } catch (const NotOffered& e) {
    throw CheckFailed(std::string("parameters (value/..., f32 and bf16) and config.json must be "
                                  "held by every checkpoint plugin: ") +
                      e.what());
  }
}

void round_trip_training(const TestContext& context) {
  round_trip(context, training_state(context.seed));
}

void round_trip_dtypes(const TestContext& context) {
  const auto integer = [](uint8_t code, uint8_t bits) { return ciuic_dtype{code, bits, 1}; };
  std::vector<ciuic_dtype> dtypes = {kF64, kF32, kF16, kBF16, kBool, kF8E4M3, kF8E5M2};
  for (const uint8_t bits : {8, 16, 32, 64}) {
    dtypes.push_back(integer(CIUIC_DTYPE_INT, bits));
    dtypes.push_back(integer(CIUIC_DTYPE_UINT, bits));
  }
  std::string refused;
  for (const ciuic_dtype dtype : dtypes) {
    try {
      round_trip(context, with_config({{"value/t", random_tensor(dtype, {3, 43}, context.seed)}}));
    } catch (const NotOffered& e) {
      require(!same(dtype, kF32) && !same(dtype, kBF16), std::string("refused: ") + e.what());
      refused += " " + dtype_name(dtype);
    }
  }
  if (!refused.empty()) {
    throw NotOffered("the plugin does not hold" + refused + "; the other types pass");
  }
}

void round_trip_shapes(const TestContext& context) {
  const std::vector<std::vector<int64_t>> shapes = {
      {},        {1},   {1, 1, 1}, {0},       {0, 7},       {7, 0},
      {3, 0, 2}, {127}, {129},     {2, 3, 5}, {1025, 1, 3}, {2, 1, 2, 1, 2, 1, 2, 1}};
  State state;
  for (size_t i = 0; i < shapes.size(); ++i) {
    state["value/shape" + std::to_string(i)] = random_tensor(kF32, shapes[i], context.seed + i);
  }
  round_trip(context, with_config(state));
}

void round_trip_strided(const TestContext& context) {
  // A 4 x 6 matrix seen three ways: transposed, every second column, and a middle part by offset.
  const Value base = random_tensor(kF32, {4, 6}, context.seed);
  struct View {
    const char* key;
    std::vector<int64_t> shape, strides;
    uint64_t byte_offset;
  };
  std::vector<View> views = {{"value/transposed", {6, 4}, {1, 6}, 0},
                             {"value/columns", {4, 3}, {6, 2}, 4},
                             {"value/part", {2, 3}, {6, 1}, 32},
                             {"value/repeated", {5, 6}, {0, 1}, 24}};
  State expected = with_config({});
  MemoryFiles files;
  files.make_directory(kFolder);
  IoPlan plan;
  Ranks ranks(context, files, plan);
  ciuic_tensor t{};
  t.struct_size = sizeof(t);
  const auto view = [&](View& v, char* data) {
    t.t = {data,         {CIUIC_DEVICE_CPU, 0}, static_cast<int32_t>(v.shape.size()),
           kF32,         v.shape.data(),        v.strides.data(),
           v.byte_offset};
    return t;
  };
  std::string source = base.bytes;
  for (View& v : views) {
    Value value = random_tensor(kF32, v.shape, 0);
    const ciuic_tensor from = view(v, source.data());
    for (int64_t i = 0; i < value.elements(); ++i) {
      std::memcpy(&value.bytes[static_cast<size_t>(i) * 4], element_at(from, i), 4);
    }
    expected[v.key] = value;
  }
  const OpenArchive save = ranks.rank().begin(kUri, 1, expected);
  save.put_blob("config.json", "{}");
  for (View& v : views) {
    save.put_at(v.key, Place(v.shape).c(), view(v, source.data()));
  }
  save.commit();
  const std::string wrong = difference(ranks.load(kUri), expected);
  require(wrong.empty(), "saved from strided tensors: " + wrong);
  views.pop_back();  // elements that lie on each other can be no destination
  const OpenArchive archive = ranks.rank().open(kUri);
  for (View& v : views) {
    std::string target(source.size(), '\x11');
    std::string want = target;
    const ciuic_tensor into = view(v, want.data());
    for (int64_t i = 0; i < expected[v.key].elements(); ++i) {
      std::memcpy(element_at(into, i), &expected[v.key].bytes[static_cast<size_t>(i) * 4], 4);
    }
    archive.get_at(v.key, Place(v.shape).c(), view(v, target.data()));
    require(target == want, std::string("get of ") + v.key +
                                " into strided memory: other elements, or bytes between them "
                                "were written");
  }
}

void round_trip_keys(const TestContext& context) {
  State state;
  uint64_t seed = context.seed;
  for (const char* name :
       {"with space", " leading", "trailing ", "quote\"s",  "back\\slash",
        "brace{}",    "colon:",   "a",         "a'",        "a''",
        "a[0:3]",     "a[0:3]'",  "a.b",       "A",         "a/b",
        "a/b/c",      "%s%n%x",   "*?",        "~",         "\xC3\xBC\xE6\xBC\xA2\xF0\x9F\x99\x82",
        "0",          "null",     "-",         "e\xCC\x81", "\xC3\xA9"}) {
    state[std::string("value/") + name] = random_tensor(kF32, {6}, ++seed);
  }
  state["value/" + std::string(300, 'n')] = random_tensor(kF32, {6}, ++seed);
  round_trip(context, with_config(state));
}

void round_trip_blobs(const TestContext& context) {
  State state = model_state(context.seed);
  state["empty"] = blob("");
  state["train.json"] = blob("{}");
  std::string all;
  for (int i = 0; i < 256; ++i) {
    all += static_cast<char>(i);
  }
  state["binary"] = blob(all);
  state["large"] = blob(random_tensor(kU8, {1 << 20}, context.seed).bytes);
  round_trip(context, state);
}

void round_trip_many(const TestContext& context) {
  using Clock = std::chrono::steady_clock;
  const auto of_size = [&](int count) {
    State state;
    for (int i = 0; i < count; ++i) {
      state["value/layers." + std::to_string(i) + ".weight"] =
          random_tensor(kF32, {1 + i % 7, 1 + i % 3}, context.seed + static_cast<uint64_t>(i));
    }
    return with_config(state);
  };
  const auto begin = Clock::now();
  round_trip(context, of_size(500));
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  // Quadratic growth is slow and not wrong: the full number only where it fits into the limit.
  const bool fits = seconds * 20 < 10 * context.patience;
  round_trip(context, of_size(fits ? 10'000 : 1'000));
}

void round_trip_disk(const TestContext& context) {
  DiskFiles files;
  IoPlan plan;
  const std::string folder = context.scratch + "/runs";
  files.make_directory(folder);
  Ranks ranks(context, files, plan);
  for (const uint64_t step : {1, 2}) {
    const State state = model_state(context.seed + step * 100);
    const std::string uri = folder + "/step-" + std::to_string(step);
    ranks.save(uri, step, state);
    const std::string wrong = difference(ranks.load(uri), state);
    require(wrong.empty(), "saved and read back on disk: " + wrong);
  }
  std::vector<std::string> names;
  files.list(folder, [&](const std::string& name, uint64_t) { names.push_back(name); });
  require(names == std::vector<std::string>{"step-1", "step-2"},
          "after two saves " + folder + " holds " + std::to_string(names.size()) +
              " names, expected step-1 and step-2");
}

}  // namespace ciuic::testing::checkpoint
