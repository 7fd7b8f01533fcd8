// SPDX-License-Identifier: MIT
//
// The plugin ABI as released in 0.2. Written by abi/freeze; never edited.
#pragma once

#include <cstddef>
#include <type_traits>

#include <ciuic/abi/ciuic.h>

#define CIUIC_SLOT(type, member, offset, ...)                                    \
  static_assert(offsetof(type, member) == (offset), #type "." #member " moved"); \
  static_assert(std::is_same_v<decltype(type::member), __VA_ARGS__>,             \
                #type "." #member " changed its type")
#define CIUIC_SIZE(type, op, size) static_assert(sizeof(type) op(size), #type " changed its size")
#define CIUIC_VALUE(name, value) static_assert((name) == (value), #name " changed its value")

CIUIC_SLOT(ciuic_str, data, 0, const char*);
CIUIC_SLOT(ciuic_str, size, 8, size_t);
CIUIC_SLOT(ciuic_array, base, 0, const void*);
CIUIC_SLOT(ciuic_array, count, 8, uint32_t);
CIUIC_SLOT(ciuic_array, stride, 12, uint32_t);
CIUIC_SLOT(ciuic_device, type, 0, int32_t);
CIUIC_SLOT(ciuic_device, id, 4, int32_t);
CIUIC_SLOT(ciuic_dtype, code, 0, uint8_t);
CIUIC_SLOT(ciuic_dtype, bits, 1, uint8_t);
CIUIC_SLOT(ciuic_dtype, lanes, 2, uint16_t);
CIUIC_SLOT(ciuic_dl, data, 0, void*);
CIUIC_SLOT(ciuic_dl, device, 8, ciuic_device);
CIUIC_SLOT(ciuic_dl, ndim, 16, int32_t);
CIUIC_SLOT(ciuic_dl, dtype, 20, ciuic_dtype);
CIUIC_SLOT(ciuic_dl, shape, 24, int64_t*);
CIUIC_SLOT(ciuic_dl, strides, 32, int64_t*);
CIUIC_SLOT(ciuic_dl, byte_offset, 40, uint64_t);
CIUIC_SLOT(ciuic_tensor, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_tensor, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_tensor, t, 8, ciuic_dl);
CIUIC_SLOT(ciuic_tensor, name, 56, ciuic_str);
CIUIC_SLOT(ciuic_stream, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_stream, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_stream, device, 8, ciuic_device);
CIUIC_SLOT(ciuic_stream, native, 16, void*);
CIUIC_SLOT(ciuic_value, i, 0, int64_t);
CIUIC_SLOT(ciuic_value, f, 0, double);
CIUIC_SLOT(ciuic_value, s, 0, ciuic_str);
CIUIC_SLOT(ciuic_value, list, 0, ciuic_array);
CIUIC_SLOT(ciuic_field, key, 0, ciuic_str);
CIUIC_SLOT(ciuic_field, value, 16, ciuic_value);
CIUIC_SLOT(ciuic_field, type, 32, uint32_t);
CIUIC_SLOT(ciuic_field, reserved, 36, uint32_t);
CIUIC_SLOT(ciuic_place, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_place, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_place, ndim, 8, int32_t);
CIUIC_SLOT(ciuic_place, reserved, 12, uint32_t);
CIUIC_SLOT(ciuic_place, global_shape, 16, const int64_t*);
CIUIC_SLOT(ciuic_place, offset, 24, const int64_t*);
CIUIC_SLOT(ciuic_place, box, 32, const int64_t*);
CIUIC_SLOT(ciuic_place, begin, 40, int64_t);
CIUIC_SLOT(ciuic_batch_item, sample, 0, uint64_t);
CIUIC_SLOT(ciuic_batch_item, offset, 8, uint64_t);
CIUIC_SLOT(ciuic_batch_item, rank, 16, uint32_t);
CIUIC_SLOT(ciuic_batch_item, micro_batch, 20, uint32_t);
CIUIC_SLOT(ciuic_batch_item, row, 24, uint32_t);
CIUIC_SLOT(ciuic_batch_item, position, 28, uint32_t);
CIUIC_SLOT(ciuic_batch_item, length, 32, uint32_t);
CIUIC_SLOT(ciuic_batch_item, flags, 36, uint32_t);
CIUIC_SLOT(ciuic_batch_request, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_batch_request, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_batch_request, seed, 8, uint64_t);
CIUIC_SLOT(ciuic_batch_request, epoch, 16, uint64_t);
CIUIC_SLOT(ciuic_batch_request, step, 24, uint64_t);
CIUIC_SLOT(ciuic_batch_request, consumed_samples, 32, uint64_t);
CIUIC_SLOT(ciuic_batch_request, consumed_tokens, 40, uint64_t);
CIUIC_SLOT(ciuic_batch_request, attempt, 48, uint32_t);
CIUIC_SLOT(ciuic_batch_request, world, 52, uint32_t);
CIUIC_SLOT(ciuic_batch_request, only_rank, 56, int32_t);
CIUIC_SLOT(ciuic_batch_request, row_tokens, 60, uint32_t);
CIUIC_SLOT(ciuic_batch_plan, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_batch_plan, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_batch_plan, items, 8, ciuic_array);
CIUIC_SLOT(ciuic_batch_plan, micro_batches, 24, uint32_t);
CIUIC_SLOT(ciuic_batch_plan, row_tokens, 28, uint32_t);
CIUIC_SLOT(ciuic_batch_plan, samples, 32, uint64_t);
CIUIC_SLOT(ciuic_batch_plan, tokens, 40, uint64_t);
CIUIC_SLOT(ciuic_rank_report, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_rank_report, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_rank_report, rank, 8, int32_t);
CIUIC_SLOT(ciuic_rank_report, micro_batches, 12, uint32_t);
CIUIC_SLOT(ciuic_rank_report, tokens, 16, uint64_t);
CIUIC_SLOT(ciuic_rank_report, memory_used, 24, uint64_t);
CIUIC_SLOT(ciuic_rank_report, memory_total, 32, uint64_t);
CIUIC_SLOT(ciuic_rank_report, seconds, 40, double);
CIUIC_SLOT(ciuic_batch_scheduler_vt, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_batch_scheduler_vt, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_batch_scheduler_vt, plan, 8,
           ciuic_status* (*)(ciuic_instance*, const ciuic_batch_request*, ciuic_batch_plan*));
CIUIC_SLOT(ciuic_batch_scheduler_vt, observe, 16,
           ciuic_status* (*)(ciuic_instance*, uint64_t, uint32_t, ciuic_array));
CIUIC_SLOT(ciuic_work, ops, 0, const struct ciuic_work_ops*);
CIUIC_SLOT(ciuic_work_ops, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_work_ops, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_work_ops, test, 8, ciuic_status* (*)(ciuic_work*, int32_t*));
CIUIC_SLOT(ciuic_work_ops, wait, 16, ciuic_status* (*)(ciuic_work*, int64_t));
CIUIC_SLOT(ciuic_work_ops, stream_wait, 24, ciuic_status* (*)(ciuic_work*, const ciuic_stream*));
CIUIC_SLOT(ciuic_work_ops, on_done, 32,
           ciuic_status* (*)(ciuic_work*, void (*)(void*, const ciuic_status*), void*));
CIUIC_SLOT(ciuic_work_ops, retain, 40, void (*)(ciuic_work*));
CIUIC_SLOT(ciuic_work_ops, release, 48, void (*)(ciuic_work*));
CIUIC_SLOT(ciuic_work_ops, votes, 56, ciuic_status* (*)(ciuic_work*, uint32_t*));
CIUIC_SLOT(ciuic_work_ops, times, 64, ciuic_status* (*)(ciuic_work*, uint64_t*, uint64_t*));
CIUIC_SLOT(ciuic_entry, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_entry, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_entry, key, 8, ciuic_str);
CIUIC_SLOT(ciuic_entry, dtype, 24, ciuic_dtype);
CIUIC_SLOT(ciuic_entry, ndim, 28, int32_t);
CIUIC_SLOT(ciuic_entry, global_shape, 32, const int64_t*);
CIUIC_SLOT(ciuic_entry, bytes, 40, uint64_t);
CIUIC_SLOT(ciuic_writer, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_writer, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_writer, ctx, 8, void*);
CIUIC_SLOT(ciuic_writer, blob, 16, ciuic_status* (*)(void*, ciuic_str, const void*, size_t));
CIUIC_SLOT(ciuic_writer, tensor, 24,
           ciuic_status* (*)(void*, ciuic_str, const ciuic_place*, const ciuic_tensor*,
                             const ciuic_stream*));
CIUIC_SLOT(ciuic_reader, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_reader, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_reader, ctx, 8, void*);
CIUIC_SLOT(ciuic_reader, plugin, 16, ciuic_str);
CIUIC_SLOT(ciuic_reader, schema, 32, uint64_t);
CIUIC_SLOT(ciuic_reader, list, 40, ciuic_status* (*)(void*, ciuic_array*));
CIUIC_SLOT(ciuic_reader, blob, 48, ciuic_status* (*)(void*, ciuic_str, const void**, size_t*));
CIUIC_SLOT(ciuic_reader, tensor, 56,
           ciuic_status* (*)(void*, ciuic_str, const ciuic_place*, const ciuic_tensor*,
                             const ciuic_stream*, ciuic_work**));
CIUIC_SLOT(ciuic_save_request, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_save_request, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_save_request, uri, 8, ciuic_str);
CIUIC_SLOT(ciuic_save_request, step, 24, uint64_t);
CIUIC_SLOT(ciuic_save_request, entries, 32, ciuic_array);
CIUIC_SLOT(ciuic_open_request, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_open_request, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_open_request, uri, 8, ciuic_str);
CIUIC_SLOT(ciuic_checkpoint_vt, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_checkpoint_vt, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_checkpoint_vt, begin, 8,
           ciuic_status* (*)(ciuic_instance*, const ciuic_save_request*, ciuic_archive**));
CIUIC_SLOT(ciuic_checkpoint_vt, put, 16,
           ciuic_status* (*)(ciuic_archive*, ciuic_str, const ciuic_place*, const ciuic_tensor*,
                             const ciuic_stream*, ciuic_work**));
CIUIC_SLOT(ciuic_checkpoint_vt, put_blob, 24,
           ciuic_status* (*)(ciuic_archive*, ciuic_str, const void*, size_t));
CIUIC_SLOT(ciuic_checkpoint_vt, commit, 32, ciuic_status* (*)(ciuic_archive*, ciuic_work**));
CIUIC_SLOT(ciuic_checkpoint_vt, close, 40, void (*)(ciuic_archive*));
CIUIC_SLOT(ciuic_checkpoint_vt, open, 48,
           ciuic_status* (*)(ciuic_instance*, const ciuic_open_request*, ciuic_archive**));
CIUIC_SLOT(ciuic_checkpoint_vt, list, 56, ciuic_status* (*)(ciuic_archive*, ciuic_array*));
CIUIC_SLOT(ciuic_checkpoint_vt, verify, 64, ciuic_status* (*)(ciuic_archive*, ciuic_str));
CIUIC_SLOT(ciuic_checkpoint_vt, get, 72,
           ciuic_status* (*)(ciuic_archive*, ciuic_str, const ciuic_place*, const ciuic_tensor*,
                             const ciuic_stream*, ciuic_work**));
CIUIC_SLOT(ciuic_checkpoint_vt, get_blob, 80,
           ciuic_status* (*)(ciuic_archive*, ciuic_str, const void**, size_t*));
CIUIC_SLOT(ciuic_checkpoint_vt, remove, 88, ciuic_status* (*)(ciuic_instance*, ciuic_str));
CIUIC_SLOT(ciuic_collective, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_collective, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_collective, op, 8, uint32_t);
CIUIC_SLOT(ciuic_collective, reduce, 12, uint32_t);
CIUIC_SLOT(ciuic_collective, tag, 16, uint32_t);
CIUIC_SLOT(ciuic_collective, vote, 20, uint32_t);
CIUIC_SLOT(ciuic_collective, peer, 24, int32_t);
CIUIC_SLOT(ciuic_collective, reserved, 28, uint32_t);
CIUIC_SLOT(ciuic_collective, sequence, 32, uint64_t);
CIUIC_SLOT(ciuic_collective, timeout_ns, 40, int64_t);
CIUIC_SLOT(ciuic_collective, factor, 48, double);
CIUIC_SLOT(ciuic_collective, in, 56, const ciuic_tensor*);
CIUIC_SLOT(ciuic_collective, out, 64, const ciuic_tensor*);
CIUIC_SLOT(ciuic_collective, in_counts, 72, const int64_t*);
CIUIC_SLOT(ciuic_collective, in_offsets, 80, const int64_t*);
CIUIC_SLOT(ciuic_collective, out_counts, 88, const int64_t*);
CIUIC_SLOT(ciuic_collective, out_offsets, 96, const int64_t*);
CIUIC_SLOT(ciuic_collective, label, 104, ciuic_str);
CIUIC_SLOT(ciuic_split, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_split, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_split, ranks, 8, const int32_t*);
CIUIC_SLOT(ciuic_split, count, 16, uint32_t);
CIUIC_SLOT(ciuic_split, reserved, 20, uint32_t);
CIUIC_SLOT(ciuic_split, name, 24, ciuic_str);
CIUIC_SLOT(ciuic_split, timeout_ns, 40, int64_t);
CIUIC_SLOT(ciuic_communicator_vt, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_communicator_vt, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_communicator_vt, capabilities, 8,
           ciuic_status* (*)(ciuic_instance*, uint32_t, uint32_t, ciuic_dtype, ciuic_device,
                             uint64_t*));
CIUIC_SLOT(ciuic_communicator_vt, submit, 16,
           ciuic_status* (*)(ciuic_instance*, ciuic_array, const ciuic_stream*, ciuic_work**));
CIUIC_SLOT(ciuic_communicator_vt, split, 24,
           ciuic_status* (*)(ciuic_instance*, const ciuic_split*, ciuic_instance**));
CIUIC_SLOT(ciuic_communicator_vt, health, 32, ciuic_status* (*)(ciuic_instance*));
CIUIC_SLOT(ciuic_communicator_vt, abort, 40, void (*)(ciuic_instance*, int32_t));
CIUIC_SLOT(ciuic_communicator_vt, memory_alloc, 48,
           ciuic_status* (*)(ciuic_instance*, ciuic_device, size_t, uint32_t, void**));
CIUIC_SLOT(ciuic_communicator_vt, memory_free, 56, void (*)(ciuic_instance*, void*, size_t));
CIUIC_SLOT(ciuic_communicator_vt, memory_register, 64,
           ciuic_status* (*)(ciuic_instance*, ciuic_device, void*, size_t, uint32_t));
CIUIC_SLOT(ciuic_communicator_vt, memory_unregister, 72, void (*)(ciuic_instance*, void*, size_t));
CIUIC_SLOT(ciuic_group, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_group, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_group, id, 8, uint32_t);
CIUIC_SLOT(ciuic_group, reserved, 12, uint32_t);
CIUIC_SLOT(ciuic_group, rank, 16, int32_t);
CIUIC_SLOT(ciuic_group, size, 20, int32_t);
CIUIC_SLOT(ciuic_group, ranks, 24, const int32_t*);
CIUIC_SLOT(ciuic_group, nodes, 32, const int32_t*);
CIUIC_SLOT(ciuic_group, name, 40, ciuic_str);
CIUIC_SLOT(ciuic_group, vt, 56, const ciuic_communicator_vt*);
CIUIC_SLOT(ciuic_group, self, 64, ciuic_instance*);
CIUIC_SLOT(ciuic_host, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_host, abi_minor, 4, uint32_t);
CIUIC_SLOT(ciuic_host, ctx, 8, void*);
CIUIC_SLOT(ciuic_host, status_new, 16,
           ciuic_status* (*)(void*, int32_t, uint32_t, int32_t, ciuic_str));
CIUIC_SLOT(ciuic_host, status_get, 24,
           int32_t (*)(void*, const ciuic_status*, uint32_t*, int32_t*, ciuic_str*));
CIUIC_SLOT(ciuic_host, status_free, 32, void (*)(void*, ciuic_status*));
CIUIC_SLOT(ciuic_host, log_enabled, 40, int32_t (*)(void*, int32_t));
CIUIC_SLOT(ciuic_host, log, 48, void (*)(void*, int32_t, ciuic_str, ciuic_array));
CIUIC_SLOT(ciuic_host, alloc, 56,
           void* (*)(void*, ciuic_device, size_t, size_t, const ciuic_stream*));
CIUIC_SLOT(ciuic_host, dealloc, 64,
           void (*)(void*, ciuic_device, void*, size_t, const ciuic_stream*));
CIUIC_SLOT(ciuic_host, service, 72, const void* (*)(void*, const char*, uint32_t));
CIUIC_SLOT(ciuic_note_header, layout, 0, uint32_t);
CIUIC_SLOT(ciuic_note_header, count, 4, uint32_t);
CIUIC_SLOT(ciuic_note_header, abi_major, 8, uint32_t);
CIUIC_SLOT(ciuic_note_header, abi_minor, 12, uint32_t);
CIUIC_SLOT(ciuic_note_header, sdk, 16, char[32]);
CIUIC_SLOT(ciuic_note_record, kind, 0, uint32_t);
CIUIC_SLOT(ciuic_note_record, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_note_record, state_schema, 8, uint32_t);
CIUIC_SLOT(ciuic_note_record, state_schema_min, 12, uint32_t);
CIUIC_SLOT(ciuic_note_record, name, 16, char[64]);
CIUIC_SLOT(ciuic_note_record, version, 80, char[32]);
CIUIC_SLOT(ciuic_note_record, features, 112, char[128]);
CIUIC_SLOT(ciuic_note_head, name_bytes, 0, uint32_t);
CIUIC_SLOT(ciuic_note_head, description_bytes, 4, uint32_t);
CIUIC_SLOT(ciuic_note_head, type, 8, uint32_t);
CIUIC_SLOT(ciuic_note_head, name, 12, char[8]);
CIUIC_SLOT(ciuic_note_of_one, head, 0, ciuic_note_head);
CIUIC_SLOT(ciuic_note_of_one, header, 20, ciuic_note_header);
CIUIC_SLOT(ciuic_note_of_one, record, 68, ciuic_note_record);
CIUIC_SLOT(ciuic_param, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_param, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_param, id, 8, uint64_t);
CIUIC_SLOT(ciuic_param, name, 16, ciuic_str);
CIUIC_SLOT(ciuic_param, unit, 32, uint32_t);
CIUIC_SLOT(ciuic_param, group, 36, uint32_t);
CIUIC_SLOT(ciuic_param, sum_group, 40, uint32_t);
CIUIC_SLOT(ciuic_param, tied_to, 44, int32_t);
CIUIC_SLOT(ciuic_param, value, 48, ciuic_dtype);
CIUIC_SLOT(ciuic_param, grad, 52, ciuic_dtype);
CIUIC_SLOT(ciuic_param, reduce, 56, ciuic_dtype);
CIUIC_SLOT(ciuic_param, master, 60, ciuic_dtype);
CIUIC_SLOT(ciuic_param, ndim, 64, int32_t);
CIUIC_SLOT(ciuic_param, reserved, 68, uint32_t);
CIUIC_SLOT(ciuic_param, shape, 72, const int64_t*);
CIUIC_SLOT(ciuic_param, global_shape, 80, const int64_t*);
CIUIC_SLOT(ciuic_param, offset, 88, const int64_t*);
CIUIC_SLOT(ciuic_param, num_elements, 96, int64_t);
CIUIC_SLOT(ciuic_param, granule, 104, int64_t);
CIUIC_SLOT(ciuic_param, weight_decay, 112, double);
CIUIC_SLOT(ciuic_param, lr_scale, 120, double);
CIUIC_SLOT(ciuic_state_spec, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_state_spec, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_state_spec, name, 8, ciuic_str);
CIUIC_SLOT(ciuic_state_spec, dtype, 24, ciuic_dtype);
CIUIC_SLOT(ciuic_state_spec, reserved, 28, uint32_t);
CIUIC_SLOT(ciuic_state_spec, granule, 32, int64_t);
CIUIC_SLOT(ciuic_state_spec, per_granule, 40, int64_t);
CIUIC_SLOT(ciuic_state_spec, initial, 48, double);
CIUIC_SLOT(ciuic_update, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_update, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_update, param, 8, const ciuic_param*);
CIUIC_SLOT(ciuic_update, begin, 16, int64_t);
CIUIC_SLOT(ciuic_update, num_elements, 24, int64_t);
CIUIC_SLOT(ciuic_update, update, 32, uint64_t);
CIUIC_SLOT(ciuic_update, seed, 40, uint64_t);
CIUIC_SLOT(ciuic_update, lr, 48, double);
CIUIC_SLOT(ciuic_update, weight_decay, 56, double);
CIUIC_SLOT(ciuic_update, grad_scale, 64, double);
CIUIC_SLOT(ciuic_update, grad, 72, const ciuic_tensor*);
CIUIC_SLOT(ciuic_update, master, 80, const ciuic_tensor*);
CIUIC_SLOT(ciuic_update, value, 88, const ciuic_tensor*);
CIUIC_SLOT(ciuic_update, state, 96, const ciuic_tensor* const*);
CIUIC_SLOT(ciuic_update, num_state, 104, uint32_t);
CIUIC_SLOT(ciuic_update, reserved, 108, uint32_t);
CIUIC_SLOT(ciuic_optimizer_vt, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_optimizer_vt, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_optimizer_vt, granule, 8,
           ciuic_status* (*)(ciuic_instance*, const ciuic_param*, int64_t*));
CIUIC_SLOT(ciuic_optimizer_vt, state_spec, 16,
           ciuic_status* (*)(ciuic_instance*, const ciuic_param*, ciuic_array*));
CIUIC_SLOT(ciuic_optimizer_vt, update, 24,
           ciuic_status* (*)(ciuic_instance*, ciuic_array, const ciuic_stream*));
CIUIC_SLOT(ciuic_option_spec, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_option_spec, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_option_spec, type, 8, uint32_t);
CIUIC_SLOT(ciuic_option_spec, since_minor, 12, uint32_t);
CIUIC_SLOT(ciuic_option_spec, key, 16, const char*);
CIUIC_SLOT(ciuic_option_spec, doc, 24, const char*);
CIUIC_SLOT(ciuic_option_spec, unit, 32, const char*);
CIUIC_SLOT(ciuic_option_spec, deprecated, 40, const char*);
CIUIC_SLOT(ciuic_option_spec, def, 48, ciuic_value);
CIUIC_SLOT(ciuic_option_spec, min, 64, ciuic_value);
CIUIC_SLOT(ciuic_option_spec, max, 80, ciuic_value);
CIUIC_SLOT(ciuic_option_spec, choices, 96, const char* const*);
CIUIC_SLOT(ciuic_option, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_option, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_option, type, 8, uint32_t);
CIUIC_SLOT(ciuic_option, toml_line, 12, uint32_t);
CIUIC_SLOT(ciuic_option, key, 16, ciuic_str);
CIUIC_SLOT(ciuic_option, value, 32, ciuic_value);
CIUIC_SLOT(ciuic_create_args, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_create_args, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_create_args, host, 8, const ciuic_host*);
CIUIC_SLOT(ciuic_create_args, options, 16, ciuic_array);
CIUIC_SLOT(ciuic_create_args, rank, 32, int32_t);
CIUIC_SLOT(ciuic_create_args, world, 36, int32_t);
CIUIC_SLOT(ciuic_create_args, local_rank, 40, int32_t);
CIUIC_SLOT(ciuic_create_args, local_world, 44, int32_t);
CIUIC_SLOT(ciuic_create_args, device, 48, ciuic_device);
CIUIC_SLOT(ciuic_create_args, name, 56, ciuic_str);
CIUIC_SLOT(ciuic_create_args, generation, 72, uint64_t);
CIUIC_SLOT(ciuic_create_args, output, 80, ciuic_str);
CIUIC_SLOT(ciuic_descriptor, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_descriptor, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_descriptor, abi_major, 8, uint32_t);
CIUIC_SLOT(ciuic_descriptor, abi_minor, 12, uint32_t);
CIUIC_SLOT(ciuic_descriptor, min_host_minor, 16, uint32_t);
CIUIC_SLOT(ciuic_descriptor, kind, 20, uint32_t);
CIUIC_SLOT(ciuic_descriptor, state_schema, 24, uint32_t);
CIUIC_SLOT(ciuic_descriptor, state_schema_min, 28, uint32_t);
CIUIC_SLOT(ciuic_descriptor, name, 32, const char*);
CIUIC_SLOT(ciuic_descriptor, version, 40, const char*);
CIUIC_SLOT(ciuic_descriptor, vendor, 48, const char*);
CIUIC_SLOT(ciuic_descriptor, license, 56, const char*);
CIUIC_SLOT(ciuic_descriptor, summary, 64, const char*);
CIUIC_SLOT(ciuic_descriptor, build, 72, const char*);
CIUIC_SLOT(ciuic_descriptor, features, 80, const char* const*);
CIUIC_SLOT(ciuic_descriptor, options, 88, ciuic_array);
CIUIC_SLOT(ciuic_descriptor, vt, 104, const void*);
CIUIC_SLOT(ciuic_descriptor, validate, 112, ciuic_status* (*)(const ciuic_create_args*));
CIUIC_SLOT(ciuic_descriptor, create, 120,
           ciuic_status* (*)(const ciuic_create_args*, ciuic_instance**));
CIUIC_SLOT(ciuic_descriptor, quiesce, 128, ciuic_status* (*)(ciuic_instance*, int64_t));
CIUIC_SLOT(ciuic_descriptor, resume, 136, ciuic_status* (*)(ciuic_instance*));
CIUIC_SLOT(ciuic_descriptor, set_option, 144,
           ciuic_status* (*)(ciuic_instance*, const ciuic_option*));
CIUIC_SLOT(ciuic_descriptor, state_save, 152,
           ciuic_status* (*)(ciuic_instance*, const ciuic_writer*));
CIUIC_SLOT(ciuic_descriptor, state_load, 160,
           ciuic_status* (*)(ciuic_instance*, const ciuic_reader*));
CIUIC_SLOT(ciuic_descriptor, destroy, 168, void (*)(ciuic_instance*));
CIUIC_SLOT(ciuic_module, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_module, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_module, id, 8, uint32_t);
CIUIC_SLOT(ciuic_module, reserved, 12, uint32_t);
CIUIC_SLOT(ciuic_module, name, 16, ciuic_str);
CIUIC_SLOT(ciuic_format, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_format, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_format, dtype, 8, ciuic_dtype);
CIUIC_SLOT(ciuic_format, scale_dtype, 12, ciuic_dtype);
CIUIC_SLOT(ciuic_format, block_rows, 16, int64_t);
CIUIC_SLOT(ciuic_format, block_cols, 24, int64_t);
CIUIC_SLOT(ciuic_format, elements, 32, int64_t);
CIUIC_SLOT(ciuic_format, scale_elements, 40, int64_t);
CIUIC_SLOT(ciuic_cast, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_cast, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_cast, module, 8, uint32_t);
CIUIC_SLOT(ciuic_cast, pass, 12, uint32_t);
CIUIC_SLOT(ciuic_cast, role, 16, uint32_t);
CIUIC_SLOT(ciuic_cast, reserved, 20, uint32_t);
CIUIC_SLOT(ciuic_cast, in, 24, const ciuic_tensor*);
CIUIC_SLOT(ciuic_cast, out, 32, const ciuic_tensor*);
CIUIC_SLOT(ciuic_cast, scale, 40, const ciuic_tensor*);
CIUIC_SLOT(ciuic_gemm, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_gemm, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_gemm, module, 8, uint32_t);
CIUIC_SLOT(ciuic_gemm, pass, 12, uint32_t);
CIUIC_SLOT(ciuic_gemm, alpha, 16, double);
CIUIC_SLOT(ciuic_gemm, beta, 24, double);
CIUIC_SLOT(ciuic_gemm, a, 32, const ciuic_tensor*);
CIUIC_SLOT(ciuic_gemm, b, 40, const ciuic_tensor*);
CIUIC_SLOT(ciuic_gemm, out, 48, const ciuic_tensor*);
CIUIC_SLOT(ciuic_gemm, a_scale, 56, const ciuic_tensor*);
CIUIC_SLOT(ciuic_gemm, b_scale, 64, const ciuic_tensor*);
CIUIC_SLOT(ciuic_gemm, group_ends, 72, const ciuic_tensor*);
CIUIC_SLOT(ciuic_gemm, b_version, 80, uint64_t);
CIUIC_SLOT(ciuic_precision_update, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_precision_update, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_precision_update, step, 8, uint64_t);
CIUIC_SLOT(ciuic_precision_update, update, 16, uint64_t);
CIUIC_SLOT(ciuic_precision_update, non_finite, 24, uint64_t);
CIUIC_SLOT(ciuic_precision_update, grad_norm, 32, double);
CIUIC_SLOT(ciuic_precision_vt, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_precision_vt, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_precision_vt, dtype_for, 8,
           ciuic_status* (*)(ciuic_instance*, ciuic_str, uint32_t, ciuic_dtype*));
CIUIC_SLOT(ciuic_precision_vt, attach, 16, ciuic_status* (*)(ciuic_instance*, ciuic_array));
CIUIC_SLOT(ciuic_precision_vt, hooks, 24, uint32_t (*)(ciuic_instance*, uint32_t, ciuic_device));
CIUIC_SLOT(ciuic_precision_vt, loss_scale, 32, double (*)(ciuic_instance*));
CIUIC_SLOT(ciuic_precision_vt, update, 40,
           ciuic_status* (*)(ciuic_instance*, const ciuic_precision_update*));
CIUIC_SLOT(ciuic_precision_vt, format, 48,
           ciuic_status* (*)(ciuic_instance*, const ciuic_cast*, ciuic_format*));
CIUIC_SLOT(ciuic_precision_vt, cast, 56,
           ciuic_status* (*)(ciuic_instance*, const ciuic_cast*, const ciuic_stream*));
CIUIC_SLOT(ciuic_precision_vt, gemm, 64,
           ciuic_status* (*)(ciuic_instance*, const ciuic_gemm*, const ciuic_stream*));
CIUIC_SLOT(ciuic_event, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_event, type, 4, uint32_t);
CIUIC_SLOT(ciuic_event, category, 8, uint32_t);
CIUIC_SLOT(ciuic_event, thread, 12, uint32_t);
CIUIC_SLOT(ciuic_event, id, 16, uint64_t);
CIUIC_SLOT(ciuic_event, parent, 24, uint64_t);
CIUIC_SLOT(ciuic_event, time_ns, 32, uint64_t);
CIUIC_SLOT(ciuic_event, a, 40, uint64_t);
CIUIC_SLOT(ciuic_event, b, 48, uint64_t);
CIUIC_SLOT(ciuic_event, value, 56, double);
CIUIC_SLOT(ciuic_event, name, 64, ciuic_str);
CIUIC_SLOT(ciuic_event, fields, 80, ciuic_array);
CIUIC_SLOT(ciuic_profiler_vt, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_profiler_vt, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_profiler_vt, mask, 8, uint64_t (*)(ciuic_instance*));
CIUIC_SLOT(ciuic_profiler_vt, emit, 16, void (*)(ciuic_instance*, ciuic_array));
CIUIC_SLOT(ciuic_profiler_vt, flush, 24, ciuic_status* (*)(ciuic_instance*, int64_t));
CIUIC_SLOT(ciuic_comm_service, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_comm_service, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_comm_service, ctx, 8, void*);
CIUIC_SLOT(ciuic_comm_service, find, 16, ciuic_status* (*)(void*, ciuic_str, const ciuic_group**));
CIUIC_SLOT(ciuic_comm_service, by_id, 24, ciuic_status* (*)(void*, uint32_t, const ciuic_group**));
CIUIC_SLOT(ciuic_comm_service, split, 32,
           ciuic_status* (*)(void*, uint32_t, const ciuic_split*, const ciuic_group**));
CIUIC_SLOT(ciuic_kind_service, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_kind_service, kind, 4, uint32_t);
CIUIC_SLOT(ciuic_kind_service, vt, 8, const void*);
CIUIC_SLOT(ciuic_kind_service, self, 16, ciuic_instance*);
CIUIC_SLOT(ciuic_tensor_service, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_tensor_service, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_tensor_service, ctx, 8, void*);
CIUIC_SLOT(ciuic_tensor_service, fill, 16,
           ciuic_status* (*)(void*, const ciuic_tensor*, double, const ciuic_stream*));
CIUIC_SLOT(ciuic_tensor_service, copy, 24,
           ciuic_status* (*)(void*, const ciuic_tensor*, const ciuic_tensor*, const ciuic_stream*));
CIUIC_SLOT(ciuic_tensor_service, add, 32,
           ciuic_status* (*)(void*, double, const ciuic_tensor*, double, const ciuic_tensor*,
                             const ciuic_stream*));
CIUIC_SLOT(ciuic_tensor_service, stats, 40,
           ciuic_status* (*)(void*, const ciuic_tensor*, const ciuic_tensor*, const ciuic_stream*));
CIUIC_SLOT(ciuic_tensor_service, gemm, 48,
           ciuic_status* (*)(void*, const ciuic_gemm*, const ciuic_stream*));
CIUIC_SLOT(ciuic_stream_service, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_stream_service, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_stream_service, ctx, 8, void*);
CIUIC_SLOT(ciuic_stream_service, open, 16,
           ciuic_status* (*)(void*, ciuic_device, int32_t, const ciuic_stream**));
CIUIC_SLOT(ciuic_stream_service, close, 24, void (*)(void*, const ciuic_stream*));
CIUIC_SLOT(ciuic_stream_service, record, 32,
           ciuic_status* (*)(void*, const ciuic_stream*, ciuic_work**));
CIUIC_SLOT(ciuic_thread_service, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_thread_service, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_thread_service, ctx, 8, void*);
CIUIC_SLOT(ciuic_thread_service, count, 16, uint32_t (*)(void*));
CIUIC_SLOT(ciuic_thread_service, parallel, 24,
           ciuic_status* (*)(void*, int64_t, int64_t, void (*)(void*, int64_t, int64_t), void*));
CIUIC_SLOT(ciuic_thread_service, run, 32,
           ciuic_status* (*)(void*, ciuic_status* (*)(void*), void*, ciuic_work**));
CIUIC_SLOT(ciuic_thread_service, start, 40,
           ciuic_status* (*)(void*, ciuic_str, ciuic_status* (*)(void*), void*, ciuic_work**));
CIUIC_SLOT(ciuic_thread_service, all, 48, ciuic_status* (*)(void*, ciuic_array, ciuic_work**));
CIUIC_SLOT(ciuic_thread_service, promise, 56, ciuic_status* (*)(void*, ciuic_work**));
CIUIC_SLOT(ciuic_thread_service, fulfil, 64, void (*)(void*, ciuic_work*, ciuic_status*));
CIUIC_SLOT(ciuic_kv_service, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_kv_service, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_kv_service, ctx, 8, void*);
CIUIC_SLOT(ciuic_kv_service, set, 16, ciuic_status* (*)(void*, ciuic_str, ciuic_str));
CIUIC_SLOT(ciuic_kv_service, get, 24, ciuic_status* (*)(void*, ciuic_str, int64_t, void*, size_t*));
CIUIC_SLOT(ciuic_kv_service, add, 32, ciuic_status* (*)(void*, ciuic_str, int64_t, int64_t*));
CIUIC_SLOT(ciuic_kv_service, remove, 40, ciuic_status* (*)(void*, ciuic_str));
CIUIC_SLOT(ciuic_io_service, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_io_service, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_io_service, ctx, 8, void*);
CIUIC_SLOT(ciuic_io_service, open, 16, ciuic_status* (*)(void*, ciuic_str, uint32_t, ciuic_file**));
CIUIC_SLOT(ciuic_io_service, read, 24,
           ciuic_status* (*)(void*, ciuic_file*, uint64_t, void*, size_t));
CIUIC_SLOT(ciuic_io_service, write, 32,
           ciuic_status* (*)(void*, ciuic_file*, uint64_t, const void*, size_t));
CIUIC_SLOT(ciuic_io_service, size, 40, ciuic_status* (*)(void*, ciuic_file*, uint64_t*));
CIUIC_SLOT(ciuic_io_service, sync, 48, ciuic_status* (*)(void*, ciuic_file*));
CIUIC_SLOT(ciuic_io_service, close, 56, void (*)(void*, ciuic_file*));
CIUIC_SLOT(ciuic_io_service, rename, 64, ciuic_status* (*)(void*, ciuic_str, ciuic_str));
CIUIC_SLOT(ciuic_io_service, remove, 72, ciuic_status* (*)(void*, ciuic_str, uint32_t));
CIUIC_SLOT(ciuic_io_service, make_directory, 80, ciuic_status* (*)(void*, ciuic_str));
CIUIC_SLOT(ciuic_io_service, sync_directory, 88, ciuic_status* (*)(void*, ciuic_str));
CIUIC_SLOT(ciuic_io_service, list, 96,
           ciuic_status* (*)(void*, ciuic_str, void (*)(void*, ciuic_str, uint64_t), void*));
CIUIC_SLOT(ciuic_io_service, space, 104, ciuic_status* (*)(void*, ciuic_str, uint64_t*));
CIUIC_SLOT(ciuic_data_service, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_data_service, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_data_service, ctx, 8, void*);
CIUIC_SLOT(ciuic_data_service, samples, 16, uint64_t (*)(void*));
CIUIC_SLOT(ciuic_data_service, lengths, 24,
           ciuic_status* (*)(void*, uint64_t, uint64_t, uint64_t*));
CIUIC_SLOT(ciuic_metrics_service, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_metrics_service, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_metrics_service, ctx, 8, void*);
CIUIC_SLOT(ciuic_metrics_service, mask, 16, uint64_t (*)(void*));
CIUIC_SLOT(ciuic_metrics_service, intern, 24, ciuic_str (*)(void*, ciuic_str));
CIUIC_SLOT(ciuic_metrics_service, new_ids, 32, uint64_t (*)(void*, uint32_t));
CIUIC_SLOT(ciuic_metrics_service, emit, 40, void (*)(void*, ciuic_array));
CIUIC_SLOT(ciuic_metrics_service, set, 48, void (*)(void*, ciuic_str, ciuic_str, double));
CIUIC_SLOT(ciuic_use, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_use, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_use, index, 8, uint32_t);
CIUIC_SLOT(ciuic_use, unit, 12, uint32_t);
CIUIC_SLOT(ciuic_use, pass, 16, uint32_t);
CIUIC_SLOT(ciuic_use, micro_batch, 20, uint32_t);
CIUIC_SLOT(ciuic_step, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_step, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_step, step, 8, uint64_t);
CIUIC_SLOT(ciuic_step, attempt, 16, uint32_t);
CIUIC_SLOT(ciuic_step, micro_batches, 20, uint32_t);
CIUIC_SLOT(ciuic_step, first_slot, 24, uint32_t);
CIUIC_SLOT(ciuic_step, num_slots, 28, uint32_t);
CIUIC_SLOT(ciuic_step, uses, 32, ciuic_array);
CIUIC_SLOT(ciuic_binding, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_binding, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_binding, param, 8, uint64_t);
CIUIC_SLOT(ciuic_binding, value, 16, const ciuic_tensor*);
CIUIC_SLOT(ciuic_binding, grad, 24, const ciuic_tensor*);
CIUIC_SLOT(ciuic_extent, param, 0, uint64_t);
CIUIC_SLOT(ciuic_extent, begin, 8, int64_t);
CIUIC_SLOT(ciuic_extent, end, 16, int64_t);
CIUIC_SLOT(ciuic_extent, owner, 24, int32_t);
CIUIC_SLOT(ciuic_extent, role, 28, uint32_t);
CIUIC_SLOT(ciuic_extent, dtype, 32, ciuic_dtype);
CIUIC_SLOT(ciuic_extent, flags, 36, uint32_t);
CIUIC_SLOT(ciuic_shard_plan, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_shard_plan, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_shard_plan, params, 8, ciuic_array);
CIUIC_SLOT(ciuic_shard_plan, groups, 24, ciuic_array);
CIUIC_SLOT(ciuic_shard_plan, rank, 40, int32_t);
CIUIC_SLOT(ciuic_shard_plan, world, 44, int32_t);
CIUIC_SLOT(ciuic_grad_request, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_grad_request, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_grad_request, grad_scale, 8, double);
CIUIC_SLOT(ciuic_grad_request, norm, 16, uint32_t);
CIUIC_SLOT(ciuic_grad_request, num_params, 20, uint32_t);
CIUIC_SLOT(ciuic_grad_request, params, 24, const int64_t*);
CIUIC_SLOT(ciuic_grad_stats, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_grad_stats, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_grad_stats, norm, 8, double);
CIUIC_SLOT(ciuic_grad_stats, non_finite, 16, uint64_t);
CIUIC_SLOT(ciuic_grad_stats, first_bad_param, 24, uint64_t);
CIUIC_SLOT(ciuic_grad_stats, first_bad_rank, 32, int32_t);
CIUIC_SLOT(ciuic_grad_stats, reserved, 36, uint32_t);
CIUIC_SLOT(ciuic_step_update, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_step_update, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_step_update, update, 8, uint64_t);
CIUIC_SLOT(ciuic_step_update, seed, 16, uint64_t);
CIUIC_SLOT(ciuic_step_update, lr, 24, double);
CIUIC_SLOT(ciuic_step_update, weight_decay_scale, 32, double);
CIUIC_SLOT(ciuic_step_update, grad_scale, 40, double);
CIUIC_SLOT(ciuic_sharding_vt, struct_size, 0, uint32_t);
CIUIC_SLOT(ciuic_sharding_vt, flags, 4, uint32_t);
CIUIC_SLOT(ciuic_sharding_vt, plan, 8,
           ciuic_status* (*)(ciuic_instance*, const ciuic_shard_plan*, ciuic_array*));
CIUIC_SLOT(ciuic_sharding_vt, setup, 16,
           ciuic_status* (*)(ciuic_instance*, const ciuic_shard_plan*));
CIUIC_SLOT(ciuic_sharding_vt, begin_step, 24,
           ciuic_status* (*)(ciuic_instance*, const ciuic_step*));
CIUIC_SLOT(ciuic_sharding_vt, bind, 32,
           ciuic_status* (*)(ciuic_instance*, const ciuic_use*, const ciuic_stream*, ciuic_array*,
                             ciuic_work**));
CIUIC_SLOT(ciuic_sharding_vt, drop, 40,
           ciuic_status* (*)(ciuic_instance*, const ciuic_use*, const ciuic_stream*));
CIUIC_SLOT(ciuic_sharding_vt, grad_ready, 48,
           ciuic_status* (*)(ciuic_instance*, const ciuic_use*, const ciuic_stream*));
CIUIC_SLOT(ciuic_sharding_vt, end_backward, 56,
           ciuic_status* (*)(ciuic_instance*, const ciuic_stream*));
CIUIC_SLOT(ciuic_sharding_vt, grad_stats, 64,
           ciuic_status* (*)(ciuic_instance*, const ciuic_grad_request*, const ciuic_stream*,
                             ciuic_grad_stats*));
CIUIC_SLOT(ciuic_sharding_vt, step, 72,
           ciuic_status* (*)(ciuic_instance*, const ciuic_step_update*, const ciuic_stream*,
                             ciuic_work**));
CIUIC_SLOT(ciuic_sharding_vt, rollback, 80, ciuic_status* (*)(ciuic_instance*, int64_t));
CIUIC_SLOT(ciuic_sharding_vt, export_roles, 88,
           ciuic_status* (*)(ciuic_instance*, uint32_t, const ciuic_writer*));

CIUIC_SIZE(ciuic_str, ==, 16);
CIUIC_SIZE(ciuic_array, ==, 16);
CIUIC_SIZE(ciuic_device, ==, 8);
CIUIC_SIZE(ciuic_dtype, ==, 4);
CIUIC_SIZE(ciuic_dl, ==, 48);
CIUIC_SIZE(ciuic_tensor, >=, 72);
CIUIC_SIZE(ciuic_stream, >=, 24);
CIUIC_SIZE(ciuic_value, ==, 16);
CIUIC_SIZE(ciuic_field, ==, 40);
CIUIC_SIZE(ciuic_place, >=, 48);
CIUIC_SIZE(ciuic_batch_item, ==, 40);
CIUIC_SIZE(ciuic_batch_request, >=, 64);
CIUIC_SIZE(ciuic_batch_plan, >=, 48);
CIUIC_SIZE(ciuic_rank_report, >=, 48);
CIUIC_SIZE(ciuic_batch_scheduler_vt, >=, 24);
CIUIC_SIZE(ciuic_work, ==, 8);
CIUIC_SIZE(ciuic_work_ops, >=, 72);
CIUIC_SIZE(ciuic_entry, >=, 48);
CIUIC_SIZE(ciuic_writer, >=, 32);
CIUIC_SIZE(ciuic_reader, >=, 64);
CIUIC_SIZE(ciuic_save_request, >=, 48);
CIUIC_SIZE(ciuic_open_request, >=, 24);
CIUIC_SIZE(ciuic_checkpoint_vt, >=, 96);
CIUIC_SIZE(ciuic_collective, >=, 120);
CIUIC_SIZE(ciuic_split, >=, 48);
CIUIC_SIZE(ciuic_communicator_vt, >=, 80);
CIUIC_SIZE(ciuic_group, >=, 72);
CIUIC_SIZE(ciuic_host, >=, 80);
CIUIC_SIZE(ciuic_note_header, ==, 48);
CIUIC_SIZE(ciuic_note_record, ==, 240);
CIUIC_SIZE(ciuic_note_head, ==, 20);
CIUIC_SIZE(ciuic_note_of_one, >=, 308);
CIUIC_SIZE(ciuic_param, >=, 128);
CIUIC_SIZE(ciuic_state_spec, >=, 56);
CIUIC_SIZE(ciuic_update, >=, 112);
CIUIC_SIZE(ciuic_optimizer_vt, >=, 32);
CIUIC_SIZE(ciuic_option_spec, >=, 104);
CIUIC_SIZE(ciuic_option, >=, 48);
CIUIC_SIZE(ciuic_create_args, >=, 96);
CIUIC_SIZE(ciuic_descriptor, >=, 176);
CIUIC_SIZE(ciuic_module, >=, 32);
CIUIC_SIZE(ciuic_format, >=, 48);
CIUIC_SIZE(ciuic_cast, >=, 48);
CIUIC_SIZE(ciuic_gemm, >=, 88);
CIUIC_SIZE(ciuic_precision_update, >=, 40);
CIUIC_SIZE(ciuic_precision_vt, >=, 72);
CIUIC_SIZE(ciuic_event, >=, 96);
CIUIC_SIZE(ciuic_profiler_vt, >=, 32);
CIUIC_SIZE(ciuic_comm_service, >=, 40);
CIUIC_SIZE(ciuic_kind_service, >=, 24);
CIUIC_SIZE(ciuic_tensor_service, >=, 56);
CIUIC_SIZE(ciuic_stream_service, >=, 40);
CIUIC_SIZE(ciuic_thread_service, >=, 72);
CIUIC_SIZE(ciuic_kv_service, >=, 48);
CIUIC_SIZE(ciuic_io_service, >=, 112);
CIUIC_SIZE(ciuic_data_service, >=, 32);
CIUIC_SIZE(ciuic_metrics_service, >=, 56);
CIUIC_SIZE(ciuic_use, >=, 24);
CIUIC_SIZE(ciuic_step, >=, 48);
CIUIC_SIZE(ciuic_binding, >=, 32);
CIUIC_SIZE(ciuic_extent, ==, 40);
CIUIC_SIZE(ciuic_shard_plan, >=, 48);
CIUIC_SIZE(ciuic_grad_request, >=, 32);
CIUIC_SIZE(ciuic_grad_stats, >=, 40);
CIUIC_SIZE(ciuic_step_update, >=, 48);
CIUIC_SIZE(ciuic_sharding_vt, >=, 96);

CIUIC_VALUE(CIUIC_OK, 0);
CIUIC_VALUE(CIUIC_CANCELLED, 1);
CIUIC_VALUE(CIUIC_INVALID, 3);
CIUIC_VALUE(CIUIC_DEADLINE, 4);
CIUIC_VALUE(CIUIC_NOT_FOUND, 5);
CIUIC_VALUE(CIUIC_EXISTS, 6);
CIUIC_VALUE(CIUIC_PERMISSION, 7);
CIUIC_VALUE(CIUIC_EXHAUSTED, 8);
CIUIC_VALUE(CIUIC_PRECONDITION, 9);
CIUIC_VALUE(CIUIC_ABORTED, 10);
CIUIC_VALUE(CIUIC_UNIMPLEMENTED, 12);
CIUIC_VALUE(CIUIC_INTERNAL, 13);
CIUIC_VALUE(CIUIC_UNAVAILABLE, 14);
CIUIC_VALUE(CIUIC_DATA_LOSS, 15);
CIUIC_VALUE(CIUIC_STATUS_RETRYABLE, 1);
CIUIC_VALUE(CIUIC_STATUS_FATAL, 2);
CIUIC_VALUE(CIUIC_KIND_COMMUNICATOR, 1);
CIUIC_VALUE(CIUIC_KIND_SHARDING, 2);
CIUIC_VALUE(CIUIC_KIND_PRECISION, 3);
CIUIC_VALUE(CIUIC_KIND_BATCH_SCHEDULER, 4);
CIUIC_VALUE(CIUIC_KIND_CHECKPOINT, 5);
CIUIC_VALUE(CIUIC_KIND_PROFILER, 6);
CIUIC_VALUE(CIUIC_KIND_OPTIMIZER, 7);
CIUIC_VALUE(CIUIC_TYPE_BOOL, 1);
CIUIC_VALUE(CIUIC_TYPE_I64, 2);
CIUIC_VALUE(CIUIC_TYPE_F64, 3);
CIUIC_VALUE(CIUIC_TYPE_STRING, 4);
CIUIC_VALUE(CIUIC_TYPE_ENUM, 5);
CIUIC_VALUE(CIUIC_TYPE_SIZE, 6);
CIUIC_VALUE(CIUIC_TYPE_DURATION, 7);
CIUIC_VALUE(CIUIC_TYPE_LIST_I64, 8);
CIUIC_VALUE(CIUIC_TYPE_LIST_STRING, 9);
CIUIC_VALUE(CIUIC_TYPE_COUNT, 10);
CIUIC_VALUE(CIUIC_TYPE_LIST_F64, 11);
CIUIC_VALUE(CIUIC_LOG_TRACE, 0);
CIUIC_VALUE(CIUIC_LOG_DEBUG, 1);
CIUIC_VALUE(CIUIC_LOG_INFO, 2);
CIUIC_VALUE(CIUIC_LOG_WARN, 3);
CIUIC_VALUE(CIUIC_LOG_ERROR, 4);
CIUIC_VALUE(CIUIC_ROLE_VALUE, 1);
CIUIC_VALUE(CIUIC_ROLE_GRAD, 2);
CIUIC_VALUE(CIUIC_ROLE_REDUCE, 3);
CIUIC_VALUE(CIUIC_ROLE_MASTER, 4);
CIUIC_VALUE(CIUIC_ROLE_MOMENT, 5);
CIUIC_VALUE(CIUIC_ROLE_COMPUTE, 6);
CIUIC_VALUE(CIUIC_ROLE_ACTIVATION, 7);
CIUIC_VALUE(CIUIC_ROLE_ACTIVATION_GRAD, 8);
CIUIC_VALUE(CIUIC_DEVICE_CPU, 1);
CIUIC_VALUE(CIUIC_DEVICE_CUDA, 2);
CIUIC_VALUE(CIUIC_DEVICE_CUDA_HOST, 3);
CIUIC_VALUE(CIUIC_DTYPE_INT, 0);
CIUIC_VALUE(CIUIC_DTYPE_UINT, 1);
CIUIC_VALUE(CIUIC_DTYPE_FLOAT, 2);
CIUIC_VALUE(CIUIC_DTYPE_BFLOAT, 4);
CIUIC_VALUE(CIUIC_DTYPE_BOOL, 6);
CIUIC_VALUE(CIUIC_DTYPE_FLOAT8_E4M3FN, 10);
CIUIC_VALUE(CIUIC_DTYPE_FLOAT8_E5M2, 12);
CIUIC_VALUE(CIUIC_TENSOR_READ_ONLY, 1);
CIUIC_VALUE(CIUIC_TENSOR_STABLE, 2);
CIUIC_VALUE(CIUIC_BATCH_EPOCH_END, 1);
CIUIC_VALUE(CIUIC_REPORT_OOM, 1);
CIUIC_VALUE(CIUIC_ENTRY_BLOB, 1);
CIUIC_VALUE(CIUIC_OP_ALL_REDUCE, 1);
CIUIC_VALUE(CIUIC_OP_REDUCE, 2);
CIUIC_VALUE(CIUIC_OP_REDUCE_SCATTER, 3);
CIUIC_VALUE(CIUIC_OP_ALL_GATHER, 4);
CIUIC_VALUE(CIUIC_OP_BROADCAST, 5);
CIUIC_VALUE(CIUIC_OP_GATHER, 6);
CIUIC_VALUE(CIUIC_OP_SCATTER, 7);
CIUIC_VALUE(CIUIC_OP_ALL_TO_ALL, 8);
CIUIC_VALUE(CIUIC_OP_SEND, 9);
CIUIC_VALUE(CIUIC_OP_RECV, 10);
CIUIC_VALUE(CIUIC_OP_BARRIER, 11);
CIUIC_VALUE(CIUIC_REDUCE_SUM, 1);
CIUIC_VALUE(CIUIC_REDUCE_AVG, 2);
CIUIC_VALUE(CIUIC_REDUCE_MIN, 3);
CIUIC_VALUE(CIUIC_REDUCE_MAX, 4);
CIUIC_VALUE(CIUIC_REDUCE_PROD, 5);
CIUIC_VALUE(CIUIC_REDUCE_OR, 6);
CIUIC_VALUE(CIUIC_REDUCE_AND, 7);
CIUIC_VALUE(CIUIC_COMM_SUPPORTED, 1);
CIUIC_VALUE(CIUIC_COMM_ASYNC, 2);
CIUIC_VALUE(CIUIC_COMM_STREAM, 4);
CIUIC_VALUE(CIUIC_COMM_DETERMINISTIC, 8);
CIUIC_VALUE(CIUIC_COMM_TREE, 16);
CIUIC_VALUE(CIUIC_COMM_UNEVEN, 32);
CIUIC_VALUE(CIUIC_COMM_FACTOR, 64);
CIUIC_VALUE(CIUIC_COMM_VOTE, 128);
CIUIC_VALUE(CIUIC_COMM_WIDE, 256);
CIUIC_VALUE(CIUIC_COLLECTIVE_TREE, 1);
CIUIC_VALUE(CIUIC_COLLECTIVE_WIDE, 2);
CIUIC_VALUE(CIUIC_MEMORY_COLLECTIVE, 1);
CIUIC_VALUE(CIUIC_PARAM_EXPERT, 1);
CIUIC_VALUE(CIUIC_PARAM_FROZEN, 2);
CIUIC_VALUE(CIUIC_PARAM_REPLICATED, 4);
CIUIC_VALUE(CIUIC_PARAM_IN_NORM, 8);
CIUIC_VALUE(CIUIC_FLAG_RELOADABLE, 1);
CIUIC_VALUE(CIUIC_FLAG_NEVER_UNLOAD, 2);
CIUIC_VALUE(CIUIC_FLAG_DETERMINISTIC, 4);
CIUIC_VALUE(CIUIC_FLAG_OWN_THREADS, 8);
CIUIC_VALUE(CIUIC_OPTION_REQUIRED, 1);
CIUIC_VALUE(CIUIC_OPTION_LIVE, 2);
CIUIC_VALUE(CIUIC_OPTION_SECRET, 4);
CIUIC_VALUE(CIUIC_OPTION_AFFECTS_NUMERICS, 8);
CIUIC_VALUE(CIUIC_OPTION_ALL_RANKS_EQUAL, 16);
CIUIC_VALUE(CIUIC_OPTION_PARAMETER_NAMES, 32);
CIUIC_VALUE(CIUIC_GEMM_FORWARD, 1);
CIUIC_VALUE(CIUIC_GEMM_GRAD_INPUT, 2);
CIUIC_VALUE(CIUIC_GEMM_GRAD_WEIGHT, 3);
CIUIC_VALUE(CIUIC_GEMM_TRANS_A, 1);
CIUIC_VALUE(CIUIC_GEMM_TRANS_B, 2);
CIUIC_VALUE(CIUIC_EVENT_BEGIN, 1);
CIUIC_VALUE(CIUIC_EVENT_END, 2);
CIUIC_VALUE(CIUIC_EVENT_INSTANT, 3);
CIUIC_VALUE(CIUIC_EVENT_COUNTER, 4);
CIUIC_VALUE(CIUIC_EVENT_STEP, 5);
CIUIC_VALUE(CIUIC_CATEGORY_STEP, 1);
CIUIC_VALUE(CIUIC_CATEGORY_DATA, 2);
CIUIC_VALUE(CIUIC_CATEGORY_FORWARD, 3);
CIUIC_VALUE(CIUIC_CATEGORY_BACKWARD, 4);
CIUIC_VALUE(CIUIC_CATEGORY_OPTIMIZER, 5);
CIUIC_VALUE(CIUIC_CATEGORY_COMMUNICATION, 6);
CIUIC_VALUE(CIUIC_CATEGORY_CHECKPOINT, 7);
CIUIC_VALUE(CIUIC_CATEGORY_MEMORY, 8);
CIUIC_VALUE(CIUIC_CATEGORY_PLUGIN, 9);
CIUIC_VALUE(CIUIC_CATEGORY_ERROR, 10);
CIUIC_VALUE(CIUIC_IO_READ, 1);
CIUIC_VALUE(CIUIC_IO_CREATE, 2);
CIUIC_VALUE(CIUIC_IO_DIRECT, 4);
CIUIC_VALUE(CIUIC_PASS_FORWARD, 1);
CIUIC_VALUE(CIUIC_PASS_RECOMPUTE, 2);
CIUIC_VALUE(CIUIC_PASS_BACKWARD, 3);
CIUIC_VALUE(CIUIC_PASS_BACKWARD_INPUT, 4);
CIUIC_VALUE(CIUIC_PASS_BACKWARD_WEIGHT, 5);
CIUIC_VALUE(CIUIC_USE_LAST_GRAD, 1);
CIUIC_VALUE(CIUIC_USE_IDLE, 2);
CIUIC_VALUE(CIUIC_STEP_EVALUATE, 1);
CIUIC_VALUE(CIUIC_STEP_ANY_WORLD, 2);
CIUIC_VALUE(CIUIC_BINDING_OVERWRITE, 1);
CIUIC_VALUE(CIUIC_UPDATE_SKIP, 1);
CIUIC_VALUE(CIUIC_EXTENT_HOST, 1);
CIUIC_VALUE(CIUIC_PLAN_OWN, 1);
CIUIC_VALUE(CIUIC_NORM_L2, 1);
CIUIC_VALUE(CIUIC_NORM_L1, 2);
CIUIC_VALUE(CIUIC_NORM_MAX, 3);
CIUIC_VALUE(CIUIC_NOTE_TYPE, 1);
CIUIC_VALUE(CIUIC_NOTE_LAYOUT, 1);

#undef CIUIC_SLOT
#undef CIUIC_SIZE
#undef CIUIC_VALUE
