# SPDX-License-Identifier: MIT
"""SIGTERM and SIGINT: a checkpoint at the next step, exit 75, and the same command goes on bit for bit. The second ends at once."""
import os
import signal
import time

import pytest

from conftest import assert_no_partial_files

STEPS = 300
CHANGES = {"run.ranks": 2, "run.steps": STEPS, "checkpoint.every": "100 steps", "validation.every": "50 steps"}
# Steps of about a second, so that a second signal finds the first one's step still at work.
SLOW = {**CHANGES, "batch_scheduler.fixed.sequences": 4096, "checkpoint.every": "never", "validation.every": "never",
        "validation.sequences": None}


@pytest.fixture(scope="module")
def undisturbed(shared):
    shared.train(changes=CHANGES, timeout=120)
    return shared.metrics()


@pytest.fixture(params=["launcher of two ranks", "launcher of one rank"])
def ranks(request):
    return 2 if "two" in request.param else 1


def stop_at(work, step, number, ranks=2):
    work.config({**CHANGES, "run.ranks": ranks})
    process = work.start("train", "run.toml")
    work.wait_for_step(step, process)
    process.signal(number)
    return process.wait(20)


def assert_stopped(work, result):
    assert result.code == 75, result
    last = work.metrics().of("step")[-1]["step"]
    assert last < STEPS and work.checkpoints()[-1] == last, result
    assert (work / "out/checkpoints/latest").read_text().strip() == f"step-{last:08d}"
    assert work.metrics().lines[-1]["type"] == "end" and work.metrics().lines[-1]["exit_code"] == 75
    assert "ciuic: error" not in result.err, result
    assert_no_partial_files(work / "out")
    work.wait_for_silence(0.5)
    return last


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_stop_at_60_and_go_on(work, undisturbed, number):
    last = assert_stopped(work, stop_at(work, 60, number))
    assert last >= 60
    assert work.run("checkpoint", "verify", "out").code == 0
    work.train(timeout=120)
    joined = work.metrics()
    assert joined.columns() == undisturbed.columns()
    assert joined.validations == undisturbed.validations
    assert [line["attempt"] for line in joined.of("run")] == [1, 2]
    assert joined.of("run")[1]["start_step"] == last
    assert [line["tokens"] for line in joined.steps.values()] == [line["tokens"] for line in undisturbed.steps.values()]


def test_stop_again_and_again(work, undisturbed):
    work.config(CHANGES)
    for step in (20, 45, 130):
        process = work.start("train", "run.toml")
        work.wait_for_step(step, process)
        process.signal(signal.SIGTERM)
        assert_stopped(work, process.wait(20))
    work.train(timeout=120)
    assert work.metrics().columns() == undisturbed.columns()


def test_signal_to_a_single_rank_stops_all(work, undisturbed):
    work.config(CHANGES)
    process = work.start("train", "run.toml")
    work.wait_for_step(40, process)
    os.kill(work.ranks(2)[1], signal.SIGTERM)
    assert_stopped(work, process.wait(20))
    work.train(timeout=120)
    assert work.metrics().columns() == undisturbed.columns()


def test_signal_before_the_first_step(work):
    work.config(CHANGES)
    process = work.start("train", "run.toml")
    work.ranks(2)
    process.signal(signal.SIGTERM)
    result = process.wait(20)
    assert result.code in (75, 143), result  # before the ranks can save, there is nothing to save
    work.wait_for_silence(1)
    work.train("--set", "run.steps=30")
    assert sorted(work.metrics().steps) == list(range(1, 31))


def test_signal_while_the_run_is_checked(work):
    work.config(CHANGES)
    process = work.start("train", "run.toml")
    process.signal(signal.SIGTERM)
    assert process.wait(20).code in (75, 143, -signal.SIGTERM)
    work.wait_for_silence(1)


@pytest.mark.parametrize("first, second, code", [
    (signal.SIGTERM, signal.SIGTERM, 143), (signal.SIGINT, signal.SIGINT, 130), (signal.SIGTERM, signal.SIGINT, 130),
], ids=["SIGTERM twice", "SIGINT twice", "SIGTERM and SIGINT"])
def test_second_signal_stops_at_once(work, ranks, first, second, code):
    work.config({**SLOW, "run.ranks": ranks})
    process = work.start("train", "run.toml")
    work.wait_for_step(1, process, seconds=60)
    process.signal(first)
    time.sleep(0.2)
    begin = time.monotonic()
    process.signal(second)
    result = process.wait(20)
    assert result.code == code, result
    assert time.monotonic() - begin < 3, result
    work.wait_for_silence(1)
    assert not work.checkpoints(), "the second signal cut the checkpoint short"


def test_stop_of_a_run_in_the_shell_of_a_person(work):
    """Ctrl-C reaches the whole foreground group: the ranks are in groups of their own, so they hear it once."""
    work.config(CHANGES)
    process = work.start("train", "run.toml")
    work.wait_for_step(30, process)
    os.killpg(process.pid, signal.SIGINT)
    assert_stopped(work, process.wait(20))


def test_stop_at_the_last_step_is_done(work):
    """A request that comes too late changes nothing: the run ends with 0 or, just before, with 75; a new call ends it."""
    work.config({**CHANGES, "run.steps": 30})
    process = work.start("train", "run.toml")
    work.wait_for_step(29, process)
    try:
        process.signal(signal.SIGTERM)
    except ProcessLookupError:
        pass
    assert process.wait(20).code in (0, 75)
    work.train()
    assert sorted(work.metrics().steps) == list(range(1, 31))
