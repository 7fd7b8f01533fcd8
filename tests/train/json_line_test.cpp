// SPDX-License-Identifier: MIT
#include "core/train/json_line.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ciuic::core {
namespace {

TEST(JsonLine, KeepsTheOrderOfItsFields) {
  EXPECT_EQ(JsonLine("step").add("step", uint64_t{3}).add("loss", 0.5).text(),
            "{\"type\": \"step\", \"step\": 3, \"loss\": 0.5}\n");
}

TEST(JsonLine, NumbersReadBackToTheSameBits) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t bits = random();
    double value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    if (std::isfinite(value)) {
      EXPECT_EQ(std::strtod(json_number(value).c_str(), nullptr), value);
    }
  }
}

TEST(JsonLine, NumbersAreTheShortest) {
  EXPECT_EQ(json_number(0.1), "0.1");
  EXPECT_EQ(json_number(3e-4), "3e-04");
  EXPECT_EQ(json_number(1.0), "1");
  EXPECT_EQ(json_number(5e-324), "5e-324");
}

TEST(JsonLine, NonFiniteNumbersAreNullAndNamed) {
  const std::string line = JsonLine("step")
                               .add("loss", std::nan(""))
                               .add("grad_norm", std::numeric_limits<double>::infinity())
                               .add("learning_rate", 1.5)
                               .text();
  const auto json = nlohmann::json::parse(line);
  EXPECT_TRUE(json["loss"].is_null());
  EXPECT_EQ(json["non_finite"], (std::vector<std::string>{"loss", "grad_norm"}));
}

TEST(JsonLine, TextIsEscaped) {
  const auto json =
      nlohmann::json::parse(JsonLine("run").add("name", "a \"b\"\n\\ \x01 \xff").text());
  EXPECT_EQ(json["name"].get<std::string>().substr(0, 7), "a \"b\"\n\\");
}

}  // namespace
}  // namespace ciuic::core
