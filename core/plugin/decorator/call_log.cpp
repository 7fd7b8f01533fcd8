// SPDX-License-Identifier: MIT
#include "core/plugin/decorator/call_log.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include <xxhash.h>

#include <ciuic/view.hpp>

namespace ciuic::core {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is little-endian");

constexpr std::string_view kMagic = "CIUICLOG";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeadBytes = 16;
constexpr size_t kFrameBytes = 8;  // size, check
constexpr int kDeepest = 16;
constexpr uint32_t kMostDimensions = 64;

enum Tag : uint8_t { kNone, kI64, kU64, kF64, kText, kList, kTensor };

// ---- writing ----

class Output {
 public:
  template <typename T>
  void number(T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void text(std::string_view text) {
    number(static_cast<uint32_t>(text.size()));
    bytes.append(text);
  }
  void value(const LogValue& v) {
    number(static_cast<uint8_t>(v.value.index()));
    std::visit(*this, v.value);
  }

  void operator()(std::monostate) {}
  void operator()(int64_t v) { number(v); }
  void operator()(uint64_t v) { number(v); }
  void operator()(double v) { number(v); }
  void operator()(const std::string& v) { text(v); }
  void operator()(const LogValue::List& list) {
    number(static_cast<uint32_t>(list.size()));
    for (const LogValue& v : list) {
      value(v);
    }
  }
  void operator()(const LogTensor& t) {
    number(t.dtype.code);
    number(t.dtype.bits);
    number(t.dtype.lanes);
    number(t.flags);
    number(static_cast<uint32_t>(t.shape.size()));
    for (const int64_t extent : t.shape) {
      number(extent);
    }
    number(static_cast<uint8_t>((t.is_seen ? 1 : 0) | (t.has_bytes ? 2 : 0)));
    number(t.hash);
    if (t.has_bytes) {
      number(static_cast<uint64_t>(t.bytes.size()));
      bytes += t.bytes;
    }
  }

  std::string bytes;
};

// ---- reading ----

struct Malformed {
  const char* what;
};

/// A cursor that never passes the end.
class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] size_t left() const { return rest_.size(); }
  std::string_view take(uint64_t size) {
    if (size > rest_.size()) {
      throw Malformed{"a size is larger than its record"};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
    return value;
  }
  std::string text() { return std::string(take(number<uint32_t>())); }

  LogValue value(int depth = 0) {
    if (depth > kDeepest) {
      throw Malformed{"values are nested too deeply"};
    }
    switch (number<uint8_t>()) {
      case kNone:
        return {};
      case kI64:
        return {number<int64_t>()};
      case kU64:
        return {number<uint64_t>()};
      case kF64:
        return {number<double>()};
      case kText:
        return {text()};
      case kList:
        return {list(depth)};
      case kTensor:
        return {tensor()};
      default:
        throw Malformed{"a value of an unknown type"};
    }
  }

 private:
  LogValue::List list(int depth) {
    const auto count = number<uint32_t>();
    if (count > left()) {  // a value takes a byte at least
      throw Malformed{"a list is longer than its record"};
    }
    LogValue::List values;
    for (uint32_t i = 0; i < count; ++i) {
      values.push_back(value(depth + 1));
    }
    return values;
  }

  LogTensor tensor() {
    LogTensor t;
    t.dtype.code = number<uint8_t>();
    t.dtype.bits = number<uint8_t>();
    t.dtype.lanes = number<uint16_t>();
    t.flags = number<uint32_t>();
    const auto ndim = number<uint32_t>();
    if (ndim > kMostDimensions) {
      throw Malformed{"a tensor has too many dimensions"};
    }
    for (uint32_t i = 0; i < ndim; ++i) {
      t.shape.push_back(number<int64_t>());
    }
    const auto what = number<uint8_t>();
    t.is_seen = (what & 1) != 0;
    t.has_bytes = (what & 2) != 0;
    t.hash = number<uint64_t>();
    const uint64_t bytes = bytes_of(t);
    if (t.has_bytes) {
      if (number<uint64_t>() != bytes) {
        throw Malformed{"a tensor's bytes do not fit its shape"};
      }
      t.bytes = std::string(take(bytes));
    }
    return t;
  }

  static uint64_t bytes_of(const LogTensor& t) {
    unsigned __int128 bytes = (uint64_t{t.dtype.bits} * t.dtype.lanes + 7) / 8;
    for (const int64_t extent : t.shape) {
      if (extent < 0) {
        throw Malformed{"a tensor has a negative extent"};
      }
      bytes *= static_cast<uint64_t>(extent);
      if (bytes > INT64_MAX) {
        throw Malformed{"a tensor is too large"};
      }
    }
    return static_cast<uint64_t>(bytes);
  }

  std::string_view rest_;
};

LogRecord parse_record(std::string_view payload) {
  Input in(payload);
  LogRecord record;
  const auto type = in.number<uint8_t>();
  if (type < static_cast<uint8_t>(LogRecordType::Header) ||
      type > static_cast<uint8_t>(LogRecordType::Done)) {
    throw Malformed{"a record of an unknown type"};
  }
  record.type = static_cast<LogRecordType>(type);
  record.number = in.number<uint64_t>();
  record.thread = in.number<uint32_t>();
  record.instance = in.number<uint32_t>();
  record.function = in.text();
  record.value = in.value();
  if (in.left() != 0) {
    throw Malformed{"a record has bytes left over"};
  }
  return record;
}

uint32_t check_of(std::string_view payload) { return XXH32(payload.data(), payload.size(), 0); }

void parse_records(std::string_view all, CallLog& log) {
  size_t at = kHeadBytes;
  while (at < all.size()) {
    log.problem_at = at;
    if (all.size() - at < kFrameBytes) {
      log.is_torn = true;
      return;
    }
    Input frame(all.substr(at, kFrameBytes));
    const auto size = frame.number<uint32_t>();
    const auto check = frame.number<uint32_t>();
    if (size > all.size() - at - kFrameBytes) {
      log.is_torn = true;
      return;
    }
    const std::string_view payload = all.substr(at + kFrameBytes, size);
    if (check_of(payload) != check) {
      throw Malformed{"a record's check does not match"};
    }
    log.records.push_back(parse_record(payload));
    at += kFrameBytes + size;
  }
}

// ---- comparing ----

std::string number_text(double v) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.17g", v);
  return text;
}

