// SPDX-License-Identifier: MIT
//
// The members of every ABI struct that a call takes or gives, once each: what a call log writes,
// reads back and names in messages. A member that the ABI gains is one word here.
//
//   template <typename V> auto fields(V& v, ciuic_x& x) { return v("a,b", x.a, x.b); }
#pragma once

#include <ciuic/abi/ciuic.h>

namespace ciuic::core {

/// `count` numbers at `data`; with is_shared, the count was said by an earlier one.
template <typename T, typename N>
struct NumberField {
  const T*& data;
  N& count;
  bool is_shared;
};
template <typename T, typename N>
NumberField<T, N> numbers(const T*& data, N& count) {
  return {data, count, false};
}
template <typename T, typename N>
NumberField<T, N> as_many(const T*& data, N& count) {
  return {data, count, true};
}

/// A number for each rank of the group, or NULL.
struct CountField {
  const int64_t*& data;
};

/// A ciuic_array of T.
template <typename T>
struct ItemField {
  ciuic_array& array;
};
template <typename T>
ItemField<T> items(ciuic_array& array) {
  return {array};
}

struct TensorListField {
  const ciuic_tensor* const*& data;
  uint32_t& count;
};

// ---- shared ----

template <typename V>
auto fields(V& v, ciuic_dtype& x) {
  return v("code,bits,lanes", x.code, x.bits, x.lanes);
}
template <typename V>
auto fields(V& v, ciuic_device& x) {
  return v("type,id", x.type, x.id);
}
template <typename V>
auto fields(V& v, ciuic_place& x) {
  return v("flags,global_shape,offset,box,begin", x.flags, numbers(x.global_shape, x.ndim),
           as_many(x.offset, x.ndim), as_many(x.box, x.ndim), x.begin);
}
template <typename V>
auto fields(V& v, ciuic_entry& x) {
  return v("flags,key,dtype,global_shape,bytes", x.flags, x.key, x.dtype,
           numbers(x.global_shape, x.ndim), x.bytes);
}
template <typename V>
auto fields(V& v, ciuic_group& x) {
  return v("flags,id,rank,ranks,nodes,name", x.flags, x.id, x.rank, numbers(x.ranks, x.size),
           as_many(x.nodes, x.size), x.name);
}

// ---- communicator ----

template <typename V>
auto fields(V& v, ciuic_collective& x) {
  return v(
      "flags,op,reduce,tag,vote,peer,sequence,timeout_ns,factor,in,out,in_counts,in_offsets,"
      "out_counts,out_offsets,label",
      x.flags, x.op, x.reduce, x.tag, x.vote, x.peer, x.sequence, x.timeout_ns, x.factor, x.in,
      x.out, CountField{x.in_counts}, CountField{x.in_offsets}, CountField{x.out_counts},
      CountField{x.out_offsets}, x.label);
}
template <typename V>
auto fields(V& v, ciuic_split& x) {
  return v("flags,ranks,name,timeout_ns", x.flags, numbers(x.ranks, x.count), x.name, x.timeout_ns);
}

// ---- batch scheduler ----

template <typename V>
auto fields(V& v, ciuic_batch_item& x) {
  return v("sample,offset,rank,micro_batch,row,position,length,flags", x.sample, x.offset, x.rank,
           x.micro_batch, x.row, x.position, x.length, x.flags);
}
template <typename V>
auto fields(V& v, ciuic_batch_request& x) {
  return v(
      "flags,seed,epoch,step,consumed_samples,consumed_tokens,attempt,world,only_rank,"
      "row_tokens",
      x.flags, x.seed, x.epoch, x.step, x.consumed_samples, x.consumed_tokens, x.attempt, x.world,
      x.only_rank, x.row_tokens);
}
template <typename V>
auto fields(V& v, ciuic_batch_plan& x) {
  return v("flags,items,micro_batches,row_tokens,samples,tokens", x.flags,
           items<ciuic_batch_item>(x.items), x.micro_batches, x.row_tokens, x.samples, x.tokens);
}
template <typename V>
auto fields(V& v, ciuic_rank_report& x) {
  return v("flags,rank,micro_batches,tokens,memory_used,memory_total,seconds", x.flags, x.rank,
           x.micro_batches, x.tokens, x.memory_used, x.memory_total, x.seconds);
}

// ---- precision ----

template <typename V>
auto fields(V& v, ciuic_module& x) {
  return v("flags,id,name", x.flags, x.id, x.name);
}
template <typename V>
auto fields(V& v, ciuic_format& x) {
  return v("flags,dtype,scale_dtype,block_rows,block_cols,elements,scale_elements", x.flags,
           x.dtype, x.scale_dtype, x.block_rows, x.block_cols, x.elements, x.scale_elements);
}
template <typename V>
auto fields(V& v, ciuic_cast& x) {
  return v("flags,module,pass,role,in,out,scale", x.flags, x.module, x.pass, x.role, x.in, x.out,
           x.scale);
}
template <typename V>
auto fields(V& v, ciuic_gemm& x) {
  return v("flags,module,pass,alpha,beta,a,b,out,a_scale,b_scale,group_ends,b_version", x.flags,
           x.module, x.pass, x.alpha, x.beta, x.a, x.b, x.out, x.a_scale, x.b_scale, x.group_ends,
           x.b_version);
}
template <typename V>
auto fields(V& v, ciuic_precision_update& x) {
  return v("flags,step,update,non_finite,grad_norm", x.flags, x.step, x.update, x.non_finite,
           x.grad_norm);
}

// ---- optimizer ----

template <typename V>
auto fields(V& v, ciuic_param& x) {
  return v(
      "flags,id,name,unit,group,sum_group,tied_to,value,grad,reduce,master,shape,global_shape,"
      "offset,num_elements,granule,weight_decay,lr_scale",
      x.flags, x.id, x.name, x.unit, x.group, x.sum_group, x.tied_to, x.value, x.grad, x.reduce,
      x.master, numbers(x.shape, x.ndim), as_many(x.global_shape, x.ndim),
      as_many(x.offset, x.ndim), x.num_elements, x.granule, x.weight_decay, x.lr_scale);
}
template <typename V>
auto fields(V& v, ciuic_state_spec& x) {
  return v("flags,name,dtype,granule,per_granule,initial", x.flags, x.name, x.dtype, x.granule,
           x.per_granule, x.initial);
}
template <typename V>
auto fields(V& v, ciuic_update& x) {
  return v(
      "flags,param,begin,num_elements,update,seed,lr,weight_decay,grad_scale,grad,master,"
      "value,state",
      x.flags, x.param, x.begin, x.num_elements, x.update, x.seed, x.lr, x.weight_decay,
      x.grad_scale, x.grad, x.master, x.value, TensorListField{x.state, x.num_state});
}

// ---- sharding ----

template <typename V>
auto fields(V& v, ciuic_use& x) {
  return v("flags,index,unit,pass,micro_batch", x.flags, x.index, x.unit, x.pass, x.micro_batch);
}
template <typename V>
auto fields(V& v, ciuic_step& x) {
  return v("flags,step,attempt,micro_batches,first_slot,num_slots,uses", x.flags, x.step, x.attempt,
           x.micro_batches, x.first_slot, x.num_slots, items<ciuic_use>(x.uses));
}
template <typename V>
auto fields(V& v, ciuic_binding& x) {
  return v("flags,param,value,grad", x.flags, x.param, x.value, x.grad);
}
template <typename V>
auto fields(V& v, ciuic_extent& x) {
  return v("param,begin,end,owner,role,dtype,flags", x.param, x.begin, x.end, x.owner, x.role,
           x.dtype, x.flags);
}
template <typename V>
auto fields(V& v, ciuic_shard_plan& x) {
  return v("flags,params,groups,rank,world", x.flags, items<ciuic_param>(x.params),
           items<ciuic_group>(x.groups), x.rank, x.world);
}
template <typename V>
auto fields(V& v, ciuic_grad_request& x) {
  return v("flags,grad_scale,norm,params", x.flags, x.grad_scale, x.norm,
           numbers(x.params, x.num_params));
}
template <typename V>
auto fields(V& v, ciuic_grad_stats& x) {
  return v("flags,norm,non_finite,first_bad_param,first_bad_rank", x.flags, x.norm, x.non_finite,
           x.first_bad_param, x.first_bad_rank);
}
template <typename V>
auto fields(V& v, ciuic_step_update& x) {
  return v("flags,update,seed,lr,weight_decay_scale,grad_scale", x.flags, x.update, x.seed, x.lr,
           x.weight_decay_scale, x.grad_scale);
}

// ---- checkpoint ----

template <typename V>
auto fields(V& v, ciuic_save_request& x) {
  return v("flags,uri,step,entries", x.flags, x.uri, x.step, items<ciuic_entry>(x.entries));
}
template <typename V>
auto fields(V& v, ciuic_open_request& x) {
  return v("flags,uri", x.flags, x.uri);
}

// ---- profiler ----

template <typename V>
auto fields(V& v, ciuic_event& x) {
  return v("type,category,thread,id,parent,time_ns,a,b,value,name,fields", x.type, x.category,
           x.thread, x.id, x.parent, x.time_ns, x.a, x.b, x.value, x.name,
           items<ciuic_field>(x.fields));
}

}  // namespace ciuic::core
