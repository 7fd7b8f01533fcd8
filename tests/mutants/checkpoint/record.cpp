// SPDX-License-Identifier: MIT
#include "record.h"

#include <cstring>

#include <ciuic/error.hpp>

namespace ciuic::mutants::checkpoint {
namespace {

constexpr std::string_view kMagic = "SHELFv1\n";

void put(std::string& out, uint64_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}
void put(std::string& out, const std::vector<int64_t>& values) {
  for (const int64_t v : values) {
    put(out, static_cast<uint64_t>(v));
  }
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  [[nodiscard]] bool is_at_end() const { return bytes_.empty(); }
  std::string_view take(uint64_t count) {
    if (count > bytes_.size()) {
      throw Error(CIUIC_DATA_LOSS, "shelf: the records end too early");
    }
    const std::string_view head = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return head;
  }
  uint64_t number() {
    uint64_t value = 0;
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
    return value;
  }
  std::vector<int64_t> numbers(uint64_t count) {
    if (count > 64) {
      throw Error(CIUIC_DATA_LOSS, "shelf: more than 64 dimensions");
    }
    std::vector<int64_t> out;
    for (uint64_t i = 0; i < count; ++i) {
      out.push_back(static_cast<int64_t>(number()));
    }
    return out;
  }

 private:
  std::string_view bytes_;
};

}  // namespace

uint64_t checksum(std::string_view bytes) {
  uint64_t hash = 14695981039346656037U;
  for (const char c : bytes) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  }
  return hash;
}

std::string encode(const std::vector<Record>& records, uint64_t step) {
  std::string out(kMagic);
  put(out, step);
  for (const Record& r : records) {
    put(out, r.key.size());
    out += r.key;
    put(out, r.is_blob ? 1 : 0);
    put(out, r.dtype.code * 256U + r.dtype.bits);
    put(out, r.shape.size());
    put(out, r.shape);
    put(out, r.offset);
    put(out, r.box);
    put(out, {r.begin, r.count});
    put(out, r.bytes.size());
    out += r.bytes;
  }
  put(out, checksum(out));
  return out;
}

std::vector<Record> decode(std::string_view bytes) {
  if (bytes.size() < kMagic.size() + 16 || bytes.substr(0, kMagic.size()) != kMagic) {
    throw Error(CIUIC_DATA_LOSS, "shelf: no records");
  }
  Reader in(bytes.substr(0, bytes.size() - 8));
  in.take(kMagic.size() + 8);
  std::vector<Record> records;
  while (!in.is_at_end()) {
    Record& r = records.emplace_back();
    r.key = in.take(in.number());
    r.is_blob = in.number() != 0;
    const uint64_t dtype = in.number();
    r.dtype = {static_cast<uint8_t>(dtype / 256), static_cast<uint8_t>(dtype % 256), 1};
    const uint64_t ndim = in.number();
    r.shape = in.numbers(ndim);
    r.offset = in.numbers(ndim);
    r.box = in.numbers(ndim);
    r.begin = static_cast<int64_t>(in.number());
    r.count = static_cast<int64_t>(in.number());
    r.bytes = in.take(in.number());
  }
  return records;
}

uint64_t stored_checksum(std::string_view bytes) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + bytes.size() - sizeof(value), sizeof(value));
  return value;
}

int64_t global_index(const std::vector<int64_t>& shape, const int64_t* offset, const int64_t* box,
                     int64_t index) {
  int64_t out = 0;
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    out += (offset[d] + index % box[d]) * stride;
    index /= box[d];
    stride *= shape[d];
  }
  return out;
}

char* element_at(const ciuic_tensor& tensor, int64_t index) {
  int64_t at = 0;
  for (int32_t d = tensor.t.ndim; d-- > 0;) {
    at += index % tensor.t.shape[d] * tensor.t.strides[d];
    index /= tensor.t.shape[d];
  }
  return static_cast<char*>(tensor_data(tensor)) + at * dtype_bytes(tensor.t.dtype);
}

Record describe(std::string_view key, const ciuic_place& place, const ciuic_tensor& tensor) {
  Record r;
  r.key = key;
  r.dtype = tensor.t.dtype;
  r.shape.assign(place.global_shape, place.global_shape + place.ndim);
  r.offset.assign(place.offset, place.offset + place.ndim);
  r.box.assign(place.box, place.box + place.ndim);
  r.begin = place.begin;
  r.count = num_elements(tensor);
  int64_t elements = 1;
  for (size_t d = 0; d < r.shape.size(); ++d) {
    elements *= r.box[d];
    if (r.offset[d] < 0 || r.box[d] < 0 || r.offset[d] + r.box[d] > r.shape[d]) {
      throw Error(CIUIC_INVALID, "shelf: a box outside of its tensor");
    }
  }
  if (r.begin < 0 || r.begin + r.count > elements) {
    throw Error(CIUIC_INVALID, "shelf: a range outside of its box");
  }
  return r;
}

std::string gather(const ciuic_tensor& tensor) {
  const int64_t width = dtype_bytes(tensor.t.dtype);
  std::string out(static_cast<size_t>(tensor_bytes(tensor)), '\0');
  for (int64_t i = 0; i < num_elements(tensor); ++i) {
    std::memcpy(&out[static_cast<size_t>(i * width)], element_at(tensor, i),
                static_cast<size_t>(width));
  }
  return out;
}

}  // namespace ciuic::mutants::checkpoint
