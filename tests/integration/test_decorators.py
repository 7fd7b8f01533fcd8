# SPDX-License-Identifier: MIT
"""record and its replay, chaos and shadow, as a run file asks for them."""
import os
import shutil

import pytest

from conftest import assert_fault, free_port

STEPS = {"run.steps": 4, "validation.every": "never", "checkpoint.every": "never"}


class Raw(float):
    """A TOML value as it stands."""

    def __new__(cls, text):
        self = super().__new__(cls, 0)
        self.text = text
        return self

    def __repr__(self):
        return self.text


def decorated(kind, text, **more):
    return {**STEPS, **more, f"{kind}.decorate": Raw(text)}


def replay(work, log, *more):
    return work.run("plugin", "replay", log, *more)


@pytest.mark.parametrize("kind, plugin", [
    ("batch_scheduler", "fixed"), ("precision", "fp32"), ("optimizer", "adamw"), ("profiler", "monitor")])
def test_a_record_replays_bit_for_bit(work, kind, plugin):
    work.train(changes=decorated(kind, '[{ with = "record", tensor_bytes = "64MiB" }]'))
    log = work / f"out/record/{kind}-{plugin}-rank-0.log"
    result = replay(work, log)
    assert result.code == 0, str(result)
    assert "the same, bit for bit" in result.out and f"{kind} {plugin}" in result.out, str(result)
    assert "skipped" not in result.out, str(result)


def test_a_record_does_not_move_a_bit(work):
    work.train(changes=STEPS)
    plain = work.metrics().columns()
    shutil.rmtree(work / "out")
    every = {f"{kind}.decorate": Raw('[{ with = "record" }, { with = "chaos", delay = "10us", probability = 0.5 }]')
             for kind in ("batch_scheduler", "communicator", "sharding", "optimizer", "precision", "checkpoint", "profiler")}
    work.train(changes={**STEPS, **every, "run.ranks": 1, "checkpoint.every": "2 steps"})
    assert work.metrics().columns() == plain
    assert len(list((work / "out/record").glob("*-rank-0.log"))) == 7


def test_another_build_that_differs_is_found_at_its_first_call(work):
    work.train(changes=decorated("precision", '[{ with = "record", path = "calls.log" }]'))
    other = work.ciuic.parent.parent / "plugins/libbf16.so"
    assert_fault(replay(work, "calls.log", "--plugin", other), 7, "the replay differs in precision.dtype_for, call",
                 "out[0].code: got 4, recorded 2")


def test_a_log_of_several_ranks_and_kinds_that_cannot_be_run_again(work):
    work.train(changes={**decorated("sharding", '[{ with = "record" }]'), "run.ranks": 2,
                        "communicator.decorate": Raw('[{ with = "record", path = "comm.log" }]')})
    assert_fault(replay(work, "out/record/sharding-ddp-rank-1.log"), 2, "cannot be run again", "sharding")
    assert_fault(replay(work, "comm.log.rank-1"), 2, "cannot be run again", "peers")


def test_damaged_logs_are_refused_and_torn_ones_are_not(work):
    work.train(changes=decorated("batch_scheduler", '[{ with = "record", path = "calls.log" }]'))
    good = (work / "calls.log").read_bytes()
    (work / "torn.log").write_bytes(good[:-5])
    torn = replay(work, "torn.log")
    assert torn.code == 0 and "cut off" in torn.out, str(torn)
    (work / "flipped.log").write_bytes(good[:60] + bytes([good[60] ^ 1]) + good[61:])
    assert_fault(replay(work, "flipped.log"), 6, "damaged", "check does not match")
    (work / "text.log").write_text("I am a text, and quite long enough.\n")
    assert_fault(replay(work, "text.log"), 6, "this is no call log")
    assert_fault(replay(work, "nothing.log"), 6, "nothing.log", remedy="the decorator record")


def test_a_log_that_is_no_file_is_refused_at_once(work):
    os.mkfifo(work / "pipe.log")
    with open(work / "huge.log", "wb") as huge:
        huge.truncate(1 << 40)
    for log, said in [("pipe.log", "is a pipe"), (".", "is a folder"), ("/dev/zero", "is a device"), ("huge.log", "is longer")]:
        assert_fault(replay(work, log), 6, said, remedy="the decorator record")


