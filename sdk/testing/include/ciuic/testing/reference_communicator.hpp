// SPDX-License-Identifier: MIT
//
// A communicator whose ranks are threads of one process. Submit never blocks: the last rank to
// arrive at a collective computes it for all, in rank order, so results have the same bits every
// time. Other transports are compared with this one.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ciuic/communicator.hpp>
#include <ciuic/testing/numbers.hpp>

namespace ciuic::testing {

/// A collective with everything it points at, copied at submit.
struct Operation {
  explicit Operation(const ciuic_collective& c, int world)
      : op(c.op),
        reduce(c.reduce),
        tag(c.tag),
        peer(c.peer),
        factor(c.factor == 0 ? 1 : c.factor),
        label(to_view(c.label)),
        in_counts(copy(c.in_counts, world)),
        in_offsets(copy(c.in_offsets, world)),
        out_counts(copy(c.out_counts, world)),
        out_offsets(copy(c.out_offsets, world)) {
    if (c.in != nullptr) {
      in = static_cast<const char*>(tensor_data(*c.in));
      in_elements = num_elements(*c.in);
      dtype = c.in->t.dtype;
    }
    if (c.out != nullptr) {
      out = static_cast<char*>(tensor_data(*c.out));
      out_elements = num_elements(*c.out);
      dtype = c.out->t.dtype;
    }
  }

  static std::vector<int64_t> copy(const int64_t* values, int world) {
    return values == nullptr ? std::vector<int64_t>()
                             : std::vector<int64_t>(values, values + world);
  }

