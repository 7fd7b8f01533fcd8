// SPDX-License-Identifier: MIT
// A mixture whose experts are shared out over ranks, against the same mixture in one place. Ranks are
// threads, and what travels between them is copied through their memory.
#include <barrier>
#include <thread>

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "core/model/mixture_of_experts.h"
#include "tests/model/test_model.h"

namespace ciuic::core::testing {
namespace {

// f64, sums in another order.
constexpr double kTolerance = 1e-12;
constexpr size_t kFirstOfMixture = 2 + 7;  // of a layer's bindings

/// Where ranks lay down what they send and pick up what is theirs.
class Post {
 public:
  explicit Post(size_t ranks) : boxes(ranks), meeting(static_cast<std::ptrdiff_t>(ranks)) {}

  struct Box {
    std::vector<int64_t> counts;
    std::vector<at::Tensor> sent;
    std::vector<int64_t> sent_rows;
  };
  std::vector<Box> boxes;
  std::barrier<> meeting;
};

class PostExchange final : public ExpertExchange {
 public:
  PostExchange(Post& post, size_t rank) : post_(post), rank_(rank) {}

  [[nodiscard]] int64_t num_ranks() const override {
    return static_cast<int64_t>(post_.boxes.size());
  }
  [[nodiscard]] std::vector<int64_t> counts(std::span<const int64_t> rows_E) const override {
    post_.boxes[rank_].counts.assign(rows_E.begin(), rows_E.end());
    post_.meeting.arrive_and_wait();
    const size_t here = rows_E.size() / post_.boxes.size();
    std::vector<int64_t> out;
    for (const Post::Box& box : post_.boxes) {
      const auto first = box.counts.begin() + static_cast<std::ptrdiff_t>(rank_ * here);
      out.insert(out.end(), first, first + static_cast<std::ptrdiff_t>(here));
    }
    post_.meeting.arrive_and_wait();
    return out;
  }
  [[nodiscard]] std::unique_ptr<Pending> start(std::vector<Parts> parts,
                                               std::span<const int64_t> in_rows,
                                               std::span<const int64_t> out_rows) const override {
    Post::Box& mine = post_.boxes[rank_];
    mine.sent.clear();
    for (const Parts& p : parts) {
      mine.sent.push_back(p.in);
    }
    mine.sent_rows.assign(in_rows.begin(), in_rows.end());
    return std::make_unique<Delivery>(post_, rank_, std::move(parts),
                                      std::vector(out_rows.begin(), out_rows.end()));
  }

 private:
  struct Delivery final : Pending {
    Delivery(Post& p, size_t r, std::vector<Parts> all, std::vector<int64_t> expected)
        : post(p), rank(r), parts(std::move(all)), out_rows(std::move(expected)) {}
    void wait() override {
      post.meeting.arrive_and_wait();
      for (size_t i = 0; i < parts.size(); ++i) {
        int64_t at = 0;
        for (size_t from = 0; from < post.boxes.size(); ++from) {
          const Post::Box& box = post.boxes[from];
          int64_t begin = 0;
          for (size_t to = 0; to < rank; ++to) {
            begin += box.sent_rows[to];
          }
          EXPECT_EQ(box.sent_rows[rank], out_rows[from]);
          parts[i]
              .out.narrow(0, at, out_rows[from])
              .copy_(box.sent[i].narrow(0, begin, out_rows[from]));
          at += out_rows[from];
        }
      }
      post.meeting.arrive_and_wait();
    }
    Post& post;
    size_t rank;
    std::vector<Parts> parts;
    std::vector<int64_t> out_rows;
  };

