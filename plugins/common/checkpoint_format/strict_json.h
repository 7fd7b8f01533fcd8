// SPDX-License-Identifier: MIT
//
// JSON from a file that may be damaged or hostile: no duplicate names (nlohmann keeps the last one
// silently), no deep nesting, no NUL (which nlohmann takes for the end of the text). Whatever is
// wrong is DATA_LOSS naming the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace ciuic::plugins::checkpoint {

/// `where` names the file in messages.
[[nodiscard]] nlohmann::json parse_strict(std::string_view text, const std::string& where);

/// Throws DATA_LOSS "<where>: <what>".
[[noreturn]] void damaged(const std::string& where, const std::string& what);

/// Members of an object, by type. DATA_LOSS when missing or of another type.
[[nodiscard]] const nlohmann::json& member(const nlohmann::json& object, const char* name,
                                           const std::string& where);
[[nodiscard]] std::string string_member(const nlohmann::json& object, const char* name,
                                        const std::string& where);
[[nodiscard]] uint64_t unsigned_member(const nlohmann::json& object, const char* name,
                                       const std::string& where);
[[nodiscard]] const nlohmann::json& array_member(const nlohmann::json& object, const char* name,
                                                 const std::string& where);
/// An unsigned number that fits int64_t.
[[nodiscard]] int64_t count_of(const nlohmann::json& value, const char* name,
                               const std::string& where);

/// A quoted and escaped JSON string. The text is UTF-8.
[[nodiscard]] std::string json_string(std::string_view text);

}  // namespace ciuic::plugins::checkpoint
