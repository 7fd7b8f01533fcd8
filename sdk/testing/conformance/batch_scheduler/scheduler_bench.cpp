// SPDX-License-Identifier: MIT
#include "scheduler_bench.hpp"

#include <algorithm>
#include <cstring>

namespace ciuic::testing {
namespace {

bool is_refusal(const Error& error) {
  return error.code() == CIUIC_INVALID || error.code() == CIUIC_UNIMPLEMENTED ||
         error.code() == CIUIC_PRECONDITION;
}

bool takes_world(const TestContext& context, int32_t world) {
  ReferenceData data(ReferenceData::uniform(32, kRowTokens));
  try {
    const SchedulerBench bench(context, data, {0, world, {CIUIC_DEVICE_CPU, 0}});
    (void)bench.plan(Cursor{});
    return true;
  } catch (const Error& error) {
    if (!is_refusal(error)) {
      throw;
    }
    return false;
  }
}

}  // namespace

std::string to_text(const ciuic_batch_item& i) {
  return "{sample " + std::to_string(i.sample) + ", offset " + std::to_string(i.offset) +
         ", length " + std::to_string(i.length) + ", rank " + std::to_string(i.rank) +
         ", micro_batch " + std::to_string(i.micro_batch) + ", row " + std::to_string(i.row) +
         ", position " + std::to_string(i.position) + ", flags " + std::to_string(i.flags) + "}";
}

std::string to_text(const ciuic_batch_request& r) {
  return "plan(step " + std::to_string(r.step) + ", consumed_samples " +
         std::to_string(r.consumed_samples) + ", attempt " + std::to_string(r.attempt) +
         ", world " + std::to_string(r.world) + ", only_rank " + std::to_string(r.only_rank) +
         ", row_tokens " + std::to_string(r.row_tokens) + ")";
}

std::string difference(const Plan& got, const Plan& expected) {
  const auto counts = [](const Plan& p) {
    return std::to_string(p.items.size()) + " items, " + std::to_string(p.micro_batches) +
           " micro-batches, row_tokens " + std::to_string(p.row_tokens) + ", " +
           std::to_string(p.samples) + " samples, " + std::to_string(p.tokens) + " tokens";
  };
  if (counts(got) != counts(expected)) {
    return "got " + counts(got) + "; expected " + counts(expected);
  }
  for (size_t i = 0; i < got.items.size(); ++i) {
    if (std::memcmp(&got.items[i], &expected.items[i], sizeof(ciuic_batch_item)) != 0) {
      return "item " + std::to_string(i) + ": got " + to_text(got.items[i]) + ", expected " +
             to_text(expected.items[i]);
    }
  }
  return {};
}

SchedulerBench::SchedulerBench(const TestContext& context, ReferenceData& data, Seat seat)
    : descriptor_(context.plugin.descriptor()),
      threads_(host_.host(), 2),
      data_(data),
      seed_(context.seed),
      world_(static_cast<uint32_t>(seat.world)),
      instance_([&] {
        host_.offer("ciuic.data", data.table());
        host_.offer("ciuic.threads", threads_.table());
        return context.create(host_, {}, seat);
      }()) {}

ciuic_batch_request SchedulerBench::request(const Cursor& cursor, int32_t only_rank) const {
  ciuic_batch_request r{};
  r.struct_size = sizeof(r);
  r.seed = seed_;
  r.epoch = data_.rows() == 0 ? 0 : cursor.samples / data_.rows();
  r.step = cursor.step;
  r.consumed_samples = cursor.samples;
  r.consumed_tokens = cursor.tokens;
  r.world = world_;
  r.only_rank = only_rank;
  r.row_tokens = kRowTokens;
  return r;
}

Plan SchedulerBench::plan(const ciuic_batch_request& request) const {
  const GuardedStruct<ciuic_batch_request> in(request);
  const GuardedStruct<ciuic_batch_plan> out;
  instance_.check(
      instance_.table<ciuic_batch_scheduler_vt>().plan(instance_.self(), in.get(), out.get()));
  in.forbid();
  Plan plan{{}, out->micro_batches, out->row_tokens, out->samples, out->tokens};
  require(out->items.count == 0 || out->items.stride >= sizeof(ciuic_batch_item),
          to_text(request) + ": the items' stride is " + std::to_string(out->items.stride) +
              ", smaller than a ciuic_batch_item (" + std::to_string(sizeof(ciuic_batch_item)) +
              ")");
  for (const ciuic_batch_item& item : ArrayView<ciuic_batch_item>(out->items)) {
    plan.items.push_back(item);
  }
  return plan;
}

void SchedulerBench::observe(uint64_t step, uint32_t attempt,
                             const std::vector<ciuic_rank_report>& reports) const {
  const GuardedArray<ciuic_rank_report> all(reports, 16);  // as from a newer host
  instance_.check(instance_.table<ciuic_batch_scheduler_vt>().observe(instance_.self(), step,
                                                                      attempt, all.c()));
  all.forbid();
}

void SchedulerBench::save(MemoryState& state) const {
  if (descriptor_.state_save != nullptr) {
    instance_.save(state);
  }
}
void SchedulerBench::load(MemoryState& state) const {
  if (descriptor_.state_load != nullptr) {
    instance_.load(state);
  }
}

Cursor after(const Cursor& cursor, const Plan& plan) {
  require(plan.samples > 0, "the plan of step " + std::to_string(cursor.step) +
                                " has no samples although there is data: the run would not end");
  return {cursor.step + 1, cursor.samples + plan.samples, cursor.tokens + plan.tokens};
}

std::vector<Cursor> first_steps(const SchedulerBench& bench, int steps) {
  std::vector<Cursor> out{Cursor{}};
  while (static_cast<int>(out.size()) < steps) {
    out.push_back(after(out.back(), bench.plan(out.back())));
  }
  return out;
}

std::vector<int32_t> accepted_worlds(const TestContext& context) {
  std::vector<int32_t> out;
  for (int32_t world = 1; world <= kWorlds; ++world) {
    if (takes_world(context, world)) {
      out.push_back(world);
    }
  }
  require(!out.empty(),
          "with its options the plugin takes none of the world sizes 1 to 8; choose "
          "others with --set");
  return out;
}

int32_t largest_world(const TestContext& context, int32_t limit) {
  int32_t out = 1;
  for (const int32_t world : accepted_worlds(context)) {
    out = world <= limit ? world : out;
  }
  return out;
}

std::vector<std::vector<uint64_t>> data_sets(const TestContext& context, uint64_t rows) {
  std::vector<std::vector<uint64_t>> out{ReferenceData::uniform(rows, kRowTokens)};
  if (has_feature(context.plugin.descriptor(), kPacks)) {
    out.push_back(ReferenceData::documents(rows, kRowTokens, context.seed));
    out.push_back(ReferenceData::documents(rows, 3 * kRowTokens, context.seed + 1));
  }
  return out;
}

}  // namespace ciuic::testing
