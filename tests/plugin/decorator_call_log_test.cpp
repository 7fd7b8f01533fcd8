// SPDX-License-Identifier: MIT
#include <cmath>
#include <random>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <ciuic/view.hpp>

#include "core/log/failure.h"
#include "core/plugin/decorator/call_codec.h"
#include "core/plugin/decorator/call_log.h"
#include "core/plugin/decorator/record_file.h"
#include "tests/temporary_folder.h"

namespace ciuic::core {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

LogValue sample_value() {
  LogTensor t;
  t.dtype = kF32;
  t.shape = {2, 3};
  t.is_seen = t.has_bytes = true;
  t.hash = 42;
  t.bytes = std::string(24, 'x');
  LogValue::List inner{{int64_t{-5}}, {uint64_t{7}}, {std::nan("")}, {std::string("text")}, {}};
  return {LogValue::List{{std::move(inner)}, {std::move(t)}}};
}

std::string sample_log() {
  return call_log_head() + call_log_record({LogRecordType::Header, 0, 0, 0, "", sample_value()}) +
         call_log_record({LogRecordType::Enter, 1, 9, 0, "precision.update", sample_value()}) +
         call_log_record({LogRecordType::Leave, 1, 9, 0, "", sample_value()});
}

CallLog parse(const std::string& bytes) { return parse_call_log(std::as_bytes(std::span(bytes))); }

TEST(CallLog, ReadsWhatItWrote) {
  const CallLog log = parse(sample_log());
  EXPECT_THAT(log.problem, IsEmpty());
  EXPECT_FALSE(log.is_torn);
  ASSERT_EQ(log.records.size(), 3u);
  EXPECT_EQ(log.records[1].function, "precision.update");
  EXPECT_EQ(log.records[1].thread, 9u);
  EXPECT_THAT(first_difference(log.records[1].value, sample_value()), IsEmpty());
}

TEST(RecordFile, TwoNeverWriteOneFile) {
  const TemporaryFolder folder;
  const std::string path = folder.file("calls.log");
  Log log({0, 1, LogLevel::Error, "", false});
  {
    const RecordFile first(path, sample_value(), log);
    const std::string written = read_text(path);
    EXPECT_THROW(RecordFile(path, sample_value(), log), Failure);
    EXPECT_EQ(read_text(path), written);
  }
  EXPECT_NO_THROW(RecordFile(path, sample_value(), log));
}

TEST(RecordFile, ReplacesCallLogsOnly) {
  const TemporaryFolder folder;
  Log log({0, 1, LogLevel::Error, "", false});
  const std::string text = folder.write("text", "CIUICLO and more");
  EXPECT_THROW(RecordFile(text, sample_value(), log), Failure);
  EXPECT_EQ(read_text(text), "CIUICLO and more");
  EXPECT_NO_THROW(RecordFile(folder.write("empty", ""), sample_value(), log));
  EXPECT_NO_THROW(RecordFile(folder.write("log", call_log_head()), sample_value(), log));
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(RecordFile(pipe, sample_value(), log), Failure);
  EXPECT_THROW(RecordFile(folder.path(), sample_value(), log), Failure);
}

TEST(CallLog, IsTornWhereverItIsCut) {
  const std::string whole = sample_log();
  const size_t header =
      call_log_head().size() +
      call_log_record({LogRecordType::Header, 0, 0, 0, "", sample_value()}).size();
  for (size_t size = 0; size < whole.size(); ++size) {
    const CallLog log = parse(whole.substr(0, size));
    if (size < header) {
      EXPECT_FALSE(log.problem.empty() && !log.is_torn) << size;
    } else {
      EXPECT_THAT(log.problem, IsEmpty()) << size;
    }
    EXPECT_LT(log.records.size(), 3u);
  }
}

TEST(CallLog, SurvivesAnyByteAndSaysSo) {
  const std::string whole = sample_log();
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      const CallLog log = parse(damaged);
      const bool is_reserved = at >= 12 && at < 16;
      EXPECT_TRUE(is_reserved || !log.problem.empty() || log.is_torn) << at;
    }
  }
}

