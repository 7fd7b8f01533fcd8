// SPDX-License-Identifier: MIT
//
// Which functions of a service can fail.
#pragma once

#include "faulty_service.hpp"

namespace ciuic::testing::contract {

inline FaultyService<ciuic_tensor_service>& guard_all(FaultyService<ciuic_tensor_service>& s) {
  return s.guard<&ciuic_tensor_service::fill>("ciuic.tensor fill")
      .guard<&ciuic_tensor_service::copy>("ciuic.tensor copy")
      .guard<&ciuic_tensor_service::add>("ciuic.tensor add")
      .guard<&ciuic_tensor_service::stats>("ciuic.tensor stats")
      .guard<&ciuic_tensor_service::gemm>("ciuic.tensor gemm");
}
inline FaultyService<ciuic_thread_service>& guard_all(FaultyService<ciuic_thread_service>& s) {
  return s.guard<&ciuic_thread_service::count>("ciuic.threads count")
      .guard<&ciuic_thread_service::parallel>("ciuic.threads parallel")
      .guard<&ciuic_thread_service::run>("ciuic.threads run")
      .guard<&ciuic_thread_service::start>("ciuic.threads start")
      .guard<&ciuic_thread_service::all>("ciuic.threads all")
      .guard<&ciuic_thread_service::promise>("ciuic.threads promise")
      .guard<&ciuic_thread_service::fulfil>("ciuic.threads fulfil");
}
inline FaultyService<ciuic_kv_service>& guard_all(FaultyService<ciuic_kv_service>& s) {
  return s.guard<&ciuic_kv_service::set>("ciuic.kv set")
      .guard<&ciuic_kv_service::get>("ciuic.kv get")
      .guard<&ciuic_kv_service::add>("ciuic.kv add")
      .guard<&ciuic_kv_service::remove>("ciuic.kv remove");
}

}  // namespace ciuic::testing::contract
