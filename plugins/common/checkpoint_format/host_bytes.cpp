// SPDX-License-Identifier: MIT
#include "checkpoint_format/host_bytes.h"

#include <cstring>
#include <string>
#include <vector>

#include <ciuic/error.hpp>
#include <ciuic/view.hpp>
#include <ciuic/work.hpp>

namespace ciuic::plugins::checkpoint {
namespace {

bool is_host_memory(const ciuic_tensor& t) {
  return t.t.device.type == CIUIC_DEVICE_CPU || t.t.device.type == CIUIC_DEVICE_CUDA_HOST;
}

void wait_for(const Host& host, const ciuic_stream* stream) {
  if (stream == nullptr) {
    return;
  }
  const auto& streams = host.service<ciuic_stream_service>("ciuic.stream");
  ciuic_work* work = nullptr;
  host.check(streams.record(streams.ctx, stream, &work));
  Work(work).wait(host);
}

/// Calls visit(byte offset in the strided tensor) for each element in row-major order.
template <typename Visit>
void each_element(const ciuic_tensor& t, Visit&& visit) {
  const int64_t count = num_elements(t);
  const int64_t bytes = dtype_bytes(t.t.dtype);
  std::vector<int64_t> at(static_cast<size_t>(t.t.ndim), 0);
  int64_t offset = 0;
  for (int64_t n = 0; n < count; ++n) {
    visit(offset * bytes);
    for (int32_t d = t.t.ndim - 1; d >= 0; --d) {
      offset += t.t.strides[d];
      if (++at[static_cast<size_t>(d)] < t.t.shape[d]) {
        break;
      }
      offset -= at[static_cast<size_t>(d)] * t.t.strides[d];
      at[static_cast<size_t>(d)] = 0;
    }
  }
}

/// Between a device tensor and contiguous host memory of the same shape.
void copy_across(const Host& host, const ciuic_tensor& tensor, char* memory, bool is_to_host) {
  const auto& tensors = host.service<ciuic_tensor_service>("ciuic.tensor");
  const Tensor staged(memory, tensor.t.dtype, {tensor.t.shape, tensor.t.shape + tensor.t.ndim});
  const ciuic_tensor* in = is_to_host ? &tensor : staged.ptr();
  const ciuic_tensor* out = is_to_host ? staged.ptr() : &tensor;
  host.check(tensors.copy(tensors.ctx, in, out, nullptr));
}

}  // namespace

HostBytes::HostBytes(const Host& host, const ciuic_tensor& tensor, const ciuic_stream* stream) {
  wait_for(host, stream);
  const auto bytes = static_cast<size_t>(tensor_bytes(tensor));
  if (bytes == 0) {
    return;
  }
  const auto* source = static_cast<const char*>(tensor_data(tensor));
  if (source == nullptr) {
    throw Error(CIUIC_INVALID,
                "tensor " + std::string(to_view(tensor.name)) + " has elements but no data");
  }
  const bool is_plain = is_host_memory(tensor) && is_contiguous(tensor);
  if (is_plain && (tensor.flags & CIUIC_TENSOR_STABLE) != 0) {
    data_ = source;
    size_ = bytes;
  } else if (is_plain) {
    std::memcpy(own(bytes), source, bytes);
  } else if (is_host_memory(tensor)) {
    char* to = own(bytes);
    const auto element = static_cast<size_t>(dtype_bytes(tensor.t.dtype));
    each_element(tensor, [&](int64_t offset) {
      std::memcpy(to, source + offset, element);
      to += element;
    });
  } else {
    copy_across(host, tensor, own(bytes), true);
  }
}

HostBytes::HostBytes(std::string_view bytes) {
  if (!bytes.empty()) {
    std::memcpy(own(bytes.size()), bytes.data(), bytes.size());
  }
}

char* HostBytes::own(size_t bytes) {
  owned_.reset(new char[bytes]);  // not initialised: all of it is overwritten
  data_ = owned_.get();
  size_ = bytes;
  return owned_.get();
}

void fill_tensor(const Host& host, const ciuic_tensor& into, const ciuic_stream* stream,
                 const std::function<void(char* bytes)>& fill) {
  wait_for(host, stream);
  const auto bytes = static_cast<size_t>(tensor_bytes(into));
  if (bytes == 0) {
    return;
  }
  auto* target = static_cast<char*>(tensor_data(into));
  if (target == nullptr) {
    throw Error(CIUIC_INVALID,
                "tensor " + std::string(to_view(into.name)) + " has elements but no data");
  }
  if (is_host_memory(into) && is_contiguous(into)) {
    fill(target);
    return;
  }
  const std::unique_ptr<char[]> staged(new char[bytes]);
  fill(staged.get());
  if (!is_host_memory(into)) {
    copy_across(host, into, staged.get(), false);
    return;
  }
  const char* from = staged.get();
  const auto element = static_cast<size_t>(dtype_bytes(into.t.dtype));
  each_element(into, [&](int64_t offset) {
    std::memcpy(target + offset, from, element);
    from += element;
  });
}

}  // namespace ciuic::plugins::checkpoint