/// The check is no secret: payloads that pass it are as hostile.
TEST(CallLog, SurvivesHostilePayloadsWithARightCheck) {
  std::mt19937 random(1);
  const std::string good = call_log_record({LogRecordType::Header, 0, 0, 0, "", sample_value()});
  size_t refused = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string payload = good.substr(8);
    for (int n = 0; n < 1 + i % 3; ++n) {
      payload[random() % payload.size()] = static_cast<char>(random());
    }
    payload.resize(i % 4 == 0 ? random() % payload.size() : payload.size());
    const uint32_t frame[2] = {static_cast<uint32_t>(payload.size()),
                               XXH32(payload.data(), payload.size(), 0)};
    const CallLog log =
        parse(call_log_head() + std::string(reinterpret_cast<const char*>(frame), sizeof(frame)) +
              payload);
    EXPECT_FALSE(log.is_torn);
    refused += log.problem.empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 20'000u);
}

TEST(CallLog, NamesTheFirstDifference) {
  const LogValue got{LogValue::List{{uint64_t{1}}, {LogValue::List{{2.0}, {3.0}}}}, "step,losses"};
  const LogValue other{LogValue::List{{uint64_t{1}}, {LogValue::List{{2.0}, {4.0}}}}};
  EXPECT_EQ(first_difference(got, other), "losses[1]: got 3, recorded 4");
  EXPECT_THAT(first_difference({-0.0}, {0.0}), HasSubstr("got -0"));
  EXPECT_THAT(first_difference({std::nan("")}, {std::nan("")}), IsEmpty());
}

TEST(CallCodec, AnUpdateGoesThereAndBack) {
  float values[4] = {1, 2, 3, 4};
  float grads[4] = {5, 6, 7, 8};
  const Tensor value(values, kF32, {4});
  const Tensor grad(grads, kF32, {4});
  const int64_t shape[2] = {2, 2};
  ciuic_param param{};
  param.struct_size = sizeof(param);
  param.name = to_str("w");
  param.ndim = 2;
  param.shape = param.global_shape = param.offset = shape;
  const ciuic_tensor* states[1] = {value.ptr()};  // the same memory as value
  ciuic_update update{};
  update.struct_size = sizeof(update);
  update.param = &param;
  update.num_elements = 4;
  update.lr = 0.5;
  update.grad = grad.ptr();
  update.value = value.ptr();
  update.state = states;
  update.num_state = 1;
  const std::vector<ciuic_update> updates{update};
  using Codec =
      CallCodec<std::remove_cvref_t<decltype(std::get<2>(Slots<ciuic_optimizer_vt>::all))>>;
  Encoder encoder(1 << 10, 1);
  const LogValue in =
      Codec::encode_in(encoder, to_array(updates), static_cast<const ciuic_stream*>(nullptr));
  Decoder decoder;
  std::tuple<ciuic_array, const ciuic_stream*> args;
  Codec::decode(decoder, in, args);
  const ciuic_update& back = ArrayView<ciuic_update>(std::get<0>(args))[0];
  EXPECT_EQ(back.lr, 0.5);
  EXPECT_EQ(to_view(back.param->name), "w");
  EXPECT_EQ(back.param->shape[1], 2);
  EXPECT_EQ(elements<float>(*back.grad)[3], 8.0f);
  EXPECT_EQ(back.state[0], back.value) << "in place stays in place";
  EXPECT_EQ(decoder.tensors().size(), 2u);
}

TEST(CallCodec, ATensorWithoutItsBytesIsIncomplete) {
  float values[4] = {1, 2, 3, 4};
  const Tensor value(values, kF32, {4});
  Encoder encoder(8, 1);
  Decoder decoder;
  const ciuic_tensor* back = nullptr;
  EXPECT_THROW(decoder.decode(encoder.encode(value.ptr()), back), LogIncomplete);
  EXPECT_THROW(decoder.decode(LogValue{1.0}, back), LogMismatch);
}

}  // namespace
}  // namespace ciuic::core
