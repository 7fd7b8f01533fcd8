// SPDX-License-Identifier: MIT
#include "tools/probe/bare_host.h"

#include <memory>

struct ciuic_status {
  int32_t code;
  uint32_t flags;
  int32_t peer;
  std::string message;
};

namespace ciuic::tools {
namespace {

ciuic_status* status_new(void*, int32_t code, uint32_t flags, int32_t peer, ciuic_str message) {
  const std::string text(message.data == nullptr ? "" : message.data,
                         message.data == nullptr ? 0 : message.size);
  return new ciuic_status{code, flags, peer, text};
}

int32_t status_get(void*, const ciuic_status* status, uint32_t* flags, int32_t* peer,
                   ciuic_str* message) {
  if (flags != nullptr) {
    *flags = status->flags;
  }
  if (peer != nullptr) {
    *peer = status->peer;
  }
  if (message != nullptr) {
    *message = {status->message.data(), status->message.size()};
  }
  return status->code;
}

void status_free(void*, ciuic_status* status) { delete status; }
int32_t log_enabled(void*, int32_t) { return 0; }
void log(void*, int32_t, ciuic_str, ciuic_array) {}
void* alloc(void*, ciuic_device, size_t, size_t, const ciuic_stream*) { return nullptr; }
void dealloc(void*, ciuic_device, void*, size_t, const ciuic_stream*) {}
const void* service(void*, const char*, uint32_t) { return nullptr; }

}  // namespace

const ciuic_host* bare_host() {
  static const ciuic_host host{sizeof(ciuic_host),
                               CIUIC_ABI_MINOR,
                               nullptr,
                               &status_new,
                               &status_get,
                               &status_free,
                               &log_enabled,
                               &log,
                               &alloc,
                               &dealloc,
                               &service};
  return &host;
}

std::string take_message(ciuic_status* status) {
  const std::unique_ptr<ciuic_status> owned(status);
  return owned == nullptr ? "" : owned->message;
}

}  // namespace ciuic::tools
