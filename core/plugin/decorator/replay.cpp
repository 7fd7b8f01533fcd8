// SPDX-License-Identifier: MIT
#include "core/plugin/decorator/replay.h"

#include <limits>

#include <ciuic/work.hpp>

#include "core/plugin/decorator/call_codec.h"
#include "core/plugin/decorator/recorded_state.h"
#include "core/plugin/kind.h"

namespace ciuic::core {
namespace {

constexpr int64_t kAllBytes = std::numeric_limits<int64_t>::max();
constexpr int64_t kWaitNs = 60'000'000'000;

/// A status compares by code, flags and peer: its text may differ between builds.
LogValue without_text(LogValue status) {
  if (auto* list = std::get_if<LogValue::List>(&status.value);
      list != nullptr && list->size() == 4) {
    list->pop_back();
  }
  return status;
}

/// What the log says of each call after its beginning.
struct Recorded {
  const LogValue* left = nullptr;
  const LogValue* done = nullptr;
};

const LogValue::List& parts(const LogValue& v, size_t count) {
  const auto& list = Decoder::get<LogValue::List>(v);
  Decoder::check(list.size() == count, "a result has another number of members");
  return list;
}

/// Result, outputs and tensors as they stood when everything of the call had ended.
LogValue outcome_of(const Recorded& recorded) {
  const auto& left = parts(*recorded.left, 3);
  LogValue::List all{without_text(left[0]), left[1], left[2]};
  if (recorded.done != nullptr) {
    const auto& done = parts(*recorded.done, 2);
    all[0] = without_text(done[0]);
    all[2] = done[1];
  }
  return {std::move(all)};
}

template <typename Vt>
class Player {
 public:
  Player(const RecordHeader& header, const Instance& instance)
      : header_(header), instance_(instance) {}

  /// Throws LogMismatch, LogIncomplete.
  LogValue play(const LogRecord& call) {
    if (call.function == "state_load") {
      return load(call.value);
    }
    LogValue outcome;
    bool is_known = false;
    find(call, outcome, is_known, std::make_index_sequence<kNumSlots<Vt>>());
    Decoder::check(is_known, "the log has a function that this host does not know");
    return outcome;
  }

 private:
  template <size_t... I>
  void find(const LogRecord& call, LogValue& outcome, bool& is_known, std::index_sequence<I...>) {
    const auto try_slot = [&](const auto& slot) {
      if (!is_known && call.function == slot.name) {
        is_known = true;
        outcome = run(slot, slot.member, call.value);
      }
    };
    (try_slot(std::get<I>(Slots<Vt>::all)), ...);
  }

  template <typename S, typename R, typename... A>
  LogValue run(const S&, R (*Vt::*member)(ciuic_instance*, A...), const LogValue& in) {
    Decoder decoder;
    std::tuple<A...> args;
    CallCodec<S>::decode(decoder, in, args);
    const auto function = instance_.vt<Vt>().*member;
    if (function == nullptr) {
      return {std::string("no such function in this plugin")};
    }
    const auto call = [&] {
      return std::apply([&](A... a) { return function(instance_.self(), a...); }, args);
    };
    LogValue result;
    if constexpr (std::is_void_v<R>) {
      call();
    } else if constexpr (std::is_same_v<R, ciuic_status*>) {
      result = status_of(finish(call(), args));
    } else {
      result = Encoder(0, 1).encode(call());
    }
    return outcome<S>(std::move(result), decoder, args);
  }

  /// Waits for a work; frees what a split made.
  template <typename... A>
  ciuic_status* finish(ciuic_status* status, std::tuple<A...>& args) {
    if constexpr (kEndsWith<ciuic_work**, A...>) {
      if (const Work work(status == nullptr ? *last(args) : nullptr); work) {
        return work.get()->ops->wait(work.get(), kWaitNs);
      }
    }
    if constexpr (kEndsWith<ciuic_instance**, A...>) {
      if (status == nullptr && *last(args) != nullptr) {
        const Instance child(instance_, *last(args));
      }
    }
    return status;
  }
  template <typename... A>
  static auto& last(std::tuple<A...>& args) {
    return std::get<sizeof...(A) - 1>(args);
  }

