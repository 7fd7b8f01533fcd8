// SPDX-License-Identifier: MIT
//
// What a tensor becomes in an exported folder, and what config.json says about it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ciuic/abi/types.h>

namespace ciuic::plugins::safetensors {

enum class ExportType { AsStored, Fp32, Bf16, Fp8Block };

/// The names of the option "dtype", NULL-terminated.
inline constexpr const char* kExportTypeNames[] = {"as_stored", "fp32", "bf16", "fp8_block",
                                                   nullptr};
[[nodiscard]] ExportType export_type_of(std::string_view option);

/// The type of tensor `name` in the file. F8_E4M3 means that a scale tensor stands beside it: with
/// fp8_block, the matrices of attention and experts (`..._proj.weight`). Embeddings, head, norms,
/// router, biases and eh_proj stay bf16, and e_score_correction_bias stays fp32, as in DeepSeek's
/// files. Integers and booleans stay what they are. Throws UNIMPLEMENTED for a type that is not
/// converted.
[[nodiscard]] ciuic_dtype exported_dtype(std::string_view name, ciuic_dtype dtype,
                                         const std::vector<int64_t>& shape, ExportType type);

/// Elements from one float type to another: from F32, BF16 or F16, to F32 or BF16.
void convert_elements(ciuic_dtype from, const char* source, ciuic_dtype to, char* target,
                      int64_t count);

/// config.json of a folder of this type: dtype, torch_dtype and quantization_config say what the
/// files hold. As stored: the text as it is. Throws INVALID when it is no JSON object.
[[nodiscard]] std::string exported_config(const std::string& text, ExportType type);

/// config.json as it holds for the tensors that a reader lists: without a quantization_config of
/// FP8 blocks. Throws DATA_LOSS, naming `where`, for blocks of another size.
[[nodiscard]] std::string plain_config(std::string text, const std::string& where);

}  // namespace ciuic::plugins::safetensors
