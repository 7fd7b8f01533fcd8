// SPDX-License-Identifier: MIT
//
// The host of a rule under test: with the services that a run offers to every kind.
#pragma once

#include <ciuic/testing/reference_tensor.hpp>
#include <ciuic/testing/reference_threads.hpp>
#include <ciuic/testing/test_host.hpp>

namespace ciuic::testing {

class OptimizerHost : public TestHost {
 public:
  OptimizerHost() : tensor_(host()), threads_(host(), 2) {
    offer("ciuic.tensor", tensor_.table());
    offer("ciuic.threads", threads_.table());
  }

 private:
  ReferenceTensor tensor_;
  ReferenceThreads threads_;
};

}  // namespace ciuic::testing
