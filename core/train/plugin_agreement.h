// SPDX-License-Identifier: MIT
//
// All ranks load the same plugins, byte for byte: other builds on some of the machines are the
// common real failure, and the wrong result they give is a silent one. Compared before any plugin is
// created, over the rendezvous: one message per rank, and a second one only where they differ.
#pragma once

#include <string>
#include <vector>

#include "core/parallel/rendezvous.h"
#include "core/train/run_plan.h"

namespace ciuic::core {

/// One plugin of a run and the hash of its file with what it brings along.
struct PluginDigest {
  std::string plugin;  // "optimizer adamw 1.0.0"
  std::string sha256;
};

/// Of all plugins that the run creates, in an order that all ranks share.
std::vector<PluginDigest> plugin_digests(const RunPlan& plan);

/// Throws Failure (Communication) on a rank whose plugins are not those of rank 0, with the plugin
/// and both hashes.
void agree_on_plugins(Rendezvous& rendezvous, int rank, const std::vector<PluginDigest>& mine,
                      std::chrono::nanoseconds timeout);

}  // namespace ciuic::core
