// SPDX-License-Identifier: MIT
#include "bench.hpp"

#include <ciuic/precision.hpp>

#include "guarded_services.hpp"

namespace ciuic::testing::contract {
namespace {

/// Everything in fp32.
class ReferencePrecision final : public Precision {
 public:
  using Precision::Precision;
  [[nodiscard]] ciuic_dtype dtype_for(std::string_view, uint32_t) const override { return kF32; }
};

/// The reference communicator, with submits and splits that can fail.
class FaultyCommunicator final : public Communicator {
 public:
  FaultyCommunicator(const Host& host, FaultPlan& plan, std::unique_ptr<Communicator> inner)
      : Communicator(host), plan_(plan), inner_(std::move(inner)) {}

  [[nodiscard]] uint64_t capabilities(uint32_t op, uint32_t reduce, ciuic_dtype dtype,
                                      ciuic_device device) const override {
    return inner_->capabilities(op, reduce, dtype, device);
  }
  [[nodiscard]] Work submit(ArrayView<ciuic_collective> collectives,
                            const ciuic_stream* stream) override {
    host().check(plan_.pass(host(), "submit of a group"));
    return inner_->submit(collectives, stream);
  }
  [[nodiscard]] std::unique_ptr<Communicator> split(const ciuic_split& request) override {
    host().check(plan_.pass(host(), "split of a group"));
    std::unique_ptr<Communicator> child = inner_->split(request);
    return child == nullptr ? nullptr
                            : std::make_unique<FaultyCommunicator>(host(), plan_, std::move(child));
  }
  void abort(int32_t code) noexcept override { inner_->abort(code); }

 private:
  FaultPlan& plan_;
  std::unique_ptr<Communicator> inner_;
};

FaultyService<ciuic_comm_service>& guard_all(FaultyService<ciuic_comm_service>& s) {
  return s.guard<&ciuic_comm_service::find>("ciuic.comm find")
      .guard<&ciuic_comm_service::by_id>("ciuic.comm by_id")
      .guard<&ciuic_comm_service::split>("ciuic.comm split");
}
FaultyService<ciuic_io_service>& guard_all(FaultyService<ciuic_io_service>& s) {
  return s.guard<&ciuic_io_service::open>("ciuic.io open")
      .guard<&ciuic_io_service::read>("ciuic.io read")
      .guard<&ciuic_io_service::write>("ciuic.io write")
      .guard<&ciuic_io_service::size>("ciuic.io size")
      .guard<&ciuic_io_service::sync>("ciuic.io sync")
      .guard<&ciuic_io_service::close>("ciuic.io close")
      .guard<&ciuic_io_service::rename>("ciuic.io rename")
      .guard<&ciuic_io_service::remove>("ciuic.io remove")
      .guard<&ciuic_io_service::make_directory>("ciuic.io make_directory")
      .guard<&ciuic_io_service::sync_directory>("ciuic.io sync_directory")
      .guard<&ciuic_io_service::list>("ciuic.io list")
      .guard<&ciuic_io_service::space>("ciuic.io space");
}
FaultyService<ciuic_data_service>& guard_all(FaultyService<ciuic_data_service>& s) {
  return s.guard<&ciuic_data_service::samples>("ciuic.data samples")
      .guard<&ciuic_data_service::lengths>("ciuic.data lengths");
}

constexpr uint64_t kRows = 64;
constexpr uint64_t kTokens = 16;
constexpr size_t kStoreBytes = size_t{64} << 20;  // mapped, not taken

}  // namespace

struct Bench::Services {
  Services(Rank& r, FaultPlan& plan, MemoryFiles& files, const ciuic_comm_service& groups)
      : store(kStoreBytes),
        reference_kv(r.host.host(), store, "bench/"),
        reference_io(r.host.host(), files, no_io_faults),
        reference_data(ReferenceData::uniform(kRows, kTokens)),
        reference_optimizer(r.host.host()),
        reference_precision(r.host.host()),
        comm(r.host.host(), plan, groups),
        tensor(r.host.host(), plan, *r.tensor.table()),
        threads(r.host.host(), plan, *r.threads.table()),
        kv(r.host.host(), plan, *reference_kv.table()),
        io(r.host.host(), plan, *reference_io.table()),
        data(r.host.host(), plan, *reference_data.table()),
        precision{sizeof(precision), CIUIC_KIND_PRECISION, &Precision::table(),
                  to_handle(&reference_precision)} {
    r.host.offer("ciuic.comm", guard_all(comm).table());
    r.host.offer("ciuic.tensor", guard_all(tensor).table());
    r.host.offer("ciuic.threads", guard_all(threads).table());
    r.host.offer("ciuic.kv", guard_all(kv).table());
    r.host.offer("ciuic.io", guard_all(io).table());
    r.host.offer("ciuic.data", guard_all(data).table());
    r.host.offer("ciuic.optimizer", reference_optimizer.service());
    r.host.offer("ciuic.precision", &precision);
  }

  SharedStore store;
  IoPlan no_io_faults;
  SharedKv reference_kv;
  ReferenceIo reference_io;
  ReferenceData reference_data;
  ReferenceAdamW reference_optimizer;
  ReferencePrecision reference_precision;
  FaultyService<ciuic_comm_service> comm;
  FaultyService<ciuic_tensor_service> tensor;
  FaultyService<ciuic_thread_service> threads;
  FaultyService<ciuic_kv_service> kv;
  FaultyService<ciuic_io_service> io;
  FaultyService<ciuic_data_service> data;
  ciuic_kind_service precision;
};

Bench::Bench() : rank_(std::make_unique<Rank>(0, 1)) {
  for (const char* name : {"world", "data", "control"}) {
    const auto meeting = std::make_shared<Meeting>(1);
    auto inner = std::make_unique<ReferenceCommunicator>(host().host(), meeting, 0);
    rank_->join(name, {0},
                std::make_unique<FaultyCommunicator>(host().host(), faults_, std::move(inner)));
  }
  const auto* groups = static_cast<const ciuic_comm_service*>(
      host().table()->service(host().table()->ctx, "ciuic.comm", 0));
  services_ = std::make_unique<Services>(*rank_, faults_, files_, *groups);
  files_.make_directory("/runs");
}

Bench::~Bench() = default;

void Bench::tidy() {
  host().forget_logs();
  services_->no_io_faults.clear_log();
  (void)services_->reference_optimizer.take_seen();
}

}  // namespace ciuic::testing::contract
