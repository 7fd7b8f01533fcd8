// SPDX-License-Identifier: MIT
//
// The file that `record` writes and `ciuic plugin replay` runs again: calls into one plugin with
// their arguments and results as plain values. docs/decorators.md has the format. The reader trusts
// nothing: every size is checked against the bytes that are there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <ciuic/abi/types.h>

namespace ciuic::core {

/// A tensor's type and shape, the hash of its bytes, and the bytes where they are few.
struct LogTensor {
  ciuic_dtype dtype{};
  uint32_t flags = 0;
  std::vector<int64_t> shape;
  bool is_seen = false;    // false: in device memory or with gaps; no hash
  bool has_bytes = false;  // false: more than the limit
  uint64_t hash = 0;       // XXH3, 64 bits
  std::string bytes;
};

struct LogValue {
  using List = std::vector<LogValue>;
  std::variant<std::monostate, int64_t, uint64_t, double, std::string, List, LogTensor> value;
  const char* names = nullptr;  // of a list's parts, "a,b,c"; for messages, not in the file

  [[nodiscard]] const List* list() const { return std::get_if<List>(&value); }
  [[nodiscard]] const LogTensor* tensor() const { return std::get_if<LogTensor>(&value); }
};

enum class LogRecordType : uint8_t {
  Header = 1,  // whose calls these are
  Enter = 2,   // a call with its arguments
  Leave = 3,   // its return
  Done = 4     // the end of the work that it returned
};

struct LogRecord {
  LogRecordType type = LogRecordType::Header;
  uint64_t number = 0;  // of the call, from 1
  uint32_t thread = 0;
  uint32_t instance = 0;  // 0: the plugin's; others: what its split made, from 1
  std::string function;   // "optimizer.update"; of Enter
  LogValue value;
};

struct CallLog {
  std::vector<LogRecord> records;
  std::string problem;    // why reading stopped; empty: all is well
  size_t problem_at = 0;  // byte offset
  bool is_torn = false;   // the last record is cut off, as after a kill; what is before it is good
};

/// Reads a whole file's bytes. Never throws for what is in them.
CallLog parse_call_log(std::span<const std::byte> bytes);

/// What a file begins with, and one record as it stands in the file.
std::string call_log_head();
std::string call_log_record(const LogRecord& record);

/// Where two values differ first: "items[3].sample: got 5, recorded 4"; empty: nowhere. `other`
/// is what the second is called.
std::string first_difference(const LogValue& got, const LogValue& recorded,
                             const std::string& other = "recorded");

}  // namespace ciuic::core
