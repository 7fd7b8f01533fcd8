// SPDX-License-Identifier: MIT
#include "gradients.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "parameters.h"

namespace ciuic::plugins::ddp {
namespace {

constexpr int64_t kStatsBytes = 2 * sizeof(double);

std::string label_of(const Bucket& b) {
  const std::string first = std::to_string(b.units.front());
  const std::string last = std::to_string(b.units.back());
  return first == last ? "gradients unit " + first : "gradients units " + first + "-" + last;
}

}  // namespace

Gradients::Gradients(const Host& host, ciuic_device device, const ciuic_shard_plan& plan,
                     Settings settings)
    : host_(host),
      params_(plan.params),
      rank_(plan.rank),
      world_(plan.world),
      names_bad_rank_(settings.name_bad_rank && plan.world > 1),
      ops_(host),
      stored_(params_.size()),
      sums_(params_.size(), nullptr) {
  uint32_t units = 0;
  for (const ciuic_param& p : params_) {
    units = std::max(units, p.unit + 1);
  }
  is_ready_.resize(units);
  buckets_of_unit_.resize(units);
  for (Bucket& planned : plan_buckets(params_, settings.bucket_bytes)) {
    Filled& bucket = buckets_.emplace_back();
    bucket.plan = std::move(planned);
    bucket.label = label_of(bucket.plan);
    bucket.group = &find_group(plan.groups, params_[bucket.plan.params[0]]);
    is_uniform_ = is_uniform_ && bucket.group->size == world_;
    for (const uint32_t unit : bucket.plan.units) {
      buckets_of_unit_[unit].push_back(buckets_.size() - 1);
    }
    check_transport(bucket, device);
  }
  allocate(device);
  begin_step();
}

Gradients::~Gradients() {
  for (const Filled& bucket : buckets_) {
    try {
      bucket.work.wait(host_);
    } catch (const std::exception&) {  // nobody is left to hear of it
    }
  }
}

void Gradients::check_transport(const Filled& bucket, ciuic_device device) const {
  if (!bucket.travels()) {
    return;
  }
  const ciuic_group& g = *bucket.group;
  uint64_t bits = 0;
  host_.check(g.vt->capabilities(g.self, CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_SUM, bucket.plan.reduce,
                                 device, &bits));
  if ((bits & CIUIC_COMM_SUPPORTED) == 0) {
    throw Error(CIUIC_UNIMPLEMENTED, "sharding ddp: the communicator of group " +
                                         std::string(to_view(g.name)) + " cannot sum " +
                                         dtype_name(bucket.plan.reduce));
  }
}

// ---- memory ----

void Gradients::allocate(ciuic_device device) {
  int64_t gradient_bytes = 0;
  int64_t wire_bytes = 0;
  for (const Filled& b : buckets_) {
    gradient_bytes += b.plan.bytes;
    wire_bytes += b.wire_bytes();
  }
  const auto take = [&](int64_t bytes) {
    Buffer& memory = memory_.emplace_back(host_, device, static_cast<size_t>(bytes));
    ops_.fill(Tensor(memory.data(), kF32, {bytes / 4}, device), 0);
    return memory.bytes();
  };
  char* gradients = take(gradient_bytes);
  char* wire = take(wire_bytes);
  const auto num_buckets = static_cast<int64_t>(buckets_.size());
  char* stats = take(kStatsBytes * (num_buckets + 1));
  own_stats_ = Tensor(stats, kF64, {2 * num_buckets}, device);
  total_stats_ = Tensor(stats + kStatsBytes * num_buckets, kF64, {2}, device);

  for (size_t i = 0; i < buckets_.size(); ++i) {
    Filled& b = buckets_[i];
    place(i, gradients, device);
    b.wire = b.is_cast() ? Tensor(wire, b.plan.reduce, {b.elements()}, device) : b.gradients;
    b.own_stats = Tensor(stats, kF64, {2}, device);
    gradients += b.plan.bytes;
    wire += b.wire_bytes();
    stats += kStatsBytes;
  }
  for (uint64_t id = 0; id < params_.size(); ++id) {
    const ciuic_param& p = params_[id];
    Stored& s = stored_[id];
    s.view = Tensor(stored_[root_of(params_, id)].flat.c().t.data, p.grad,
                    {p.shape, p.shape + p.ndim}, device);
    s.view.named(to_view(p.name));
    sums_[id] = has_gradient(p) ? s.flat.ptr() : nullptr;
  }
}

void Gradients::place(size_t index, char* memory, ciuic_device device) {
  Filled& bucket = buckets_[index];
  bucket.gradients = Tensor(memory, bucket.plan.grad, {bucket.elements()}, device);
  int64_t run_begin =
      0;  // of neighbours that count in the norm; padding is zero and may lie inside
  int64_t at = 0;
  const auto end_run = [&] {
    if (run_begin < at) {
      const int64_t elements = (at - run_begin) / dtype_bytes(bucket.plan.grad);
      bucket.in_norm.emplace_back(memory + run_begin, bucket.plan.grad,
                                  std::vector<int64_t>{elements}, device);
    }
  };
  for (const uint64_t id : bucket.plan.params) {
    const ciuic_param& p = params_[id];
    stored_[id].flat = Tensor(memory + at, p.grad, {p.num_elements}, device);
    stored_[id].flat.named(to_view(p.name));
    stored_[id].bucket = index;
    const int64_t next = at + aligned(bytes_of(p, p.grad));
    if ((p.flags & CIUIC_PARAM_IN_NORM) == 0) {
      end_run();
      run_begin = next;
    }
    at = next;
  }
  end_run();
}

// ---- one step ----

void Gradients::begin_step() {
  drain(nullptr);
  for (Stored& s : stored_) {
    s.is_written = s.is_pending = false;
  }
  for (Filled& b : buckets_) {
    b.units_missing = b.plan.units.size();
  }
  std::fill(is_ready_.begin(), is_ready_.end(), false);
  is_flushed_ = false;
  submitted_ = drained_ = 0;
  if (names_bad_rank_) {
    ops_.fill(own_stats_, 0);
  }
}

Gradients::Target Gradients::bind(uint64_t param, bool is_idle, const ciuic_stream* stream) {
  const uint64_t root = root_of(params_, param);
  Stored& s = stored_[root];
  if ((params_[root].flags & CIUIC_PARAM_FROZEN) != 0) {
    return {nullptr, false};
  }
  if (!has_gradient(params_[root])) {
    return {stored_[param].view.ptr(), false};
  }
  if (s.bucket < submitted_) {
    throw Error(CIUIC_PRECONDITION, "sharding ddp: the gradient of " +
                                        std::string(to_view(params_[root].name)) +
                                        " is wanted after its sum was started");
  }
  const bool is_first = !std::exchange(s.is_written, true);
  if (is_first && is_idle) {
    ops_.fill(s.flat, 0, stream);
  }
  s.is_pending = s.is_pending || (is_first && !is_idle);
  return {stored_[param].view.ptr(), is_first && !is_idle};
}

void Gradients::written(uint64_t param, bool is_idle, const ciuic_stream* stream) {
  Stored& s = stored_[root_of(params_, param)];
  if (std::exchange(s.is_pending, false) && is_idle) {
    ops_.fill(s.flat, 0, stream);
  }
}

void Gradients::unit_ready(uint32_t unit, const ciuic_stream* stream) {
  if (is_ready_[unit]) {
    throw Error(CIUIC_PRECONDITION, "sharding ddp: unit " + std::to_string(unit) +
                                        " reports its last gradient twice in one step");
  }
  is_ready_[unit] = true;
  for (const size_t b : buckets_of_unit_[unit]) {
    --buckets_[b].units_missing;
  }
  submit_ready(stream);
}

void Gradients::flush(const ciuic_stream* stream) {
  for (Filled& b : buckets_) {
    b.units_missing = 0;
  }
  submit_ready(stream);
  is_flushed_ = true;
}

void Gradients::submit_ready(const ciuic_stream* stream) {
  while (submitted_ < buckets_.size() && buckets_[submitted_].units_missing == 0) {
    submit(buckets_[submitted_], stream);
    ++submitted_;
  }
}

void Gradients::submit(Filled& bucket, const ciuic_stream* stream) {
  for (const uint64_t id : bucket.plan.params) {
    if (!std::exchange(stored_[id].is_written, true)) {
      ops_.fill(stored_[id].flat, 0, stream);
    }
  }
  if (names_bad_rank_) {
    ops_.add_stats(bucket.gradients, bucket.own_stats, stream);
  }
  if (!bucket.travels()) {
    return;
  }
  if (bucket.is_cast()) {
    ops_.copy(bucket.gradients, bucket.wire, stream);
  }
  ciuic_collective c{};
  c.struct_size = sizeof(c);
  c.op = CIUIC_OP_ALL_REDUCE;
  c.reduce = CIUIC_REDUCE_SUM;
  c.sequence = ++sequence_;
  c.in = c.out = bucket.wire.ptr();
  c.label = to_str(bucket.label);
  ciuic_work* work = nullptr;
  const ciuic_group& g = *bucket.group;
  host_.check(g.vt->submit(g.self, {&c, 1, sizeof(c)}, stream, &work));
  bucket.work = Work(work);
}

void Gradients::drain(const ciuic_stream* stream) {
  for (; drained_ < submitted_; ++drained_) {
    Filled& bucket = buckets_[drained_];
    try {
      bucket.work.wait(host_);
    } catch (const Error& e) {
      throw Error(e.code(), bucket.label + ": " + e.what(), e.peer(), e.flags());
    }
    bucket.work = Work();
    if (bucket.is_cast()) {
      ops_.copy(bucket.wire, bucket.gradients, stream);
    }
  }
}

void Gradients::check_flushed() const {
  if (!is_flushed_) {
    throw Error(CIUIC_PRECONDITION, "sharding ddp: gradients are asked for before end_backward");
  }
}

const std::vector<const ciuic_tensor*>& Gradients::sums(const ciuic_stream* stream) {
  check_flushed();
  drain(stream);
  return sums_;
}

void Gradients::rollback(int64_t timeout_ns) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::nanoseconds(timeout_ns);
  for (Filled& bucket : buckets_) {
    int64_t left = timeout_ns;
    if (timeout_ns > 0) {
      left = std::max<int64_t>(std::chrono::nanoseconds(deadline - Clock::now()).count(), 0);
    }
    try {
      bucket.work.wait(host_, left);
    } catch (const Error& e) {
      if (e.code() == CIUIC_DEADLINE && left >= 0) {
        throw;  // still running: its bucket may not be touched
      }
    }  // any other failure is one of the gradients that are being forgotten
    bucket.work = Work();
  }
  drained_ = submitted_;
  begin_step();
}

}  // namespace ciuic::plugins::ddp