@pytest.mark.parametrize("path", ["run.toml", "text.txt", "./sub/../run.toml"])
def test_a_record_never_replaces_a_file_that_is_no_log(work, path):
    (work / "sub").mkdir()
    work.config(decorated("optimizer", f'[{{ with = "record", path = "{path}" }}]'))
    before = (work / path).read_bytes()
    for command in (["config", "check"], ["train"]):
        assert_fault(work.run(*command, "run.toml"), 2, "run.toml:", "record of optimizer adamw cannot write", "no call log",
                     "choose another path")
    # Where a launcher starts the ranks, each looks for itself.
    port = free_port()
    env = {"RANK": 0, "WORLD_SIZE": 1, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    assert_fault(work.run("train", "run.toml", env=env), 6, "no call log", remedy="choose another path", seconds=20)
    assert (work / path).read_bytes() == before


def test_a_record_replaces_its_own_earlier_log(work):
    changes = decorated("optimizer", '[{ with = "record", path = "calls.log" }]')
    work.train(changes=changes)
    first = (work / "calls.log").stat().st_size
    work.train("--resume", "none", changes=changes)
    assert (work / "calls.log").stat().st_size == first


@pytest.mark.parametrize("changes", [
    decorated("optimizer", '[{ with = "record" }, { with = "record" }]'),
    decorated("optimizer", '[{ with = "record", path = "a.log" }, { with = "chaos", delay = "1us" }, { with = "record", path = "./a.log" }]'),
    decorated("optimizer", '[{ with = "record", path = "a.log" }]', **{"precision.decorate": Raw('[{ with = "record", path = "b/../a.log" }]')}),
    decorated("optimizer", '[{ with = "record", path = "a.log" }]',
              **{"precision.decorate": Raw('[{ with = "record", path = "a.log" }]'), "run.ranks": 2}),
])
def test_two_records_in_one_file_are_refused(work, changes):
    work.config(changes)
    for command in (["config", "check"], ["train"]):
        assert_fault(work.run(*command, "run.toml"), 2, "run.toml:", "would both write")
    assert not list(work.path.glob("a.log*"))


def test_chaos_error_at_a_call(work):
    work.config(decorated("batch_scheduler", '[{ with = "chaos", function = "plan", call = 3, error = "data_loss" }]'))
    assert_fault(work.run("train", "run.toml"), 6, "chaos: an error instead of batch_scheduler.plan",
                 "op=batch_scheduler.plan", seconds=10)


def test_chaos_kills_one_rank(work):
    work.config({**decorated("optimizer", '[{ with = "chaos", function = "update", call = 2, rank = 1, kill = true }]'),
                 "run.ranks": 2})
    result = work.run("train", "run.toml")
    assert result.code == 5 and "rank 1 was ended by signal 9" in result.last_line, str(result)


def test_chaos_drops_a_collective_until_its_deadline(work):
    work.config({**decorated("communicator", '[{ with = "chaos", function = "submit", call = 5, rank = 0, drop = true }]'),
                 "run.ranks": 2, "communicator.timeout": "2s"})
    result = work.run("train", "run.toml")
    assert_fault(result, 5, seconds=12)


def test_shadow_of_itself_finds_nothing_and_of_another_counts(work):
    more = {"run.ranks": 2, "batch_scheduler.decorate": Raw('[{ with = "shadow", candidate = "fixed" }]'),
            "communicator.decorate": Raw('[{ with = "shadow", candidate = "gloo" }]'),
            "optimizer.decorate": Raw('[{ with = "shadow", candidate = "adamw" }]')}
    work.train(changes={**STEPS, **more})
    last = work.metrics().steps[4]
    assert {last[f"shadow_{kind}_differences"] for kind in ("batch_scheduler", "communicator", "optimizer")} == {0}

    shutil.rmtree(work / "out")
    result = work.train(changes=decorated("precision", '[{ with = "shadow", candidate = "bf16" }]'))
    assert "shadow: candidate bf16 differs from precision fp32 in precision.dtype_for" in result.err, str(result)
    assert work.metrics().steps[1]["loss"] > 0


@pytest.mark.parametrize("kind, text, said", [
    ("optimizer", '[{ with = "chaos", seeds = 1, delay = "5ms" }]', ["optimizer.decorate[0].seeds is no key", "seed"]),
    ("optimizer", '[{ with = "kaos" }]', ["optimizer.decorate[0].with", "chaos"]),
    ("optimizer", '[{ with = "chaos" }]', ["chaos without a fault"]),
    ("optimizer", '[{ with = "chaos", drop = true }]', ["cannot be dropped"]),
    ("communicator", '[{ with = "chaos", function = "submitt", delay = "5ms" }]', ["submit"]),
    ("optimizer", '[{ seed = 1 }]', ["optimizer.decorate[0].with is missing"]),
    ("sharding", '[{ with = "shadow", candidate = "ddp" }]', ["a sharding has no shadow"]),
    ("optimizer", '"record"', ["optimizer.decorate", "a list of decorators"]),
    ("optimizer", '[{ with = "record", path = "{plugins}.log" }]', ["optimizer.decorate[0].path", "{plugins}", "did you mean plugin"]),
    ("optimizer", '[{ with = "record", path = "{}{rank}{step}.log" }]', ["{} stands for nothing", "{step} stands for nothing"]),
    ("optimizer", '[{ with = "record", tensor_bytes = "many" }]', ["tensor_bytes", "64KiB"]),
])
def test_what_is_wrong_with_a_decorator_is_said_with_its_line(work, kind, text, said):
    work.config(decorated(kind, text))
    assert_fault(work.run("train", "run.toml"), 2, "run.toml:", *said)


def test_an_unknown_candidate_is_no_plugin(work):
    work.config(decorated("optimizer", '[{ with = "shadow", candidate = "nosuch" }]'))
    assert_fault(work.run("train", "run.toml"), 3, '"nosuch"', "adamw")


def test_the_resolved_file_keeps_decorators_and_candidates(work):
    work.train(changes=decorated("optimizer", '[{ with = "shadow", candidate = "adamw" }, { with = "record" }]'))
    resolved = (work / "out/config.resolved.toml").read_text()
    assert 'decorate = [{ candidate = "adamw", with = "shadow" }, { with = "record" }]' in resolved
    work.path.joinpath("again.toml").write_text(resolved)
    assert work.run("config", "check", "again.toml").code == 0
