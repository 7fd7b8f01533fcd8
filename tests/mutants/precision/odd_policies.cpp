// SPDX-License-Identifier: MIT
//
// Correct precision policies that are unlike the tree's own.
#include <chrono>
#include <thread>

#include "block_policy.hpp"
#include "half_policy.hpp"

namespace ciuic::mutants {
namespace {

class HalfAsDeepSpeed final : public HalfPolicy {
 public:
  static constexpr const char* name = "half_as_deepspeed";
  static constexpr const char* summary = "fp16, the loss scaled as DeepSpeed does";
  using HalfPolicy::HalfPolicy;
};

class Fp8Blocks final : public BlockPolicy {
 public:
  static constexpr const char* name = "fp8_blocks";
  static constexpr const char* summary = "e4m3fn products with a scale a block";
  using BlockPolicy::BlockPolicy;
};

/// Scales that are no powers of two, and nothing else than what it must have.
class Fp8ExactScales final : public BlockPolicy {
 public:
  static constexpr const char* name = "fp8_exact_scales";
  static constexpr const char* summary = "scale = largest / 448, held up at 1e-12";
  static constexpr std::array<const char*, 3> features{"cast:row_major", "cast:saturates", nullptr};
  using BlockPolicy::BlockPolicy;

 protected:
  [[nodiscard]] float scale_of(float largest) const override {
    return std::max(largest, 1e-12F) / kLargest;
  }
};

/// The scale of the loss as Megatron-Core does, and nothing else.
class ScaleAsMegatron final : public Precision {
 public:
  static constexpr const char* name = "scale_as_megatron";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "f32, the loss scaled as Megatron-Core does";
  static constexpr std::array<const char*, 2> features{"loss_scale:megatron", nullptr};
  using Precision::Precision;

  [[nodiscard]] ciuic_dtype dtype_for(std::string_view, uint32_t) const override { return kF32; }
  [[nodiscard]] double loss_scale() const override { return state_.scale; }
  void update(const ciuic_precision_update& update) override {
    if (update.non_finite > 0) {
      state_.clean = 0;
      state_.hysteresis -= 1;
      if (state_.hysteresis <= 0) {
        state_.scale = std::max(state_.scale / 2, 1.0);
      }
    } else if (++state_.clean == 1000) {
      state_ = {state_.scale * 2, 0, 2};
    }
  }
  void save(const StateWriter& writer) override {
    writer.blob("state", {reinterpret_cast<const char*>(&state_), sizeof(state_)});
  }
  void load(const StateReader& reader) override {
    const std::string bytes = reader.blob("state");
    if (bytes.size() != sizeof(state_)) {
      throw Error(CIUIC_DATA_LOSS, "state: another size");
    }
    std::memcpy(&state_, bytes.data(), sizeof(state_));
  }

 private:
  struct State {
    double scale;
    int64_t clean, hysteresis;
  } state_{4294967296.0, 0, 2};
};

/// A layout nobody knows (columns after columns, padded to 32), one scale a tensor, products of one
/// pass only, and slow.
class OwnLayout final : public Precision {
 public:
  static constexpr const char* name = "own_layout";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "casts into padded columns; forward products; slow";
  static constexpr std::array<const char*, 2> features{"loss_scale:static", nullptr};
  using Precision::Precision;

  [[nodiscard]] ciuic_dtype dtype_for(std::string_view, uint32_t role) const override {
    return role == CIUIC_ROLE_COMPUTE ? kBF16 : kF32;
  }
  [[nodiscard]] double loss_scale() const override { return 384; }
  [[nodiscard]] uint32_t hooks(uint32_t module, ciuic_device device) const override {
    return module == 13 && device.type == CIUIC_DEVICE_CPU ? 1U << CIUIC_GEMM_FORWARD : 0;
  }
  void format(const ciuic_cast& cast, ciuic_format& out) const override {
    if (!same(cast.in->t.dtype, kF32) || cast.role != CIUIC_ROLE_VALUE || cast.in->t.ndim != 2) {
      Precision::format(cast, out);
    }
    out.dtype = kBF16;
    out.scale_dtype = kF32;
    out.elements = padded_rows(*cast.in) * cast.in->t.shape[1];
    out.scale_elements = 1;
  }
  void cast(const ciuic_cast& cast, const ciuic_stream*) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const ciuic_dl& in = cast.in->t;
    auto* out = static_cast<char*>(tensor_data(*cast.out));
    for (int64_t c = 0; c < in.shape[1]; ++c) {
      for (int64_t r = 0; r < padded_rows(*cast.in); ++r) {
        const int64_t at = r * in.strides[0] + c * in.strides[1];
        const float x =
            r < in.shape[0]
                ? read_number(kF32, static_cast<const char*>(tensor_data(*cast.in)) + 4 * at)
                : 0;
        write_number(kBF16, out + 2 * (c * padded_rows(*cast.in) + r), x);
      }
    }
    write_number(kF32, static_cast<char*>(tensor_data(*cast.scale)), 1);
  }
  void gemm(const ciuic_gemm& gemm, const ciuic_stream* stream) override {
    if (hooks(gemm.module, gemm.a->t.device) == 0 || gemm.pass != CIUIC_GEMM_FORWARD) {
      throw Error(CIUIC_UNIMPLEMENTED, "forward products of one module only");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ciuic_gemm plain = gemm;
    plain.pass = 0;
    const auto& tensors = host().service<ciuic_tensor_service>("ciuic.tensor");
    host().check(tensors.gemm(tensors.ctx, &plain, stream));
  }

 private:
  static int64_t padded_rows(const ciuic_tensor& t) { return (t.t.shape[0] + 31) / 32 * 32; }
};

}  // namespace
}  // namespace ciuic::mutants

CIUIC_PLUGINS(ciuic::mutants::HalfAsDeepSpeed, ciuic::mutants::Fp8Blocks,
              ciuic::mutants::Fp8ExactScales, ciuic::mutants::ScaleAsMegatron,
              ciuic::mutants::OwnLayout)
