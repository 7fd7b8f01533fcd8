// SPDX-License-Identifier: MIT
//
// Communicators: ranks are processes on this machine, rendezvous goes through "ciuic.kv".
#include "communicator_suite.hpp"

namespace ciuic::testing {

TestTable communicator_tests() {
  namespace suite = communicator;
  TestTable all;
  for (TestTable (*table)() :
       {suite::capability_tests, suite::reduction_tests, suite::movement_tests,
        suite::send_receive_tests, suite::async_tests, suite::callback_tests, suite::failure_tests,
        suite::service_tests, suite::abort_tests, suite::split_tests, suite::life_tests,
        suite::memory_tests, suite::long_tests}) {
    for (const TestCase& row : table()) {
      all.push_back(row);
    }
  }
  return all;
}

}  // namespace ciuic::testing
