// SPDX-License-Identifier: MIT
#include "core/plugin/decorator/record.h"

#include "core/plugin/decorator/call_codec.h"
#include "core/plugin/decorator/decorator_layer.h"
#include "core/plugin/decorator/forwarded_work.h"
#include "core/plugin/decorator/record_file.h"
#include "core/plugin/decorator/record_header.h"
#include "core/plugin/decorator/recorded_state.h"

namespace ciuic::core {
namespace {

/// Looks at the tensors of the call when its work has ended.
class RecordedWork final : public ForwardedWork<RecordedWork> {
 public:
  RecordedWork(ciuic_work* inner, std::shared_ptr<RecordFile> file, const ciuic_host* host,
               uint64_t number, std::vector<Tensor> tensors, int64_t limit)
      : ForwardedWork(inner),
        file_(std::move(file)),
        host_(host),
        number_(number),
        tensors_(std::move(tensors)),
        limit_(limit) {}

  void ended(const ciuic_status* status) {
    LogValue::List out{log_status(host_, status), log_tensors(tensors_, limit_)};
    file_->done(number_, {std::move(out), "status,tensors"});
  }

 private:
  std::shared_ptr<RecordFile> file_;
  const ciuic_host* host_;
  uint64_t number_;
  std::vector<Tensor> tensors_;
  int64_t limit_;
};

template <typename Vt>
class Record final : public DecoratorLayer<Vt, Record<Vt>> {
 public:
  Record(std::shared_ptr<RecordFile> file, uint32_t number, int64_t tensor_bytes, int group_size,
         std::unique_ptr<Layer> inner)
      : DecoratorLayer<Vt, Record<Vt>>(std::move(inner)),
        file_(std::move(file)),
        instance_(number),
        limit_(tensor_bytes),
        group_size_(group_size) {}

  template <size_t I, typename Invoke, typename... A>
  auto through(const Invoke& invoke, A... args) -> std::invoke_result_t<const Invoke&, A...> {
    using R = std::invoke_result_t<const Invoke&, A...>;
    constexpr auto& kSlot = std::get<I>(Slots<Vt>::all);
    using Codec = CallCodec<std::remove_cvref_t<decltype(kSlot)>>;
    note_split(args...);
    Encoder before(limit_, group_size_);
    LogValue in = Codec::encode_in(before, args...);
    const uint64_t number = file_->enter(instance_, kSlot.name, std::move(in));
    if constexpr (std::is_void_v<R>) {
      invoke(args...);
      leave<Codec>(number, LogValue{}, false, before.tensors());
    } else if constexpr (std::is_same_v<R, ciuic_status*>) {
      ciuic_status* status = invoke(args...);
      const bool has_work = take_work(number, status, before.tensors(), args...);
      if (status == nullptr) {
        leave<Codec>(number, LogValue{}, has_work, before.tensors(), args...);
      } else {
        leave<Codec>(number, log_status(this->host(), status), false, before.tensors());
      }
      return status;
    } else {
      const R result = invoke(args...);
      leave<Codec>(number, before.encode(result), false, before.tensors(), args...);
      return result;
    }
  }

  std::unique_ptr<Layer> child(ciuic_instance* instance) const {
    return std::make_unique<Record>(file_, file_->new_instance(), limit_, split_size_,
                                    std::unique_ptr<Layer>(&Layer::of(instance)));
  }

  ciuic_status* state_load(const ciuic_reader& reader) override {
    RecordedState state(reader);
    ciuic_status* status = DecoratorLayer<Vt, Record<Vt>>::state_load(state.reader());
    const uint64_t number = file_->enter(instance_, "state_load", state.value());
    LogValue::List out{log_status(this->host(), status), {LogValue::List{}}, {LogValue::List{}}};
    file_->leave(number, {std::move(out), "result,out,tensors"});
    return status;
  }

 private:
  template <typename... A>
  void note_split(const A&... args) {
    if constexpr (kEndsWith<ciuic_instance**, A...>) {
      split_size_ = static_cast<int>(std::get<0>(std::tie(args...))->count);
    }
  }

  /// Puts a RecordedWork in the place of a work that came back.
  template <typename... A>
  bool take_work(uint64_t number, const ciuic_status* status, const std::vector<Tensor>& tensors,
                 A&... args) {
    if constexpr (kEndsWith<ciuic_work**, A...>) {
      ciuic_work*& work = *last_of(args...);
      if (status == nullptr && work != nullptr) {
        work = new RecordedWork(work, file_, this->host(), number, tensors, limit_);
        return true;
      }
    }
    return false;
  }

  template <typename Codec, typename... A>
  void leave(uint64_t number, LogValue result, bool has_work, const std::vector<Tensor>& tensors,
             const A&... args) {
    Encoder after(limit_, group_size_, has_work);
    LogValue::List out{std::move(result), Codec::encode_out(after, args...),
                       has_work ? LogValue{} : log_tensors(tensors, limit_)};
    file_->leave(number, {std::move(out), "result,out,tensors"});
  }

  std::shared_ptr<RecordFile> file_;
  const uint32_t instance_;
  const int64_t limit_;
  const int group_size_;
  int split_size_ = 1;
};

}  // namespace

std::unique_ptr<Layer> make_record(const RecordSpec& spec, const DecoratorContext& context,
                                   std::unique_ptr<Layer> inner) {
  auto file = std::make_shared<RecordFile>(record_path(spec, context), record_header(context),
                                           *context.log);
  std::unique_ptr<Layer> layer;
  with_table_of(context.kind, [&]<typename Vt>() {
    layer =
        std::make_unique<Record<Vt>>(file, 0, spec.tensor_bytes, context.world, std::move(inner));
  });
  return layer;
}

}  // namespace ciuic::core
