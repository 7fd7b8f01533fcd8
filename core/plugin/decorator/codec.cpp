// SPDX-License-Identifier: MIT
#include "core/plugin/decorator/codec.h"

#include <memory>

#include <xxhash.h>

namespace ciuic::core {
namespace {

LogValue field_value(const ciuic_field& x, Encoder& encoder) {
  switch (x.type) {
    case CIUIC_TYPE_F64:
      return {x.value.f};
    case CIUIC_TYPE_STRING:
    case CIUIC_TYPE_ENUM:
      return encoder.encode(x.value.s);
    case CIUIC_TYPE_LIST_I64:
    case CIUIC_TYPE_LIST_F64:
    case CIUIC_TYPE_LIST_STRING:
      return {};  // no event carries one
    default:
      return {x.value.i};
  }
}

}  // namespace

LogTensor log_tensor(const ciuic_tensor& t, int64_t limit) {
  LogTensor out;
  out.dtype = t.t.dtype;
  out.flags = t.flags;
  out.shape.assign(t.t.shape, t.t.shape + t.t.ndim);
  out.is_seen = t.t.device.type == CIUIC_DEVICE_CPU && is_contiguous(t);
  if (!out.is_seen) {
    return out;
  }
  const auto bytes = static_cast<size_t>(tensor_bytes(t));
  const char* data = static_cast<const char*>(tensor_data(t));
  out.hash = XXH3_64bits(bytes > 0 ? data : "", bytes);
  out.has_bytes = static_cast<int64_t>(bytes) <= limit;
  if (out.has_bytes && bytes > 0) {
    out.bytes.assign(data, bytes);
  }
  return out;
}

LogValue log_tensors(const std::vector<Tensor>& tensors, int64_t limit) {
  LogValue::List list;
  for (const Tensor& t : tensors) {
    list.push_back({log_tensor(t.c(), limit)});
  }
  return {std::move(list)};
}

LogValue log_status(const ciuic_host* host, const ciuic_status* status) {
  if (status == nullptr) {
    return {};
  }
  uint32_t flags = 0;
  int32_t peer = -1;
  ciuic_str message{nullptr, 0};
  const int32_t code = host->status_get(host->ctx, status, &flags, &peer, &message);
  LogValue::List list{
      {int64_t{code}}, {uint64_t{flags}}, {int64_t{peer}}, {std::string(to_view(message))}};
  return {std::move(list), "code,flags,peer,text"};
}

LogValue Encoder::encode(const ciuic_tensor* x) {
  if (x == nullptr) {
    return {};
  }
  // In place: the same memory again is the same tensor.
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const ciuic_tensor& known = tensors_[i].c();
    if (known.t.data != nullptr && known.t.data == tensor_data(*x) &&
        same(known.t.dtype, x->t.dtype) && tensor_bytes(known) == tensor_bytes(*x)) {
      return {uint64_t{i}};
    }
  }
  Tensor copy(x->t.data == nullptr ? nullptr : tensor_data(*x), x->t.dtype,
              {x->t.shape, x->t.shape + x->t.ndim}, x->t.device, x->flags);
  LogTensor logged;
  if (is_blind_) {
    logged.dtype = x->t.dtype;
    logged.shape = copy.shape();
  } else {
    logged = log_tensor(*x, tensor_limit_);
  }
  if (logged.is_seen) {
    tensors_.push_back(std::move(copy));
  }
  return {std::move(logged)};
}

LogValue Encoder::encode(const ciuic_field& x) {
  LogValue::List list{encode(x.key), encode(x.type), field_value(x, *this)};
  return {std::move(list), "key,type,value"};
}

void Decoder::decode(const LogValue& v, const ciuic_tensor*& out) {
  out = nullptr;
  if (v.value.index() == 0) {
    return;
  }
  if (const auto* index = std::get_if<uint64_t>(&v.value)) {
    check(*index < tensors_.size(), "a tensor refers to none");
    out = tensors_[*index].ptr();
    return;
  }
  const auto& logged = get<LogTensor>(v);
  if (!logged.is_seen || !logged.has_bytes) {
    throw LogIncomplete("a tensor's bytes are not in the log");
  }
  constexpr size_t kAlign = sizeof(std::max_align_t);
  auto* data = array<std::max_align_t>((logged.bytes.size() + kAlign - 1) / kAlign);
  std::memcpy(data, logged.bytes.data(), logged.bytes.size());
  tensors_.emplace_back(data, logged.dtype, logged.shape, ciuic_device{CIUIC_DEVICE_CPU, 0},
                        logged.flags);
  out = tensors_.back().ptr();
}

void Decoder::decode(const LogValue& v, ciuic_field& out) {
  const auto& list = get<LogValue::List>(v);
  check(list.size() == 3, "a field has another number of members");
  out = ciuic_field{};
  decode(list[0], out.key);
  decode(list[1], out.type);
  if (const auto* f = std::get_if<double>(&list[2].value)) {
    out.value.f = *f;
  } else if (const auto* i = std::get_if<int64_t>(&list[2].value)) {
    out.value.i = *i;
  } else if (list[2].value.index() != 0) {
    decode(list[2], out.value.s);
  }
}

}  // namespace ciuic::core
