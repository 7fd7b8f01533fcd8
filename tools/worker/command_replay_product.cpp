// SPDX-License-Identifier: MIT
//
// ciuic replay FILE: computes a product that `ciuic train --debug numbers` wrote again, as the run's
// dtype has it and in fp64, and shows where it stops being finite.
#include <cstdio>
#include <unistd.h>

#include <ATen/ops/abs.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/max.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "core/launch/environment.h"
#include "core/model/product.h"
#include "core/plugin/archive_opener.h"
#include "core/train/numbers_probe.h"
#include "core/train/tensor_bridge.h"
#include "tools/ciuic/plugin/search_options.h"
#include "tools/worker/commands.h"

namespace ciuic::tools {
namespace {

using core::ProductPass;

struct Product {
  std::string module;
  ProductPass pass = ProductPass::Forward;
  at::Tensor a, b, group_ends;
};

core::Failure not_a_dump(const std::string& file, const std::string& what) {
  return core::Failure(core::ExitCode::Storage, what,
                       "expected a file that ciuic train --debug numbers wrote", {{"file", file}});
}

/// "model.layers.0.mlp.down_proj.forward.a" is the tensor a.
Product read_product(const core::ArchiveOpener& opener, const std::string& file) {
  const core::OpenArchive archive = opener.open(file);
  Product product;
  for (const core::ArchiveEntry& e : archive->list()) {
    const size_t tensor = e.key.rfind('.');
    const size_t pass = tensor == std::string::npos ? tensor : e.key.rfind('.', tensor - 1);
    if (e.is_blob || pass == std::string::npos) {
      continue;
    }
    const std::string name = e.key.substr(tensor + 1);
    at::Tensor* into = name == "a"            ? &product.a
                       : name == "b"          ? &product.b
                       : name == "group_ends" ? &product.group_ends
                                              : nullptr;
    if (into == nullptr) {
      continue;
    }
    const std::string pass_text = e.key.substr(pass + 1, tensor - pass - 1);
    product.module = e.key.substr(0, pass);
    for (const ProductPass one :
         {ProductPass::Forward, ProductPass::GradInput, ProductPass::GradWeight}) {
      product.pass = pass_text == core::pass_name(one) ? one : product.pass;
    }
    *into = at::empty(e.shape, core::to_scalar_type(e.dtype));
    const Place place(e.shape);
    if (!archive->get(e.key, place.c(), core::to_abi(*into).c())) {
      throw not_a_dump(file, "it has no data of " + e.key);
    }
  }
  if (!product.a.defined() || !product.b.defined()) {
    throw not_a_dump(file, "it has no operands a and b");
  }
  return product;
}

at::Tensor multiply(ProductPass pass, const at::Tensor& a, const at::Tensor& b) {
  switch (pass) {
    case ProductPass::Forward:
      return core::product(a, b.t());
    case ProductPass::GradInput:
      return core::product(a, b);
    default:
      return core::product(a.t(), b);
  }
}

void show(const char* name, const at::Tensor& t) {
  const at::Tensor wide = t.to(at::kDouble);
  const at::Tensor finite = at::isfinite(wide);
  const int64_t bad = t.numel() - finite.sum().item<int64_t>();
  const double largest = at::where(finite, wide.abs(), at::zeros_like(wide)).max().item<double>();
  std::printf("  %s %s: largest finite magnitude %.6g, %lld of %lld not finite", name,
              at::toString(t.scalar_type()), largest, static_cast<long long>(bad),
              static_cast<long long>(t.numel()));
  if (bad > 0) {
    const at::Tensor first = finite.logical_not().nonzero()[0];
    std::printf(", first at [%lld, %lld]", static_cast<long long>(first[-2].item<int64_t>()),
                static_cast<long long>(first[-1].item<int64_t>()));
  }
  std::printf("\n");
}

/// One product; of a group, its part.
void replay_part(ProductPass pass, const at::Tensor& a, const at::Tensor& b) {
  show("a", a);
  show("b", b);
  const at::Tensor narrow = multiply(pass, a, b);
  const at::Tensor wide = multiply(pass, a.to(at::kDouble), b.to(at::kDouble));
  show("a b", narrow);
  show("a b", wide);
  const at::Tensor lost = at::isfinite(wide).logical_and(at::isfinite(narrow).logical_not());
  if (lost.any().item<bool>()) {
    const at::Tensor first = lost.nonzero()[0];
    const auto row = first[0].item<int64_t>();
    const auto column = first[1].item<int64_t>();
    std::printf("  [%lld, %lld] is %g in %s and %.6g in fp64: beyond the format's range\n",
                static_cast<long long>(row), static_cast<long long>(column),
                narrow[row][column].to(at::kDouble).item<double>(),
                at::toString(narrow.scalar_type()), wide[row][column].item<double>());
  }
}

}  // namespace

int replay_product(const Arguments& arguments) {
  CommandLine line("replay", "ciuic replay FILE",
                   "Computes a product that train --debug numbers wrote again. a and b are x and W "
                   "(forward), dy\n"
                   "and W (grad_input), or dy and x (grad_weight).",
                   "  ciuic replay runs/x/numbers/step-12-rank-0.safetensors\n");
  add_log_options(line);
  add_search_options(line);
  line.positional("file", 1);
  const auto values = line.parse(arguments);
  if (!values) {
    return 0;
  }
  const std::string file = get(*values, "file");
  if (file.empty()) {
    throw line.usage_failure("no FILE is given");
  }
  core::Log log({0, 1, terminal_level(*values), "", has_color(STDERR_FILENO)});
  const core::Catalog catalog = catalog_of(*values, line);
  const Product product = read_product(core::ArchiveOpener(catalog, log), file);
  std::printf("%s, %s\n", product.module.c_str(), core::pass_name(product.pass));
  if (!product.group_ends.defined()) {
    replay_part(product.pass, product.a, product.b);
    return 0;
  }
  const bool is_weight = product.pass == ProductPass::GradWeight;
  int64_t begin = 0;
  for (int64_t g = 0; g < product.group_ends.numel(); ++g) {
    const int64_t end = product.group_ends[g].item<int64_t>();
    const int64_t rows = end - begin;
    if (rows > 0) {
      std::printf(" expert %lld, rows %lld to %lld\n", static_cast<long long>(g),
                  static_cast<long long>(begin), static_cast<long long>(end - 1));
      replay_part(product.pass, product.a.narrow(0, begin, rows),
                  is_weight ? product.b.narrow(0, begin, rows) : product.b[g]);
    }
    begin = end;
  }
  return 0;
}

}  // namespace ciuic::tools
