// SPDX-License-Identifier: MIT
//
// write_call_logs FOLDER: small call logs that the fuzzer starts from.
#include <cstdio>
#include <fstream>
#include <string>

#include "core/plugin/decorator/call_log.h"

using ciuic::core::LogRecord;
using ciuic::core::LogRecordType;
using ciuic::core::LogTensor;
using ciuic::core::LogValue;

namespace {

LogValue text(const char* value) { return {std::string(value)}; }
LogValue list(LogValue::List values) { return {std::move(values)}; }

LogTensor tensor() {
  LogTensor t;
  t.dtype = {CIUIC_DTYPE_FLOAT, 32, 1};
  t.shape = {2, 1};
  t.is_seen = t.has_bytes = true;
  t.hash = 0x0123456789abcdef;
  t.bytes = std::string(8, '\1');
  return t;
}

LogRecord record(LogRecordType type, const char* function, LogValue value) {
  LogRecord r;
  r.type = type;
  r.number = 1;
  r.thread = 1;
  r.function = function;
  r.value = std::move(value);
  return r;
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("write_call_logs FOLDER\n", stderr);
    return 2;
  }
  const std::string folder = argv[1];
  const LogValue header = list({{uint64_t{7}},
                                text("adamw"),
                                text("1.0.0"),
                                list({list({text("beta1"), text("0.9")})}),
                                {int64_t{0}},
                                {int64_t{2}},
                                list({list({{uint64_t{8}}, {uint64_t{16}}})})});
  const std::string head = ciuic::core::call_log_head();
  const std::string begin = ciuic::core::call_log_record(record(LogRecordType::Header, "", header));
  const std::string enter = ciuic::core::call_log_record(
      record(LogRecordType::Enter, "optimizer.update",
             list({{uint64_t{1}}, {-3.5}, {int64_t{-2}}, LogValue{}, {tensor()}})));
  const std::string leave =
      ciuic::core::call_log_record(record(LogRecordType::Leave, "", list({LogValue{}})));
  const std::string done = ciuic::core::call_log_record(
      record(LogRecordType::Done, "", list({{int64_t{3}}, text("invalid")})));
  write(folder + "/head", head);
  write(folder + "/header", head + begin);
  write(folder + "/calls", head + begin + enter + leave + done);
  write(folder + "/torn", head + begin + enter.substr(0, enter.size() - 3));
  return 0;
}
