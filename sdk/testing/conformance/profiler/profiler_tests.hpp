// SPDX-License-Identifier: MIT
//
// The tests of profiler plugins; profiler_tests.cpp says what each proves.
#pragma once

#include <ciuic/testing/conformance.hpp>

namespace ciuic::testing::profiler {

// emit.cpp
void emit_cost(const TestContext& context);
void emit_while_flushing(const TestContext& context);
void emit_threads(const TestContext& context);
void emit_bounded(const TestContext& context);

// events.cpp
void events_unmatched(const TestContext& context);
void events_unknown(const TestContext& context);
void events_fields(const TestContext& context);
void events_names(const TestContext& context);
void events_not_kept(const TestContext& context);
void events_longer(const TestContext& context);
void events_unchanged(const TestContext& context);

// life.cpp
void life_without_events(const TestContext& context);
void life_after_quiesce(const TestContext& context);
void life_spans_open(const TestContext& context);
void mask_stable(const TestContext& context);
void flush_deadline(const TestContext& context);
void profiler_soak(const TestContext& context);

// output.cpp
void output_unwritable(const TestContext& context);
void output_full(const TestContext& context);
void output_parses(const TestContext& context);
void output_complete(const TestContext& context);

}  // namespace ciuic::testing::profiler
