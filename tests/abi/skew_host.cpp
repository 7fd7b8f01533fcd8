// SPDX-License-Identifier: MIT
//
// A host of one version with a plugin of another: skew_host LIBRARY. Every struct it hands over
// ends at a page that may not be touched, so a plugin that reads past what the host's version has
// dies here. Prints the line that the plugin logs at flush.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include <ciuic/abi/ciuic.h>
#include <ciuic/view.hpp>

#include "core/plugin/abi_policy.h"

namespace {

/// A copy of a struct whose end is the end of a mapped page.
template <typename T>
T* at_page_end(const T& value, size_t count = 1) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto* base = static_cast<char*>(
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (base == MAP_FAILED || mprotect(base + page, page, PROT_NONE) != 0) {
    std::perror("skew_host: mmap");
    std::exit(2);
  }
  char* at = base + page - sizeof(T) * count;
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(at + i * sizeof(T), &value, sizeof(T));
  }
  return reinterpret_cast<T*>(at);
}

struct HostStatus {
  int32_t code;
  std::string message;
};

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "skew_host: %s\n", what.c_str());
  std::exit(1);
}

void check(ciuic_status* status) {
  if (status != nullptr) {
    die(reinterpret_cast<HostStatus*>(status)->message);
  }
}

#if defined(CIUIC_DOCTORED)
const ciuic_example_service kExample{sizeof(ciuic_example_service), 0, nullptr,
                                     [](void*) { return uint64_t{42}; }};
#endif

ciuic_host make_host() {
  ciuic_host host{};
  host.struct_size = sizeof(host);
  host.abi_minor = CIUIC_ABI_MINOR;
  host.status_new = [](void*, int32_t code, uint32_t, int32_t, ciuic_str message) {
    return reinterpret_cast<ciuic_status*>(
        new HostStatus{code, std::string(ciuic::to_view(message))});
  };
  host.status_get = [](void*, const ciuic_status* s, uint32_t*, int32_t*, ciuic_str* message) {
    const auto* status = reinterpret_cast<const HostStatus*>(s);
    if (message != nullptr) {
      *message = ciuic::to_str(status->message);
    }
    return status->code;
  };
  host.status_free = [](void*, ciuic_status* s) { delete reinterpret_cast<HostStatus*>(s); };
  host.log_enabled = [](void*, int32_t) { return 1; };
  host.log = [](void*, int32_t, ciuic_str message, ciuic_array) {
    std::printf("%s\n", std::string(ciuic::to_view(message)).c_str());
  };
  host.alloc = [](void*, ciuic_device, size_t bytes, size_t, const ciuic_stream*) {
    return std::malloc(bytes);
  };
  host.dealloc = [](void*, ciuic_device, void* memory, size_t, const ciuic_stream*) {
    std::free(memory);
  };
  host.service = [](void*, const char* name, uint32_t) -> const void* {
#if defined(CIUIC_DOCTORED)
    return std::strcmp(name, "ciuic.example") == 0 ? &kExample : nullptr;
#else
    (void)name;
    return nullptr;
#endif
  };
#if defined(CIUIC_DOCTORED)
  host.now = [](void*) { return uint64_t{1}; };
#endif
  return host;
}

const ciuic_descriptor* load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    die(dlerror());
  }
  auto* query =
      reinterpret_cast<decltype(&ciuic_plugin_query)>(dlsym(library, "ciuic_plugin_query"));
  if (query == nullptr) {
    die("no ciuic_plugin_query");
  }
  const ciuic_descriptor* d = query(CIUIC_ABI_MAJOR, 0);
  if (d == nullptr) {
    die("no plugin for ABI major " + std::to_string(CIUIC_ABI_MAJOR));
  }
  const std::string problem = ciuic::core::abi_problem(
      {CIUIC_ABI_MAJOR, CIUIC_ABI_MINOR}, {d->abi_major, d->abi_minor}, d->min_host_minor);
  if (!problem.empty()) {
    die("refused: " + problem);
  }
  return d;
}

std::vector<ciuic_option> default_options(const ciuic_descriptor& d) {
  std::vector<ciuic_option> out;
  for (const ciuic_option_spec& spec : ciuic::ArrayView<ciuic_option_spec>(d.options)) {
    ciuic_option o{};
    o.struct_size = sizeof(o);
    o.type = spec.type;
    o.key = ciuic::to_str(spec.key);
    o.value = spec.def;
    out.push_back(o);
  }
  return out;
}

void run(const ciuic_descriptor& d) {
  const std::vector<ciuic_option> options = default_options(d);
  ciuic_create_args args{};
  args.struct_size = sizeof(args);
  args.host = at_page_end(make_host());
  args.options = {options.empty() ? nullptr : at_page_end(options[0]),
                  static_cast<uint32_t>(options.size()), sizeof(ciuic_option)};
  args.world = args.local_world = 1;
  args.name = ciuic::to_str(d.name);
  const ciuic_create_args* guarded = at_page_end(args);
  check(d.validate(guarded));
  ciuic_instance* self = nullptr;
  check(d.create(guarded, &self));

  const auto& vt = *static_cast<const ciuic_profiler_vt*>(d.vt);
  ciuic_event event{};
  event.struct_size = sizeof(event);
  event.type = CIUIC_EVENT_INSTANT;
  event.category = CIUIC_CATEGORY_STEP;
  event.id = 1;
#if defined(CIUIC_DOCTORED)
  event.extra = 5;
#endif
  vt.emit(self, {at_page_end(event, 3), 3, sizeof(event)});
#if defined(CIUIC_DOCTORED)
  if (CIUIC_CAN(&vt, annotate)) {
    check(vt.annotate(self, ciuic_str{"step", 4}));
  }
#endif
  check(vt.flush(self, -1));
  check(d.quiesce(self, -1));
  d.destroy(self);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: skew_host LIBRARY\n");
    return 2;
  }
  run(*load(argv[1]));
  return 0;
}
