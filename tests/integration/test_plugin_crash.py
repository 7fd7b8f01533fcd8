# SPDX-License-Identifier: MIT
"""A plugin that crashes, hangs or throws in the middle of a run: the last line names plugin, function and call."""
import re
import subprocess

import pytest

from conftest import SOURCE, assert_fault

HEAD = """
#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <ciuic/batch_scheduler.hpp>
#include <ciuic/optimizer.hpp>
#include <ciuic/precision.hpp>
#include <ciuic/profiler.hpp>
#define NAMED(text) static constexpr const char *name = text, *version = "1.2.3", *license = "MIT", *summary = "broken";
"""

HANGS_IN_PLAN = HEAD + """
class Hangs final : public ciuic::BatchScheduler {
 public:
  NAMED("hangs")
  using BatchScheduler::BatchScheduler;
  Plan plan(const ciuic_batch_request&) override { for (;;) { pause(); } }
};
CIUIC_PLUGINS(Hangs)
"""

# The tenth event is one too many.
CRASHES_IN_EMIT = HEAD + """
class Crashes final : public ciuic::Profiler {
 public:
  NAMED("crashes")
  using Profiler::Profiler;
  uint64_t mask() const noexcept override { return ~0ull; }
  void emit(ciuic::ArrayView<ciuic_event>) noexcept override {
    if (++count_ == 10) { *static_cast<volatile int*>(nullptr) = 1; }
  }
 private:
  std::atomic<int> count_{0};
};
CIUIC_PLUGINS(Crashes)
"""

# ddp's own table with another step: the smallest sharding plugin that gets that far.
ABORTS_IN_STEP = """
#include <cstdlib>
#include <dlfcn.h>
#include <ciuic/abi/ciuic.h>
static ciuic_status* step(ciuic_instance*, const ciuic_step_update*, const ciuic_stream*, ciuic_work**) { abort(); }
CIUIC_NOTE_1(CIUIC_KIND_SHARDING, 0, 1, 1, "aborts", "1.2.3", "");
extern "C" __attribute__((visibility("default"))) const ciuic_descriptor* ciuic_plugin_query(uint32_t major, uint32_t index) {
  static ciuic_descriptor d;
  static ciuic_sharding_vt vt;
  if (d.name == nullptr) {
    void* library = dlopen("%s", RTLD_NOW | RTLD_LOCAL);
    auto query = reinterpret_cast<const ciuic_descriptor* (*)(uint32_t, uint32_t)>(dlsym(library, "ciuic_plugin_query"));
    d = *query(CIUIC_ABI_MAJOR, 0);
    vt = *static_cast<const ciuic_sharding_vt*>(d.vt);
    vt.step = &step;
    d.vt = &vt;
    d.name = "aborts";
    d.version = "1.2.3";
    d.flags = 0;
    d.features = nullptr;
    d.state_schema = d.state_schema_min = 1;
  }
  return major == CIUIC_ABI_MAJOR && index == 0 ? &d : nullptr;
}
"""

# No SDK in between: the exception comes over the line. `throw` in a function with a status, and in one without.
THROWS = HEAD + """
class Thrower final : public ciuic::Precision {
 public:
  NAMED("thrower")
  using Precision::Precision;
  ciuic_dtype dtype_for(std::string_view, uint32_t) const override { return ciuic::kF32; }
};
static ciuic_status* update(ciuic_instance*, const ciuic_precision_update*) { throw std::runtime_error("bad update"); }
static double loss_scale(ciuic_instance*) { throw 7; }
static const ciuic_descriptor* throwing() {
  static ciuic_precision_vt vt = Thrower::table();
  static ciuic_descriptor d = [] {
    auto x = ciuic::detail::make_descriptor<Thrower>();
    vt.%s;
    x.vt = &vt;
    return x;
  }();
  return &d;
}
CIUIC_NOTE_1(CIUIC_KIND_PRECISION, 0, 1, 1, "thrower", "1.2.3", "");
extern "C" __attribute__((visibility("default"))) const ciuic_descriptor* ciuic_plugin_query(uint32_t major, uint32_t index) {
  return major == CIUIC_ABI_MAJOR && index == 0 ? throwing() : nullptr;
}
"""


def build(work, name, source):
    folder = work / "own"
    folder.mkdir(exist_ok=True)
    subprocess.run(["c++", "-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden", "-xc++", "-", f"-I{SOURCE}/sdk/include",
                    "-o", folder / f"lib{name}.so"], input=source, text=True, check=True)


def crash(result, signal, function, plugin):
    assert result.code == 5, str(result)
    assert result.last_line.startswith("ciuic: error: rank 0 was ended by signal"), str(result)
    assert re.search(rf"plugin {plugin} 1\.2\.3 crashed in {function}, call \d+: signal={signal} rank=0 host=\S+ module=\S+",
                     result.last_line), str(result)


