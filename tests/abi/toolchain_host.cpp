// SPDX-License-Identifier: MIT
//
// Creates, calls and fails a plugin of the matrix: toolchain_host LIBRARY. Prints what it saw.
#include <cstdio>
#include <string>

#include <ciuic/testing/loaded_plugin.hpp>

namespace {

using namespace ciuic;           // NOLINT: a test program
using namespace ciuic::testing;  // NOLINT

/// Runs the plugin with `fail` set; prints the log line or the error.
void use(const LoadedPlugin& plugin, const std::string& fail) {
  const TestHost host;
  try {
    const PluginInstance instance = plugin.create(host, {{"fail", fail}});
    const auto& vt = instance.table<ciuic_profiler_vt>();
    ciuic_event event{};
    event.struct_size = sizeof(event);
    event.type = CIUIC_EVENT_INSTANT;
    vt.emit(instance.self(), {&event, 1, sizeof(event)});
    instance.check(vt.flush(instance.self(), -1));
    std::printf("%s: %s\n", fail.c_str(), host.logs().back().message.c_str());
  } catch (const Error& e) {
    std::printf("%s: %s, peer %d: %s\n", fail.c_str(), code_name(e.code()), e.peer(), e.what());
  }
  if (!host.balanced()) {
    std::printf("%s: not balanced\n", fail.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: toolchain_host LIBRARY\n");
    return 2;
  }
  const LoadedPlugin plugin(argv[1]);
  for (const char* fail : {"never", "create", "flush"}) {
    use(plugin, fail);
  }
  return 0;
}
