// SPDX-License-Identifier: MIT
//
// The mesh communicator with one fault each. Which test must catch it stands in CMakeLists.txt.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <unistd.h>

#include <ciuic/testing/numbers.hpp>

#include "mesh_communicator.h"

namespace ciuic::mutants {
namespace {

// ---- numbers ----

struct LastElementMissed final : Behaviour {
  static constexpr const char* name = "last_element_missed";
  static constexpr const char* summary = "reduces all elements but the last";
  void reduce(const Request& r, const std::vector<const char*>& inputs, int64_t elements,
              char* out) const override {
    Behaviour::reduce(r, inputs, elements - (elements > 3 ? 1 : 0), out);
  }
};

struct AverageAsSum final : Behaviour {
  static constexpr const char* name = "average_as_sum";
  static constexpr const char* summary = "does not divide an average";
  void adjust(Request& r) const override {
    r.reduce = r.reduce == CIUIC_REDUCE_AVG ? uint32_t{CIUIC_REDUCE_SUM} : r.reduce;
  }
};

struct Bf16AverageTruncated final : Behaviour {
  static constexpr const char* name = "bf16_average_truncated";
  static constexpr const char* summary = "cuts averages of bf16 off instead of rounding them";
  void reduce(const Request& r, const std::vector<const char*>& inputs, int64_t elements,
              char* out) const override {
    if (r.reduce != CIUIC_REDUCE_AVG || !same(r.dtype, kBF16)) {
      return Behaviour::reduce(r, inputs, elements, out);
    }
    for (int64_t i = 0; i < elements; ++i) {
      const auto wide = static_cast<float>(reduce_element(r, inputs, i * r.width).f);
      testing::write_as(out + i * 2,
                        static_cast<uint16_t>(testing::read_as<uint32_t>(&wide) >> 16));
    }
  }
};

struct BitsDiffer final : Behaviour {
  static constexpr const char* name = "bits_differ";
  static constexpr const char* summary = "sums begin with the rank's own input";
  void reduce(const Request& r, const std::vector<const char*>& inputs, int64_t elements,
              char* out) const override {
    std::vector<const char*> own_first = inputs;
    std::rotate(own_first.begin(), own_first.begin() + r.rank, own_first.end());
    Behaviour::reduce(r, (r.flags & CIUIC_COLLECTIVE_TREE) != 0 ? inputs : own_first, elements,
                      out);
  }
};

struct ArrivalOrder final : Behaviour {
  static constexpr const char* name = "arrival_order";
  static constexpr const char* summary = "claims DETERMINISTIC and sums in the order of arrival";
  [[nodiscard]] std::vector<int> order(const std::vector<int>& arrived) const override {
    return arrived;
  }
};

struct NanLost final : Behaviour {
  static constexpr const char* name = "nan_lost";
  static constexpr const char* summary = "a maximum passes over NaN";
  void reduce(const Request& r, const std::vector<const char*>& inputs, int64_t elements,
              char* out) const override {
    Behaviour::reduce(r, inputs, elements, out);
    for (int64_t i = 0; i < elements && r.reduce == CIUIC_REDUCE_MAX && is_float(r.dtype); ++i) {
      Number most{-INFINITY, 0};
      for (const char* input : inputs) {
        most.f = std::fmax(most.f, load(r.dtype, input + i * r.width).f);
      }
      store(r.dtype, out + i * r.width, most);
    }
  }
};

struct TreeIsAChain final : Behaviour {
  static constexpr const char* name = "tree_is_a_chain";
  static constexpr const char* summary = "claims TREE and sums rank after rank";
  void adjust(Request& r) const override { r.flags &= ~uint32_t{CIUIC_COLLECTIVE_TREE}; }
};

struct FactorIgnored final : Behaviour {
  static constexpr const char* name = "factor_ignored";
  static constexpr const char* summary = "claims FACTOR and does not multiply";
  void adjust(Request& r) const override { r.factor = 1; }
};

struct WideIsNarrow final : Behaviour {
  static constexpr const char* name = "wide_is_narrow";
  static constexpr const char* summary = "claims WIDE and rounds 16-bit sums after each addition";
  void reduce(const Request& r, const std::vector<const char*>& inputs, int64_t elements,
              char* out) const override {
    if ((r.flags & CIUIC_COLLECTIVE_WIDE) == 0) {
      return Behaviour::reduce(r, inputs, elements, out);
    }
    for (int64_t i = 0; i < elements; ++i) {
      char* to = out + i * r.width;
      std::memcpy(to, inputs[0] + i * r.width, static_cast<size_t>(r.width));
      for (size_t p = 1; p < inputs.size(); ++p) {
        store(
            r.dtype, to,
            combine(r.dtype, r.reduce, load(r.dtype, to), load(r.dtype, inputs[p] + i * r.width)));
      }
    }
  }
};

// ---- memory ----

/// Clears the output before the input has been read.
struct InPlaceWrong final : Behaviour {
  static constexpr const char* name = "in_place_wrong";
  static constexpr const char* summary = "clears the output first, also when it is the input";
  void adjust(Request& r) const override {
    if (r.reduces() && r.out != nullptr) {
      std::memset(r.out, 0, static_cast<size_t>(r.out_elements * r.width));
    }
  }
};

struct OffsetIgnored final : Behaviour {
  static constexpr const char* name = "odd_offset_ignored";
  static constexpr const char* summary = "reads from the last address that is a multiple of 8";
  void adjust(Request& r) const override {
    const auto address = reinterpret_cast<uintptr_t>(r.in);
    r.in = r.in == nullptr ? nullptr : r.in - address % 8;
  }
};

struct WritesBeyond final : Behaviour {
  static constexpr const char* name = "writes_beyond_out";
  static constexpr const char* summary = "writes whole words, past the end of odd sizes";
  void finish(const Request& r) const override {
    const int64_t bytes = r.out_elements * r.width;
    if (r.has_result() && r.out != nullptr && bytes % 8 != 0) {
      std::memset(r.out + bytes, 0, static_cast<size_t>(8 - bytes % 8));
    }
  }
};

struct CountsAfterSubmit final : Behaviour {
  static constexpr const char* name = "counts_after_submit";
  static constexpr const char* summary = "reads the caller's counts when the work ends";
  void place(const Request& r, int from, const std::string& bytes) const override {
    std::string part = bytes;
    if (r.callers_out_counts != nullptr) {
      part.resize(static_cast<size_t>(r.callers_out_counts[from] * r.width));
    }
    Behaviour::place(r, from, part);
  }
};

struct GapsFilled final : Behaviour {
  static constexpr const char* name = "gaps_filled";
  static constexpr const char* summary = "clears the elements between uneven parts";
  void place(const Request& r, int from, const std::string& bytes) const override {
    if (from == 0 && r.callers_out_counts != nullptr) {
      std::memset(r.out, 0, static_cast<size_t>(r.out_elements * r.width));
    }
    Behaviour::place(r, from, bytes);
  }
};

// ---- works and callbacks ----

struct CallbackLost final : Behaviour {
  static constexpr const char* name = "callback_lost";
  static constexpr const char* summary = "forgets the callback of a work that is done already";
  ciuic_status* on_done(ciuic_work* inner, Callback callback, void* context) const override {
    int32_t done = 0;
    ciuic_status* status = inner->ops->test(inner, &done);
    return status == nullptr && done == 0 ? Behaviour::on_done(inner, callback, context) : status;
  }
};

struct CallbackTwice final : Behaviour {
  static constexpr const char* name = "callback_twice";
  static constexpr const char* summary = "calls back once more when a wait has ended";
  ciuic_status* on_done(ciuic_work* inner, Callback callback, void* context) const override {
    ciuic_status* status = Behaviour::on_done(inner, callback, context);
    return status == nullptr ? Behaviour::on_done(inner, callback, context) : status;
  }
};

/// The callback runs on a thread that nobody joins.
struct CallbackAfterDestroy final : Behaviour {
  static constexpr const char* name = "callback_after_destroy";
  static constexpr const char* summary = "calls back from a thread that outlives the instance";
  ciuic_status* on_done(ciuic_work* inner, Callback callback, void* context) const override {
    struct Later {
      Callback callback;
      void* context;
    };
    return Behaviour::on_done(
        inner,
        [](void* later, const ciuic_status*) {
          std::thread([l = static_cast<Later*>(later)] {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            l->callback(l->context, nullptr);
            delete l;
          }).detach();
        },
        new Later{callback, context});
  }
};

struct AsyncBlocks final : Behaviour {
  static constexpr const char* name = "async_blocks";
  static constexpr const char* summary = "claims ASYNC and waits for its peers in submit";
  [[nodiscard]] bool is_blocking() const override { return true; }
};

struct BarrierIsNothing final : Behaviour {
  static constexpr const char* name = "barrier_is_nothing";
  static constexpr const char* summary = "a barrier becomes a message to oneself";
  void adjust(Request& r) const override {
    if (r.op == CIUIC_OP_BARRIER) {
      r.op = CIUIC_OP_SEND;
      r.peer = r.rank;
      r.tag = 4242;
    }
  }
};

struct TagsIgnored final : Behaviour {
  static constexpr const char* name = "tags_ignored";
  static constexpr const char* summary = "matches messages by their order alone";
  void adjust(Request& r) const override { r.tag = 0; }
};

struct MessageOvertakes final : Behaviour {
  static constexpr const char* name = "message_overtakes";
  static constexpr const char* summary = "one receive in many takes the newest message of its tag";
  [[nodiscard]] size_t choose_message(size_t waiting, uint64_t taken) const override {
    return taken % 16 == 15 ? waiting - 1 : 0;
  }
};

struct DeniedIsDone final : Behaviour {
  static constexpr const char* name = "denied_is_done";
  static constexpr const char* summary = "denies products in capabilities and takes them in submit";
  [[nodiscard]] uint64_t capabilities(uint32_t op, uint32_t reduce,
                                      ciuic_dtype dtype) const override {
    return reduce == CIUIC_REDUCE_PROD && same(dtype, kF64)
               ? 0
               : Behaviour::capabilities(op, reduce, dtype);
  }
  [[nodiscard]] bool refuses_denied() const override { return false; }
};

struct SplitInOldOrder final : Behaviour {
  static constexpr const char* name = "split_in_old_order";
  static constexpr const char* summary = "sorts the ranks of a split";
  [[nodiscard]] std::vector<int32_t> split_order(std::vector<int32_t> ranks) const override {
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }
};

// ---- failure ----

struct DeadlineIgnored final : Behaviour {
  static constexpr const char* name = "deadline_ignored";
  static constexpr const char* summary = "waits for ever";
  [[nodiscard]] bool has_deadlines() const override { return false; }
};

struct NobodyToBlame final : Behaviour {
  static constexpr const char* name = "nobody_to_blame";
  static constexpr const char* summary = "errors without a peer";
  [[nodiscard]] Error report(const Error& error) const override {
    return Error(error.code(), std::string(error.what()));
  }
};

struct MismatchAccepted final : Behaviour {
  static constexpr const char* name = "mismatch_accepted";
  static constexpr const char* summary = "does not compare what ranks ask for";
  [[nodiscard]] bool checks_peers() const override { return false; }
  void reduce(const Request& r, const std::vector<const char*>& inputs, int64_t elements,
              char* out) const override {
    Behaviour::reduce(r, inputs, std::min<int64_t>(elements, 500), out);
  }
};

struct AbortIgnored final : Behaviour {
  static constexpr const char* name = "abort_ignored";
  static constexpr const char* summary = "does nothing on abort";
  [[nodiscard]] bool is_abortable() const override { return false; }
};

struct FileLeft final : Behaviour {
  static constexpr const char* name = "file_left";
  static constexpr const char* summary = "leaves a file open for each instance";
  void before_close() const override { (void)!dup(STDERR_FILENO); }
};

struct FileLeftByFailure final : Behaviour {
  static constexpr const char* name = "file_left_by_failure";
  static constexpr const char* summary = "leaves a file open where create fails";
  void after_failed_connect() const override { (void)!dup(STDERR_FILENO); }
};

}  // namespace
}  // namespace ciuic::mutants

using namespace ciuic::mutants;  // NOLINT: the list below is long enough

CIUIC_PLUGINS(Plugin<LastElementMissed>, Plugin<AverageAsSum>, Plugin<Bf16AverageTruncated>,
              Plugin<BitsDiffer>, Plugin<ArrivalOrder>, Plugin<NanLost>, Plugin<TreeIsAChain>,
              Plugin<FactorIgnored>, Plugin<WideIsNarrow>, Plugin<InPlaceWrong>,
              Plugin<OffsetIgnored>, Plugin<WritesBeyond>, Plugin<CountsAfterSubmit>,
              Plugin<GapsFilled>, Plugin<CallbackLost>, Plugin<CallbackTwice>,
              Plugin<CallbackAfterDestroy>, Plugin<AsyncBlocks>, Plugin<BarrierIsNothing>,
              Plugin<TagsIgnored>, Plugin<MessageOvertakes>, Plugin<DeniedIsDone>,
              Plugin<SplitInOldOrder>, Plugin<DeadlineIgnored>, Plugin<NobodyToBlame>,
              Plugin<MismatchAccepted>, Plugin<AbortIgnored>, Plugin<FileLeft>,
              Plugin<FileLeftByFailure>)