def test_a_crash_in_emit_has_a_name(work):
    build(work, "crashes", CRASHES_IN_EMIT)
    work.config({"plugins.path": ["own"], "profiler.plugins": ["crashes"]})
    result = work.run("train", "run.toml")
    crash(result, "SIGSEGV", "profiler.emit", "crashes")
    assert "module=libcrashes.so" in result.last_line
    assert "plugin crashes 1.2.3 crashed in profiler.emit" in (work / "out/log/rank-0.log").read_text()


LEAVES_IN_PLAN = HEAD + """
class Leaves final : public ciuic::BatchScheduler {
 public:
  NAMED("leaves")
  using BatchScheduler::BatchScheduler;
  Plan plan(const ciuic_batch_request&) override {
    if (std::string(getenv("RANK")) == "%s") { %s; }
    throw ciuic::Error(CIUIC_UNAVAILABLE, "a peer is gone");
  }
};
CIUIC_PLUGINS(Leaves)
"""


@pytest.mark.parametrize("end", ["_exit(0)", "_exit(75)", "exit(0)", "_exit(127)", 'execl("/bin/true", "true", nullptr)'])
def test_a_plugin_that_ends_the_process_is_a_failure_and_has_a_name(work, end):
    build(work, "leaves", LEAVES_IN_PLAN % (0, end))
    work.config({"plugins.path": ["own"], "batch_scheduler.plugin": "leaves"})
    assert_fault(work.run("train", "run.toml"), 3, "rank 0 was ended by a plugin: plugin leaves 1.2.3 in batch_scheduler.plan, call",
                 "rank=0", remedy="must not end the process", seconds=8)


@pytest.mark.parametrize("leaver", [0, 1])
def test_of_two_ranks_the_one_that_left_is_blamed(work, leaver):
    build(work, "leaves", LEAVES_IN_PLAN % (leaver, "_exit(0)"))
    work.config({"plugins.path": ["own"], "batch_scheduler.plugin": "leaves", "run.ranks": 2})
    assert_fault(work.run("train", "run.toml", timeout=40), 3, f"rank {leaver} was ended by a plugin: plugin leaves 1.2.3",
                 "batch_scheduler.plan", f"rank={leaver}", seconds=15)


def test_an_abort_in_step_has_a_name(work):
    ddp = work.ciuic.parent.parent / "plugins/libddp.so"
    build(work, "aborts", ABORTS_IN_STEP % ddp)
    work.config({"plugins.path": ["own"], "sharding.plugin": "aborts"})
    crash(work.run("train", "run.toml"), "SIGABRT", "sharding.step", "aborts")


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_hang_in_plan_ends_with_its_name(work, ranks):
    build(work, "hangs", HANGS_IN_PLAN)
    work.config({"plugins.path": ["own"], "batch_scheduler.plugin": "hangs", "plugins.call_timeout": "1s",
                 "run.ranks": ranks})
    result = work.run("train", "run.toml", timeout=30)
    assert_fault(result, 5, "plugin hangs 1.2.3 did not return from batch_scheduler.plan, call 2, for 1", "rank=",
                 remedy="plugins.call_timeout is 1s", seconds=8)
    assert "did not return from batch_scheduler.plan" in (work / "out/log/rank-0.log").read_text()


def test_a_hang_while_a_rank_loads_it_is_named(work):
    """A constructor that only hangs where the probe does not see it."""
    only_in_a_rank = HANGS_IN_PLAN + """
__attribute__((constructor)) static void hang() {
  char exe[4096] = {};
  if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0 && std::string(exe).find("ciuic-worker") != std::string::npos) {
    for (;;) { pause(); }
  }
}
"""
    build(work, "hangs", only_in_a_rank)
    work.config({"plugins.path": ["own"], "batch_scheduler.plugin": "hangs", "plugins.call_timeout": "1s"})
    result = work.run("train", "run.toml", timeout=30)
    assert_fault(result, 5, "plugin hangs 1.2.3 did not return from library.load", remedy="plugins.call_timeout is 1s", seconds=8)


@pytest.mark.parametrize("thrown", ['ciuic::Error(CIUIC_INTERNAL, "lost count")', 'std::runtime_error("lost count")'])
def test_a_fault_that_a_plugin_reports_of_itself_is_the_plugins(work, thrown):
    build(work, "faulty", HANGS_IN_PLAN.replace('"hangs"', '"faulty"').replace("for (;;) { pause(); }", f"throw {thrown};"))
    work.config({"plugins.path": ["own"], "batch_scheduler.plugin": "faulty"})
    assert_fault(work.run("train", "run.toml"), 3, "batch_scheduler faulty: ", "lost count", "op=batch_scheduler.plan", seconds=8)


