// SPDX-License-Identifier: MIT
//
// optimizer_trace PLUGIN.so STEPS [key=value]...
//
// For optimizer_parity.py: reads an fp32 matrix of STEPS + 1 rows from stdin, the values and then a
// gradient for each step, and writes the values after each step to stdout. lr is 1e-2 and grad_scale
// 1; the options are numbers, true or false.
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include <ciuic/testing/loaded_plugin.hpp>

namespace ciuic::testing {
namespace {

OptionValues options_of(int argc, char** argv) {
  OptionValues options;
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    const std::string text = word.substr(equals + 1);
    if (text == "true" || text == "false") {
      options.emplace(word.substr(0, equals), text == "true");
    } else {
      options.emplace(word.substr(0, equals), std::atof(text.c_str()));
    }
  }
  return options;
}

std::vector<float> read_numbers() {
  std::vector<float> numbers;
  float x = 0;
  while (std::fread(&x, sizeof(x), 1, stdin) == 1) {
    numbers.push_back(x);
  }
  return numbers;
}

void trace(const char* library, int64_t steps, OptionValues options) {
  TestHost host;
  const LoadedPlugin plugin(library);
  const PluginInstance rule = plugin.create(host, std::move(options));
  std::vector<float> numbers = read_numbers();
  const int64_t count = static_cast<int64_t>(numbers.size()) / (steps + 1);
  ciuic_param param{};
  param.struct_size = sizeof(param);
  param.name = to_str("w");
  param.num_elements = count;
  ciuic_array specs{};
  rule.check(rule.table<ciuic_optimizer_vt>().state_spec(rule.self(), &param, &specs));
  const size_t num_state = ArrayView<ciuic_state_spec>(specs).size();
  std::vector<std::vector<float>> state(num_state, std::vector<float>(static_cast<size_t>(count)));
  std::vector<Tensor> tensors;
  for (std::vector<float>& s : state) {
    tensors.emplace_back(s.data(), kF32, std::vector<int64_t>{count});
  }
  std::vector<const ciuic_tensor*> pointers;
  for (const Tensor& t : tensors) {
    pointers.push_back(t.ptr());
  }
  const Tensor value(numbers.data(), kF32, {count});
  for (int64_t step = 1; step <= steps; ++step) {
    const Tensor grad(numbers.data() + step * count, kF32, {count});
    ciuic_update u{};
    u.struct_size = sizeof(u);
    u.param = &param;
    u.num_elements = count;
    u.update = static_cast<uint64_t>(step);
    u.lr = 1e-2;
    u.weight_decay = u.grad_scale = 1;
    u.grad = grad.ptr();
    u.value = value.ptr();
    u.state = pointers.data();
    u.num_state = static_cast<uint32_t>(num_state);
    rule.check(rule.table<ciuic_optimizer_vt>().update(rule.self(), {&u, 1, sizeof(u)}, nullptr));
    std::fwrite(numbers.data(), sizeof(float), static_cast<size_t>(count), stdout);
  }
}

}  // namespace
}  // namespace ciuic::testing

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: optimizer_trace PLUGIN.so STEPS [key=value]...\n");
    return 2;
  }
  try {
    ciuic::testing::trace(argv[1], std::atoll(argv[2]), ciuic::testing::options_of(argc, argv));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "optimizer_trace: %s\n", e.what());
    return 1;
  }
  return 0;
}
