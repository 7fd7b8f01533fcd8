// SPDX-License-Identifier: MIT
//
// What N ranks saved, M ranks read. Ranks are threads.
#include <cstring>

#include <ciuic/testing/numbers.hpp>

#include "checkpoint_tests.hpp"
#include "ranks.hpp"

namespace ciuic::testing::checkpoint {
namespace {

/// Tensors that divide over no number of ranks, next to empty and scalar ones.
State uneven_state(uint64_t seed) {
  State state = model_state(seed);
  state["value/uneven"] = random_tensor(kF32, {7, 3, 5}, seed + 20);
  state["value/tiny"] = random_tensor(kF32, {2}, seed + 21);
  state["value/scalar"] = random_tensor(kF32, {}, seed + 22);
  state["value/empty"] = random_tensor(kF32, {0, 3}, seed + 23);
  state["value/bytes"] = random_tensor(kBF16, {1031}, seed + 24);
  return state;
}

void reshard(const TestContext& context, int from, int to) {
  const State state = uneven_state(context.seed);
  MemoryFiles files;
  files.make_directory(kFolder);
  IoPlan plan;
  {
    Ranks writers(context, files, plan, from);
    writers.save(kUri, 1, state);
    writers.finish();
  }
  const std::string how =
      "saved by " + std::to_string(from) + " ranks, read by " + std::to_string(to);
  {
    Ranks readers(context, files, plan, to);
    const std::string wrong = difference(readers.load(kUri), state);
    require(wrong.empty(), how + ": " + wrong);
    readers.finish();
  }
  require_saved(context, files, kUri, state, how + ", then by one");
}

struct Box {
  std::vector<int64_t> offset, extent;
};

/// In two puts, each a flat range of the box.
void put_box(const OpenArchive& archive, const Value& v, const Box& box) {
  const int64_t elements = box.extent[0] * box.extent[1];
  for (const int64_t begin : {int64_t{0}, elements / 2}) {
    const int64_t count = begin == 0 ? elements / 2 : elements - elements / 2;
    const Place place(v.shape, box.offset, box.extent, begin);
    std::string bytes(static_cast<size_t>(count) * 4, '\0');
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(global_index(place.c(), begin + i)) * 4;
      std::memcpy(&bytes[static_cast<size_t>(i) * 4], &v.bytes[at], 4);
    }
    archive.put_at("value/matrix", place.c(), Tensor(bytes.data(), v.dtype, {count}).c());
  }
}

void save_boxes(const TestContext& context, Box (*box_of)(int rank)) {
  const State state = {{"config.json", blob("{}")},
                       {"value/matrix", random_tensor(kF32, {7, 6}, context.seed)}};
  if (has_feature(context, "writer:rank0")) {
    throw NotOffered("the plugin is written by rank 0 alone (writer:rank0)");
  }
  MemoryFiles files;
  files.make_directory(kFolder);
  IoPlan plan;
  Ranks ranks(context, files, plan, 4);
  const auto errors = ranks.run([&](CheckpointRank& r) {
    const OpenArchive archive = r.begin(kUri, 1, state);
    if (r.rank() == 0) {
      archive.put_blob("config.json", "{}");
    }
    put_box(archive, state.at("value/matrix"), box_of(r.rank()));
    archive.commit();
  });
  for (const auto& error : errors) {
    if (error && error->code() == CIUIC_UNIMPLEMENTED) {
      throw NotOffered(error->what());
    }
  }
  require(!errors[0], "saving boxes failed: " + std::string(errors[0] ? errors[0]->what() : ""));
  require_saved(context, files, kUri, state, "saved as boxes by four ranks");
  Ranks readers(context, files, plan, 3);
  const std::string wrong = difference(readers.load(kUri), state);
  require(wrong.empty(), "saved as boxes, read by three ranks: " + wrong);
}

}  // namespace

void ranks_say_so(const TestContext& context) {
  const State state = uneven_state(context.seed);
  MemoryFiles files;
  files.make_directory(kFolder);
  IoPlan plan;
  Ranks ranks(context, files, plan, 2);
  if (!has_feature(context, "writer:rank0")) {
    ranks.save(kUri, 1, state);
    require_saved(context, files, kUri, state, "saved by two ranks");
    return;
  }
  // Rank 0 puts all, and what another rank puts is refused aloud.
  ranks.save(kUri, 1, state);
  require_saved(context, files, kUri, state, "saved by rank 0 of two (writer:rank0)");
  Ranks again(context, files, plan, 2);
  const std::string uri = std::string(kUri) + "-other";
  const Value& v = state.at("value/uneven");
  const auto errors = again.run([&](CheckpointRank& r) {
    const OpenArchive archive = r.begin(uri, 1, {});
    archive.put("value/uneven", v, share_of(v.elements(), r.rank(), 2));
    archive.commit();
  });
  require(errors[0].has_value() && errors[1].has_value(),
          "a plugin with the feature writer:rank0 accepted a tensor of rank 1; it must fail the "
          "put or the commit on all ranks");
}

void reshard_1_to_3(const TestContext& context) { reshard(context, 1, 3); }
void reshard_4_to_2(const TestContext& context) { reshard(context, 4, 2); }

// A [7, 6] matrix as boxes, each again cut in two flat ranges, as a sharded optimizer on
// model-parallel pieces has them: eight puts by four ranks.
void reshard_rows(const TestContext& context) {
  save_boxes(context, [](int rank) { return Box{{rank * 2, 0}, {rank == 3 ? 1 : 2, 6}}; });
}
void reshard_boxes(const TestContext& context) {
  save_boxes(context, [](int rank) {
    return Box{{rank / 2 * 4, rank % 2 * 3}, {rank / 2 == 0 ? 4 : 3, 3}};
  });
}

}  // namespace ciuic::testing::checkpoint
