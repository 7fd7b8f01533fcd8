// SPDX-License-Identifier: MIT
//
// One rank's file of a save, a safetensors file, and the check that it is what the index says.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint_format/files.h"
#include "checkpoint_format/put_buffer.h"
#include "index.h"

namespace ciuic::plugins::sharded {

struct ShardIdentity {
  uint64_t step;
  int64_t rank, world;
};

/// Writes and syncs `folder`'s shard of this rank; returns the part of the index that describes it.
/// Frees the pieces.
[[nodiscard]] Index write_shard(const checkpoint::Files& files, const std::string& folder,
                                const ShardIdentity& who,
                                std::vector<checkpoint::PutPiece>& pieces);

/// Throws DATA_LOSS unless file number `number`, all but its data, agrees with the index.
void verify_shard_header(const checkpoint::File& file, const Index& index, size_t number);

}  // namespace ciuic::plugins::sharded
