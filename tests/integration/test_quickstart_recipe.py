# SPDX-License-Identifier: MIT
"""The proofs of the quickstart's own recipe, shortened where that proves as much. Slow: minutes on two cores."""
import os
import random
import signal
import time

import pytest

from conftest import SOURCE

TEXT = SOURCE / "data/bible.txt"
RECIPE = SOURCE / "configs/quickstart.toml"
STEPS = 100
SEED = int(os.environ.get("CIUIC_TEST_SEED", "2026"))

pytestmark = pytest.mark.skipif(not TEXT.exists(), reason="data/bible.txt is not there: tools/setup writes it")


def arguments(output, *overrides, steps=STEPS):
    values = [f"run.output={output}", f"run.steps={steps}", f'data.train=["{TEXT}"]', "plugins.path=[]",
              "checkpoint.every=20 steps", "validation.every=50 steps", *overrides]
    return ["train", RECIPE, *(a for v in values for a in ("--set", v))]


def train(work, output, *overrides, steps=STEPS):
    result = work.run(*arguments(output, *overrides, steps=steps), timeout=600)
    assert result.code == 0, result
    return work.metrics(output)


@pytest.fixture(scope="module")
def undisturbed(shared):
    return train(shared, "undisturbed")


def test_validation_loss_falls_below_two(work):
    metrics = train(work, "whole", steps=300)
    validations = metrics.validations
    assert list(validations) == list(range(0, 301, 50))
    assert validations[0] == pytest.approx(5.56, abs=0.1)
    assert all(loss < 2.0 for step, loss in validations.items() if step >= 200), validations


def test_stop_at_60_gives_the_same_bytes(work, undisturbed):
    process = work.start(*arguments("out"))
    work.wait_for_step(60, process, seconds=300)
    process.signal(signal.SIGTERM)
    assert process.wait(30).code == 75
    assert train(work, "out").columns() == undisturbed.columns()


def test_kill_9_five_times_gives_the_same_bytes(work, undisturbed):
    choose = random.Random(SEED)
    steps = sorted(choose.sample(range(2, STEPS - 5), 5))
    ranks = [choose.randrange(2) for _ in steps]
    print(f"CIUIC_TEST_SEED={SEED}: ranks {ranks} at steps {steps}")
    for step, rank in zip(steps, ranks):
        process = work.start(*arguments("out"))
        work.wait_for_step(step, process, seconds=300)
        begin = time.monotonic()
        os.kill(work.ranks(2)[rank], signal.SIGKILL)
        result = process.wait(15)
        assert result.code == 5 and f"rank {rank}" in result.last_line, result
        assert time.monotonic() - begin < 10
        work.wait_for_silence(1)
    assert train(work, "out").columns() == undisturbed.columns()


def test_one_and_two_ranks_agree(work):
    constant = "schedule.learning_rate=3e-4"
    losses = [train(work, f"ranks-{ranks}", constant, f"run.ranks={ranks}", steps=50).losses for ranks in (1, 2)]
    assert losses[1][0] == pytest.approx(losses[0][0], rel=1e-6)
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
