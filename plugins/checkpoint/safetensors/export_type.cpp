// SPDX-License-Identifier: MIT
#include "export_type.h"

#include <cstring>

#include <nlohmann/json.hpp>

#include <ciuic/error.hpp>
#include <ciuic/view.hpp>

#include "checkpoint_format/strict_json.h"
#include "checkpoint_format/tensor_types.h"
#include "fp8_blocks.h"
#include "number_formats.h"

namespace ciuic::plugins::safetensors {
namespace {

using nlohmann::json;

constexpr const char* kQuantization = "quantization_config";

bool ends_with(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

bool is_float(ciuic_dtype dtype) {
  return dtype.code == CIUIC_DTYPE_FLOAT || dtype.code == CIUIC_DTYPE_BFLOAT ||
         dtype.code == CIUIC_DTYPE_FLOAT8_E4M3FN || dtype.code == CIUIC_DTYPE_FLOAT8_E5M2;
}

bool is_quantised(std::string_view name, const std::vector<int64_t>& shape) {
  constexpr std::string_view kWeight = ".weight";
  if (shape.size() != 2 || !ends_with(name, kWeight)) {
    return false;
  }
  name.remove_suffix(kWeight.size());
  return (ends_with(name, "_proj") && !ends_with(name, "eh_proj")) ||
         ends_with(name, "_proj_with_mqa");
}

float read_float(ciuic_dtype type, const char* at) {
  if (same(type, kF32)) {
    float value = 0;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof(bits));
  return same(type, kBF16) ? from_bf16(bits) : from_f16(bits);
}

}  // namespace

ExportType export_type_of(std::string_view option) {
  for (int i = 0; kExportTypeNames[i] != nullptr; ++i) {
    if (option == kExportTypeNames[i]) {
      return static_cast<ExportType>(i);
    }
  }
  throw Error(CIUIC_INVALID, "no export type " + std::string(option));
}

ciuic_dtype exported_dtype(std::string_view name, ciuic_dtype dtype,
                           const std::vector<int64_t>& shape, ExportType type) {
  if (type == ExportType::AsStored || !is_float(dtype)) {
    return dtype;
  }
  if (!same(dtype, kF32) && !same(dtype, kBF16) && !same(dtype, kF16)) {
    throw Error(CIUIC_UNIMPLEMENTED,
                "safetensors: " + checkpoint::printable(name) + " is " +
                    checkpoint::type_name(dtype) + ", dtype = \"" +
                    kExportTypeNames[static_cast<int>(type)] +
                    "\" converts F32, BF16 and F16; use dtype = \"as_stored\"");
  }
  if (type == ExportType::Fp32 || ends_with(name, "e_score_correction_bias")) {
    return kF32;
  }
  return type == ExportType::Fp8Block && is_quantised(name, shape)
             ? ciuic_dtype{CIUIC_DTYPE_FLOAT8_E4M3FN, 8, 1}
             : kBF16;
}

void convert_elements(ciuic_dtype from, const char* source, ciuic_dtype to, char* target,
                      int64_t count) {
  if (same(from, to)) {
    std::memcpy(target, source, static_cast<size_t>(count * dtype_bytes(from)));
    return;
  }
  const int64_t step = dtype_bytes(from);
  for (int64_t i = 0; i < count; ++i) {
    const float value = read_float(from, source + i * step);
    if (same(to, kF32)) {
      std::memcpy(target + i * 4, &value, 4);
    } else {
      const uint16_t bits = to_bf16(value);
      std::memcpy(target + i * 2, &bits, 2);
    }
  }
}

std::string exported_config(const std::string& text, ExportType type) {
  if (type == ExportType::AsStored) {
    return text;
  }
  json config;
  try {
    config = checkpoint::parse_strict(text, "config.json");
  } catch (const Error& e) {
    throw Error(CIUIC_INVALID, e.what());
  }
  if (!config.is_object()) {
    throw Error(CIUIC_INVALID, "config.json is no JSON object");
  }
  config["dtype"] = config["torch_dtype"] = type == ExportType::Fp32 ? "float32" : "bfloat16";
  config.erase(kQuantization);
  if (type == ExportType::Fp8Block) {
    config[kQuantization] = {{"quant_method", "fp8"},
                             {"fmt", "e4m3"},
                             {"activation_scheme", "dynamic"},
                             {"weight_block_size", {kBlock, kBlock}}};
  }
  return config.dump(2) + "\n";
}

std::string plain_config(std::string text, const std::string& where) {
  if (text.find(kQuantization) == std::string::npos) {
    return text;
  }
  json config = checkpoint::parse_strict(text, where);
  const json quantization = config.is_object() ? config.value(kQuantization, json()) : json();
  if (!quantization.is_object() || quantization.value("quant_method", json()) != "fp8") {
    return text;
  }
  const json blocks = quantization.value("weight_block_size", json({kBlock, kBlock}));
  if (blocks != json({kBlock, kBlock})) {
    checkpoint::damaged(where, "quantization_config has weight_block_size " +
                                   checkpoint::printable(blocks.dump()) +
                                   ", only [128, 128] can be read");
  }
  config.erase(kQuantization);
  return config.dump(2) + "\n";
}

}  // namespace ciuic::plugins::safetensors
