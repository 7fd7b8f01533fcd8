// SPDX-License-Identifier: MIT
#include "core/plugin/decorator/shadow.h"

#include <limits>

#include <ciuic/error.hpp>
#include <ciuic/work.hpp>

#include "core/plugin/decorator/call_codec.h"
#include "core/plugin/decorator/decorator_layer.h"
#include "core/plugin/decorator/forwarded_work.h"
#include "core/plugin/decorator/shadow_report.h"

namespace ciuic::core {
namespace {

/// Copies hold everything.
constexpr int64_t kAllBytes = std::numeric_limits<int64_t>::max();

int32_t code_of(const ciuic_host* host, const ciuic_status* status) {
  return status == nullptr ? CIUIC_OK
                           : host->status_get(host->ctx, status, nullptr, nullptr, nullptr);
}

std::string code_difference(int32_t got, int32_t trusted) {
  return got == trusted
             ? ""
             : "status: got " + std::string(code_name(got)) + ", trusted " + code_name(trusted);
}

/// Copies of the arguments for the candidate, and the memory of both sides.
struct Copies {
  Copies(int32_t group_size) : encoder(kAllBytes, group_size) {}

  Encoder encoder;  // knows the trusted one's tensors
  Decoder decoder;  // owns the candidate's
};

/// Compares the tensors of both sides once both works have ended. The candidate's own deadline
/// bounds the wait for it.
class ShadowWork final : public ForwardedWork<ShadowWork> {
 public:
  ShadowWork(ciuic_work* trusted, Work candidate, const ciuic_host* host,
             std::function<void(int32_t got, int32_t expected)> compare)
      : ForwardedWork(trusted),
        candidate_(std::move(candidate)),
        host_(host),
        compare_(std::move(compare)) {}

  void ended(const ciuic_status* status) {
    ciuic_status* mine = nullptr;
    if (candidate_) {
      mine = candidate_.get()->ops->wait(candidate_.get(), -1);
    }
    compare_(code_of(host_, mine), code_of(host_, status));
    if (mine != nullptr) {
      host_->status_free(host_->ctx, mine);
    }
  }

 private:
  Work candidate_;
  const ciuic_host* host_;
  std::function<void(int32_t, int32_t)> compare_;
};

/// Tensors that a collective promises to this rank: the same on both sides, in order.
std::vector<Tensor> results_of(ciuic_array collectives, int rank) {
  std::vector<Tensor> results;
  for (const ciuic_collective& c : ArrayView<ciuic_collective>(collectives)) {
    const bool at_root_only = c.op == CIUIC_OP_REDUCE || c.op == CIUIC_OP_GATHER;
    if (c.out != nullptr && (!at_root_only || c.peer == rank)) {
      const ciuic_dl& t = c.out->t;
      results.emplace_back(tensor_data(*c.out), t.dtype,
                           std::vector<int64_t>(t.shape, t.shape + t.ndim), t.device);
    }
  }
  return results;
}

template <typename Vt>
class Shadow final : public DecoratorLayer<Vt, Shadow<Vt>> {
 public:
  Shadow(std::shared_ptr<ShadowReport> report, std::unique_ptr<Instance> candidate, int rank,
         int group_size, std::unique_ptr<Layer> inner)
      : DecoratorLayer<Vt, Shadow<Vt>>(std::move(inner)),
        report_(std::move(report)),
        candidate_(std::move(candidate)),
        rank_(rank),
        group_size_(group_size) {}

  template <size_t I, typename Invoke, typename... A>
  auto through(const Invoke& invoke, A... args) -> std::invoke_result_t<const Invoke&, A...> {
    constexpr std::string_view kName = std::get<I>(Slots<Vt>::all).name;
    if constexpr (kName == "communicator.submit") {
      return submit<I>(invoke, args...);
    } else if constexpr (kName == "communicator.split") {
      return split<I>(invoke, args...);
    } else if constexpr (kName == "communicator.abort") {
      if (candidate_) {
        candidate_->vt<Vt>().abort(candidate_->self(), args...);
      }
      return invoke(args...);
    } else if constexpr (kName.starts_with("communicator.memory")) {
      return invoke(args...);  // memory of one side is of no use to the other
    } else {
      return both<I>(invoke, args...);
    }
  }

