// SPDX-License-Identifier: MIT
#include "tools/probe/probed_library.h"

#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>

#include "core/plugin/descriptor_check.h"
#include "core/plugin/descriptor_info.h"
#include "tools/probe/answer.h"

namespace ciuic::tools {
namespace {

// A query that never returns NULL is a fault, not a long list.
constexpr uint32_t kMaxDescriptors = 256;

/// On one line: the loader repeats names out of the file as they are.
std::string loader_words() {
  const char* text = dlerror();
  std::string words = text == nullptr ? "the loader says nothing" : text;
  for (char& c : words) {
    const auto byte = static_cast<unsigned char>(c);
    c = byte < 0x20 || byte == 0x7F ? '?' : c;
  }
  return words;
}

int threads() {
  std::error_code ec;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", ec)) {
    count += entry.path().empty() ? 0 : 1;
  }
  return count;
}

}  // namespace

ProbedLibrary::ProbedLibrary(size_t id, const std::string& path) : id_(id), path_(path) {
  load();
  announce(id_, "query");
  const Query function = find_query();
  query(function);
  check_purity(function);
  announce(id_, "descriptor");
  check_descriptors();
}

void ProbedLibrary::load() {
  announce(id_, "load");
  descriptors_before_ = open_descriptors();
  handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    throw ProbeRefusal{"load", loader_words()};
  }
}

ProbedLibrary::Query ProbedLibrary::find_query() const {
  void* symbol = dlsym(handle_, "ciuic_plugin_query");
  if (symbol == nullptr) {
    throw ProbeRefusal{"query", "it lacks the symbol ciuic_plugin_query"};
  }
  // dlsym also looks in what the library needs: the symbol must be its own.
  Dl_info info{};
  link_map* own = nullptr;
  void* found = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, &own) != 0 ||
      dladdr1(symbol, &info, &found, RTLD_DL_LINKMAP) == 0 || found != own) {
    throw ProbeRefusal{"query", std::string("ciuic_plugin_query is not its own, but of ") +
                                    (info.dli_fname == nullptr ? "another" : info.dli_fname)};
  }
  Query function = nullptr;
  std::memcpy(&function, &symbol, sizeof(function));
  return function;
}

void ProbedLibrary::query(Query function) {
  for (uint32_t i = 0; i < kMaxDescriptors; ++i) {
    const ciuic_descriptor* d = function(CIUIC_ABI_MAJOR, i);
    if (d == nullptr) {
      break;
    }
    descriptors_.push_back(d);
  }
  if (descriptors_.empty()) {
    throw ProbeRefusal{"query",
                       "it offers no plugin for ABI major " + std::to_string(CIUIC_ABI_MAJOR)};
  }
  if (descriptors_.size() == kMaxDescriptors) {
    throw ProbeRefusal{"query", "it never says where its list of plugins ends"};
  }
}

/// The contract calls the query pure: the same answers again, none for what it cannot serve, and no
/// thread started.
void ProbedLibrary::check_purity(Query function) {
  const int before = threads();
  for (uint32_t i = 0; i < descriptors_.size(); ++i) {
    if (function(CIUIC_ABI_MAJOR, i) != descriptors_[i]) {
      throw ProbeRefusal{"query",
                         "it shows another descriptor " + std::to_string(i) + " when asked again"};
    }
  }
  for (const uint32_t index : {static_cast<uint32_t>(descriptors_.size()), ~0u}) {
    if (function(CIUIC_ABI_MAJOR, index) != nullptr) {
      throw ProbeRefusal{"query", "it shows a descriptor at index " + std::to_string(index) +
                                      ", where it has none"};
    }
  }
  if (function(99, 0) != nullptr) {
    throw ProbeRefusal{"query", "it claims to serve plugin ABI major 99"};
  }
  const OpenDescriptors now = open_descriptors();
  if (const std::string what = replaced(descriptors_before_, now); !what.empty()) {
    throw ProbeRefusal{"query", "it tampers with the host's files: " + what};
  }
  if (const std::string what = opened(descriptors_before_, now); !what.empty()) {
    warnings_.push_back("loading it leaves files open: " + what);
  }
  if (threads() != before) {
    warnings_.emplace_back("its query starts threads");
  }
}

void ProbedLibrary::check_descriptors() const {
  for (const ciuic_descriptor* d : descriptors_) {
    if (const std::string problem = core::descriptor_problem(*d); !problem.empty()) {
      throw ProbeRefusal{"descriptor", problem};
    }
  }
}

nlohmann::json ProbedLibrary::describe() const {
  nlohmann::json list = nlohmann::json::array();
  for (const ciuic_descriptor* d : descriptors_) {
    list.push_back(core::DescriptorInfo::of(*d)->to_json());
  }
  return {{"descriptors", std::move(list)}, {"warnings", warnings_}};
}

const ciuic_descriptor* ProbedLibrary::find(uint32_t kind, const std::string& name) const {
  for (const ciuic_descriptor* d : descriptors_) {
    if (d->kind == kind && name == d->name) {
      return d;
    }
  }
  return nullptr;
}

bool ProbedLibrary::stays_after_close() {
  announce(id_, "unload");
  descriptors_.clear();
  dlclose(handle_);
  handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_NOLOAD);
  return handle_ != nullptr;
}

}  // namespace ciuic::tools
