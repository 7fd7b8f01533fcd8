// SPDX-License-Identifier: MIT
//
// The two-layer net trained twice: through a sharding plugin at any world size, and in one place
// with plain arrays. A step always has the same 12 samples, dealt out over the ranks and their two
// micro-batches, so every world size has the same gradient; a rank without samples is idle.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ciuic/testing/step_driver.hpp>
#include <ciuic/testing/two_layer_net.hpp>

namespace ciuic::testing {

constexpr uint64_t kSamples = 12;
constexpr uint32_t kMicroBatches = 2;

struct Training {
  explicit Training(uint64_t seed, double grid = TwoLayerNet::kGrid) : net(seed, grid) {}

  TwoLayerNet net;
  Model model = TwoLayerNet::model();
  bool uses_are_known = true;    // begin_step lists the uses to come
  bool announces_last = true;    // uses say which is the unit's last gradient
  bool splits_backward = false;  // input gradients first, weight gradients in a pass of their own
  ciuic_dtype moment = kF32;

  /// Values, gradients, masters and moments, all of one type.
  void set_type(ciuic_dtype type);
};

/// lr, decay factor and scale of an update: they change from step to step.
RuleStep rule_step(uint64_t update);

/// Rank `rank`'s samples in micro-batch `m` of a step.
std::vector<uint64_t> samples_of(int rank, int world, uint32_t m);

/// Runs `body` on every rank; then each rank's host must have all memory and statuses back.
void run_ranks(RankGroup& ranks, const std::function<void(Rank&)>& body);

/// One step's passes on a rank: begin_step to end_backward.
void run_passes(StepDriver& driver, const Training& training, uint64_t step);

/// Updates first ... last at a world size, from one state to another.
void train(const TestContext& context, const Training& training, int world, MemoryState& from,
           MemoryState& to, uint64_t first, uint64_t last);

/// The same without ranks, in Real throughout.
template <typename Real>
class UnshardedNet {
 public:
  explicit UnshardedNet(const Training& training);

  /// Applies updates first ... last.
  void train(uint64_t first, uint64_t last);
  /// The gradient's sum over the samples of a step.
  [[nodiscard]] std::vector<std::vector<double>> gradients(uint64_t step) const;
  /// As a layer reads it.
  [[nodiscard]] double value(uint64_t param, int64_t i) const;

  std::vector<std::vector<Real>> master, mean, square;  // by parameter

 private:
  const Training& training_;
};

/// The L2 norm of a gradient, each logical element once.
double norm_of(const Model& model, const std::vector<std::vector<double>>& gradients);

/// master/<name>, or value/<name> where the value is the master.
const MemoryState::Entry& stored(const MemoryState& state, const ModelParam& param);

/// moment/<state>/<name>.
const MemoryState::Entry& moment(const MemoryState& state, const std::string& name,
                                 const ModelParam& param);

/// Every element was written once, and equals the net's: masters and moments. `bound` 0: the same
/// bits; else the largest difference of a master.
template <typename Real>
void require_equal(const MemoryState& state, const UnshardedNet<Real>& net, const Model& model,
                   const std::string& when, double bound = 0);

}  // namespace ciuic::testing