  std::unique_ptr<Layer> child(ciuic_instance* instance) {
    return std::make_unique<Shadow>(report_, std::move(split_candidate_), split_rank_, split_size_,
                                    std::unique_ptr<Layer>(&Layer::of(instance)));
  }

  ciuic_status* state_load(const ciuic_reader& reader) override {
    if (candidate_ && candidate_->has_state()) {
      std::string difference;
      try {
        candidate_->state_load(reader);
      } catch (const Failure& f) {
        difference = f.what();
      }
      report_->compared("state_load", difference);
    }
    return DecoratorLayer<Vt, Shadow<Vt>>::state_load(reader);
  }

 private:
  template <size_t I>
  using CodecOf = CallCodec<std::remove_cvref_t<decltype(std::get<I>(Slots<Vt>::all))>>;
  template <size_t I>
  static constexpr const char* name() {
    return std::get<I>(Slots<Vt>::all).name;
  }

  /// The candidate's arguments, or nothing where they cannot be copied or it lacks the function.
  template <size_t I, typename... A>
  bool copy(Copies& copies, std::tuple<A...>& out, const A&... args) {
    if (!candidate_) {
      return false;
    }
    try {
      const LogValue in = CodecOf<I>::encode_in(copies.encoder, args...);
      CodecOf<I>::decode(copies.decoder, in, out);
    } catch (const LogIncomplete& e) {
      report_->not_compared(name<I>(), e.what());
      return false;
    }
    if (candidate_->vt<Vt>().*std::get<I>(Slots<Vt>::all).member == nullptr) {
      report_->compared(name<I>(), "the candidate has no such function");
      return false;
    }
    return true;
  }
  template <size_t I, typename... A>
  auto call_candidate(std::tuple<A...>& args) {
    return std::apply(
        [this](A... a) {
          return (candidate_->vt<Vt>().*std::get<I>(Slots<Vt>::all).member)(candidate_->self(),
                                                                            a...);
        },
        args);
  }

  /// What a call gave: result or status code, what came out, what its tensors hold.
  template <size_t I, typename R, typename... A>
  LogValue outcome(const R& result, const std::vector<Tensor>& tensors, const A&... args) {
    Encoder out(kAllBytes, group_size_);
    LogValue::List all;
    if constexpr (std::is_same_v<R, ciuic_status*>) {
      all.push_back({std::string(code_name(code_of(this->host(), result)))});
      all.push_back(result == nullptr ? CodecOf<I>::encode_out(out, args...) : LogValue{});
    } else {
      all.push_back(out.encode(result));
      all.push_back(CodecOf<I>::encode_out(out, args...));
    }
    all.push_back(log_tensors(tensors, kAllBytes));
    return {std::move(all), "result,out,tensors"};
  }

  template <size_t I, typename Invoke, typename... A>
  auto both(const Invoke& invoke, A... args) {
    using R = std::invoke_result_t<const Invoke&, A...>;
    if constexpr (std::is_void_v<R>) {
      invoke(args...);  // no kind that has a shadow has one that matters
    } else {
      Copies copies(group_size_);
      std::tuple<A...> copied;
      const bool is_copied = copy<I>(copies, copied, args...);
      R result = invoke(args...);
      if (is_copied) {
        R other = call_candidate<I>(copied);
        const LogValue trusted = outcome<I>(result, copies.encoder.tensors(), args...);
        const LogValue got = std::apply(
            [&](const A&... a) { return outcome<I>(other, copies.decoder.tensors(), a...); },
            copied);
        if constexpr (std::is_same_v<R, ciuic_status*>) {
          free_status(other);
        }
        report_->compared(name<I>(), first_difference(got, trusted, "trusted"));
      }
      return result;
    }
  }