  Post& post_;
  size_t rank_;
};

RouterPass router_pass(const at::Tensor& bias_E, const ExpertExchange* exchange = nullptr) {
  RouterPass pass;
  pass.bias_E = bias_E;
  pass.exchange = exchange;
  return pass;
}

/// Of a layer's mixture: gate, the experts of `share`, shared experts.
std::vector<Bound> shared_out(const std::vector<Bound>& layer, const ModelConfig& config,
                              const ExpertShare& share) {
  const auto experts = layer.begin() + kFirstOfMixture + 1;
  const int64_t first = 3 * share.first(config.n_routed_experts);
  const int64_t last = first + 3 * share.count(config.n_routed_experts);
  std::vector<Bound> out{layer[kFirstOfMixture]};
  out.insert(out.end(), experts + first, experts + last);
  out.insert(out.end(), experts + 3 * config.n_routed_experts, layer.end());
  return out;
}

struct RemoteExperts : ::testing::TestWithParam<std::vector<int64_t>> {};

// Tokens by rank; a rank without any serves. Gradients of experts are whole on the rank that has
// them, those of gate and shared experts are sums over ranks.
TEST_P(RemoteExperts, AreThoseOfOnePlace) {
  const ModelConfig config = small_config();
  const std::vector<int64_t>& tokens = GetParam();
  const auto ranks = static_cast<int64_t>(tokens.size());
  ASSERT_EQ(config.n_routed_experts % ranks, 0);
  std::vector<at::Tensor> x, dy;
  for (size_t r = 0; r < tokens.size(); ++r) {
    const std::string name = std::to_string(r);
    x.push_back(normal("x" + name, {tokens[r], config.hidden_size}));
    dy.push_back(normal("dy" + name, {tokens[r], config.hidden_size}));
  }
  const at::Tensor bias = at::zeros({config.n_routed_experts});

  TestParameters whole(config, at::kDouble);
  const std::vector<Bound> whole_layer = whole.bind(2, true);
  const MixtureOfExperts in_one_place(config);
  MixtureTape tape;
  const at::Tensor all_x = at::cat(x);
  const at::Tensor y = in_one_place.forward(Bindings(whole_layer).subspan(kFirstOfMixture), all_x,
                                            all_x, router_pass(bias), &tape);
  const at::Tensor dx =
      in_one_place.backward(Bindings(whole_layer).subspan(kFirstOfMixture), at::cat(dy), {}, tape);

  Post post(tokens.size());
  std::vector<TestParameters> parts(tokens.size(), TestParameters(config, at::kDouble));
  std::vector<at::Tensor> got_y(tokens.size()), got_dx(tokens.size());
  std::vector<std::thread> threads;
  for (size_t r = 0; r < tokens.size(); ++r) {
    parts[r] = TestParameters(config, at::kDouble);
    threads.emplace_back([&, r] {
      const c10::InferenceMode no_autograd;
      const ExpertShare share{static_cast<int64_t>(r), ranks};
      const PostExchange exchange(post, r);
      const MixtureOfExperts mixture(config, share);
      const std::vector<Bound> bound = shared_out(parts[r].bind(2, true), config, share);
      MixtureTape own;
      if (tokens[r] == 0) {
        mixture.serve(bound, at::kDouble, exchange, &own);
        mixture.serve_backward(bound, at::kDouble, own);
        return;
      }
      got_y[r] = mixture.forward(bound, x[r], x[r], router_pass(bias, &exchange), &own);
      got_dx[r] = mixture.backward(bound, dy[r], {}, own);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }

  int64_t at = 0;
  for (size_t r = 0; r < tokens.size(); ++r) {
    if (tokens[r] > 0) {
      EXPECT_LT(relative_error(got_y[r], y.narrow(0, at, tokens[r])), kTolerance) << r;
      EXPECT_LT(relative_error(got_dx[r], dx.narrow(0, at, tokens[r])), kTolerance) << r;
    }
    at += tokens[r];
  }
  const std::string prefix = "model.layers.1.mlp.";
  for (const ParameterSpec& spec : whole.specs()) {
    if (!spec.name.starts_with(prefix)) {
      continue;
    }
    at::Tensor sum = at::zeros(spec.shape, at::kDouble);
    for (size_t r = 0; r < tokens.size(); ++r) {
      const std::string expert = prefix + "experts.";
      const bool is_here = !spec.is_expert || std::stoll(spec.name.substr(expert.size())) /
                                                      (config.n_routed_experts / ranks) ==
                                                  static_cast<int64_t>(r);
      if (is_here && (spec.is_expert || tokens[r] > 0)) {
        sum.add_(parts[r].gradient(spec.name));
      }
    }
    EXPECT_LT(relative_error(sum, whole.gradient(spec.name)), kTolerance) << spec.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Tokens, RemoteExperts,
                         ::testing::Values(std::vector<int64_t>{18}, std::vector<int64_t>{7, 11},
                                           std::vector<int64_t>{0, 18},
                                           std::vector<int64_t>{5, 0, 12, 1},
                                           std::vector<int64_t>{0, 0, 3, 0}));

}  // namespace
}  // namespace ciuic::core::testing
