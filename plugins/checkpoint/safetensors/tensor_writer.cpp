// SPDX-License-Identifier: MIT
#include "tensor_writer.h"

#include <algorithm>
#include <cstring>

#include <ciuic/error.hpp>
#include <ciuic/view.hpp>

#include "checkpoint_format/tensor_types.h"
#include "fp8_blocks.h"

namespace ciuic::plugins::safetensors {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr int64_t kConvertedAtOnce = int64_t{1} << 18;

}  // namespace

TensorWriter::TensorWriter(const checkpoint::Files& files, const Layout& layout,
                           const std::vector<std::string>& paths) {
  for (size_t n = 0; n < paths.size(); ++n) {
    outputs_.push_back(files.create(paths[n]));
    put(n, 0, layout.files[n].prefix.data(), layout.files[n].prefix.size());
  }
}

void TensorWriter::write(const Target& target, int64_t begin, int64_t count, const char* bytes) {
  if (count == 0) {
    return;
  }
  if (!target.scale_offset) {
    write_converted(target, begin, count, bytes);
    return;
  }
  const int64_t total = checkpoint::shape_elements(target.shape, target.put).value();
  if (count == total) {
    write_blocks(target, bytes);
    return;
  }
  // Blocks are known when all of the tensor is there. Whether pieces overlap is the commit's
  // question.
  const auto element = static_cast<size_t>(dtype_bytes(target.put));
  Assembly& whole = assemblies_[&target];
  whole.bytes.resize(static_cast<size_t>(total) * element);
  std::memcpy(whole.bytes.data() + static_cast<size_t>(begin) * element, bytes,
              static_cast<size_t>(count) * element);
  whole.count += count;
  if (whole.count >= total) {
    write_blocks(target, whole.bytes.data());
    assemblies_.erase(&target);
  }
}

void TensorWriter::finish() {
  flush();
  for (const checkpoint::File& file : outputs_) {
    file.sync();
  }
}

void TensorWriter::put(size_t file, uint64_t offset, const void* data, size_t bytes) {
  if (file != buffer_file_ || offset != buffer_offset_ + buffer_.size() || bytes >= kBufferBytes) {
    flush();
    buffer_file_ = file;
    buffer_offset_ = offset;
  }
  if (bytes >= kBufferBytes) {
    outputs_[file].write(offset, data, bytes);
    buffer_offset_ = offset + bytes;
    return;
  }
  buffer_.append(static_cast<const char*>(data), bytes);
  if (buffer_.size() >= kBufferBytes) {
    flush();
  }
}

void TensorWriter::flush() {
  outputs_[buffer_file_].write(buffer_offset_, buffer_.data(), buffer_.size());
  buffer_offset_ += buffer_.size();
  buffer_.clear();
}

void TensorWriter::write_converted(const Target& target, int64_t begin, int64_t count,
                                   const char* bytes) {
  const int64_t wide = dtype_bytes(target.stored);
  const uint64_t offset = target.offset + static_cast<uint64_t>(begin * wide);
  if (same(target.put, target.stored)) {
    put(target.file, offset, bytes, static_cast<size_t>(count * wide));
    return;
  }
  std::string some;
  for (int64_t done = 0; done < count;) {
    const int64_t now = std::min(count - done, kConvertedAtOnce);
    some.resize(static_cast<size_t>(now * wide));
    convert_elements(target.put, bytes + done * dtype_bytes(target.put), target.stored, some.data(),
                     now);
    put(target.file, offset + static_cast<uint64_t>(done * wide), some.data(), some.size());
    done += now;
  }
}

/// Row of blocks by row of blocks.
void TensorWriter::write_blocks(const Target& target, const char* bytes) {
  const Matrix matrix{target.shape[0], target.shape[1]};
  const int64_t rows_at_once = std::min(matrix.rows, kBlock);
  std::vector<float> values(static_cast<size_t>(rows_at_once * matrix.columns));
  std::vector<uint8_t> codes(values.size());
  std::vector<float> scales(static_cast<size_t>(matrix.block_columns()));
  for (int64_t row = 0; row < matrix.rows; row += kBlock) {
    const int64_t rows = std::min(kBlock, matrix.rows - row);
    const int64_t begin = row * matrix.columns;
    convert_elements(target.put, bytes + begin * dtype_bytes(target.put), kF32,
                     reinterpret_cast<char*>(values.data()), rows * matrix.columns);
    if (!quantise_block_row(values.data(), rows, matrix.columns, codes.data(), scales.data())) {
      throw Error(CIUIC_INVALID, "safetensors: " + checkpoint::printable(target.name) +
                                     " holds a value that is not finite (rows " +
                                     std::to_string(row) + " to " + std::to_string(row + rows - 1) +
                                     "), FP8 blocks cannot; use dtype = \"bf16\"");
    }
    put(target.file, target.offset + static_cast<uint64_t>(begin), codes.data(),
        static_cast<size_t>(rows * matrix.columns));
    put(target.file,
        *target.scale_offset + static_cast<uint64_t>(row / kBlock * matrix.block_columns()) * 4,
        scales.data(), scales.size() * sizeof(float));
  }
}

}  // namespace ciuic::plugins::safetensors
