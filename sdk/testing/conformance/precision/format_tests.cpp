// SPDX-License-Identifier: MIT
//
// format and cast, whatever the layout: shapes alone decide sizes, the sizes suffice, the same
// input gives the same bytes.
#include <string>
#include <thread>

#include "cast_bench.hpp"
#include "policy_tests.hpp"

namespace ciuic::testing {
namespace {

struct Shape {
  int64_t rows;
  int64_t columns;
};
constexpr Shape kShapes[] = {{1, 1},     {1, 128},   {127, 129}, {129, 1},
                             {128, 128}, {130, 257}, {5, 300},   {256, 384}};

bool equal(const ciuic_format& a, const ciuic_format& b) {
  return same(a.dtype, b.dtype) && a.elements == b.elements &&
         a.scale_elements == b.scale_elements && a.block_rows == b.block_rows &&
         a.block_cols == b.block_cols &&
         (a.scale_elements == 0 || same(a.scale_dtype, b.scale_dtype));
}

std::string text(const Offer& offer, Shape shape) {
  return to_text(offer.kind) + ", " + std::to_string(shape.rows) + " x " +
         std::to_string(shape.columns);
}

}  // namespace

void format_reads_shapes_only(const TestContext& context) {
  const PolicyBench policy(context);
  const PolicyBench other(context, {1, 2, {}});
  for (const Offer& offer : offers_of(policy)) {
    for (const Shape shape : kShapes) {
      const CastInput in(offer.kind.in, shape.rows, shape.columns,
                         varied_values(context.seed, shape.rows * shape.columns));
      const ciuic_cast request = cast_of(offer.kind, in.c());
      const auto first = policy.format(request);
      require(first.has_value(), text(offer, shape) + ": no format, though 256 x 384 has one");
      in.forbid_data();  // a read of the data is a fault from here on
      for (int i = 0; i < 3; ++i) {
        require(equal(*policy.format(request), *first),
                text(offer, shape) + ": format gives another answer when asked again");
      }
      require(equal(*other.format(request), *first),
              text(offer, shape) + ": format differs on another rank");
      std::thread([&] { (void)policy.format(request); }).join();
    }
  }
}

void format_sizes_suffice(const TestContext& context) {
  const PolicyBench policy(context);
  for (const Offer& offer : offers_of(policy)) {
    for (const Shape shape : kShapes) {
      const CastInput in(offer.kind.in, shape.rows, shape.columns,
                         varied_values(context.seed, shape.rows * shape.columns));
      // A write past elements or scale_elements is a fault.
      const CastResult result(policy, offer.kind, in);
      require(result.format().block_rows >= 0 && result.format().block_cols >= 0,
              text(offer, shape) + ": negative blocks");
    }
  }
}

void casts_repeat(const TestContext& context) {
  if (has_feature(context.plugin.descriptor(), "scale:delayed")) {
    throw NotOffered("the feature \"scale:delayed\" says that casts depend on earlier ones");
  }
  const PolicyBench policy(context);
  const PolicyBench other(context, {1, 2, {}});
  for (const Offer& offer : offers_of(policy)) {
    const CastInput in(offer.kind.in, 130, 257, varied_values(context.seed, 130 * 257));
    const std::string first = CastResult(policy, offer.kind, in).bytes();
    require(CastResult(policy, offer.kind, in).bytes() == first,
            to_text(offer.kind) + ": cast again, the same numbers give other bytes");
    require(CastResult(other, offer.kind, in).bytes() == first,
            to_text(offer.kind) + ": the same numbers give other bytes on another rank");
  }
}

void casts_honour_strides(const TestContext& context) {
  const PolicyBench policy(context);
  bool any = false;
  for (const Offer& offer : offers_of(policy)) {
    const std::vector<double> values = varied_values(context.seed, 37 * 150);
    const CastInput dense(offer.kind.in, 37, 150, values);
    const CastInput strided(offer.kind.in, 37, 150, values, 163);
    try {
      const CastResult result(policy, offer.kind, strided);
      any = true;
      require(result.bytes() == CastResult(policy, offer.kind, dense).bytes(),
              to_text(offer.kind) +
                  ": rows 163 elements apart give other bytes than the same rows 150 apart; a "
                  "policy that takes contiguous input only refuses others with INVALID or "
                  "UNIMPLEMENTED");
    } catch (const Error& error) {
      if (error.code() != CIUIC_INVALID && error.code() != CIUIC_UNIMPLEMENTED) {
        throw;
      }
    }
  }
  if (!any) {
    throw NotOffered("the policy refuses input that is not contiguous");
  }
}

}  // namespace ciuic::testing
