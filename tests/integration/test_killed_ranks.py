# SPDX-License-Identifier: MIT
"""kill -9 of a rank or of the launcher at a random step: exit 5 with the rank's name, nothing left, and bits as if nothing was."""
import os
import random
import signal
import time

import pytest

from conftest import assert_no_partial_files, wait_until

STEPS = 320
CHANGES = {"run.ranks": 2, "run.steps": STEPS, "checkpoint.every": "20 steps", "validation.every": "80 steps"}
SEED = int(os.environ.get("CIUIC_TEST_SEED", "2026"))


@pytest.fixture(scope="module")
def undisturbed(shared):
    shared.train(changes=CHANGES, timeout=120)
    return shared.metrics().columns()


def kill_at(work, process, step, rank):
    work.wait_for_step(step, process)
    pid = work.ranks(2)[rank]
    begin = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    result = process.wait(15)
    assert time.monotonic() - begin < 10, result
    work.wait_for_silence(1)
    return result


@pytest.mark.parametrize("victims", [(0, 1, 0), (1, 0, 1)])
def test_kill_9_of_a_rank_at_random_steps(work, undisturbed, victims):
    work.config(CHANGES)
    steps = sorted(random.Random(f"{SEED} {victims}").sample(range(3, STEPS - 60), len(victims)))
    print(f"CIUIC_TEST_SEED={SEED}: ranks {victims} at steps {steps}")
    for step, rank in zip(steps, victims):
        result = kill_at(work, work.start("train", "run.toml"), step, rank)
        assert result.code == 5, result
        assert result.last_line.startswith("ciuic: error: "), result
        assert f"rank {rank} " in result.last_line or f"rank={rank}" in result.last_line, result
        assert "signal 9" in result.last_line or "Killed" in result.last_line, result
    work.train(timeout=120)
    assert work.metrics().columns() == undisturbed
    assert work.run("checkpoint", "verify", "out").code == 0
    assert_no_partial_files(work / "out")
    assert [line["attempt"] for line in work.metrics().of("run")] == [1, 2, 3, 4]


def test_kill_9_of_the_only_rank(work):
    work.config({**CHANGES, "run.ranks": 1})
    process = work.start("train", "run.toml")
    work.wait_for_step(10, process)
    os.kill(work.ranks(1)[0], signal.SIGKILL)
    result = process.wait(15)
    assert result.code == 5 and "rank 0" in result.last_line, result


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT])
def test_a_rank_ended_by_any_signal_counts_as_5(work, number):
    work.config(CHANGES)
    process = work.start("train", "run.toml")
    work.wait_for_step(10, process)
    os.kill(work.ranks(2)[1], number)
    result = process.wait(15)
    assert result.code == 5 and "rank 1" in result.last_line and str(int(number)) in result.last_line, result


def test_a_stopped_rank_is_a_timeout_and_not_a_hang(work):
    """SIGSTOP: the process is there and says nothing. The deadline of an operation ends the run."""
    work.config({**CHANGES, "communicator.timeout": "2s"})
    process = work.start("train", "run.toml")
    work.wait_for_step(10, process)
    begin = time.monotonic()
    os.kill(work.ranks(2)[1], signal.SIGSTOP)
    result = process.wait(20)
    assert result.code == 5 and time.monotonic() - begin < 10, result
    assert "1" in result.last_line, result
    work.wait_for_silence(1)


def test_kill_9_of_the_launcher(work, undisturbed):
    work.config(CHANGES)
    for step in (30, 90):
        process = work.start("train", "run.toml")
        work.wait_for_step(step, process)
        assert len(work.ranks(2)) == 2
        process.kill()
        begin = time.monotonic()
        work.wait_for_silence(5)
        print(f"ranks gone {time.monotonic() - begin:.2f} s after their launcher")
    work.train(timeout=120)
    assert work.metrics().columns() == undisturbed


def test_start_right_after_the_launcher_died(work):
    """The folder's lock goes with its holders: whoever starts again at once gets the folder or hears who has it."""
    work.config(CHANGES)
    process = work.start("train", "run.toml")
    work.wait_for_step(30, process)
    process.kill()

    def again():
        result = work.start("train", "run.toml", "--set", "run.steps=40").wait()
        assert result.code in (0, 2), result
        return result if result.code == 0 else None

    wait_until(again, 6, "restarted within 5 s")
    assert sorted(work.metrics().steps)[-1] >= 40


def test_kill_while_a_checkpoint_is_written(work, undisturbed):
    """Checkpoints at every step: most of the time is spent in one, so kills hit one."""
    changes = {**CHANGES, "checkpoint.every": "1 steps", "run.steps": 60, "checkpoint.keep": 2}
    work.config(changes)
    choose = random.Random(SEED)
    for step in sorted(choose.sample(range(3, 50), 3)):
        process = work.start("train", "run.toml")
        work.wait_for_step(step, process)
        time.sleep(choose.random() * 0.02)
        os.kill(work.ranks(2)[choose.randrange(2)], signal.SIGKILL)
        assert process.wait(15).code == 5
        work.wait_for_silence(1)
    work.train()
    expected = {name: {s: v for s, v in column.items() if s <= 60} for name, column in undisturbed.items()}
    assert work.metrics().columns() == expected
    assert work.run("checkpoint", "verify", "out").code == 0
    assert len(work.checkpoints()) == 2
    assert_no_partial_files(work / "out")