  uint32_t op, reduce, tag;
  int32_t peer;
  double factor;
  std::string label;
  std::vector<int64_t> in_counts, in_offsets, out_counts, out_offsets;
  ciuic_dtype dtype = kU8;
  const char* in = nullptr;
  char* out = nullptr;
  int64_t in_elements = 0;
  int64_t out_elements = 0;
};

namespace detail {

/// Bytes [begin, begin + size) of a buffer that is cut over the ranks.
struct Part {
  int64_t begin;
  int64_t size;
};
inline Part part_of(const Operation& o, const std::vector<int64_t>& counts,
                    const std::vector<int64_t>& offsets, int64_t elements, int rank, int world) {
  const int64_t bytes = dtype_bytes(o.dtype);
  if (counts.empty()) {
    return {elements / world * rank * bytes, elements / world * bytes};
  }
  int64_t begin = 0;
  for (int r = 0; r < rank; ++r) {
    begin += counts[static_cast<size_t>(r)];
  }
  if (!offsets.empty()) {
    begin = offsets[static_cast<size_t>(rank)];
  }
  return {begin * bytes, counts[static_cast<size_t>(rank)] * bytes};
}

template <typename Wide>
Wide combine(uint32_t reduce, Wide a, Wide b) {
  switch (reduce) {
    case CIUIC_REDUCE_SUM:
    case CIUIC_REDUCE_AVG:
      return a + b;
    case CIUIC_REDUCE_MIN:
      return b != b || b < a ? b : a;
    case CIUIC_REDUCE_MAX:
      return b != b || b > a ? b : a;
    case CIUIC_REDUCE_PROD:
      return a * b;
    default:
      break;
  }
  if constexpr (std::is_integral_v<Wide>) {
    return reduce == CIUIC_REDUCE_OR ? a | b : a & b;
  } else {
    throw Error(CIUIC_UNIMPLEMENTED, "bitwise reductions are for integers");
  }
}

/// One element over the ranks, in rank order, rounded to the type once.
template <typename Wide, typename Load>
Wide reduce_element(const Operation& o, const std::vector<const char*>& inputs, int64_t at,
                    Load load) {
  const auto scaled = [&](size_t r) {
    const Wide x = load(inputs[r] + at);
    return o.factor == 1 ? x : static_cast<Wide>(static_cast<double>(x) * o.factor);
  };
  Wide sum = scaled(0);
  for (size_t r = 1; r < inputs.size(); ++r) {
    sum = combine<Wide>(o.reduce, sum, scaled(r));
  }
  return o.reduce == CIUIC_REDUCE_AVG ? static_cast<Wide>(sum / static_cast<Wide>(inputs.size()))
                                      : sum;
}

/// `bytes` of the inputs, combined.
inline std::vector<char> reduce_bytes(const Operation& o, const std::vector<const char*>& inputs,
                                      int64_t bytes) {
  std::vector<char> out(static_cast<size_t>(bytes));
  for (int64_t at = 0; at < bytes; at += dtype_bytes(o.dtype)) {
    char* to = out.data() + at;
    if (same(o.dtype, kF32)) {
      write_as(to, reduce_element<float>(o, inputs, at,
                                         [](const char* p) { return read_as<float>(p); }));
    } else if (same(o.dtype, kF64) || same(o.dtype, kBF16)) {
      store_element(o.dtype, to, reduce_element<double>(o, inputs, at, [&](const char* p) {
                      return load_element(o.dtype, p);
                    }));
    } else if (same(o.dtype, kI64)) {
      write_as(to, reduce_element<int64_t>(o, inputs, at,
                                           [](const char* p) { return read_as<int64_t>(p); }));
    } else {
      store_element(o.dtype, to,
                    static_cast<double>(reduce_element<int64_t>(o, inputs, at, [&](const char* p) {
                      return static_cast<int64_t>(load_element(o.dtype, p));
                    })));
    }
  }
  return out;
}

}  // namespace detail

/// The place where the ranks of one group meet. Any thread.
class Meeting {
 public:
  explicit Meeting(int world)
      : world_(world),
        next_(static_cast<size_t>(world)),
        splits_(static_cast<size_t>(world)),
        labels_(static_cast<size_t>(world)) {}
  ~Meeting() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_over_ = true;
    }
    came_.notify_all();
    if (thread_.joinable()) {
      thread_.join();
    }
  }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  [[nodiscard]] int world() const noexcept { return world_; }

  /// From now on collectives, also of groups split from this one, are computed by a thread of their
  /// own, each so late: as a transport does, while the ranks go on.
  void execute_late(std::chrono::milliseconds delay) {
    const std::lock_guard<std::mutex> lock(mutex_);
    delay_ = delay;
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { run_late(); });
    }
  }
  /// Capability bits that the group's communicators deny.
  void deny(uint64_t bits) { denied_ = bits; }
  [[nodiscard]] uint64_t denied() const noexcept { return denied_; }

  /// Called before a collective is computed; what it throws fails the collective on all ranks.
  void before_execute(std::function<void(const Operation&)> hook) { hook_ = std::move(hook); }
  /// Labels in the order in which a rank submitted them.
  [[nodiscard]] std::vector<std::string> labels(int rank) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return labels_[static_cast<size_t>(rank)];
  }
  /// Collectives that wait for a rank.
  [[nodiscard]] size_t pending() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return rounds_.size();
  }

  Work arrive(int rank, const Host& host, std::vector<Operation> operations) {
    const Completion done(host);
    std::optional<Round> complete;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      throw_if_aborted();
      const auto r = static_cast<size_t>(rank);
      for (const Operation& o : operations) {
        labels_[r].push_back(o.label);
      }
      if (!operations.empty() && is_pairwise(operations[0])) {
        return arrive_pairwise(rank, done, operations);
      }
      const uint64_t sequence = next_[r]++;
      Round& round = rounds_.try_emplace(sequence, static_cast<size_t>(world_)).first->second;
      round.operations[r] = std::move(operations);
      round.done[r].emplace(done);
      if (++round.arrived == world_) {
        complete.emplace(std::move(round));
        rounds_.erase(sequence);
      }
      if (complete && thread_.joinable()) {
        late_.push_back(std::move(*complete));
        complete.reset();
        came_.notify_all();
      }
    }
    if (complete) {
      execute(*complete);
    }
    return done.work();
  }

  /// Fails what waits, and everything later.
  void abort(const Error& error) {
    std::map<uint64_t, Round> rounds;
    std::map<Pair, std::vector<Parcel>> parcels;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      aborted_ = error;
      rounds.swap(rounds_);
      parcels.swap(parcels_);
      for (auto& [key, child] : children_) {
        child->abort(error);
      }
    }
    for (auto& [sequence, round] : rounds) {
      finish(round, error);
    }
    for (auto& [pair, waiting] : parcels) {
      for (Parcel& parcel : waiting) {
        parcel.share->done.fail(error);
      }
    }
  }
  /// Throws what the meeting was aborted with.
  void check_alive() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    throw_if_aborted();
  }

  /// The meeting of a smaller group; every rank of the parent calls, in the same order.
  std::shared_ptr<Meeting> child(int rank, const std::vector<int32_t>& ranks) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const int nth = splits_[static_cast<size_t>(rank)]++;
    if (ranks.empty()) {
      return nullptr;
    }
    std::shared_ptr<Meeting>& made = children_[{nth, ranks}];
    if (made == nullptr) {
      made = std::make_shared<Meeting>(static_cast<int>(ranks.size()));
      made->deny(denied_);
      if (thread_.joinable()) {
        made->execute_late(delay_);
      }
    }
    return made;
  }

 private:
  struct Round {
    explicit Round(size_t world) : operations(world), done(world) {}
    std::vector<std::vector<Operation>> operations;  // by rank
    std::vector<std::optional<Completion>> done;
    int arrived = 0;
  };
  // Sends and receives meet in pairs; the work of an array of them ends with its last one.
  struct Share {
    Completion done;
    size_t remaining;
  };
  struct Parcel {
    bool is_send;
    Operation operation;
    std::shared_ptr<Share> share;
  };
  struct Pair {
    int from, to;
    uint32_t tag;
    bool operator<(const Pair& o) const {
      return std::tie(from, to, tag) < std::tie(o.from, o.to, o.tag);
    }
  };

  void throw_if_aborted() const {
    if (aborted_) {  // with a text of its own: copies of a std::runtime_error share theirs over
                     // threads
      throw Error(aborted_->code(), std::string(aborted_->what()), aborted_->peer());
    }
  }
  static bool is_pairwise(const Operation& o) {
    return o.op == CIUIC_OP_SEND || o.op == CIUIC_OP_RECV;
  }

  Work arrive_pairwise(int rank, const Completion& done, const std::vector<Operation>& operations) {
    const auto share = std::make_shared<Share>(Share{done, operations.size()});
    for (const Operation& o : operations) {
      const bool is_send = o.op == CIUIC_OP_SEND;
      const Pair pair = is_send ? Pair{rank, o.peer, o.tag} : Pair{o.peer, rank, o.tag};
      std::vector<Parcel>& waiting = parcels_[pair];
      if (waiting.empty() || waiting.front().is_send == is_send) {
        waiting.push_back({is_send, o, share});
        continue;
      }
      const Parcel other = waiting.front();
      waiting.erase(waiting.begin());
      const Operation& source = is_send ? o : other.operation;
      const Operation& target = is_send ? other.operation : o;
      if (target.out_elements > 0) {
        std::memcpy(target.out, source.in,
                    static_cast<size_t>(target.out_elements * dtype_bytes(target.dtype)));
      }
      for (const std::shared_ptr<Share>& part : {share, other.share}) {
        if (--part->remaining == 0) {
          part->done.finish();
        }
      }
    }
    return done.work();
  }

  void run_late() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      came_.wait(lock, [this] { return is_over_ || !late_.empty(); });
      if (late_.empty()) {
        return;
      }
      Round round = std::move(late_.front());
      late_.pop_front();
      const std::chrono::milliseconds delay = delay_;
      lock.unlock();
      std::this_thread::sleep_for(delay);
      execute(round);
      lock.lock();
    }
  }

  void execute(Round& round) {
    try {
      for (size_t i = 0; i < round.operations[0].size(); ++i) {
        std::vector<const Operation*> by_rank;
        for (std::vector<Operation>& operations : round.operations) {
          if (i >= operations.size()) {
            throw Error(CIUIC_INVALID, "ranks submit groups of different sizes");
          }
          by_rank.push_back(&operations[i]);
        }
        check_equal(by_rank);
        if (hook_) {
          hook_(*by_rank[0]);
        }
        compute(by_rank);
      }
      finish(round, std::nullopt);
    } catch (const Error& e) {
      finish(round, e);
    }
  }
  static void finish(const Round& round, const std::optional<Error>& error) {
    for (const std::optional<Completion>& done : round.done) {
      if (done) {
        error ? done->fail(*error) : done->finish();
      }
    }
  }
  static void check_equal(const std::vector<const Operation*>& by_rank) {
    for (size_t r = 1; r < by_rank.size(); ++r) {
      const Operation& a = *by_rank[0];
      const Operation& b = *by_rank[r];
      if (a.op != b.op || a.reduce != b.reduce || !same(a.dtype, b.dtype) || a.label != b.label) {
        throw Error(CIUIC_INVALID, "rank " + std::to_string(r) + " submits op " +
                                       std::to_string(b.op) + " '" + b.label + "', rank 0 op " +
                                       std::to_string(a.op) + " '" + a.label + "'");
      }
    }
  }

  void compute(const std::vector<const Operation*>& by_rank) const {
    // Inputs are copied first: outputs may be the same memory.
    std::vector<std::vector<char>> inputs;
    for (const Operation* o : by_rank) {
      const char* from = o->op == CIUIC_OP_BROADCAST ? o->out : o->in;
      const int64_t n = o->op == CIUIC_OP_BROADCAST ? o->out_elements : o->in_elements;
      inputs.emplace_back(from, from + n * dtype_bytes(o->dtype));
    }
    for (int r = 0; r < world_; ++r) {
      write_result(by_rank, inputs, r);
    }
  }
  void write_result(const std::vector<const Operation*>& by_rank,
                    const std::vector<std::vector<char>>& inputs, int rank) const {
    const Operation& o = *by_rank[static_cast<size_t>(rank)];
    const bool is_root = rank == o.peer;
    const auto in_part = [&](int source, int r) {
      const Operation& s = *by_rank[static_cast<size_t>(source)];
      return detail::part_of(s, s.in_counts, s.in_offsets, s.in_elements, r, world_);
    };
    const auto out_part = [&](int r) {
      return detail::part_of(o, o.out_counts, o.out_offsets, o.out_elements, r, world_);
    };
    const auto put = [&](int64_t at, const char* from, int64_t size) {
      if (size > 0) {
        std::memcpy(o.out + at, from, static_cast<size_t>(size));
      }
    };
    const auto reduced = [&](detail::Part part) {
      std::vector<const char*> starts;
      for (const std::vector<char>& input : inputs) {
        starts.push_back(input.data() + part.begin);
      }
      return detail::reduce_bytes(o, starts, part.size);
    };
    const auto& of = [&](int r) -> const std::vector<char>& {
      return inputs[static_cast<size_t>(r)];
    };
    switch (o.op) {
      case CIUIC_OP_ALL_REDUCE:
      case CIUIC_OP_REDUCE:
        if (o.op == CIUIC_OP_ALL_REDUCE || is_root) {
          const std::vector<char> sum = reduced({0, static_cast<int64_t>(of(rank).size())});
          put(0, sum.data(), static_cast<int64_t>(sum.size()));
        }
        break;
      case CIUIC_OP_REDUCE_SCATTER: {
        const std::vector<char> sum = reduced(in_part(rank, rank));
        put(0, sum.data(), static_cast<int64_t>(sum.size()));
        break;
      }
      case CIUIC_OP_ALL_GATHER:
      case CIUIC_OP_GATHER:
        for (int r = 0; r < world_ && (o.op == CIUIC_OP_ALL_GATHER || is_root); ++r) {
          put(out_part(r).begin, of(r).data(), static_cast<int64_t>(of(r).size()));
        }
        break;
      case CIUIC_OP_BROADCAST:
        put(0, of(o.peer).data(), static_cast<int64_t>(of(o.peer).size()));
        break;
      case CIUIC_OP_SCATTER: {
        const detail::Part part = in_part(o.peer, rank);
        put(0, of(o.peer).data() + part.begin, part.size);
        break;
      }
      case CIUIC_OP_ALL_TO_ALL:
        for (int r = 0; r < world_; ++r) {
          const detail::Part part = in_part(r, rank);
          put(out_part(r).begin, of(r).data() + part.begin, part.size);
        }
        break;
      case CIUIC_OP_BARRIER:
        break;
      default:
        throw Error(CIUIC_UNIMPLEMENTED, "unknown operation " + std::to_string(o.op));
    }
  }

  int world_;
  std::function<void(const Operation&)> hook_;
  mutable std::mutex mutex_;
  std::optional<Error> aborted_;
  std::map<uint64_t, Round> rounds_;
  std::map<Pair, std::vector<Parcel>> parcels_;
  std::vector<uint64_t> next_;  // by rank
  std::vector<int> splits_;
  std::vector<std::vector<std::string>> labels_;
  std::map<std::pair<int, std::vector<int32_t>>, std::shared_ptr<Meeting>> children_;
  uint64_t denied_ = 0;
  // Collectives that are computed late:
  std::thread thread_;
  std::chrono::milliseconds delay_{0};
  std::condition_variable came_;
  std::deque<Round> late_;
  bool is_over_ = false;
};

