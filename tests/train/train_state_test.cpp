// SPDX-License-Identifier: MIT
#include "core/train/train_state.h"

#include <gtest/gtest.h>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

TEST(TrainState, ComesBackWhole) {
  TrainState state;
  state.step = 7;
  state.updates = 6;
  state.update_tokens = 900;
  state.tokens = 1'000'000'000'000;
  state.samples = 99;
  state.skipped_steps = 1;
  state.numerics = {{"run.seed", "3"}, {"optimizer.adamw.beta1", "0.9"}};
  const TrainState back = TrainState::from_json(state.to_json(), "f");
  EXPECT_EQ(back.step, 7u);
  EXPECT_EQ(back.updates, 6u);
  EXPECT_EQ(back.update_tokens, 900u);
  EXPECT_EQ(back.tokens, 1'000'000'000'000u);
  EXPECT_EQ(back.samples, 99u);
  EXPECT_EQ(back.skipped_steps, 1u);
  EXPECT_EQ(changed_settings(back.numerics, state.numerics), "");
}

TEST(TrainState, WithoutTokensOfUpdatesAllCount) {
  TrainState state;
  state.step = state.updates = 3;
  state.tokens = 96;
  std::string text = state.to_json();
  const size_t at = text.find("\"update_tokens\"");
  text.erase(at, text.find(',', at) + 1 - at);
  EXPECT_EQ(TrainState::from_json(text, "f").update_tokens, 96u);
}

TEST(TrainState, WhatIsNoneIsStorageFailure) {
  for (const char* text : {"", "{}", "[1]", "{\"version\": 2, \"step\": 1}", "{\"version\": 1}"}) {
    try {
      (void)TrainState::from_json(text, "f");
      ADD_FAILURE() << text;
    } catch (const Failure& f) {
      EXPECT_EQ(f.code(), ExitCode::Storage);
    }
  }
}

TEST(ChangedSettings, NamesEachChange) {
  EXPECT_EQ(
      changed_settings({{"a", "1"}, {"b", "2"}, {"c", "3"}}, {{"a", "1"}, {"b", "5"}, {"d", "4"}}),
      "b: was 2, is 5; d: is 4, was not set; c: was 3, is gone");
}

}  // namespace
}  // namespace ciuic::core
