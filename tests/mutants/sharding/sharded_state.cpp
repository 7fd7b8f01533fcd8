// SPDX-License-Identifier: MIT
//
// State of a plain sharding: each rank writes and reads its shards with their places.
#include "sharded.h"

namespace ciuic::mutants {
namespace {

std::string key_of(const std::string& role, const ciuic_param& p) {
  return role + "/" + std::string(to_view(p.name));
}
Place place_of(const ciuic_param& p, int64_t begin) {
  const auto list = [&](const int64_t* values) {
    return std::vector<int64_t>(values, values + p.ndim);
  };
  return Place(list(p.global_shape), list(p.offset), list(p.shape), begin);
}
bool is_like_parameter(const ciuic_state_spec& s) { return s.granule == 1 && s.per_granule == 1; }

}  // namespace

/// A granule's state goes with its first element.
Piece Sharded::state_piece(const ciuic_param& p, const ciuic_state_spec& spec) const {
  const ciuic_group& group = group_of(p);
  const Piece own = piece_of(p, group.rank, group.size);
  const auto edge = [&](int64_t element) {
    return (element + spec.granule - 1) / spec.granule * spec.per_granule;
  };
  return {edge(own.begin), edge(own.end)};
}

bool Sharded::is_written_here(const ciuic_param& p) const {
  const bool is_copy =
      (p.flags & CIUIC_PARAM_REPLICATED) != 0 && (p.flags & CIUIC_PARAM_IN_NORM) == 0;
  return p.tied_to < 0 && !is_copy && (!traits_.is_replicated || group_of(p).rank == 0);
}

void Sharded::save(const StateWriter& writer) {
  check_set_up();
  for (const ciuic_param& p : params_) {
    const Stored& s = stored_[p.id];
    if (!is_written_here(p) || s.own.size() == 0) {
      continue;
    }
    const bool has_master = !same(p.master, p.value) && (p.flags & CIUIC_PARAM_FROZEN) == 0;
    const Tensor& values = has_master ? s.master.flat : s.value.flat;
    writer.tensor(key_of(has_master ? "master" : "value", p), place_of(p, s.own.begin), values.c());
    for (const Moment& m : s.moments) {
      const std::string key = key_of("moment/" + std::string(to_view(m.spec.name)), p);
      const Piece piece = state_piece(p, m.spec);
      const int64_t all =
          (p.num_elements + m.spec.granule - 1) / m.spec.granule * m.spec.per_granule;
      const Place place =
          is_like_parameter(m.spec) ? place_of(p, piece.begin) : Place({all}, piece.begin);
      if (piece.size() > 0) {
        writer.tensor(key, place, m.memory.flat.c());
      }
    }
  }
}

void Sharded::load(const StateReader& reader) {
  check_set_up();
  for (const ciuic_param& p : params_) {
    const Stored& s = stored_[p.id];
    if (p.tied_to >= 0 || s.own.size() == 0) {
      continue;
    }
    const bool has_master = !same(p.master, p.value) && (p.flags & CIUIC_PARAM_FROZEN) == 0;
    const Tensor& values = has_master ? s.master.flat : s.value.flat;
    if (!reader.tensor(key_of("master", p), place_of(p, s.own.begin), values.c()) &&
        !reader.tensor(key_of("value", p), place_of(p, s.own.begin), values.c())) {
      throw Error(CIUIC_NOT_FOUND, "no values for " + std::string(to_view(p.name)));
    }
    if (has_master) {
      copy(values, s.value.flat);
    }
    for (const Moment& m : s.moments) {
      const std::string key = key_of("moment/" + std::string(to_view(m.spec.name)), p);
      const int64_t begin = is(Fault::kReshardsWrongly) ? 0 : state_piece(p, m.spec).begin;
      const int64_t all =
          (p.num_elements + m.spec.granule - 1) / m.spec.granule * m.spec.per_granule;
      const Place place = is_like_parameter(m.spec) ? place_of(p, begin) : Place({all}, begin);
      if (!reader.tensor(key, place, m.memory.flat.c())) {
        fill(m.memory.flat, m.spec.initial);
      }
    }
  }
}

}  // namespace ciuic::mutants
