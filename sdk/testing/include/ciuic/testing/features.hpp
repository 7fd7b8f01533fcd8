// SPDX-License-Identifier: MIT
//
// What a plugin says of itself in its descriptor's feature strings. The kit asks these:
//
//   rule:adamw rule:sgd rule:lion   an optimizer's update is that published rule, bit noise apart
//   rounding:stochastic             an optimizer rounds copies or state by the seed, if so set up
//   gradients:lossy                 a sharding compresses gradients on their way
//   norm:params                     and gives the norm of chosen parameters, where one is asked for
//   writer:rank0                    a checkpoint's tensors are all put by rank 0; it refuses others'
//   checksums:none                  a checkpoint's format has none: changed data is read as it is
//   events:all                      a profiler loses no event of its mask, in a run of normal rates
//   output:csv output:json          what a profiler writes into files ending so
//   loss_scale:dynamic              a precision policy scales the loss by a rule of its own
//   loss_scale:deepspeed :megatron  by that published rule (loss_scale_rules.hpp)
//   loss_scale:static               by a factor that never changes
//   loss_scale:power_of_two         every loss scale is a power of two
//   cast:row_major                  out has in's layout, scales lie row-major by block; code x scale
//   cast:saturates                  past the largest number comes the largest, not infinity or NaN
//   scale:power_of_two              every block scale is a power of two
//   scale:delayed                   block scales come from earlier casts, so they need not fit
//   lengths                         a batch scheduler serves samples of any length
//   adaptive                        reports of the ranks change its later plans
//   grows                           its plans' totals never shrink, so a host may look ahead
//   drops:epoch drops:long          it leaves out samples at an epoch's end, tokens past row_tokens
#pragma once

#include <string_view>

#include <ciuic/abi/plugin.h>

namespace ciuic::testing {

inline bool has_feature(const ciuic_descriptor& descriptor, std::string_view feature) {
  if (descriptor.features == nullptr) {
    return false;
  }
  for (const char* const* at = descriptor.features; *at != nullptr; ++at) {
    if (feature == *at) {
      return true;
    }
  }
  return false;
}

}  // namespace ciuic::testing