  template <size_t I, typename Invoke>
  ciuic_status* submit(const Invoke& invoke, ciuic_array collectives, const ciuic_stream* stream,
                       ciuic_work** work) {
    auto copies = std::make_shared<Copies>(group_size_);
    std::tuple<ciuic_array, const ciuic_stream*, ciuic_work**> copied;
    const bool is_copied = copy<I>(*copies, copied, collectives, stream, work);
    ciuic_status* status = invoke(collectives, stream, work);
    if (!is_copied) {
      return status;
    }
    ciuic_status* other = call_candidate<I>(copied);
    const std::string refused =
        code_difference(code_of(this->host(), other), code_of(this->host(), status));
    const bool has_failed = other != nullptr;
    free_status(other);
    Work candidate(has_failed ? nullptr : *std::get<2>(copied));
    if (!refused.empty() || status != nullptr) {
      report_->compared(name<I>(), refused);
      return status;
    }
    const auto compare = [report = report_, copies, trusted = results_of(collectives, rank_),
                          got = results_of(std::get<0>(copied), rank_)](int32_t a, int32_t b) {
      std::string difference = code_difference(a, b);
      if (difference.empty() && a == CIUIC_OK) {
        difference = first_difference(log_tensors(got, kAllBytes), log_tensors(trusted, kAllBytes),
                                      "trusted");
      }
      report->compared(name<I>(), difference);
    };
    if (*work != nullptr) {
      *work = new ShadowWork(*work, std::move(candidate), this->host(), compare);
    } else {
      wait_and_compare(candidate, compare);
    }
    return nullptr;
  }

  template <typename Compare>
  void wait_and_compare(const Work& candidate, const Compare& compare) {
    ciuic_status* status = nullptr;
    if (candidate) {
      status = candidate.get()->ops->wait(candidate.get(), -1);
    }
    compare(code_of(this->host(), status), CIUIC_OK);
    free_status(status);
  }

  template <size_t I, typename Invoke>
  ciuic_status* split(const Invoke& invoke, const ciuic_split* request, ciuic_instance** out) {
    ciuic_status* status = invoke(request, out);
    split_candidate_.reset();
    split_size_ = static_cast<int>(request->count);
    split_rank_ = 0;
    for (uint32_t i = 0; i < request->count; ++i) {
      split_rank_ = request->ranks[i] == rank_ ? static_cast<int>(i) : split_rank_;
    }
    if (candidate_ && status == nullptr) {
      ciuic_instance* other = nullptr;
      ciuic_status* refused = candidate_->vt<Vt>().split(candidate_->self(), request, &other);
      report_->compared(name<I>(), code_difference(code_of(this->host(), refused), CIUIC_OK));
      free_status(refused);
      if (other != nullptr) {
        split_candidate_ = std::make_unique<Instance>(*candidate_, other);
      }
    }
    return status;
  }

  void free_status(ciuic_status* status) {
    if (status != nullptr) {
      this->host()->status_free(this->host()->ctx, status);
    }
  }

  std::shared_ptr<ShadowReport> report_;
  std::unique_ptr<Instance> candidate_;  // NULL: in a group that the candidate could not make
  const int rank_;
  const int group_size_;
  std::unique_ptr<Instance> split_candidate_;
  int split_rank_ = 0;
  int split_size_ = 1;
};

}  // namespace

std::unique_ptr<Layer> make_shadow(const ShadowSpec& spec, const DecoratorContext& context,
                                   std::unique_ptr<Layer> inner) {
  auto report = std::make_shared<ShadowReport>(context, spec.candidate);
  std::unique_ptr<Instance> candidate = context.make_candidate(spec.candidate);
  std::unique_ptr<Layer> layer;
  const auto make = [&]<typename Vt>() {
    layer = std::make_unique<Shadow<Vt>>(report, std::move(candidate), context.rank, context.world,
                                         std::move(inner));
  };
  switch (context.kind) {
    case CIUIC_KIND_COMMUNICATOR:
      make.template operator()<ciuic_communicator_vt>();
      break;
    case CIUIC_KIND_OPTIMIZER:
      make.template operator()<ciuic_optimizer_vt>();
      break;
    case CIUIC_KIND_PRECISION:
      make.template operator()<ciuic_precision_vt>();
      break;
    case CIUIC_KIND_BATCH_SCHEDULER:
      make.template operator()<ciuic_batch_scheduler_vt>();
      break;
    default:
      break;  // refused when the file was read
  }
  return layer;
}

}  // namespace ciuic::core