  template <typename S, typename... A>
  LogValue outcome(LogValue result, const Decoder& decoder, const std::tuple<A...>& args) {
    // As the recorder does: what a failed call gave out means nothing.
    const bool has_failed = result.list() != nullptr;
    Encoder after(kAllBytes, header_.world);
    LogValue out{LogValue::List{}};
    if (!has_failed) {
      out = std::apply([&](const A&... a) { return CallCodec<S>::encode_out(after, a...); }, args);
    }
    LogValue::List all{std::move(result), std::move(out),
                       log_tensors(decoder.tensors(), kAllBytes)};
    return {std::move(all), "result,out,tensors"};
  }

  LogValue load(const LogValue& value) {
    ReplayedState state(value, instance_.host());
    LogValue result;
    try {
      instance_.state_load(state.reader());
    } catch (const Failure& f) {
      result = {std::string(f.what())};
    }
    LogValue::List all{std::move(result), {LogValue::List{}}, {LogValue::List{}}};
    return {std::move(all), "result,out,tensors"};
  }

  LogValue status_of(ciuic_status* status) {
    LogValue value = without_text(log_status(instance_.host(), status));
    if (status != nullptr) {
      instance_.host()->status_free(instance_.host()->ctx, status);
    }
    return value;
  }

  const RecordHeader& header_;
  const Instance& instance_;
};

std::map<uint64_t, Recorded> index_of(const CallLog& log) {
  std::map<uint64_t, Recorded> index;
  for (const LogRecord& r : log.records) {
    if (r.type == LogRecordType::Leave) {
      index[r.number].left = &r.value;
    } else if (r.type == LogRecordType::Done) {
      index[r.number].done = &r.value;
    }
  }
  return index;
}

template <typename Vt>
ReplayResult replay_kind(const CallLog& log, const RecordHeader& header, const Instance& instance) {
  const std::map<uint64_t, Recorded> index = index_of(log);
  Player<Vt> player(header, instance);
  ReplayResult result;
  for (const LogRecord& call : log.records) {
    if (call.type != LogRecordType::Enter) {
      continue;
    }
    ++result.calls;
    const std::string name = call.function + ", call " + std::to_string(call.number);
    if (call.instance != 0) {
      ++result.skipped;
      result.skipped_why = "calls of groups that were split off are not run";
      continue;
    }
    try {
      const LogValue got = player.play(call);
      const auto recorded = index.find(call.number);
      if (recorded == index.end() || recorded->second.left == nullptr) {
        result.cut_off = name;
        continue;
      }
      ++result.compared;
      if (std::string d = first_difference(got, outcome_of(recorded->second)); !d.empty()) {
        result.difference = name + ": " + d;
        return result;
      }
    } catch (const LogIncomplete& e) {
      ++result.skipped;
      result.skipped_why = e.what();
    }
  }
  return result;
}

}  // namespace

std::string replay_refusal(const RecordHeader& header) {
  switch (header.kind) {
    case CIUIC_KIND_SHARDING:
    case CIUIC_KIND_CHECKPOINT:
      return "the calls of a " + std::string(kind_name(header.kind)) +
             " plugin depend on groups, files and memory that a log does not hold";
    case CIUIC_KIND_COMMUNICATOR:
      return header.world == 1
                 ? ""
                 : "the results of a communicator depend on its " +
                       std::to_string(header.world - 1) + " peers, whose calls stand in other logs";
    default:
      return "";
  }
}

ReplayResult replay(const CallLog& log, const RecordHeader& header, const Instance& instance) {
  switch (header.kind) {
    case CIUIC_KIND_COMMUNICATOR:
      return replay_kind<ciuic_communicator_vt>(log, header, instance);
    case CIUIC_KIND_OPTIMIZER:
      return replay_kind<ciuic_optimizer_vt>(log, header, instance);
    case CIUIC_KIND_PRECISION:
      return replay_kind<ciuic_precision_vt>(log, header, instance);
    case CIUIC_KIND_BATCH_SCHEDULER:
      return replay_kind<ciuic_batch_scheduler_vt>(log, header, instance);
    case CIUIC_KIND_PROFILER:
      return replay_kind<ciuic_profiler_vt>(log, header, instance);
    default:
      throw LogMismatch("the log is of a kind that cannot be run again");
  }
}

}  // namespace ciuic::core
