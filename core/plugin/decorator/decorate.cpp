// SPDX-License-Identifier: MIT
#include "core/plugin/decorator/decorate.h"

#include "core/plugin/decorator/chaos.h"
#include "core/plugin/decorator/record.h"
#include "core/plugin/decorator/shadow.h"

namespace ciuic::core {
namespace {

std::unique_ptr<Layer> wrap(const DecoratorSpec& spec, const DecoratorContext& context,
                            std::unique_ptr<Layer> inner) {
  if (const auto* chaos = std::get_if<ChaosSpec>(&spec.what)) {
    return make_chaos(*chaos, context, std::move(inner));
  }
  if (const auto* record = std::get_if<RecordSpec>(&spec.what)) {
    return make_record(*record, context, std::move(inner));
  }
  return make_shadow(std::get<ShadowSpec>(spec.what), context, std::move(inner));
}

}  // namespace

Decorate make_decorate(const std::vector<DecoratorSpec>& specs, DecoratorContext context) {
  if (specs.empty()) {
    return nullptr;
  }
  return [specs, context = std::move(context)](std::unique_ptr<Layer> layer) {
    for (size_t i = specs.size(); i-- > 0;) {  // the list's first is the outermost
      layer = wrap(specs[i], context, std::move(layer));
    }
    return layer;
  };
}

}  // namespace ciuic::core
