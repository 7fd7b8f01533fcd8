// SPDX-License-Identifier: MIT
//
// The reader of call logs on any bytes, as they come and once more with the checks of its records
// put right, so that the fuzzer gets past them. What was read is the same when it is written and
// read again.
#include "core/plugin/decorator/call_log.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include <xxhash.h>

#include "core/plugin/decorator/codec.h"
#include "core/plugin/decorator/record_header.h"
#include "expect.h"

using ciuic::core::CallLog;
using ciuic::core::LogRecord;
using ciuic::core::LogRecordType;

namespace {

constexpr size_t kHeadBytes = 16;
constexpr size_t kFrameBytes = 8;  // size and check of a record

std::string with_checks(std::string bytes) {
  const std::string head = ciuic::core::call_log_head();
  bytes.resize(std::max(bytes.size(), kHeadBytes));
  bytes.replace(0, head.size(), head);
  for (size_t at = kHeadBytes; at + kFrameBytes <= bytes.size();) {
    uint32_t size = 0;
    std::memcpy(&size, bytes.data() + at, sizeof(size));
    const size_t payload = at + kFrameBytes;
    if (size > bytes.size() - payload) {
      break;
    }
    const uint32_t check = XXH32(bytes.data() + payload, size, 0);
    std::memcpy(bytes.data() + at + sizeof(size), &check, sizeof(check));
    at = payload + size;
  }
  return bytes;
}

CallLog read(const std::string& bytes) {
  return ciuic::core::parse_call_log(std::as_bytes(std::span(bytes)));
}

void look_at(const std::string& bytes) {
  const CallLog log = read(bytes);
  std::string written = ciuic::core::call_log_head();
  for (const LogRecord& record : log.records) {
    written += ciuic::core::call_log_record(record);
    if (record.type == LogRecordType::Header) {
      try {
        (void)ciuic::core::read_record_header(record.value);
      } catch (const ciuic::core::LogMismatch&) {
      }
    }
  }
  const CallLog again = read(written);
  const bool has_header = !log.records.empty() && log.records.front().type == LogRecordType::Header;
  expect(again.problem.empty() == has_header && !again.is_torn &&
             again.records.size() == log.records.size(),
         "records that were read cannot be written and read");
  for (size_t i = 0; i < log.records.size(); ++i) {
    const LogRecord& a = log.records[i];
    const LogRecord& b = again.records[i];
    expect(a.number == b.number && a.thread == b.thread && a.instance == b.instance &&
               a.function == b.function && ciuic::core::first_difference(a.value, b.value).empty(),
           "a record differs after writing and reading");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  look_at(bytes);
  look_at(with_checks(bytes));
  return 0;
}
