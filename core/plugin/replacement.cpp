// SPDX-License-Identifier: MIT
#include "core/plugin/replacement.h"

#include <algorithm>

#include "core/plugin/kind.h"

namespace ciuic::core {
namespace {

const OptionInfo* find(const DescriptorInfo& d, const std::string& key) {
  const auto at = std::find_if(d.own_options.begin(), d.own_options.end(),
                               [&](const OptionInfo& o) { return o.key == key; });
  return at != d.own_options.end() ? &*at : nullptr;
}

bool is_real(const OptionInfo& o) { return bound_type(o.type) == CIUIC_TYPE_F64; }
bool is_bounded(const OptionInfo& o) {
  return is_real(o) ? o.min.f != o.max.f : o.min.i != o.max.i;
}

/// Does `now` refuse a value that `was` takes?
bool is_narrower(const OptionInfo& was, const OptionInfo& now) {
  if (!is_bounded(now)) {
    return false;
  }
  if (!is_bounded(was)) {
    return true;
  }
  return is_real(now) ? now.min.f > was.min.f || now.max.f < was.max.f
                      : now.min.i > was.min.i || now.max.i < was.max.i;
}

/// Compares two descriptors of the same kind and name.
class Comparison {
 public:
  Comparison(const DescriptorInfo& was, const DescriptorInfo& now, Replacement& out)
      : was_(was), now_(now), out_(out) {}

  void run() {
    if (was_.version != now_.version) {
      changes("version " + was_.version + " became " + now_.version);
    }
    compare_abi();
    compare_state();
    compare_features();
    compare_flags();
    compare_options();
  }

 private:
  void breaks(const std::string& what) { out_.obstacles.push_back(now_.name + ": " + what); }
  void changes(const std::string& what) { out_.changes.push_back(now_.name + ": " + what); }

  void compare_abi() {
    const auto text = [](const DescriptorInfo& d) {
      return std::to_string(d.abi_major) + "." + std::to_string(d.abi_minor);
    };
    if (was_.abi_major != now_.abi_major) {
      breaks("plugin ABI " + text(was_) + " became " + text(now_));
    } else if (now_.min_host_minor > was_.min_host_minor) {
      breaks("it needs a host of ABI minor " + std::to_string(now_.min_host_minor) + ", before " +
             std::to_string(was_.min_host_minor));
    } else if (was_.abi_minor != now_.abi_minor) {
      changes("plugin ABI " + text(was_) + " became " + text(now_));
    }
  }

  void compare_state() {
    if (was_.state_schema < now_.state_schema_min) {
      breaks("it reads state from schema " + std::to_string(now_.state_schema_min) +
             ", checkpoints have " + std::to_string(was_.state_schema));
    } else if (was_.state_schema > now_.state_schema) {
      breaks("its state schema " + std::to_string(now_.state_schema) + " is older than " +
             std::to_string(was_.state_schema));
    } else if (was_.state_schema != now_.state_schema) {
      changes("state schema " + std::to_string(was_.state_schema) + " became " +
              std::to_string(now_.state_schema) + "; there is no way back");
    }
    if ((was_.functions & kHasState) != 0 && (now_.functions & kHasState) == 0) {
      breaks("it has no state_save and state_load any more");
    }
  }

  void compare_features() {
    const auto has = [](const DescriptorInfo& d, const std::string& f) {
      return std::find(d.features.begin(), d.features.end(), f) != d.features.end();
    };
    for (const std::string& f : was_.features) {
      if (!has(now_, f)) {
        breaks("feature " + f + " is gone");
      }
    }
    for (const std::string& f : now_.features) {
      if (!has(was_, f)) {
        changes("feature " + f + " is new");
      }
    }
  }

  void compare_flags() {
    if ((was_.flags & ~now_.flags & CIUIC_FLAG_DETERMINISTIC) != 0) {
      breaks("it does not say DETERMINISTIC any more");
    }
    if ((was_.flags & ~now_.flags & CIUIC_FLAG_RELOADABLE) != 0) {
      breaks("it does not say RELOADABLE any more");
    }
    if ((now_.flags & ~was_.flags & CIUIC_FLAG_OWN_THREADS) != 0) {
      changes("it has threads of its own now");
    }
  }

  void compare_options() {
    for (const OptionInfo& was : was_.own_options) {
      if (const OptionInfo* now = find(now_, was.key)) {
        compare_option(was, *now);
      } else {
        breaks("option " + was.key + " is gone");
      }
    }
    for (const OptionInfo& now : now_.own_options) {
      if (find(was_, now.key) == nullptr) {
        const bool is_required = (now.flags & CIUIC_OPTION_REQUIRED) != 0;
        is_required ? breaks("option " + now.key + " is new and required")
                    : changes("option " + now.key + " is new");
      }
    }
  }

  void compare_option(const OptionInfo& was, const OptionInfo& now) {
    const std::string name = "option " + was.key;
    if (was.type != now.type) {
      return breaks(name + " has another type");
    }
    if (is_narrower(was, now)) {
      breaks(name + " has a narrower range");
    }
    for (const std::string& choice : was.choices) {
      if (std::find(now.choices.begin(), now.choices.end(), choice) == now.choices.end()) {
        breaks(name + " does not take " + choice + " any more");
      }
    }
    if ((now.flags & ~was.flags & CIUIC_OPTION_REQUIRED) != 0) {
      breaks(name + " is required now");
    }
    if ((was.flags & ~now.flags & CIUIC_OPTION_LIVE) != 0) {
      breaks(name + " cannot change between steps any more");
    }
    if (was.def.to_json(was.type) != now.def.to_json(now.type)) {
      // A run file without the key would train otherwise.
      (now.flags & CIUIC_OPTION_AFFECTS_NUMERICS) != 0
          ? breaks(name + " has another default, which moves the loss")
          : changes(name + " has another default");
    }
    if (was.deprecated.empty() && !now.deprecated.empty()) {
      changes(name + " is deprecated: " + now.deprecated);
    }
  }

  const DescriptorInfo& was_;
  const DescriptorInfo& now_;
  Replacement& out_;
};

}  // namespace

Replacement compare(const PluginList& before, const PluginList& after) {
  Replacement out;
  for (const auto& was : before) {
    const auto now = std::find_if(after.begin(), after.end(), [&](const auto& d) {
      return d->kind == was->kind && d->name == was->name;
    });
    if (now == after.end()) {
      out.obstacles.push_back("it holds no " + std::string(kind_name(was->kind)) + " " + was->name);
    } else {
      Comparison(*was, **now, out).run();
    }
  }
  return out;
}

}  // namespace ciuic::core