SLOW_CREATE = """
#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>
#include <ciuic/abi/ciuic.h>
static const ciuic_descriptor* gloo;
static ciuic_status* create(const ciuic_create_args* args, ciuic_instance** out) {
  if (args->rank == 1) { sleep(3); }
  return gloo->create(args, out);
}
CIUIC_NOTE_1(CIUIC_KIND_COMMUNICATOR, %s, 0, 0, "slow", "1.2.3", "");
extern "C" __attribute__((visibility("default"))) const ciuic_descriptor* ciuic_plugin_query(uint32_t major, uint32_t index) {
  static ciuic_descriptor d;
  if (d.name == nullptr) {
    void* library = dlopen("%s", RTLD_NOW | RTLD_LOCAL);
    auto query = reinterpret_cast<const ciuic_descriptor* (*)(uint32_t, uint32_t)>(dlsym(library, "ciuic_plugin_query"));
    gloo = query(CIUIC_ABI_MAJOR, 0);
    d = *gloo;
    d.name = "slow";
    d.version = "1.2.3";
    d.flags = 0;
    d.features = nullptr;
    d.state_schema = d.state_schema_min = 0;
    d.create = &create;
  }
  return major == CIUIC_ABI_MAJOR && index == 0 ? &d : nullptr;
}
"""


def test_a_communicator_that_waits_for_its_peer_does_not_hang(work):
    """Meeting takes as long as the slowest rank: that is the communicator's deadline, not call_timeout."""
    build(work, "slow", SLOW_CREATE % (0, work.ciuic.parent.parent / "plugins/libgloo.so"))
    work.train(changes={"plugins.path": ["own"], "communicator.plugin": "slow", "plugins.call_timeout": "1s", "run.ranks": 2,
                        "run.steps": 2})


FLUSHES = HEAD + """
class Flushes final : public ciuic::Profiler {
 public:
  NAMED("flushes")
  using Profiler::Profiler;
  uint64_t mask() const noexcept override { return 0; }
  void emit(ciuic::ArrayView<ciuic_event>) noexcept override {}
  void flush(int64_t) override { if (std::string(getenv("RANK")) == "%s") { %s; } }
};
CIUIC_PLUGINS(Flushes)
"""


@pytest.mark.parametrize("ranks, rank, body, code", [
    (1, 0, "abort()", 5), (1, 0, "_exit(0)", 3), (2, 1, "abort()", 5), (2, 1, "_exit(0)", 3)])
def test_the_last_flush_may_still_fail_the_run_and_the_metrics_say_so(work, ranks, rank, body, code):
    build(work, "flushes", FLUSHES % (rank, body))
    work.config({"plugins.path": ["own"], "profiler.plugins": ["flushes"], "run.steps": 2, "run.ranks": ranks})
    result = work.run("train", "run.toml", timeout=40)
    assert result.code == code and "plugin flushes 1.2.3" in result.last_line and "profiler.flush" in result.last_line, str(result)
    ends = work.metrics().of("end")
    assert not ends or ends[-1]["exit_code"] == code, ends


def test_a_rank_that_is_ended_says_where_it_was(work):
    """One rank hangs, its peer's deadline comes first: the launcher asks before it kills."""
    one_rank = HANGS_IN_PLAN.replace("override { for", 'override { if (getenv("RANK")[0] == \'0\') throw '
                                     "ciuic::Error(CIUIC_INVALID, \"no plan\"); for")
    build(work, "hangs", one_rank)
    work.config({"plugins.path": ["own"], "batch_scheduler.plugin": "hangs", "run.ranks": 2})
    result = work.run("train", "run.toml", timeout=30)
    assert "no plan" in result.last_line, str(result)
    assert "rank 1: plugin hangs 1.2.3 had not returned from batch_scheduler.plan, call 2 when the rank was ended" in result.err


def test_never_turns_the_watchdog_off(work):
    work.train(changes={"plugins.call_timeout": "never", "run.steps": 2})
    work.config({"plugins.call_timeout": "soon"})
    assert_fault(work.run("train", "run.toml"), 2, "plugins.call_timeout", '"never"')


@pytest.mark.parametrize("slot, function, what", [
    ("update = &update", "precision.update", "bad update"), ("loss_scale = &loss_scale", "precision.loss_scale", "(i)")])
def test_an_exception_over_the_line_is_the_plugins_fault(work, slot, function, what):
    build(work, "thrower", THROWS % slot)
    work.config({"plugins.path": ["own"], "precision.plugin": "thrower"})
    assert_fault(work.run("train", "run.toml"), 3, f"precision thrower: it threw out of {function}, call", what,
                 "rank=0", remedy="this is a bug in the plugin", seconds=8)
