// SPDX-License-Identifier: MIT
//
// The tests of checkpoint plugins; checkpoint_tests.cpp says what each proves.
#pragma once

#include <ciuic/testing/conformance.hpp>

namespace ciuic::testing::checkpoint {

inline constexpr const char* kFolder = "/runs/a";
inline constexpr const char* kUri = "/runs/a/step-00000002";
inline constexpr const char* kOldUri = "/runs/a/step-00000001";

// round_trip.cpp
void round_trip_model(const TestContext& context);
void round_trip_training(const TestContext& context);
void round_trip_dtypes(const TestContext& context);
void round_trip_shapes(const TestContext& context);
void round_trip_strided(const TestContext& context);
void round_trip_keys(const TestContext& context);
void round_trip_blobs(const TestContext& context);
void round_trip_many(const TestContext& context);
void round_trip_disk(const TestContext& context);

// reading.cpp
void list_is_complete(const TestContext& context);
void get_ranges(const TestContext& context);
void get_boxes(const TestContext& context);
void get_mismatch(const TestContext& context);
void read_while_saving(const TestContext& context);

// saving.cpp
void put_work(const TestContext& context);
void put_any_thread(const TestContext& context);
void begin_unannounced(const TestContext& context);
void close_uncommitted(const TestContext& context);
void save_over(const TestContext& context);
void save_again(const TestContext& context);

// uris.cpp
void open_nothing(const TestContext& context);
void open_foreign(const TestContext& context);
void remove_one(const TestContext& context);
void odd_uris(const TestContext& context);
void hostile_keys(const TestContext& context);

// reshard.cpp
void ranks_say_so(const TestContext& context);
void reshard_1_to_3(const TestContext& context);
void reshard_4_to_2(const TestContext& context);
void reshard_rows(const TestContext& context);
void reshard_boxes(const TestContext& context);

// commit_order.cpp
void commit_durable(const TestContext& context);
void commit_order(const TestContext& context);
void commit_reader(const TestContext& context);

// faults.cpp
void faults_error(const TestContext& context);
void faults_no_space(const TestContext& context);
void faults_short_write(const TestContext& context);
void faults_kill(const TestContext& context);
void faults_ranks(const TestContext& context);
void faults_power_cut(const TestContext& context);
void faults_process(const TestContext& context);

// damage.cpp
void damage_flipped(const TestContext& context);
void damage_truncated(const TestContext& context);
void damage_missing(const TestContext& context);
void damage_mixed(const TestContext& context);

// large.cpp
void large_offsets(const TestContext& context);
void fault_soak(const TestContext& context);

}  // namespace ciuic::testing::checkpoint