std::string shape_text(const LogTensor& t) {
  std::string text = dtype_name(t.dtype) + " [";
  for (size_t i = 0; i < t.shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(t.shape[i]);
  }
  return text + "]";
}

std::string text_of(const LogValue& v) {
  switch (v.value.index()) {
    case kNone:
      return "nothing";
    case kI64:
      return std::to_string(std::get<int64_t>(v.value));
    case kU64:
      return std::to_string(std::get<uint64_t>(v.value));
    case kF64:
      return number_text(std::get<double>(v.value));
    case kText:
      return "\"" + std::get<std::string>(v.value) + "\"";
    case kList:
      return "a list of " + std::to_string(v.list()->size());
    default:
      return shape_text(*v.tensor());
  }
}

std::string bytes_text(std::string_view bytes) {
  std::string text = "0x";
  for (size_t i = bytes.size(); i-- > 0;) {  // as a number is read
    static constexpr char kHex[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(bytes[i]);
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

/// Part i of a list: ".sample" where parts have names, "[3]" where not.
std::string part_name(const char* names, size_t i) {
  if (names == nullptr) {
    return "[" + std::to_string(i) + "]";
  }
  std::string_view rest = names;
  for (; i > 0 && rest.find(',') != std::string_view::npos; --i) {
    rest.remove_prefix(rest.find(',') + 1);
  }
  return "." + std::string(rest.substr(0, rest.find(',')));
}

bool same_bits(const LogValue& a, const LogValue& b) {
  if (const double* x = std::get_if<double>(&a.value)) {
    return std::bit_cast<uint64_t>(*x) == std::bit_cast<uint64_t>(std::get<double>(b.value));
  }
  if (const auto* x = std::get_if<std::string>(&a.value)) {
    return *x == std::get<std::string>(b.value);
  }
  if (const auto* x = std::get_if<int64_t>(&a.value)) {
    return *x == std::get<int64_t>(b.value);
  }
  const auto* x = std::get_if<uint64_t>(&a.value);
  return x == nullptr || *x == std::get<uint64_t>(b.value);
}

/// Walks two values side by side.
class Comparison {
 public:
  explicit Comparison(const std::string& other) : other_(other) {}

  std::string values(const LogValue& got, const LogValue& recorded, const std::string& path) const {
    if (got.value.index() != recorded.value.index()) {
      return said(path, text_of(got), text_of(recorded));
    }
    if (got.tensor() != nullptr) {
      return tensors(*got.tensor(), *recorded.tensor(), path);
    }
    if (got.list() != nullptr) {
      return lists(got, recorded, path);
    }
    return same_bits(got, recorded) ? "" : said(path, text_of(got), text_of(recorded));
  }

 private:
  [[nodiscard]] std::string said(const std::string& path, const std::string& got,
                                 const std::string& recorded) const {
    return (path.empty() ? "" : path + ": ") + "got " + got + ", " + other_ + " " + recorded;
  }

  [[nodiscard]] std::string lists(const LogValue& got, const LogValue& recorded,
                                  const std::string& path) const {
    const LogValue::List& a = *got.list();
    const LogValue::List& b = *recorded.list();
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      const std::string name = part_name(got.names, i);
      const bool is_first = path.empty() && got.names != nullptr;
      if (std::string d = values(a[i], b[i], is_first ? name.substr(1) : path + name); !d.empty()) {
        return d;
      }
    }
    return a.size() == b.size() ? "" : said(path, text_of(got), text_of(recorded));
  }

  [[nodiscard]] std::string tensors(const LogTensor& got, const LogTensor& recorded,
                                    const std::string& path) const {
    if (!same(got.dtype, recorded.dtype) || got.shape != recorded.shape) {
      return said(path, shape_text(got), shape_text(recorded));
    }
    if (!got.is_seen || !recorded.is_seen || got.hash == recorded.hash) {
      return "";
    }
    if (!got.has_bytes || !recorded.has_bytes) {
      return said(path, "other bits",
                  "those of a " + shape_text(recorded) + " whose bytes are not in the log");
    }
    const auto width = static_cast<size_t>(dtype_bytes(got.dtype));
    const auto differs = std::mismatch(got.bytes.begin(), got.bytes.end(), recorded.bytes.begin());
    const size_t element = static_cast<size_t>(differs.first - got.bytes.begin()) / width;
    const auto bits = [&](const std::string& bytes) {
      return bytes_text(std::string_view(bytes).substr(element * width, width));
    };
    return said(path + "[" + std::to_string(element) + "]", bits(got.bytes), bits(recorded.bytes));
  }

  const std::string& other_;
};

}  // namespace

CallLog parse_call_log(std::span<const std::byte> bytes) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  CallLog log;
  try {
    Input head(all);
    if (head.take(kMagic.size()) != kMagic) {
      throw Malformed{"this is no call log"};
    }
    if (head.number<uint32_t>() != kVersion) {
      throw Malformed{"the log is of another version; this host reads version 1"};
    }
    head.number<uint32_t>();
    parse_records(all, log);
    if (log.records.empty() || log.records.front().type != LogRecordType::Header) {
      throw Malformed{"the log has no header"};
    }
  } catch (const Malformed& m) {
    log.problem = m.what;
  }
  return log;
}

std::string call_log_head() {
  Output out;
  out.bytes = kMagic;
  out.number(kVersion);
  out.number(uint32_t{0});
  return std::move(out.bytes);
}

std::string call_log_record(const LogRecord& record) {
  Output payload;
  payload.number(static_cast<uint8_t>(record.type));
  payload.number(record.number);
  payload.number(record.thread);
  payload.number(record.instance);
  payload.text(record.function);
  payload.value(record.value);
  Output frame;
  frame.number(static_cast<uint32_t>(payload.bytes.size()));
  frame.number(check_of(payload.bytes));
  return frame.bytes + payload.bytes;
}

std::string first_difference(const LogValue& got, const LogValue& recorded,
                             const std::string& other) {
  return Comparison(other).values(got, recorded, "");
}

}  // namespace ciuic::core
