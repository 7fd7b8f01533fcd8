// SPDX-License-Identifier: MIT
//
// A plain communicator among processes of one machine, right in everything; a plugin of this folder
// is it with another Behaviour.
#pragma once

#include <memory>
#include <string>

#include <ciuic/communicator.hpp>

#include "engine.h"

namespace ciuic::mutants {

class MeshCommunicator : public Communicator {
 public:
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr uint32_t flags = CIUIC_FLAG_OWN_THREADS;

  MeshCommunicator(const Context& context, std::shared_ptr<Behaviour> behaviour);
  MeshCommunicator(const Host& host, std::shared_ptr<Behaviour> behaviour, std::string prefix,
                   std::vector<int32_t> ranks, int rank, std::chrono::nanoseconds timeout);
  ~MeshCommunicator() override;

  [[nodiscard]] uint64_t capabilities(uint32_t op, uint32_t reduce, ciuic_dtype dtype,
                                      ciuic_device device) const override;
  [[nodiscard]] Work submit(ArrayView<ciuic_collective> collectives,
                            const ciuic_stream* stream) override;
  [[nodiscard]] std::unique_ptr<Communicator> split(const ciuic_split& request) override;
  void health() override { engine_->check(); }
  void abort(int32_t code) noexcept override;
  void quiesce(int64_t timeout_ns) override;
  void resume() override { engine_->resume(); }

 private:
  void refuse_denied(const ciuic_collective& c) const;
  void connect(std::chrono::nanoseconds timeout);

  std::shared_ptr<Behaviour> behaviour_;
  std::string prefix_;
  std::vector<int32_t> ranks_;  // global
  int rank_;
  std::shared_ptr<Engine> engine_;
  int num_splits_ = 0;
};

/// A plugin class of its own for each behaviour. `Fault` has name and summary.
template <typename Fault>
class Plugin final : public MeshCommunicator {
 public:
  static constexpr const char* name = Fault::name;
  static constexpr const char* summary = Fault::summary;
  explicit Plugin(const Context& context) : MeshCommunicator(context, std::make_shared<Fault>()) {}
};

}  // namespace ciuic::mutants