/// One rank's end of a meeting.
class ReferenceCommunicator final : public Communicator {
 public:
  ReferenceCommunicator(const Host& host, std::shared_ptr<Meeting> meeting, int rank)
      : Communicator(host), meeting_(std::move(meeting)), rank_(rank) {}

  [[nodiscard]] uint64_t capabilities(uint32_t op, uint32_t reduce, ciuic_dtype dtype,
                                      ciuic_device device) const override {
    const bool is_float = same(dtype, kF32) || same(dtype, kF64) || same(dtype, kBF16);
    const bool is_integer = same(dtype, kI64) || same(dtype, kI32) || same(dtype, kU8);
    const bool is_bitwise = reduce == CIUIC_REDUCE_OR || reduce == CIUIC_REDUCE_AND;
    const bool is_possible =
        (is_float && !is_bitwise) || (is_integer && reduce != CIUIC_REDUCE_AVG);
    if (op < CIUIC_OP_ALL_REDUCE || op > CIUIC_OP_BARRIER || reduce > CIUIC_REDUCE_AND ||
        !is_possible || device.type != CIUIC_DEVICE_CPU) {
      return 0;
    }
    constexpr uint64_t kBits = CIUIC_COMM_SUPPORTED | CIUIC_COMM_ASYNC | CIUIC_COMM_DETERMINISTIC |
                               CIUIC_COMM_UNEVEN | CIUIC_COMM_FACTOR | CIUIC_COMM_WIDE;
    return kBits & ~meeting_->denied();
  }
  [[nodiscard]] Work submit(ArrayView<ciuic_collective> collectives, const ciuic_stream*) override {
    std::vector<Operation> operations;
    for (const ciuic_collective& c : collectives) {
      const bool is_uneven = c.in_counts != nullptr || c.out_counts != nullptr;
      if (is_uneven && (meeting_->denied() & CIUIC_COMM_UNEVEN) != 0) {
        throw Error(CIUIC_UNIMPLEMENTED, "counts, where capabilities deny UNEVEN");
      }
      operations.emplace_back(c, meeting_->world());
    }
    return meeting_->arrive(rank_, host(), std::move(operations));
  }
  [[nodiscard]] std::unique_ptr<Communicator> split(const ciuic_split& request) override {
    const std::vector<int32_t> ranks(request.ranks, request.ranks + request.count);
    std::shared_ptr<Meeting> child = meeting_->child(rank_, ranks);
    if (child == nullptr) {
      return nullptr;
    }
    const auto self = std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin();
    return std::make_unique<ReferenceCommunicator>(host(), std::move(child),
                                                   static_cast<int>(self));
  }
  void health() override { meeting_->check_alive(); }
  void abort(int32_t code) noexcept override {
    meeting_->abort(Error(code, "the communicator was aborted"));
  }

 private:
  std::shared_ptr<Meeting> meeting_;
  int rank_;
};

}  // namespace ciuic::testing
