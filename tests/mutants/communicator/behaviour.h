// SPDX-License-Identifier: MIT
//
// What a plugin of this folder may do otherwise than the plain mesh communicator: one hook each.
// The defaults are right.
#pragma once

#include <functional>
#include <vector>

#include <ciuic/abi/work.h>
#include <ciuic/error.hpp>

#include "arithmetic.h"
#include "mesh.h"

namespace ciuic::mutants {

using Callback = void (*)(void* context, const ciuic_status*);

class Behaviour {
 public:
  Behaviour() = default;
  Behaviour(const Behaviour&) = delete;
  Behaviour& operator=(const Behaviour&) = delete;
  virtual ~Behaviour() = default;

  /// CIUIC_COMM_ bits of what the mesh can do.
  [[nodiscard]] virtual uint64_t capabilities(uint32_t op, uint32_t reduce,
                                              ciuic_dtype dtype) const;
  /// A thread makes progress; else those do that wait or test.
  [[nodiscard]] virtual bool has_thread() const { return true; }
  /// submit returns when all is done.
  [[nodiscard]] virtual bool is_blocking() const { return false; }
  /// submit answers UNIMPLEMENTED where capabilities say so.
  [[nodiscard]] virtual bool refuses_denied() const { return true; }
  [[nodiscard]] virtual bool checks_peers() const { return true; }
  [[nodiscard]] virtual bool is_abortable() const { return true; }
  [[nodiscard]] virtual bool has_deadlines() const { return true; }
  /// Ranks that did not find together.
  virtual void after_failed_connect() const {}
  /// Before a submit does anything.
  virtual void before_submit() const {}
  /// The request as copied from the caller.
  virtual void adjust(Request&) const {}
  /// Ranks in the order in which they are reduced, from that in which they came.
  [[nodiscard]] virtual std::vector<int> order(const std::vector<int>& arrived) const;
  /// `inputs` in that order.
  virtual void reduce(const Request& r, const std::vector<const char*>& inputs, int64_t elements,
                      char* out) const;
  /// Which of the messages with one tag that wait the next receive takes; `taken` were before it.
  [[nodiscard]] virtual size_t choose_message(size_t waiting, uint64_t taken) const {
    (void)waiting;
    (void)taken;
    return 0;
  }
  /// The bytes of one rank, where they belong.
  virtual void place(const Request& r, int from, const std::string& bytes) const;
  /// After the output has been written.
  virtual void finish(const Request&) const {}
  /// What a failed work reports.
  [[nodiscard]] virtual Error report(const Error& error) const { return error; }
  virtual ciuic_status* on_done(ciuic_work* inner, Callback callback, void* context) const {
    return inner->ops->on_done(inner, callback, context);
  }
  /// The ranks of a split, in order.
  [[nodiscard]] virtual std::vector<int32_t> split_order(std::vector<int32_t> ranks) const {
    return ranks;
  }
  virtual void before_close() const {}
};

}  // namespace ciuic::mutants
