// SPDX-License-Identifier: MIT
//
// The header of a safetensors file, of any bytes: refused as damaged, or tensors that follow on each
// other from the start of the data to the file's end; written and read again, the same.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>

#include <ciuic/error.hpp>

#include "checkpoint_format/safetensors_header.h"
#include "checkpoint_format/tensor_types.h"
#include "expect.h"

namespace cp = ciuic::plugins::checkpoint;

namespace {

constexpr size_t kLengthBytes = 8;

/// By multiplication alone: what check_layout proved in its own way.
uint64_t bytes_of(const cp::TensorInfo& t) {
  uint64_t bytes = cp::type_bytes(t.dtype);
  for (const int64_t d : t.shape) {
    bytes *= static_cast<uint64_t>(d);
  }
  return bytes;
}

void check_layout(const cp::SafetensorsHeader& header, uint64_t file_bytes) {
  std::set<std::string> names;
  uint64_t at = 0;
  for (const cp::TensorInfo& t : header.tensors) {
    expect(t.begin == at && t.end >= t.begin, "a hole or an overlap");
    expect(t.end - t.begin == bytes_of(t), "a tensor of another length than its shape's");
    expect(names.insert(t.name).second, "a name twice");
    at = t.end;
  }
  expect(header.data_offset + at == file_bytes, "the tensors do not end where the file does");
}

void check_again(const cp::SafetensorsHeader& header, uint64_t file_bytes) {
  std::vector<cp::TensorInfo> tensors = header.tensors;
  const std::string prefix = cp::make_safetensors_prefix(tensors, header.metadata);
  const uint64_t data = file_bytes - header.data_offset;
  const cp::SafetensorsHeader again =
      cp::parse_safetensors_prefix(prefix, prefix.size() + data, "again");
  expect(again.metadata == header.metadata, "other metadata after writing and reading");
  expect(again.tensors.size() == header.tensors.size(), "other tensors after writing and reading");
  std::set<std::string> names;
  for (const cp::TensorInfo& t : header.tensors) {
    names.insert(t.name);
  }
  for (const cp::TensorInfo& t : again.tensors) {
    expect(names.count(t.name) == 1, "another name after writing and reading");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < kLengthBytes) {
    return 0;
  }
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) {
    length = (length << 8) | data[i];
  }
  if (length > size - kLengthBytes) {
    return 0;  // what read_safetensors_prefix refuses
  }
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  try {
    const cp::SafetensorsHeader header =
        cp::parse_safetensors_prefix(file.substr(0, kLengthBytes + length), size, "file");
    check_layout(header, size);
    check_again(header, size);
  } catch (const ciuic::Error& e) {
    expect(e.code() == CIUIC_DATA_LOSS, "refused as something else than damaged");
  }
  return 0;
}
